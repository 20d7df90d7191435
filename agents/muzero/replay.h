// The games that the agent learns from, which of their decisions are replayed, and with which
// targets. A game is kept as its actions and what its searches said. Observations are made again
// when it is replayed.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "agents/muzero/config.h"
#include "agents/muzero/learner.h"
#include "agents/muzero/task.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"

namespace mallocgame::muzero {

// A decision with several legal actions.
struct Step {
  int32_t decision = 0;  // index of its action among the actions of the game
  float lead = 0;        // the lead before the decision, in units
  float value = 0;       // the search's value, which is the lead still to be gained; if `searched`
  // The policy to learn, a number for each action; empty if none is known.
  std::vector<float> policy = {};
  // PriorityOf the error when the step was last replayed; negative before the first time.
  float priority = -1;
  uint8_t searched = 0;
  uint8_t taught = 0;  // the policy is what variations taught
};

inline constexpr float kNewPriority = 4;  // priority of a step that was not yet replayed
// It is added to every error, so that no step is forgotten.
inline constexpr float kLeastError = 0.02F;
// The exponent of the importance weight that corrects for the priorities.
inline constexpr float kImportanceExponent = 0.4F;
// The weight of a value target where what follows was played by others, not by the agent's search.
inline constexpr float kOthersValueWeight = 0.25F;
// `error` is the value's in units, or where rollouts alone judge, and so nobody asks for the value,
// that of the policy in nats, as in KataGo's weighting by surprise (Wu 2019). There, most positions
// have nothing better than what is followed, and teach nothing.
inline constexpr float kPriorityExponent = 0.6F;
float PriorityOf(float error);

// A policy, a number for each action of `game`, as bytes and back; most numbers are 0 and are not
// written. InvalidArgument: the bytes are damaged.
void WritePolicy(const std::vector<float>& policy, std::string& out);
absl::Status ReadPolicy(absl::string_view& in, const Game& game, std::vector<float>& policy);

// A step of `game` as bytes and back. InvalidArgument: the bytes are damaged.
void WriteStep(const Step& step, std::string& out);
absl::Status ReadStep(absl::string_view& in, const Game& game, Step& step);

// What the replay keeps a game for. Its steps are drawn from one of these after the other.
enum class Source : uint8_t { kRecent, kBest, kDemonstration };
inline constexpr int kSources = 3;

struct PlayedGame {
  int64_t id = 0;  // that the replay gave it, and where it stands there
  Source source = Source::kRecent;
  int32_t task = 0;  // index of its task
  std::vector<uint8_t> actions;
  std::vector<Step> steps;  // the decisions to learn from, one behind the other
  uint8_t to_end = 1;       // whether they go on to the end of the game
  // The number of updates that the oldest networks had behind them which searched its decisions.
  int64_t searched_by = 0;
  float final_lead = 0;
  int64_t latency_ps = 0;

  // Whether its actions are worth learning. Demonstrations that are slower than the baseline are
  // not: the policy would become a mixture of what all players do, which is worse than the best.
  bool MayBeImitated() const { return final_lead >= 0; }
};

// A game as bytes and back, without its id. InvalidArgument: the bytes are damaged.
void WriteGame(const PlayedGame& game, std::string& out);
absl::StatusOr<PlayedGame> ReadGame(absl::string_view& in, absl::Span<const Task> tasks);

// A finished game with its steps from decision `first` on. With `imitate`, the policy to learn at
// each step is the action played, if the game may be imitated.
PlayedGame GameOf(const Task& task, int32_t index, const Position& end, int first, bool imitate);

// The value target of step t, in units: the lead gained until the last of the next n steps that was
// searched, plus what the search expected there; or the lead gained to the end, if that is nearer,
// or if none of them was searched. Then others may have played from there on, and the target is not
// the agent's own.
struct ValueTarget {
  float value = 0;
  bool own = false;
};
ValueTarget ValueTargetOf(const PlayedGame& game, size_t t, int n_step);

// A step of a game of the replay, by the game's id.
struct StepId {
  int64_t game = 0;
  int32_t step = 0;

  template <class Self>
  static auto Fields(Self& self) {
    return std::tie(self.game, self.step);
  }
};

// What is learned of an old step: what a new search says of it, or what variations of its game
// taught, which has no value.
struct Revision {
  StepId id;
  std::vector<float> policy;
  std::optional<float> value;
};

class Replay {
 public:
  Replay(const Config& config, size_t tasks) : config_(config), best_(tasks) {}

  // Drops the oldest games while there are more than config.capacity steps.
  void Add(PlayedGame game);
  void AddDemonstration(PlayedGame game);
  // Keeps the game if it is among the Config::kBestGames best ones of its task, which all differ in
  // latency. Its place among them, 0 for the best of all; nothing if it is none.
  std::optional<size_t> Offer(const PlayedGame& game);

  uint32_t tasks() const { return static_cast<uint32_t>(best_.size()); }
  // The best games of a task, best first. There is one after the first Offer.
  const std::vector<PlayedGame>& best(size_t task) const { return best_[task]; }
  int64_t recent_steps() const { return recent_steps_; }

  // The game that has a step; null if it was dropped.
  const PlayedGame* Find(const StepId& id) const;
  PlayedGame* Find(const StepId& id);

  // Takes over what is learned of a step, unless its game was dropped.
  void Revise(const Revision& revision);

  // `samples` samples, each of `count` steps drawn by priority, and for each step the importance
  // weight that corrects for the priorities. Several are of the same game, which is then
  // played again only once. Empty only if there is nothing to learn from.
  struct Sample {
    std::vector<StepId> steps;
    std::vector<float> importance;
  };
  std::vector<Sample> Draw(int samples, int count, Rng& rng) const;
  // The same without priorities, for reanalysis.
  std::vector<StepId> DrawEvenly(int count, Rng& rng) const;

  // Everything that is kept, as bytes and back. InvalidArgument: the bytes are damaged.
  void Write(std::string& out) const;
  absl::Status Read(absl::string_view& in, absl::Span<const Task> tasks);

 private:
  class Drawing;  // of steps

  std::vector<const PlayedGame*> Games(Source source) const;

  Config config_;
  std::deque<PlayedGame> recent_;
  std::vector<std::vector<PlayedGame>> best_;  // for each task
  std::vector<PlayedGame> demonstrations_;
  int64_t recent_steps_ = 0;
  int64_t games_ = 0;  // number of games that were kept since the start, of which ids are made
};

// What an update learns from the steps of `sample`.
Batch MakeBatch(const Config& config, absl::Span<const Task> tasks, const Replay& replay,
                const Replay::Sample& sample);

}  // namespace mallocgame::muzero
