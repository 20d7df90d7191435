// How often a while's body runs, read from the module: recorded by the compiler, or found by
// running the loop's integers.
#ifndef MALLOCGAME_HLO_TRIP_COUNT_H_
#define MALLOCGAME_HLO_TRIP_COUNT_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "mallocgame/hlo/module.h"

namespace mallocgame::hlo {

// Counts trips for the loops of one module. All calls together do a bounded amount of work; what
// can't be counted within it is unknown.
class TripCounter {
 public:
  explicit TripCounter(const Module& module) : module_(module) {}

  // `loop` is a while whose init tuple, body and condition match (Module's caller has checked
  // that). Nothing if the count depends on data.
  std::optional<int64_t> Count(int32_t loop);

 private:
  using Value = std::optional<int64_t>;
  struct Loop;

  std::optional<int64_t> Recorded(int32_t loop) const;
  std::optional<int64_t> Closed(Loop& loop);
  std::optional<int64_t> Simulated(Loop& loop);

  // The scalar integer that `instruction` computes, given what `parameter` says of its
  // computation's parameters.
  template <class Parameter>
  Value Evaluate(int32_t instruction, const Parameter& parameter);
  template <class Parameter>
  Value Apply(int32_t instruction, const std::vector<Value>& operands, const Parameter& parameter);

  const Module& module_;
  int64_t budget_ = 2'000'000;  // instructions evaluated
};

}  // namespace mallocgame::hlo

#endif  // MALLOCGAME_HLO_TRIP_COUNT_H_
