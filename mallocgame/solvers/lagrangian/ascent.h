// The Lagrangian bound: the dual of a program, maximised by a supergradient method.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/game/prices.h"
#include "mallocgame/program/cost_model.h"

namespace mallocgame {

// It is deterministic: more time goes on where less time stopped.
class LagrangianAscent {
 public:
  // Buffers of less than `least_bytes` lie anywhere at no cost. The cost model must outlive it.
  // InvalidArgument: as PricePlacements.
  static absl::StatusOr<LagrangianAscent> Create(const CostModel& cost_model, int64_t least_bytes);
  LagrangianAscent(LagrangianAscent&&) noexcept;
  ~LagrangianAscent();

  // Goes on until the deadline. Returns whether it has converged: a longer round of steps than all
  // before has gained less than a hundred-thousandth.
  bool Run(const Deadline& deadline);

  // The best value so far, in floating point. -infinity before Run.
  double value_ps() const;
  int64_t steps() const;
  // The certificate of it: one integer for each multiplier.
  std::vector<int64_t> multipliers() const;
  // What any multipliers prove, worked out in integers: no valid plan has a lower latency.
  // InvalidArgument: there are more or fewer than it needs, or they aren't allowed.
  absl::StatusOr<int64_t> ProvenPs(absl::Span<const int64_t> multipliers) const;
  // What the best multipliers say of space and channel.
  Prices prices() const;

 private:
  struct Impl;
  explicit LagrangianAscent(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace mallocgame
