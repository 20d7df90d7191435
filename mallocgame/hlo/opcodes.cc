#include "mallocgame/hlo/opcodes.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "mallocgame/hlo/hlo.pb.h"

namespace mallocgame::hlo {

bool MovesNothing(const HloInstructionProto& instruction) {
  static constexpr absl::string_view kOpcodes[] = {"add-dependency",
                                                   "after-all",
                                                   "async-update",
                                                   "bitcast",
                                                   "call",
                                                   "conditional",
                                                   "constant",
                                                   "domain",
                                                   "get-tuple-element",
                                                   "opt-barrier",
                                                   "optimization-barrier",
                                                   "parameter",
                                                   "tuple",
                                                   "while"};
  const std::string& opcode = instruction.opcode();
  if (opcode == "custom-call") return instruction.custom_call_target() == "AllocateBuffer";
  return std::find(std::begin(kOpcodes), std::end(kOpcodes), opcode) != std::end(kOpcodes) ||
         absl::EndsWith(opcode, "-done");
}

bool IsAsynchronous(absl::string_view opcode) {
  return absl::EndsWith(opcode, "-start") || absl::EndsWith(opcode, "-done") ||
         opcode == "async-update";
}

}  // namespace mallocgame::hlo
