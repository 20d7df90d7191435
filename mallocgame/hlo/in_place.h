// Which results of an instruction are updates of its operands in place. Private to the folder.
#ifndef MALLOCGAME_HLO_IN_PLACE_H_
#define MALLOCGAME_HLO_IN_PLACE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/hlo/module.h"

namespace mallocgame::hlo {

// Array `output_array` of the result is array `operand_array` of operand `operand`, updated.
struct InPlacePair {
  int32_t operand = 0;
  int32_t operand_array = 0;
  int32_t output_array = 0;
  friend bool operator==(const InPlacePair&, const InPlacePair&) = default;
};

// Finds the pairs of instructions, and remembers what it found in fused computations. Not
// thread-safe.
class InPlaceFinder {
 public:
  explicit InPlaceFinder(const Module& module)
      : module_(module), fused_(module.computations().size()) {}

  // The pairs of dynamic-update-slice, scatter, fusions, and of any instruction that declares
  // aliases of its operands. InvalidArgument if what it declares does not fit its shapes.
  absl::StatusOr<std::vector<InPlacePair>> PairsOf(int32_t instruction);

 private:
  // An array of a parameter of a fused computation.
  struct Source {
    int32_t parameter = 0;
    int32_t array = 0;
  };
  // For each array of the computation's root: what it is an update of, if it is one.
  using Sources = std::vector<std::optional<Source>>;
  const Sources& SourcesOf(int32_t computation);
  std::optional<Source> Trace(int32_t instruction, int32_t array);

  const Module& module_;
  std::vector<std::optional<Sources>> fused_;  // by computation, once it was asked for
};

}  // namespace mallocgame::hlo

#endif  // MALLOCGAME_HLO_IN_PLACE_H_
