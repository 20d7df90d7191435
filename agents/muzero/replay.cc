#include "agents/muzero/replay.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>
#include <utility>

#include "agents/training/bytes.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/play_actions.h"

namespace mallocgame::muzero {
namespace {

using training::CutShort;
using training::ReadBytes;
using training::WriteBytes;

constexpr int kPositionsPerGame = 8;
// No priority comes near it, and the sum of as many as a replay buffer holds is a number.
constexpr float kMostPriority = 1e20F;

// A step is drawn in proportion to this. The priority already has its exponent. New steps come
// first.
float WeightOf(const Step& step) { return step.priority < 0 ? kNewPriority : step.priority; }

float WeightOf(const PlayedGame& game) {
  float sum = 0;
  for (const Step& step : game.steps) sum += WeightOf(step);
  return sum;
}

// Draws index i with probability weight(i) / sum.
template <class Weight>
size_t DrawIndex(size_t count, float sum, const Weight& weight, Rng& rng) {
  float at = static_cast<float>(rng.Uniform()) * sum;
  for (size_t i = 0; i + 1 < count; ++i) {
    at -= weight(i);
    if (at < 0) return i;
  }
  return count - 1;
}

}  // namespace

void WritePolicy(const std::vector<float>& policy, std::string& out) {
  const auto zeros = std::count(policy.begin(), policy.end(), 0.0F);
  WriteBytes(static_cast<uint16_t>(policy.size() - zeros), out);
  for (size_t a = 0; a < policy.size(); ++a) {
    if (policy[a] == 0) continue;
    WriteBytes(static_cast<uint16_t>(a), out);
    WriteBytes(policy[a], out);
  }
}

absl::Status ReadPolicy(absl::string_view& in, const Game& game, std::vector<float>& policy) {
  policy.assign(game.num_actions(), 0.0F);
  uint16_t count = 0, action = 0;
  MG_RETURN_IF_ERROR(ReadBytes(in, count));
  for (int i = 0; i < count; ++i) {
    MG_RETURN_IF_ERROR(ReadBytes(in, action));
    if (action >= policy.size()) return CutShort();
    MG_RETURN_IF_ERROR(ReadBytes(in, policy[action]));
  }
  return absl::OkStatus();
}

void WriteStep(const Step& step, std::string& out) {
  WriteBytes(step.decision, out);
  WriteBytes(step.lead, out);
  WriteBytes(step.value, out);
  WriteBytes(step.priority, out);
  WriteBytes(
      static_cast<uint8_t>(step.searched | (step.policy.empty() ? 0 : 2) | (step.taught << 2)),
      out);
  if (!step.policy.empty()) WritePolicy(step.policy, out);
}

absl::Status ReadStep(absl::string_view& in, const Game& game, Step& step) {
  uint8_t flags = 0;
  MG_RETURN_IF_ERROR(ReadBytes(in, step.decision));
  MG_RETURN_IF_ERROR(ReadBytes(in, step.lead));
  MG_RETURN_IF_ERROR(ReadBytes(in, step.value));
  MG_RETURN_IF_ERROR(ReadBytes(in, step.priority));
  MG_RETURN_IF_ERROR(ReadBytes(in, flags));
  if (!(step.priority <= kMostPriority)) return CutShort();
  step.searched = flags & 1;
  step.taught = flags >> 2 & 1;
  step.policy.clear();
  return (flags & 2) != 0 ? ReadPolicy(in, game, step.policy) : absl::OkStatus();
}

void WriteGame(const PlayedGame& game, std::string& out) {
  WriteBytes(game.task, out);
  WriteBytes(game.actions, out);
  WriteBytes(game.to_end, out);
  WriteBytes(game.searched_by, out);
  WriteBytes(static_cast<uint64_t>(game.steps.size()), out);
  for (const Step& step : game.steps) WriteStep(step, out);
}

absl::StatusOr<PlayedGame> ReadGame(absl::string_view& in, absl::Span<const Task> tasks) {
  PlayedGame game;
  uint64_t steps = 0;
  MG_RETURN_IF_ERROR(ReadBytes(in, game.task));
  MG_RETURN_IF_ERROR(ReadBytes(in, game.actions));
  MG_RETURN_IF_ERROR(ReadBytes(in, game.to_end));
  MG_RETURN_IF_ERROR(ReadBytes(in, game.searched_by));
  MG_RETURN_IF_ERROR(ReadBytes(in, steps));
  if (game.task < 0 || static_cast<size_t>(game.task) >= tasks.size() ||
      steps > game.actions.size())
    return CutShort();
  const Task& task = tasks[game.task];
  game.steps.resize(steps);
  for (Step& step : game.steps) {
    MG_RETURN_IF_ERROR(ReadStep(in, task.game(), step));
    if (step.decision < 0 || static_cast<size_t>(step.decision) >= game.actions.size())
      return CutShort();
  }
  const auto end = PlayActions(task.game(), game.actions);
  if (!end.ok() || !(*end)->IsTerminal()) return CutShort();
  game.latency_ps = (*end)->latency_ps();
  game.final_lead = static_cast<float>(task.Lead(**end));
  return game;
}

PlayedGame GameOf(const Task& task, int32_t index, const Position& end, int first, bool imitate) {
  PlayedGame game;
  game.task = index;
  game.actions.assign(end.actions().begin(), end.actions().end());
  game.latency_ps = end.latency_ps();
  game.final_lead = static_cast<float>(task.Lead(end));
  const bool imitated = imitate && game.MayBeImitated();
  const std::unique_ptr<Position> position = task.game().NewInitialPosition();
  for (size_t i = 0; i < game.actions.size(); ++i) {
    if (static_cast<int>(i) >= first && position->legal_actions().size() > 1) {
      Step step;
      step.decision = static_cast<int32_t>(i);
      step.lead = static_cast<float>(task.Lead(*position));
      if (imitated) {
        step.policy.resize(task.game().num_actions());
        step.policy[game.actions[i]] = 1;
      }
      game.steps.push_back(std::move(step));
    }
    MG_CHECK(position->Apply(game.actions[i]).ok());
  }
  return game;
}

ValueTarget ValueTargetOf(const PlayedGame& game, size_t t, int n_step) {
  const size_t most = t + static_cast<size_t>(n_step), count = game.steps.size();
  const Step& step = game.steps[t];
  size_t last = t;
  bool all = step.searched != 0;
  for (size_t later = t + 1; later <= most && later < count; ++later) {
    all &= game.steps[later].searched != 0;
    if (game.steps[later].searched != 0) last = later;
  }
  const bool to_the_end = most >= count && all && game.to_end != 0;
  if (last == t || to_the_end) return {game.final_lead - step.lead, to_the_end};
  return {game.steps[last].lead - step.lead + game.steps[last].value, true};
}

void Replay::Add(PlayedGame game) {
  game.id = games_++;
  game.source = Source::kRecent;
  recent_steps_ += static_cast<int64_t>(game.steps.size());
  recent_.push_back(std::move(game));
  while (recent_steps_ > config_.capacity && recent_.size() > 1) {
    recent_steps_ -= static_cast<int64_t>(recent_.front().steps.size());
    recent_.pop_front();
  }
}

void Replay::AddDemonstration(PlayedGame game) {
  game.id = games_++;
  game.source = Source::kDemonstration;
  demonstrations_.push_back(std::move(game));
}

std::optional<size_t> Replay::Offer(const PlayedGame& game) {
  std::vector<PlayedGame>& best = best_[game.task];
  const auto at = std::lower_bound(
      best.begin(), best.end(), game.latency_ps,
      [](const PlayedGame& a, int64_t latency_ps) { return a.latency_ps < latency_ps; });
  // One game of each latency is enough: games of the same latency mostly differ in what does not
  // matter.
  if (at != best.end() && at->latency_ps == game.latency_ps) return std::nullopt;
  const auto place = static_cast<size_t>(at - best.begin());
  PlayedGame& kept = *best.insert(at, game);
  kept.id = games_++;
  kept.source = Source::kBest;
  constexpr size_t kMost = Config::kBestGames;
  if (best.size() > kMost) best.pop_back();
  return place < kMost ? std::optional(place) : std::nullopt;
}

const PlayedGame* Replay::Find(const StepId& id) const {
  const auto find = [&id](const auto& games) -> const PlayedGame* {
    for (const PlayedGame& game : games) {
      if (game.id == id.game) return &game;
    }
    return nullptr;
  };
  // Those are many, and in the order of their ids.
  const auto recent =
      std::lower_bound(recent_.begin(), recent_.end(), id.game,
                       [](const PlayedGame& game, int64_t wanted) { return game.id < wanted; });
  const PlayedGame* found = recent != recent_.end() && recent->id == id.game ? &*recent : nullptr;
  for (size_t task = 0; found == nullptr && task < best_.size(); ++task) found = find(best_[task]);
  if (found == nullptr) found = find(demonstrations_);
  const bool has_step =
      found != nullptr && id.step >= 0 && static_cast<size_t>(id.step) < found->steps.size();
  return has_step ? found : nullptr;
}

PlayedGame* Replay::Find(const StepId& id) {
  return const_cast<PlayedGame*>(static_cast<const Replay*>(this)->Find(id));
}

void Replay::Revise(const Revision& revision) {
  PlayedGame* const game = Find(revision.id);
  if (game == nullptr) return;
  Step& step = game->steps[revision.id.step];
  if (!revision.value) {
    step.policy = revision.policy;
    step.taught = 1;
    return;
  }
  step.value = *revision.value;
  step.searched = 1;
  if (step.taught != 0) return;  // by the rules themselves, which no search knows better
  step.policy = revision.policy;
  if (game->source == Source::kRecent || !game->MayBeImitated()) return;
  for (float& p : step.policy) p *= static_cast<float>(1 - config_.imitation);
  const uint8_t played = game->actions[step.decision];
  step.policy[played] += static_cast<float>(config_.imitation);
}

std::vector<const PlayedGame*> Replay::Games(Source source) const {
  std::vector<const PlayedGame*> games;
  if (source == Source::kRecent) {
    for (const PlayedGame& game : recent_) games.push_back(&game);
  } else if (source == Source::kDemonstration) {
    for (const PlayedGame& game : demonstrations_) games.push_back(&game);
  } else {
    for (const auto& best : best_) {
      for (const PlayedGame& game : best) games.push_back(&game);
    }
  }
  return games;
}

// Draws steps: by priority, or evenly.
class Replay::Drawing {
 public:
  Drawing(const Replay& replay, bool by_priority) : by_priority_(by_priority) {
    const Config& config = replay.config_;
    const double shares[kSources] = {1 - config.best_share() - config.demonstration_share,
                                     config.best_share(), config.demonstration_share};
    for (int s = 0; s < kSources; ++s) {
      Pool& pool = pools_[s];
      pool.games = replay.Games(static_cast<Source>(s));
      for (const PlayedGame* game : pool.games) {
        pool.weights.push_back(by_priority ? WeightOf(*game)
                                           : static_cast<float>(game->steps.size()));
        pool.weight += pool.weights.back();
        pool.steps += static_cast<int64_t>(game->steps.size());
      }
      // A source without games leaves its share to the others. The small addend lets a source be
      // drawn from even if its share is 0, when the others have no games; but MuZero as published
      // learns from its own games alone.
      const float least = config.paper() ? 0.0F : 1e-6F;
      if (pool.weight > 0) pool.share = static_cast<float>(shares[s]) + least;
      share_ += pool.share;
    }
  }

