// Kinds of HLO instructions that several sources must tell apart alike. Private to the folder.
#ifndef MALLOCGAME_HLO_MODULE_OPCODES_H_
#define MALLOCGAME_HLO_MODULE_OPCODES_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mallocgame::hlo {

class HloInstructionProto;
class Module;

// What an instruction with an opcode computes.
enum class Computes : uint8_t {
  kNothing,         // it makes, moves, joins or passes on values
  kOperation,       // one for each element of its result
  kTranscendental,  // likewise: a function such as exp
  kByItsOwnRule,    // dot, reduce, fusion, custom-call ...: arithmetic.cc has the rules
};

// None for an opcode that XLA doesn't have (xla/hlo/ir/hlo_opcode.h, August 2026).
std::optional<Computes> WhatComputes(absl::string_view opcode);

// InvalidArgument names an instruction whose opcode XLA doesn't have: nobody knows what it costs
// and what it updates in place. It also names a scan in a computation with a schedule, which runs
// another computation for each step as a loop does. An associative one may be there: it has no
// steps, and a compiler may have an instruction for it.
absl::Status CheckOpcodes(const Module& module);

// True for an instruction that touches no memory that a plan decides about. It names, groups or
// passes on values (parameter, constant, tuple, get-tuple-element, bitcast, while, conditional,
// call, copy-done ...), sets storage aside, pins its operand to its place or lets go of it (the
// custom calls Pin and Unpin), or is a placement hint. It has no accesses and costs nothing.
bool MovesNothing(const HloInstructionProto& instruction);

// True for the custom calls AllocateBuffer and CreateBuffer, whose results have no value yet.
bool SetsStorageAside(const HloInstructionProto& instruction);

// True for the end of a collective that a *-start began. It holds operands and result until then.
bool EndsCollective(absl::string_view opcode);

// True for a kernel without a body. The compiler makes it to say in which memory its operand has to
// be. Memory space assignment takes it out again: its result is its operand.
bool IsPlacementHint(const HloInstructionProto& instruction);

// True for a collective-permute, or its *-start, that writes what comes into a part of its second
// operand. The others are what it sends, and where in both the parts begin.
bool PermutesInPlace(const HloInstructionProto& instruction);

// True for one step of a transfer that begins at one instruction and ends at another: *-start,
// async-update, *-done.
bool IsAsynchronous(absl::string_view opcode);

}  // namespace mallocgame::hlo

#endif  // MALLOCGAME_HLO_MODULE_OPCODES_H_
