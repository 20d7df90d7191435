// What kind of work an instruction does, which calibrated prices depend on. Private to the folder.
#pragma once

#include <cstdint>
#include <vector>

#include "mallocgame/hlo/module/module.h"
#include "mallocgame/program/program.h"

namespace mallocgame::hlo {

// Reads the class from opcodes: of a fusion, of those of all that it computes.
class WorkClasses {
 public:
  explicit WorkClasses(const Module& module);

  // Never kUnknown.
  WorkClass Of(int32_t instruction) const;

 private:
  // Opcodes that tell classes apart, as bits.
  static constexpr uint8_t kMatmuls = 1, kReduces = 2, kComputes = 4;

  const Module& module_;
  std::vector<uint8_t> found_;  // by computation: the bits of all that it and what it calls have

  static uint8_t BitsOf(Opcode opcode);
};

// The bits of the widest type that a quarter or more of the elements of an instruction's operands
// and results have, as CostPool::element_bits has them. 0 if they have no elements.
int32_t WidestElementBits(const Module& module, int32_t instruction);

}  // namespace mallocgame::hlo