  std::vector<StepId> Draw(int count, Rng& rng) const {
    std::vector<StepId> steps;
    if (share_ <= 0) return steps;
    while (steps.size() < static_cast<size_t>(count)) {
      const Pool& pool =
          pools_[DrawIndex(kSources, share_, [&](size_t i) { return pools_[i].share; }, rng)];
      const size_t g =
          DrawIndex(pool.games.size(), pool.weight, [&](size_t i) { return pool.weights[i]; }, rng);
      const PlayedGame& game = *pool.games[g];
      if (game.steps.empty()) continue;
      for (int i = 0; i < kPositionsPerGame && steps.size() < static_cast<size_t>(count); ++i) {
        const auto weight = [&](size_t t) { return by_priority_ ? WeightOf(game.steps[t]) : 1.0F; };
        const size_t t = DrawIndex(game.steps.size(), pool.weights[g], weight, rng);
        steps.push_back({game.id, static_cast<int32_t>(t)});
      }
    }
    return steps;
  }

  // How much more rarely a step of the game is drawn than the mean step of its source.
  float Rarity(const PlayedGame& game, const Step& step) const {
    const Pool& pool = pools_[static_cast<size_t>(game.source)];
    const float mean = pool.weight / static_cast<float>(pool.steps);
    return mean / WeightOf(step);
  }

