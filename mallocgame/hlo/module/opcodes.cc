#include "mallocgame/hlo/module/opcodes.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {
namespace {

struct Opcodes {
  Computes what;
  absl::string_view names;
};

// All opcodes of XLA.
constexpr Opcodes kOpcodes[] = {
    {Computes::kNothing,
     "add-dependency after-all all-gather all-gather-done all-gather-start "
     "all-reduce-done all-to-all async-done async-update batch-norm-grad "
     "batch-norm-inference batch-norm-training bitcast broadcast collective-broadcast "
     "collective-permute collective-permute-done collective-permute-start concatenate "
     "constant copy copy-done copy-start domain dynamic-reshape dynamic-slice "
     "dynamic-update-slice gather get-dimension-size get-tuple-element infeed "
     "opt-barrier outfeed pad parameter partition-id ragged-all-to-all recv recv-done "
     "reduce-scatter replica-id reshape reverse rng-get-and-update-state send send-done "
     "set-dimension-size slice topk transpose tuple"},
    {Computes::kOperation,
     "abs add and bitcast-convert ceil clamp compare complex convert count-leading-zeros "
     "divide floor imag iota is-finite maximum minimum mulhi multiply negate not or "
     "popcnt real reduce-precision remainder round-nearest-afz round-nearest-even select "
     "shift-left shift-right-arithmetic shift-right-logical sign stochastic-convert "
     "subtract xor"},
    {Computes::kTranscendental,
     "acos acosh asin asinh atan2 atanh cbrt cosh cosine erf exponential "
     "exponential-minus-one log log-plus-one logistic power rng rsqrt sine sinh sqrt tan "
     "tanh"},
    {Computes::kByItsOwnRule,
     "all-reduce all-reduce-start async-start call cholesky conditional convolution "
     "custom-call dot fft fusion map ragged-dot reduce reduce-window rng-bit-generator "
     "scaled-dot scan scatter select-and-scatter sort triangular-solve while"},
};

absl::flat_hash_map<absl::string_view, Computes> ByName() {
  absl::flat_hash_map<absl::string_view, Computes> by_name;
  for (const Opcodes& opcodes : kOpcodes) {
    for (const absl::string_view name : absl::StrSplit(opcodes.names, ' '))
      by_name.emplace(name, opcodes.what);
  }
  return by_name;
}

}  // namespace

std::optional<Computes> WhatComputes(absl::string_view opcode) {
  static const auto& by_name = *new absl::flat_hash_map<absl::string_view, Computes>(ByName());
  const auto found = by_name.find(opcode);
  if (found == by_name.end()) return std::nullopt;
  return found->second;
}

absl::Status CheckOpcodes(const Module& module) {
  for (int32_t i = 0; i < std::ssize(module.instructions()); ++i) {
    const HloInstructionProto& proto = *module.instruction(i).proto;
    if (!WhatComputes(proto.opcode())) {
      return absl::InvalidArgumentError(absl::StrCat(
          module.Where(i), ": the opcode '", proto.opcode(),
          "' is unknown; known are those of XLA of August 2026. What it costs and what it updates "
          "in place can't be told: a newer mallocgame may know it"));
    }
    const bool has_schedule =
        !module.computation(module.instruction(i).computation).schedule.empty();
    if (proto.opcode() == "scan" && has_schedule && proto.is_associative() != TRI_STATE_TRUE) {
      return absl::InvalidArgumentError(absl::StrCat(
          module.Where(i),
          ": a scan that is not associative runs a computation for each of its "
          "steps; dump the module after XLA's pass ScanExpander, which makes it a while"));
    }
  }
  return absl::OkStatus();
}

bool MovesNothing(const HloInstructionProto& instruction) {
  static constexpr absl::string_view kStill[] = {
      "add-dependency", "after-all",         "bitcast",     "call",      "conditional", "constant",
      "domain",         "get-tuple-element", "opt-barrier", "parameter", "tuple",       "while"};
  const std::string& opcode = instruction.opcode();
  if (opcode == "custom-call") {
    const std::string& target = instruction.custom_call_target();
    return SetsStorageAside(instruction) || target == "Pin" || target == "Unpin" ||
           IsPlacementHint(instruction);
  }
  if (opcode == "async-update")
    return instruction.operand_ids_size() <= 1;  // Others bring operands.
  return std::find(std::begin(kStill), std::end(kStill), opcode) != std::end(kStill) ||
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

bool PermutesInPlace(const HloInstructionProto& instruction) {
  return instruction.operand_ids_size() == 4 && instruction.dynamic_slice_sizes_size() > 0 &&
         (instruction.opcode() == "collective-permute" ||
          instruction.opcode() == "collective-permute-start");
}

bool IsAsynchronous(absl::string_view opcode) {
  return absl::EndsWith(opcode, "-start") || absl::EndsWith(opcode, "-done") ||
         opcode == "async-update";
}

}  // namespace mallocgame::hlo
