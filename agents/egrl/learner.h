// Soft actor-critic for an episode of one step, on one or more placement problems with the same
// networks. Two critics learn the values of maps, and the actor learns the map that the critics
// like. No step follows from which to bootstrap, so there are no target
// networks and no discount. The actor pays for what its map fills of each level beyond the
// capacity: prices rise where it overfills a level, and fall where it doesn't. Torch stays behind
// this header.
#pragma once

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
  double critic = 0;  // mean square error of the scaled value, mean of both critics
  double value = 0;   // scaled value that the critics expect of the actor's map, the lesser of both
  double entropy = 0;         // entropy of the actor in nats, mean over the real decisions
  double actor_gradient = 0;  // norm of the actor's gradient before clipping
};

// The value of a map is minus its latency over the baseline's, or with Config::penalty its reward.
// One thread at a time may use a
// learner. It is deterministic: the same calls give the same bytes.
class Learner {
 public:
  // Draws new networks from the seed. Internal: Torch reports an error.
  static absl::StatusOr<std::unique_ptr<Learner>> Create(const Config& config,
                                                         const std::vector<ProblemGraph>& graphs,
                                                         uint64_t seed);
  // InvalidArgument: `saved` has fewer bytes than the weights of these settings take. Asked before
  // Create, it keeps a few damaged bytes from taking gigabytes.
  static absl::Status CheckSize(const Config& config, const ProblemGraph& graph,
                                absl::string_view saved);
  virtual ~Learner() = default;

  // Does one step of the critics and then one of the actor. `maps` holds one map of a problem, the
  // graph of which Create got in this place, for each of the values, one behind the other.
  // FailedPrecondition: a loss is not finite; then only what the optimizers remember may have
  // changed.
  virtual absl::StatusOr<Losses> Update(size_t problem, absl::Span<const uint8_t> maps,
                                        absl::Span<const double> values, Rng& rng) = 0;
  virtual int64_t updates() const = 0;  // number of updates done

  // The weights of the actor, in the order of Policy.
  virtual std::vector<float> Actor() const = 0;
  virtual void SetActor(absl::Span<const float> weights) = 0;
  // The weights of both critics.
  virtual std::vector<float> Critics() const = 0;
  virtual void SetCritics(absl::Span<const float> weights) = 0;
  static size_t NumCritics(const Config& config, const ProblemGraph& graph);

  // Has Values answer for a problem, with the critics as they are now.
  virtual absl::Status Prepare(size_t problem) = 0;
  // The scaled values that the critics expect of maps, the lesser of both. Several threads may ask
  // at the same time, as long as nothing else is called.
  virtual absl::StatusOr<std::vector<float>> Values(absl::Span<const uint8_t> maps) const = 0;

  // The networks, the optimizers and the number of updates as bytes and back. InvalidArgument: Save
  // did not make the bytes, or they are of other networks.
  virtual absl::StatusOr<std::string> Save() const = 0;
  virtual absl::Status Load(absl::string_view bytes) = 0;
};

}  // namespace mallocgame::egrl
