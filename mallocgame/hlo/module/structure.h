// Which instructions do the same work: the pools of the profile cost model. Private to the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {

// Numbers the structures of a module's instructions. Two instructions have one structure if they
// have the same opcode, operand and result shapes with layouts (memory spaces removed), pattern of
// repeated operands, attributes, and called computations of the same structure, instruction by
// instruction. Names, ids, channels, metadata, backend configuration and the values of constants
// make no difference. Whole descriptions are compared, not hashes of them.
class Structures {
 public:
  explicit Structures(const Module& module);

  // The number of an instruction's structure. Equal structures have equal numbers.
  int32_t Of(int32_t instruction);

 private:
  int32_t Result(int32_t instruction);  // the number of the shape of its result
  int32_t Intern(std::string&& key);

  const Module& module_;
  std::vector<int32_t> computation_;            // by computation: its structure
  std::vector<std::optional<int32_t>> result_;  // by instruction, once it was asked for
  absl::flat_hash_map<std::string, int32_t> numbers_;
};

}  // namespace mallocgame::hlo
