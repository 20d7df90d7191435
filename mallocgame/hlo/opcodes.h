// Kinds of HLO instructions that several sources must tell apart alike. Private to the folder.
#ifndef MALLOCGAME_HLO_OPCODES_H_
#define MALLOCGAME_HLO_OPCODES_H_

#include "absl/strings/string_view.h"

namespace mallocgame::hlo {

class HloInstructionProto;

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

// True for one step of a transfer that begins at one instruction and ends at another: *-start,
// async-update, *-done.
bool IsAsynchronous(absl::string_view opcode);

}  // namespace mallocgame::hlo

#endif  // MALLOCGAME_HLO_OPCODES_H_
