// Soft actor-critic for an episode of one step: two critics learn the reward of maps, the actor the
// map that they like. With no step to follow there is nothing to bootstrap from, so there are no
// target networks and no discount. Torch stays behind this header.
#ifndef AGENTS_EGRL_LEARNER_H_
#define AGENTS_EGRL_LEARNER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "agents/egrl/config.h"
#include "agents/egrl/problem_graph.h"
#include "mallocgame/base/rng.h"

namespace mallocgame::egrl {

struct Losses {
  double critic = 0;          // mean square error of the scaled reward, mean of both critics
  double value = 0;           // the lesser of what the critics expect of the actor's map
  double entropy = 0;         // of the actor, in nats, mean over the real decisions
  double actor_gradient = 0;  // norm, before clipping
};

// Belongs to one thread at a time. Deterministic: the same calls give the same bytes.
class Learner {
 public:
  // Internal: what Torch has to say.
  static absl::StatusOr<std::unique_ptr<Learner>> Create(const Config& config,
                                                         const ProblemGraph& graph, uint64_t seed);
  virtual ~Learner() = default;

  // One step of the critics, then of the actor. `maps`: one behind the other, as many as `rewards`.
  // FailedPrecondition: a loss is not finite; nothing was changed then but what the optimizers
  // remember.
  virtual absl::StatusOr<Losses> Update(absl::Span<const uint8_t> maps,
                                        absl::Span<const double> rewards, Rng& rng) = 0;
  virtual int64_t updates() const = 0;

  // The actor, as Policy knows it.
  virtual std::vector<float> Actor() const = 0;
  virtual void SetActor(absl::Span<const float> weights) = 0;

  // What the critics expect of maps, the lesser of both, in scaled rewards. Any number of threads
  // may ask, while nothing else is called.
  virtual absl::StatusOr<std::vector<float>> Values(absl::Span<const uint8_t> maps) const = 0;

  // Networks, optimizers and number of updates. InvalidArgument: the bytes are none of ours, or of
  // other networks.
  virtual absl::StatusOr<std::string> Save() const = 0;
  virtual absl::Status Load(absl::string_view bytes) = 0;
};

}  // namespace mallocgame::egrl

#endif  // AGENTS_EGRL_LEARNER_H_