 private:
  struct Pool {
    std::vector<const PlayedGame*> games;
    std::vector<float> weights;
    float weight = 0, share = 0;
    int64_t steps = 0;
  };
  bool by_priority_;
  std::array<Pool, kSources> pools_;
  float share_ = 0;
};

std::vector<Replay::Sample> Replay::Draw(int samples, int count, Rng& rng) const {
  const Drawing drawing(*this, true);
  std::vector<Sample> drawn(samples);
  for (Sample& sample : drawn) {
    sample.steps = drawing.Draw(count, rng);
    float most = 0;
    for (const StepId& id : sample.steps) {
      const PlayedGame& game = *Find(id);
      sample.importance.push_back(
          std::pow(drawing.Rarity(game, game.steps[id.step]), kImportanceExponent));
      most = std::max(most, sample.importance.back());
    }
    for (float& importance : sample.importance) importance /= most;
  }
  return drawn;
}

std::vector<StepId> Replay::DrawEvenly(int count, Rng& rng) const {
  return Drawing(*this, false).Draw(count, rng);
}

float PriorityOf(float error) { return std::pow(std::abs(error) + kLeastError, kPriorityExponent); }

void Replay::Write(std::string& out) const {
  for (int s = 0; s < kSources; ++s) {
    const auto games = Games(static_cast<Source>(s));
    WriteBytes(static_cast<uint64_t>(games.size()), out);
    for (const PlayedGame* game : games) WriteGame(*game, out);
  }
}

absl::Status Replay::Read(absl::string_view& in, absl::Span<const Task> tasks) {
  for (int s = 0; s < kSources; ++s) {
    uint64_t count = 0;
    MG_RETURN_IF_ERROR(ReadBytes(in, count));
    for (uint64_t i = 0; i < count; ++i) {
      MG_ASSIGN_OR_RETURN(PlayedGame game, ReadGame(in, tasks));
      if (static_cast<Source>(s) == Source::kRecent) {
        Add(std::move(game));
      } else if (static_cast<Source>(s) == Source::kDemonstration) {
        AddDemonstration(std::move(game));
      } else {
        game.id = games_++;
        game.source = Source::kBest;
        best_[game.task].push_back(std::move(game));
      }
    }
  }
  // Each task has been played, and something was decided in its games.
  const auto playable = [](const std::vector<PlayedGame>& best) {
    return !best.empty() && std::none_of(best.begin(), best.end(),
                                         [](const PlayedGame& game) { return game.steps.empty(); });
  };
  return std::all_of(best_.begin(), best_.end(), playable) ? absl::OkStatus() : CutShort();
}

namespace {

// An observation that the batch needs: that before `decision`, in `row` of the batch.
struct Wanted {
  int32_t decision;
  size_t row;
};

void WriteTargets(const PlayedGame& game, size_t first, size_t row, size_t actions, Batch& batch) {
  const size_t unroll = batch.unroll;
  for (size_t k = 0; k <= unroll; ++k) {
    const size_t t = first + k, element = row * (unroll + 1) + k;
    const bool known = t < game.steps.size();
    // After the end of the game reward and value are 0; after the last step of others, unknown.
    batch.value_weights[element] = known || game.to_end != 0 ? 1.0F : 0.0F;
    if (k < unroll)
      batch.reward_weights[row * unroll + k] =
          t + 1 < game.steps.size() || game.to_end != 0 ? 1.0F : 0.0F;
    if (!known) continue;
    const Step& step = game.steps[t];
    const auto [value, own] = ValueTargetOf(game, t, Config::kSteps);
    batch.values[element] = value;
    if (!own) batch.value_weights[element] = kOthersValueWeight;
    batch.policy_weights[element] = step.policy.empty() ? 0.0F : 1.0F;
    std::copy(step.policy.begin(), step.policy.end(),
              batch.policies.begin() + static_cast<ptrdiff_t>(element * actions));
    if (k == unroll) continue;
    const float next = t + 1 < game.steps.size() ? game.steps[t + 1].lead : game.final_lead;
    batch.actions[row * unroll + k] = game.actions[step.decision];
    batch.rewards[row * unroll + k] = next - step.lead;
  }
}

// Plays the game once, and writes the observations at the wanted decisions.
void WriteObservations(const Task& task, const PlayedGame& game, std::vector<Wanted>& wanted,
                       Batch& batch) {
  std::sort(wanted.begin(), wanted.end(), [](const Wanted& a, const Wanted& b) {
    return std::tie(a.decision, a.row) < std::tie(b.decision, b.row);
  });
  const size_t size = task.observation_size();
  const std::unique_ptr<Position> position = task.game().NewInitialPosition();
  for (const Wanted& w : wanted) {
    while (position->num_decisions() < w.decision)
      MG_CHECK(position->Apply(game.actions[position->num_decisions()]).ok());
    task.Observe(*position, batch.observations.data() + w.row * size);
  }
}

}  // namespace

Batch MakeBatch(const Config& config, absl::Span<const Task> tasks, const Replay& replay,
                const Replay::Sample& sample) {
  Batch batch;
  const size_t rows = sample.steps.size(), unroll = config.paper() ? Config::kUnroll : 0;
  const size_t actions = tasks[0].game().num_actions();
  const size_t elements = rows * (unroll + 1);
  batch.rows = static_cast<int>(rows);
  batch.unroll = static_cast<int>(unroll);
  batch.observations.resize(rows * tasks[0].observation_size());
  batch.actions.resize(rows * unroll);
  batch.rewards.resize(rows * unroll);
  batch.reward_weights.resize(rows * unroll);
  batch.values.resize(elements);
  batch.value_weights.resize(elements);
  batch.policies.resize(elements * actions);
  batch.policy_weights.resize(elements);
  batch.importance = sample.importance;
  for (size_t begin = 0, end = 0; begin < rows; begin = end) {
    const PlayedGame& game = *replay.Find(sample.steps[begin]);
    std::vector<Wanted> wanted;
    for (; end < rows && sample.steps[end].game == game.id; ++end) {
      const size_t first = sample.steps[end].step;
      WriteTargets(game, first, end, actions, batch);
      wanted.push_back({game.steps[first].decision, end});
    }
    WriteObservations(tasks[game.task], game, wanted, batch);
  }
  return batch;
}

}  // namespace mallocgame::muzero
