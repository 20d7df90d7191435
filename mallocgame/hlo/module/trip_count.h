// How often the body of a while runs, read from the module: recorded by the compiler, or found from
// the integers of the loop. Private to the folder.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {

// Counts trips for the loops of one module. All calls together do a bounded amount of work; a loop
// that cannot be counted within that is unknown.
class TripCounter {
 public:
  explicit TripCounter(const Module& module) : module_(module) {}

  // `loop` is a while of one operand that calls two computations of one parameter (the caller has
  // checked that). 0 if its body never runs. None if the count depends on data, or the loop never
  // ends.
  std::optional<int64_t> Count(int32_t loop);

 private:
  struct Number;
  using Value = std::optional<Number>;
  // The value of a parameter by its number, or of one element of it if it is a tuple.
  using ParameterValue = std::function<Value(int64_t number, std::optional<int64_t> element)>;
  struct Loop;

  std::optional<int64_t> Recorded(int32_t loop) const;
  std::optional<int64_t> Closed(const Loop& loop);
  std::optional<int64_t> Simulated(const Loop& loop);

  // The instruction that makes element k of what instruction `i` gives, if it can be told; the
  // element kWhole of an array is the array.
  std::optional<int32_t> Element(int32_t i, int64_t k) const;
  // The scalar integer that `root` computes, given the parameters of its computation.
  Value Evaluate(int32_t root, const ParameterValue& parameter);
  Value Apply(int32_t i, const std::vector<Value>& values, const ParameterValue& parameter);
  // The value of an element of what a loop begins with.
  std::optional<int64_t> Initial(const Loop& loop, int64_t element);
  // The instructions whose values the value of `i` is made of.
  std::vector<int32_t> SourcesOf(int32_t i) const;

  const Module& module_;
  int64_t budget_ = 2'000'000;  // instructions that may still be evaluated
};

}  // namespace mallocgame::hlo
