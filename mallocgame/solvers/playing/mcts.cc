// Plays one game after another. In each game a tree is searched before every decision. The value of
// a leaf comes from playing on to the end in the way of the current game, or greedily where that is
// not possible, so every leaf is a complete game. A better game replaces the current one at once,
// and its action is played, so no game ends worse than it started.
//
// Every second game starts from a few random changes to the best one, so that the search does not
// stay where it is. The others start from the best game itself, with 1, 2, 1, 4, 1, 2, 1, 8 ...
// times the simulations of the first for each decision.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/game/play_actions.h"
#include "mallocgame/search/starts.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/playing/rent.h"
#include "mallocgame/tree/game_model.h"
#include "mallocgame/tree/rollout_policy.h"
#include "mallocgame/tree/schedule_policy.h"
#include "mallocgame/tree/search.h"

namespace mallocgame {
namespace mcts {
namespace {

// For each decision, in every second game. A priority game has more actions.
constexpr int kTimeSimulations = 16, kPrioritySimulations = 32;
constexpr int kMostDoublings = 14;
// Room in the tree, which is kept from one decision to the next.
constexpr int kNodesPerSimulation = 8;
// The logit of the current game's action; other actions have 0.
constexpr float kPreferredLogit = 1;
constexpr int kPositionsBetweenClocks = 16;
constexpr double kStartShare = 0.1;  // of the limits, for what a priority game starts from

PuctOptions OptionsOfPuct() {
  PuctOptions options;
  options.unvisited = Unvisited::kNode;
  options.dirichlet_alpha = 1;
  options.dirichlet_fraction = 0.5f;
  return options;
}

// Values positions by games that follow the current game. Knows the current and the best game.
class Rollouts final : public Evaluator {
 public:
  Rollouts(const Game& game, BasePolicy& policy, Budget& budget)
      : game_(game), policy_(policy), budget_(budget) {
    // The game that `policy` plays from the start is counted already.
    const std::unique_ptr<Position> position = game_.NewInitialPosition();
    policy_.PlayOn(*position);
    budget_.Keep(*position);
    Keep(*position);
    Adopt();
    best_ = line_;
  }

  // The actions of the current game.
  const std::vector<uint8_t>& actions() const { return line_.actions; }

  // Makes the best game the current one.
  void ReturnToBest() {
    if (line_.latency_ps <= best_.latency_ps) {
      best_ = line_;
    } else {
      line_ = best_;
      Adopt();
    }
  }

  // This looks at the clock, which takes time.
  bool Exhausted() const { return budget_.Exhausted() || budget_.Progress() >= 1; }

  // Changes a few decisions of the current game at random.
  void Change(Rng& rng) {
    policy_.Change(rng);
    PlayFromStart();
  }

  void Begin(int rows) override { rows_.assign(rows, {}); }

  void Look(int row, int /*root*/, Position& position) override {
    Row& out = rows_[row];
    const auto decisions = static_cast<size_t>(position.num_decisions());
    const int64_t latency_ps = position.latency_ps();
    PlayOn(position);
    const absl::Span<const uint8_t> actions = position.actions();
    if (actions.size() > decisions) out.preferred = actions[decisions];
    out.saved_ps = latency_ps - position.latency_ps();
    // A game of the same latency is taken too: the search drifts over what makes no difference.
    if (position.latency_ps() <= line_.latency_ps && actions != absl::MakeConstSpan(line_.actions))
      Keep(position);
    for (size_t more = actions.size() - decisions; more > 0; --more) position.Undo();
  }

  absl::Status Finish(absl::Span<float> logits, absl::Span<float> values) override {
    if (changed_) Adopt();
    const auto all_main_ps = static_cast<double>(game_.all_main_ps());
    const size_t actions = logits.size() / values.size();
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(static_cast<double>(rows_[i].saved_ps) / all_main_ps);
      if (rows_[i].preferred >= 0) logits[i * actions + rows_[i].preferred] = kPreferredLogit;
    }
    const bool look_at_clock = ++positions_ % kPositionsBetweenClocks == 0;
    if (budget_.OutOfEvaluations() || (look_at_clock && Exhausted()))
      return absl::CancelledError("out of limits");
    return absl::OkStatus();
  }

 private:
  struct Row {
    int64_t saved_ps = 0;
    int preferred = -1;
  };
  struct Line {
    std::vector<uint8_t> actions;
    int64_t latency_ps = 0;
  };

  void PlayOn(Position& position) {
    policy_.PlayOn(position);
    budget_.Finished(position);
  }

  void PlayFromStart() {
    const std::unique_ptr<Position> position = game_.NewInitialPosition();
    PlayOn(*position);
    Keep(*position);
    Adopt();
  }

  void Keep(const Position& end) {
    line_.latency_ps = end.latency_ps();
    line_.actions.assign(end.actions().begin(), end.actions().end());
    changed_ = true;
  }

  void Adopt() {
    policy_.Adopt(line_.actions);
    changed_ = false;
  }

