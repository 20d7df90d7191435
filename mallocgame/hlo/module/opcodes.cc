#include "mallocgame/hlo/module/opcodes.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {
namespace {

#define MALLOCGAME_HLO_NAME(opcode, name) name,
constexpr absl::string_view kNames[] = {"", MALLOCGAME_HLO_OPCODES(MALLOCGAME_HLO_NAME)};
#undef MALLOCGAME_HLO_NAME

absl::string_view NameOf(Opcode opcode) { return kNames[static_cast<size_t>(opcode)]; }

// The opcode whose name is that of `opcode` without `suffix`.
Opcode Without(absl::string_view suffix, Opcode opcode) {
  absl::string_view name = NameOf(opcode);
  return absl::ConsumeSuffix(&name, suffix) ? OpcodeNamed(name) : kUnknown;
}

}  // namespace

Opcode OpcodeNamed(absl::string_view name) {
  static const auto& by_name = *[] {
    auto* all = new absl::flat_hash_map<absl::string_view, Opcode>();
    for (size_t k = 0; k < std::size(kNames); ++k) all->emplace(kNames[k], Opcode(k));
    return all;
  }();
  const auto found = by_name.find(name);
  return found == by_name.end() ? kUnknown : found->second;
}

Opcode OpcodeOf(const HloInstructionProto& instruction) {
  return OpcodeNamed(instruction.opcode());
}

Computes WhatComputes(Opcode opcode) {
  switch (opcode) {
#define MALLOCGAME_HLO_CASE(opcode, name) case opcode:
    MALLOCGAME_HLO_OPERATIONS(MALLOCGAME_HLO_CASE)
    return Computes::kOperation;
    MALLOCGAME_HLO_FUNCTIONS(MALLOCGAME_HLO_CASE)
    return Computes::kTranscendental;
    MALLOCGAME_HLO_OWN_RULES(MALLOCGAME_HLO_CASE)
    return Computes::kByItsOwnRule;
#undef MALLOCGAME_HLO_CASE
    default: return Computes::kNothing;
  }
}

absl::Status CheckOpcodes(const Module& module) {
  for (int32_t i = 0; i < std::ssize(module.instructions()); ++i) {
    const HloInstructionProto& proto = *module.instruction(i).proto;
    if (module.opcode(i) == kUnknown) {
      return module.InvalidAt(
          i,
          absl::StrCat("the opcode '", proto.opcode(),
                       "' is unknown; known are those of XLA of August 2026. What it costs and "
                       "what it updates in place can't be told: a newer mallocgame may know it"));
    }
    const bool has_schedule =
        !module.computation(module.instruction(i).computation).schedule.empty();
    if (module.opcode(i) == kScan && has_schedule && proto.is_associative() != TRI_STATE_TRUE) {
      return module.InvalidAt(
          i,
          "a scan that is not associative runs a computation for each of its steps; dump the "
          "module after XLA's pass ScanExpander, which makes it a while");
    }
  }
  return absl::OkStatus();
}

bool MovesNothing(const HloInstruction& instruction) {
  static constexpr Opcode kStill[] = {kAddDependency, kAfterAll,  kBitcast, kCall,
                                      kConditional,   kConstant,  kDomain,  kGetTupleElement,
                                      kOptBarrier,    kParameter, kTuple,   kWhile};
  const Opcode opcode = instruction.opcode;
  if (opcode == kCustomCall) {
    const std::string& target = instruction.proto->custom_call_target();
    return SetsStorageAside(*instruction.proto) || target == "Pin" || target == "Unpin" ||
           IsPlacementHint(*instruction.proto);
  }
  if (opcode == kAsyncUpdate) return instruction.operand_count <= 1;  // Others bring operands.
  return std::find(std::begin(kStill), std::end(kStill), opcode) != std::end(kStill) ||
         (IsDone(opcode) && !EndsCollective(opcode));
}

bool SetsStorageAside(const HloInstructionProto& instruction) {
  return (instruction.custom_call_target() == "AllocateBuffer" ||
          instruction.custom_call_target() == "CreateBuffer") &&
         OpcodeOf(instruction) == kCustomCall;
}

bool IsPlacementHint(const HloInstructionProto& instruction) {
  return instruction.operand_ids_size() == 1 &&
         instruction.custom_call_target() == "tpu_custom_call" &&
         OpcodeOf(instruction) == kCustomCall &&
         absl::StrContains(instruction.backend_config(), R"("body":"")");
}

bool JoinsSlices(const HloInstructionProto& instruction) {
  return instruction.custom_call_target() == "ConcatBitcast" &&
         OpcodeOf(instruction) == kCustomCall;
}

bool PermutesInPlace(const HloInstructionProto& instruction) {
  if (instruction.operand_ids_size() != 4 || instruction.dynamic_slice_sizes_size() == 0)
    return false;
  const Opcode opcode = OpcodeOf(instruction);
  return opcode == kCollectivePermute || opcode == kCollectivePermuteStart;
}

bool RunsComputations(Opcode opcode) {
  return opcode == kWhile || opcode == kConditional || opcode == kCall;
}

bool IsStart(Opcode opcode) { return absl::EndsWith(NameOf(opcode), "-start"); }
bool IsDone(Opcode opcode) { return absl::EndsWith(NameOf(opcode), "-done"); }
bool BeginsTransfer(Opcode opcode) { return IsStart(opcode) || opcode == kSend || opcode == kRecv; }
bool IsTransfer(Opcode opcode) { return BeginsTransfer(opcode) || IsAsynchronous(opcode); }
bool IsAsynchronous(Opcode opcode) {
  return IsStart(opcode) || IsDone(opcode) || opcode == kAsyncUpdate;
}

Opcode BegunBy(Opcode opcode) { return Without("-start", opcode); }
Opcode EndedBy(Opcode opcode) { return Without("-done", opcode); }

bool IsCollective(Opcode opcode) {
  return opcode == kAllGather || opcode == kAllReduce || opcode == kAllToAll ||
         opcode == kCollectiveBroadcast || opcode == kCollectivePermute ||
         opcode == kRaggedAllToAll || opcode == kReduceScatter;
}
bool EndsCollective(Opcode opcode) { return IsCollective(EndedBy(opcode)); }

}  // namespace mallocgame::hlo
