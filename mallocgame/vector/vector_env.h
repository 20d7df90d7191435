// Many environments stepped together into the caller's memory, in place for few and on threads for
// many. What it does is what Gymnasium's SyncVectorEnv does with the same environments, step by
// step, whatever the number of threads. One call at a time.
#ifndef MALLOCGAME_VECTOR_VECTOR_ENV_H_
#define MALLOCGAME_VECTOR_VECTOR_ENV_H_

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
  // the step after the end ignores the action and begins the next episode, with reward 0
  kNextStep,
  // the step that ends it also begins the next one; the last observation goes to
  // StepBuffers::final_*
  kSameStep,
  kDisabled,  // the caller resets it; a step before that is refused
};

// How environments choose their games.
enum class GameOrder : uint8_t {
  kDrawn,  // each episode draws from the whole list
  kFixed,  // environment i plays game i modulo the length of the list
};

struct VectorEnvOptions {
  Autoreset autoreset = Autoreset::kNextStep;
  GameOrder order = GameOrder::kDrawn;
  // 0: one a processor core for 256 environments or more, else the caller's alone; at most 1024
  int threads = 0;
};

// Rows of environments one behind the other. A call writes the rows of those that it moved or
// began.
struct StepBuffers {
  float* observations = nullptr;  // observation_size() numbers a row
  int8_t* masks = nullptr;        // num_actions() a row: 0 or 1
  // one: picoseconds saved over the all-main latency; not used by Reset
  double* rewards = nullptr;
  bool* terminated = nullptr;  // one
  // one: of the step's state, before an autoreset of the same step
  int64_t* latency_ps = nullptr;
  // kSameStep: of those that terminated, before the reset; like observations
  float* final_observations = nullptr;
  int8_t* final_masks = nullptr;  // likewise, like masks
};

class VectorEnv {
 public:
  // InvalidArgument: count outside 1 to 2^20, or threads outside 0 to 1024.
  static absl::StatusOr<std::unique_ptr<VectorEnv>> Create(std::shared_ptr<const GameList> games,
                                                           int count,
                                                           const VectorEnvOptions& options);

  int count() const { return static_cast<int>(environments_.size()); }
  int threads() const { return pool_.threads(); }
  const GameList& games() const { return *games_; }
  const Environment& environment(int i) const { return environments_[i]; }
  bool ended(int i) const { return environment(i).state().IsTerminal(); }

  // Begins an episode of each environment with which[i] (empty: of all), with seeds[i] (empty: none
  // has one). The lengths are 0 or count(); else InvalidArgument. Writes observations, masks and
  // latency_ps.
  absl::Status Reset(absl::Span<const std::optional<uint64_t>> seeds, absl::Span<const bool> which,
                     const StepBuffers& out);

  // One step of all. InvalidArgument: a wrong number of actions, or an illegal one;
  // FailedPrecondition: an environment that has ended (kDisabled). The message names the first such
  // environment; then none has moved and nothing is written.
  absl::Status Step(absl::Span<const int64_t> actions, const StepBuffers& out);

 private:
  VectorEnv(std::shared_ptr<const GameList> games, int count, const VectorEnvOptions& options,
            int threads);

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

#endif  // MALLOCGAME_VECTOR_VECTOR_ENV_H_
