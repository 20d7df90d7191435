#include "agents/muzero/self_play.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "agents/muzero/variation.h"
#include "agents/training/bytes.h"
#include "agents/training/stopwatch.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/play_actions.h"
#include "mallocgame/tree/selection.h"

namespace mallocgame::muzero {
namespace {

using training::CutShort;
using training::ReadBytes;
using training::WriteBytes;

constexpr float kLeastRange = 0.1F;  // in units; nearer returns hardly differ to the search
// Where rollouts alone judge, returns are exact. A good action gains tenths of a unit there, a bad
// one loses tens. What is so far behind the best, in units, counts as bad as any, so that the gain
// is seen. Returns weigh more than where networks err.
constexpr float kMostRange = 1;
constexpr float kExactScale = 1;

// With which an action is drawn from the visits. It falls when half and three quarters of the
// updates are done in which the learning rate falls, as in MuZero.
double TemperatureAfter(int64_t updates, const Config& config) {
  const double done = static_cast<double>(updates) / config.decay_updates;
  return done < 0.5 ? 1 : done < 0.75 ? 0.5 : 0.25;
}

// In checkpoints, in the place of the task of a game.
constexpr int32_t kNotStarted = -1;

// In nats.
double Entropy(absl::Span<const float> policy) {
  double sum = 0;
  for (float p : policy) sum -= p > 0 ? p * std::log(p) : 0;
  return sum;
}

std::vector<float> PolicyOf(const mcts::Search& search, int root) {
  return {search.policy(root).begin(), search.policy(root).end()};
}

}  // namespace

absl::StatusOr<std::unique_ptr<mcts::Search>> MakeSearch(const Config& config, int roots,
                                                         int num_actions, bool explore) {
  mcts::SearchOptions options;
  options.simulations = config.simulations;
  options.min_range = kLeastRange;
  if (config.exact()) options.max_range = kMostRange;
  std::shared_ptr<const mcts::Selection> selection;
  if (config.paper()) {
    mcts::PuctOptions puct;
    puct.unvisited = mcts::Unvisited::kNode;
    puct.dirichlet_fraction = explore ? 0.25F : 0.0F;
    MG_ASSIGN_OR_RETURN(selection, mcts::MakePuct(puct));
  } else {
    mcts::GumbelOptions gumbel;
    gumbel.considered = std::min<int>(config.simulations, Config::kMostConsidered);
    if (config.exact()) gumbel.c_scale = kExactScale;
    // Where all actions are alike, noise draws those that are considered.
    gumbel.noise_scale = explore || config.prior == "uniform" ? 1.0F : 0.0F;
    MG_ASSIGN_OR_RETURN(selection, mcts::MakeGumbel(gumbel));
  }
  return mcts::Search::Create(options, std::move(selection), roots, num_actions);
}

SelfPlay::SelfPlay(const Config& config, absl::Span<const Task> tasks)
    : config_(config), tasks_(tasks), episodes_(config.games) {}
SelfPlay::~SelfPlay() = default;

absl::StatusOr<std::unique_ptr<SelfPlay>> SelfPlay::Create(const Config& config,
                                                           absl::Span<const Task> tasks) {
  auto group = std::unique_ptr<SelfPlay>(new SelfPlay(config, tasks));
  MG_ASSIGN_OR_RETURN(group->search_,
                      MakeSearch(config, config.games, tasks[0].game().num_actions(), true));
  return group;
}

struct SelfPlay::Episode {
  int32_t task;
  // The number of decisions to go. Then there is one more search, and it follows `follow`.
  int32_t left;
  std::unique_ptr<Position> position;
  std::vector<Step> steps;
  // The actions of a whole game: of the one that it began in, or of the baseline, or of a faster
  // one that its searches have found since.
  std::vector<uint8_t> follow;
  int64_t searched_by;  // as PlayedGame's
};

struct SelfPlay::Turn {
  const Assignment& assignment;
  SearchModel& model;
  Rng rng;
  size_t begun = 0;  // number of games that have begun
  Harvest harvest = {};
};

std::unique_ptr<SelfPlay::Episode> SelfPlay::Begin(Turn& turn) const {
  const std::vector<Start>& starts = turn.assignment.starts;
  const Start& start = starts[turn.begun++ % starts.size()];
  const Game& game = task(start.task).game();
  if (turn.rng.Uniform() < config_.restart_share) {
    const int32_t decision = turn.rng.Pick(start.decisions);
    const auto left = 1 + static_cast<int32_t>(turn.rng.Below(Config::kWindow));
    std::unique_ptr<Position> position =
        PositionAfter(game, absl::MakeConstSpan(start.actions).subspan(0, decision));
    return std::make_unique<Episode>(
        Episode{start.task, left, std::move(position), {}, start.actions, turn.assignment.updates});
  }
  std::unique_ptr<Position> position = game.NewInitialPosition();
  PlayForced(*position);
  constexpr int32_t kToTheEnd = std::numeric_limits<int32_t>::max();
  return std::make_unique<Episode>(Episode{start.task,
                                           kToTheEnd,
                                           std::move(position),
                                           {},
                                           task(start.task).baseline(),
                                           turn.assignment.updates});
}

// A finished game has the searched decisions with what their searches said. What was followed
// behind them is of others: there is nothing of the agent's to be learned from it.
PlayedGame SelfPlay::Finish(const Episode& episode) const {
  const Task& own = task(episode.task);
  const Position& position = *episode.position;
  const std::unique_ptr<Position> end =
      position.IsTerminal() ? nullptr : FollowGame(own.game(), position.actions(), episode.follow);
  const Position& last = end == nullptr ? position : *end;
  PlayedGame game = GameOf(own, episode.task, last, last.num_decisions(), false);
  game.steps = episode.steps;
  game.to_end = end == nullptr ? 1 : 0;
  game.searched_by = episode.searched_by;
  return game;
}

absl::Status SelfPlay::Search(absl::Span<const Root> roots, uint64_t seed, Turn& turn) {
  turn.model.SetRoots(roots);
  search_->ForgetAll();
  MG_RETURN_IF_ERROR(search_->Run(turn.model, seed));
  for (int i = 0; i < search_->roots(); ++i) {
    if (search_->terminal(i)) continue;
    ++turn.harvest.searches;
    turn.harvest.depth_sum += search_->depth(i).mean;
    turn.harvest.entropy_sum += Entropy(search_->policy(i));
  }
  return absl::OkStatus();
}

absl::Status SelfPlay::Move(uint64_t seed, Turn& turn) {
  std::vector<Root> roots;
  for (std::unique_ptr<Episode>& episode : episodes_) {
    if (!episode) episode = Begin(turn);
    roots.push_back({&task(episode->task), episode->position.get(), episode->follow});
  }
  MG_RETURN_IF_ERROR(Search(roots, seed, turn));
  const double temperature = TemperatureAfter(turn.assignment.updates, config_);
  for (size_t i = 0; i < episodes_.size(); ++i) {
    Episode& episode = *episodes_[i];
    const int root = static_cast<int>(i);
    const int action = config_.paper() ? *search_->SampleAction(root, temperature, turn.rng)
                                       : search_->action(root);
    Position& position = *episode.position;
    if (turn.model.faster(root)) {
      const auto actions = turn.model.fastest(root);
      episode.follow.assign(actions.begin(), actions.end());
      const std::unique_ptr<Position> end = PositionAfter(position.game(), actions);
      turn.harvest.rollouts.push_back(
          GameOf(task(episode.task), episode.task, *end, 0, /*imitate=*/true));
    }
    episode.steps.push_back({position.num_decisions(),
                             static_cast<float>(task(episode.task).Lead(position)),
                             search_->value(root), PolicyOf(*search_, root), -1, 1});
    // The search behind the last decision says what the agent expects from there on.
    if (episode.left-- > 0) {
      MG_RETURN_IF_ERROR(position.Apply(action).status());
      PlayForced(position);
      if (!position.IsTerminal()) continue;
    }
    turn.harvest.games.push_back(Finish(episode));
    episodes_[i].reset();
  }
  return absl::OkStatus();
}

// Plays games again up to the old decisions, and searches with the networks as they are now.
absl::Status SelfPlay::Reanalyse(Turn& turn) {
  const size_t roots_at_once = episodes_.size();
  const auto all = absl::MakeConstSpan(turn.assignment.old);
  for (size_t begin = 0; begin < all.size(); begin += roots_at_once) {
    const auto some = all.subspan(begin, roots_at_once);
    std::vector<std::unique_ptr<Position>> replayed;
    for (const Start& old : some) {
      const auto before = absl::MakeConstSpan(old.actions).subspan(0, old.decisions[0]);
      replayed.push_back(PositionAfter(task(old.task).game(), before));
    }
    std::vector<Root> roots;
    for (size_t i = 0; i < roots_at_once; ++i) {
      const size_t other = i % some.size();  // repeats positions to fill the last batch
      roots.push_back({&task(some[other].task), replayed[other].get(), some[other].actions});
    }
    MG_RETURN_IF_ERROR(
        Search(roots, MixSeeds(MixSeeds(turn.assignment.seed, 1u << 31), begin), turn));
    for (size_t i = 0; i < some.size(); ++i) {
      const int root = static_cast<int>(i);
      turn.harvest.revisions.push_back(
          {{some[i].id, some[i].first_step}, PolicyOf(*search_, root), search_->value(root)});
    }
  }
  return absl::OkStatus();
}

absl::Status SelfPlay::Vary(Network& network, Turn& turn) {
  const Start& start = *turn.assignment.varied;
  return VaryGame(task(start.task), start, config_.varied_decisions,
                  config_.proposals == "uniform" ? nullptr : &network, turn.rng, turn.harvest);
}

absl::StatusOr<Harvest> SelfPlay::Run(Network& network, const Assignment& assignment,
                                      const std::function<bool()>& interrupted) {
  const training::Stopwatch watch;
  const auto model = MakeSearchModel(config_, network);
  Turn turn = {assignment, *model, Rng(assignment.seed)};
  const auto cancelled = [&interrupted] { return interrupted && interrupted(); };
  for (int move = 0; move < config_.moves; ++move) {
    if (cancelled()) return absl::CancelledError("muzero: cancelled");
    MG_RETURN_IF_ERROR(Move(MixSeeds(assignment.seed, static_cast<uint64_t>(move)), turn));
  }
  MG_RETURN_IF_ERROR(Reanalyse(turn));
  if (cancelled()) return absl::CancelledError("muzero: cancelled");
  if (assignment.varied) MG_RETURN_IF_ERROR(Vary(network, turn));
  turn.harvest.evaluations = model->evaluations();
  turn.harvest.seconds = watch.seconds();
  return std::move(turn.harvest);
}

void SelfPlay::Write(std::string& out) const {
  for (const std::unique_ptr<Episode>& episode : episodes_) {
    WriteBytes(episode ? episode->task : kNotStarted, out);
    if (!episode) continue;
    const absl::Span<const uint8_t> actions = episode->position->actions();
    WriteBytes(episode->left, out);
    WriteBytes(std::vector<uint8_t>(actions.begin(), actions.end()), out);
    WriteBytes(episode->follow, out);
    WriteBytes(episode->searched_by, out);
    WriteBytes(static_cast<uint64_t>(episode->steps.size()), out);
    for (const Step& step : episode->steps) WriteStep(step, out);
  }
}

absl::Status SelfPlay::Read(absl::string_view& in) {
  for (std::unique_ptr<Episode>& episode : episodes_) {
    int32_t index = 0;
    MG_RETURN_IF_ERROR(ReadBytes(in, index));
    episode.reset();
    if (index < 0) continue;
    MG_ASSIGN_OR_RETURN(episode, ReadEpisode(in, index));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SelfPlay::Episode>> SelfPlay::ReadEpisode(absl::string_view& in,
                                                                         int32_t index) const {
  if (static_cast<size_t>(index) >= tasks_.size()) return CutShort();
  int32_t left = 0;
  int64_t searched_by = 0;
  std::vector<uint8_t> actions, follow;
  uint64_t steps = 0;
  MG_RETURN_IF_ERROR(ReadBytes(in, left));
  MG_RETURN_IF_ERROR(ReadBytes(in, actions));
  MG_RETURN_IF_ERROR(ReadBytes(in, follow));
  MG_RETURN_IF_ERROR(ReadBytes(in, searched_by));
  MG_RETURN_IF_ERROR(ReadBytes(in, steps));
  const Game& game = task(index).game();
  absl::StatusOr<std::unique_ptr<Position>> position = PlayActions(game, actions);
  if (!position.ok() || (*position)->IsTerminal() || steps > actions.size() || left < 0)
    return CutShort();
  const auto end = PlayActions(game, follow);
  if (!end.ok() || !(*end)->IsTerminal()) return CutShort();
  auto episode = std::make_unique<Episode>(Episode{
      index, left, *std::move(position), std::vector<Step>(steps), std::move(follow), searched_by});
  for (Step& step : episode->steps) {
    MG_RETURN_IF_ERROR(ReadStep(in, game, step));
    if (step.decision < 0 || static_cast<size_t>(step.decision) >= actions.size())
      return CutShort();
  }
  return episode;
}

}  // namespace mallocgame::muzero