  const Game& game_;
  BasePolicy& policy_;
  Budget& budget_;
  Line line_, best_;      // the current game, and the best
  bool changed_ = false;  // whether line_ is not the game that is followed
  int64_t positions_ = 0;
  std::vector<Row> rows_;
};

void Note(const Search& search, SearchStatistics& statistics) {
  const size_t begin = statistics.visits.size();
  statistics.visits.resize(begin + search.num_actions());
  statistics.values.resize(begin + search.num_actions());
  std::copy(search.visits(0).begin(), search.visits(0).end(), &statistics.visits[begin]);
  std::copy(search.q(0).begin(), search.q(0).end(), &statistics.values[begin]);
}

// Searches and plays all decisions of one game. False if the limits ended it.
bool SearchDecisions(const Game& game, int simulations, uint64_t seed, Budget& budget,
                     Rollouts& rollouts, GameModel& model, SearchStatistics& statistics) {
  SearchOptions options;
  options.simulations = simulations;
  options.max_nodes = kNodesPerSimulation * simulations;
  options.min_range = 1e-7f;  // a share of the all-main latency
  const auto search = Search::Create(options, *MakePuct(OptionsOfPuct()), 1, game.num_actions());
  MG_CHECK(search.ok());
  Rng seeds(seed);
  model.SetPosition(0, game.NewInitialPosition());
  for (size_t i = 0; i < rollouts.actions().size(); ++i) {
    const int64_t before = budget.evaluations();
    const absl::Status status = (*search)->Run(model, seeds.Next());
    if (status.code() == absl::StatusCode::kCancelled) return false;
    MG_CHECK(status.ok());
    // Games that end in the tree are not shown to the evaluator again.
    for (int64_t seen = budget.evaluations() - before; seen < (*search)->simulations(0); ++seen)
      budget.Looked();
    if (rollouts.Exhausted()) return false;
    Note(**search, statistics);
    const uint8_t action = rollouts.actions()[i];
    const absl::StatusOr<bool> kept = (*search)->Advance(model, 0, action);
    MG_CHECK(kept.ok());
    if (*kept) continue;
    std::unique_ptr<Position> next = model.position(0).Clone();
    MG_CHECK(next->Apply(action).ok());
    model.SetPosition(0, std::move(next));
  }
  return true;
}

// Plays one game and offers it, with what its searches said, as the best one. If the limits ended
// it, its searches are incomplete, so it is offered only where no game with searches is known.
// False if the limits ended it.
bool PlayOneGame(const Game& game, int simulations, uint64_t seed, Budget& budget,
                 Rollouts& rollouts, GameModel& model) {
  SearchStatistics statistics;
  const bool whole = SearchDecisions(game, simulations, seed, budget, rollouts, model, statistics);
  if (!whole && !budget.best_play().search.visits.empty()) return false;
  const std::unique_ptr<Position> end = *PlayActions(game, rollouts.actions());
  statistics.visits.resize(rollouts.actions().size() * game.num_actions());
  statistics.values.resize(statistics.visits.size());
  budget.Searched(*end, std::move(statistics));
  return whole;
}

// Plays games until the limits are used up, the first with so many simulations for each decision.
void PlayGames(const Game& game, BasePolicy& policy, int simulations, Rng& rng, Budget& budget) {
  Rollouts rollouts(game, policy, budget);
  if (rollouts.actions().empty()) return;
  std::vector<std::unique_ptr<Position>> starts;
  starts.push_back(game.NewInitialPosition());
  const auto model = GameModel::Create(std::move(starts), &rollouts);
  MG_CHECK(model.ok());
  for (uint64_t number = 1; !rollouts.Exhausted(); ++number) {
    const int doublings = std::min(std::countr_zero(number), kMostDoublings);
    rollouts.ReturnToBest();
    if (doublings == 0 && number > 1) rollouts.Change(rng);
    if (!PlayOneGame(game, simulations << doublings, rng.Next(), budget, rollouts, **model)) break;
  }
  rollouts.ReturnToBest();
}

// A priority game is the one that begins best among those that differ in what is important.
void PlaySearched(const Game& game, Budget& budget) {
  Rng rng(budget.seed(), 4);
  if (game.options().decides_order()) {
    const FoundPlan first = StartingPlan(*game.PlannedAt({}), budget.deadline().Share(kStartShare));
    PlayGames(game, *MakePolicy(game, &first.plan), kPrioritySimulations, rng, budget);
  } else if (const PriorityGame* const priority = PriorityGame::From(game); priority != nullptr) {
    GameStart start = std::move(StartsWithin(*priority, budget, kStartShare, kStartShare).front());
    RolloutPolicy policy(*start.game, std::move(start.intent));
    PlayGames(*start.game, policy, kPrioritySimulations, rng, budget);
  } else {
    const State rent = BestRentGame(game, budget.deadline());
    RolloutPolicy policy(game, IntentLike(game, ReadGame(rent)));
    PlayGames(game, policy, kTimeSimulations, rng, budget);
  }
}

}  // namespace
}  // namespace mcts

bool PlayMcts(const Game& game, Budget& budget) {
  mcts::PlaySearched(game, budget);
  return false;
}

}  // namespace mallocgame
