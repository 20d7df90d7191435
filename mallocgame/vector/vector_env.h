// Many environments that are stepped together and write into the caller's memory: a few in the
// caller's thread, many on threads. Step by step it does what Gymnasium's SyncVectorEnv does with
// the same environments, whatever the number of threads. One call at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "mallocgame/base/worker_pool.h"
#include "mallocgame/vector/environment.h"

namespace mallocgame {

// What becomes of an environment whose episode ended.
enum class Autoreset : uint8_t {
  // The step after the end ignores its action and begins the next episode, with reward 0. The mask
  // of the end has action 0 as legal, so that a policy that obeys masks has something to choose.
  kNextStep,
  // The step that ends the episode also begins the next one. The ended one's last observation goes
  // to StepBuffers::final_observations, its mask to final_masks.
  kSameStep,
  // The caller resets it; a step before that is refused.
  kDisabled,
};

// How environments choose their games.
enum class GameOrder : uint8_t {
  kDrawn,  // each episode draws from the whole list
  kFixed,  // environment i plays game i modulo the length of the list
};

struct VectorEnvOptions {
  Autoreset autoreset = Autoreset::kNextStep;
  GameOrder order = GameOrder::kDrawn;
  // 1 to 1024, or 0 for a choice: one for each processor core with 256 environments or more, else
  // the caller's alone.
  int threads = 0;
};

// Where a call writes: each field holds a row for each environment, one after the other. A call
// writes the rows of the environments that it steps or resets.
struct StepBuffers {
  float* observations = nullptr;  // a row is observation_size() numbers
  // A row is num_actions() numbers, 0 or 1. It is never all 0 but for ends with kDisabled.
  int8_t* masks = nullptr;
  // The picoseconds saved / the all-main latency. Reset does not write it.
  double* rewards = nullptr;
  bool* terminated = nullptr;  // Reset does not write it
  // The latency of the state that the step came to, before an autoreset of the same step.
  int64_t* latency_ps = nullptr;
  // With kSameStep, for environments that terminated: observations and masks before the reset.
  float* final_observations = nullptr;
  int8_t* final_masks = nullptr;
};

class VectorEnv {
 public:
  // InvalidArgument: `count` is outside 1 to 2^20, or `threads` outside 0 to 1024.
  static absl::StatusOr<std::unique_ptr<VectorEnv>> Create(std::shared_ptr<const GameList> games,
                                                           int count,
                                                           const VectorEnvOptions& options);

  // A fork: it goes on from where this one is, with threads of its own.
  std::unique_ptr<VectorEnv> Clone() const;

  int count() const { return static_cast<int>(environments_.size()); }
  int threads() const { return pool_.threads(); }
  Autoreset autoreset() const { return options_.autoreset; }
  const GameList& games() const { return *games_; }
  const Environment& environment(int i) const { return environments_[i]; }
  bool ended(int i) const { return environment(i).position().IsTerminal(); }

  // Begins an episode of each environment i for which which[i] holds, or of all if `which` is
  // empty. seeds[i] is its seed; if `seeds` is empty, none has one. InvalidArgument unless both are
  // of length 0 or count(). Writes observations, masks and latency_ps.
  absl::Status Reset(absl::Span<const std::optional<uint64_t>> seeds, absl::Span<const bool> which,
                     const StepBuffers& out);

  // Has each environment go on from a point (Environment::Resume), and writes as Reset does.
  // InvalidArgument: there are not count() points, or an action is illegal; the message names the
  // environment. Then those before it have gone on.
  absl::Status Resume(absl::Span<const EnvironmentPoint> points, const StepBuffers& out);

  // Makes one step of each environment. InvalidArgument: the number of actions is wrong, or one is
  // illegal. FailedPrecondition: an environment has ended (kDisabled). The message names the first
  // such environment; then no environment has moved, and nothing is written.
  absl::Status Step(absl::Span<const int64_t> actions, const StepBuffers& out);

 private:
  VectorEnv(std::shared_ptr<const GameList> games, std::vector<Environment> environments,
            const VectorEnvOptions& options, int threads);

  void ForEach(const std::function<void(int, int)>& body);
  absl::Status CheckAction(int i, int64_t action) const;
  absl::Status StepOne(int i, int64_t action, const StepBuffers& out);
  void WriteState(int i, float* observations, int8_t* masks) const;

  std::shared_ptr<const GameList> games_;
  VectorEnvOptions options_;
  std::vector<Environment> environments_;
  WorkerPool pool_;
};

}  // namespace mallocgame
