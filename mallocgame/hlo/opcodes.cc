#include "mallocgame/hlo/opcodes.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "mallocgame/hlo/hlo.pb.h"

namespace mallocgame::hlo {

bool MovesNothing(const HloInstructionProto& instruction) {
  static constexpr absl::string_view kOpcodes[] = {"add-dependency", "after-all",
                                                   "bitcast",        "call",
                                                   "conditional",    "constant",
                                                   "domain",         "get-tuple-element",
                                                   "opt-barrier",    "optimization-barrier",
                                                   "parameter",      "tuple",
                                                   "while"};
  const std::string& opcode = instruction.opcode();
  if (opcode == "custom-call") {
    const std::string& target = instruction.custom_call_target();
    return SetsStorageAside(instruction) || target == "Pin" || target == "Unpin" ||
           IsPlacementHint(instruction);
  }
  if (opcode == "async-update")
    return instruction.operand_ids_size() <= 1;  // Others bring operands.
  return std::find(std::begin(kOpcodes), std::end(kOpcodes), opcode) != std::end(kOpcodes) ||
         (absl::EndsWith(opcode, "-done") && !EndsCollective(opcode));
}

bool SetsStorageAside(const HloInstructionProto& instruction) {
  return instruction.opcode() == "custom-call" &&
         (instruction.custom_call_target() == "AllocateBuffer" ||
          instruction.custom_call_target() == "CreateBuffer");
}

bool EndsCollective(absl::string_view opcode) {
  return opcode == "all-gather-done" || opcode == "all-reduce-done" ||
         opcode == "collective-permute-done";
}

bool IsPlacementHint(const HloInstructionProto& instruction) {
  return instruction.opcode() == "custom-call" && instruction.operand_ids_size() == 1 &&
         instruction.custom_call_target() == "tpu_custom_call" &&
         absl::StrContains(instruction.backend_config(), R"("body":"")");
}

bool IsAsynchronous(absl::string_view opcode) {
  return absl::EndsWith(opcode, "-start") || absl::EndsWith(opcode, "-done") ||
         opcode == "async-update";
}

}  // namespace mallocgame::hlo
