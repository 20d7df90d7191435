// Which arrays of a module share storage: alias analysis by must-alias closure (XLA reference 1.2
// and 1.3).
#ifndef MALLOCGAME_HLO_DATAFLOW_H_
#define MALLOCGAME_HLO_DATAFLOW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/hlo/module.h"

namespace mallocgame::hlo {

// An operand's array that an instruction updates in place: array `operand_array` of operand
// `operand` and array `output_array` of the result are one.
struct InPlacePair {
  int32_t operand = 0;
  int32_t operand_array = 0;
  int32_t output_array = 0;
  friend bool operator==(const InPlacePair&, const InPlacePair&) = default;
};

class Dataflow {
 public:
  // Arrays of the control computations on the time axis, united by: tuples and their elements,
  // bitcasts and other instructions that pass values on; loops, branches and calls; updates in
  // place; donated parameters. InvalidArgument where shapes that must agree don't.
  static absl::StatusOr<Dataflow> Build(const Module& module, const Timeline& timeline);

  // A set of arrays that share storage, named by its smallest array. `array`: an index into all
  // arrays of the module, Module::instruction(i).first_array + k.
  int32_t SetOf(int32_t array) const { return set_[array]; }

 private:
  std::vector<int32_t> set_;
};

// Finds the pairs of instructions; remembers those of fused computations. Not thread-safe.
class InPlaceFinder {
 public:
  explicit InPlaceFinder(const Module& module)
      : module_(module), fused_(module.computations().size()) {}

  absl::StatusOr<std::vector<InPlacePair>> PairsOf(int32_t instruction);

 private:
  // For each array of a computation's root: the parameter array it is an update of.
  struct Source {
    int32_t parameter = -1;
    int32_t array = 0;
  };
  const std::vector<Source>& SourcesOf(int32_t computation);
  Source Trace(int32_t instruction, int32_t array);

  const Module& module_;
  std::vector<std::optional<std::vector<Source>>> fused_;
};

}  // namespace mallocgame::hlo

#endif  // MALLOCGAME_HLO_DATAFLOW_H_
