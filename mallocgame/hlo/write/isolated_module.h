// The isolated modules of XLA:TPU. The compiler lowers each distinct instruction alone, in a module
// whose root is that instruction, and whose parameters are its operands. The code, its price and
// the hash that others call it by depend on where the operands and results lie. So the module that
// the compiler made for one placement, changed to another one, has the price of that placement.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mallocgame::hlo {

class Module;

// An array of the result that lies in the bytes of an array of an operand. Arrays of a tuple are
// counted in depth-first order.
struct SharedArray {
  int64_t operand = 0, operand_array = 0, result_array = 0;
  friend bool operator==(const SharedArray&, const SharedArray&) = default;
};

// Where the arrays of one instruction lie, and what else tells its isolated module from those of
// other instructions that are lowered alike.
struct InstructionPlacement {
  std::vector<std::vector<int64_t>> operands;  // memory spaces, by operand and array
  std::vector<int64_t> results;                // memory spaces, by array
  std::vector<int64_t> values;  // by operand: the first operand that is the same value
  // Not in the hash, but in the code: prices and programs are kept by hash and these.
  std::vector<SharedArray> shared;
  // Of the instruction in its scheduled module. Empty: that of the isolated module stays.
  std::string backend_config;
  int64_t channel_id = 0;  // of a collective; 0: it has none
  // By instruction of InstructionsUnder. Empty: those of the isolated module stay.
  std::vector<std::string> frontend_attributes;
};

// The instruction and those of all that it calls, each before what it calls. They stand in one
// order in a scheduled module and in the isolated module of the instruction.
std::vector<int32_t> InstructionsUnder(const Module& module, int32_t instruction);

// The isolated module `isolated`, an HloModuleProtoWithConfig, for another placement of its root.
// It is the compiler's own module of that placement:
// - Memory spaces stand on the parameters, their bitcasts, the root, what fused computations pass
//   on, the program shapes and the entry computation layout.
// - The root has the backend_config and the channel of the instruction, and with all that it calls
//   the frontend attributes: instructions that differ in them are lowered alike, but the hash is of
//   those of the first.
// - Operands have one parameter if they lie in the same spaces and are one value, or stand in one
//   list of the aliasing_operands in that backend_config; else each has its own.
// - input_output_alias follows `shared`.
// `name` becomes the name of the module. InvalidArgument: `isolated` is no isolated module, or
// `placement` is of another number of operands, arrays or called instructions, or shares bytes
// across memory spaces.
absl::StatusOr<std::string> PlaceIsolatedModule(absl::string_view isolated,
                                                const InstructionPlacement& placement,
                                                absl::string_view name);

}  // namespace mallocgame::hlo
