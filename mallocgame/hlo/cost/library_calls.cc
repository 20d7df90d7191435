#include "mallocgame/hlo/cost/library_calls.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "mallocgame/hlo/module/backend_config.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "nlohmann/json.hpp"

namespace mallocgame::hlo {

LibraryCall LibraryCallOf(const HloInstructionProto& instruction) {
  if (OpcodeOf(instruction) != kCustomCall) return LibraryCall::kOther;
  const std::string& target = instruction.custom_call_target();
  if (absl::StartsWith(target, "__cublas$")) return LibraryCall::kMatmul;
  if (target == "__cudnn$convBackwardInput") return LibraryCall::kConvolutionInput;
  if (target == "__cudnn$convBackwardFilter") return LibraryCall::kConvolutionFilter;
  return absl::StartsWith(target, "__cudnn$conv") ? LibraryCall::kConvolution : LibraryCall::kOther;
}

std::optional<DotDimensionNumbers> MatmulDimensions(const HloInstructionProto& instruction) {
  const nlohmann::json written = PartOf(instruction.backend_config(), "dot_dimension_numbers");
  if (!written.is_object() || !written.contains("lhs_contracting_dimensions")) return std::nullopt;
  DotDimensionNumbers dimensions;
  for (const nlohmann::json& each : written["lhs_contracting_dimensions"]) {
    const std::optional<int64_t> dimension = NumberOf(each);
    if (!dimension) return std::nullopt;
    dimensions.add_lhs_contracting_dimensions(*dimension);
  }
  return dimensions;
}

bool IsWorkspace(const Module& module, int32_t instruction, size_t k) {
  const HloInstructionProto& proto = *module.instruction(instruction).proto;
  return k > 0 && LibraryCallOf(proto) != LibraryCall::kOther &&
         module.arrays(instruction)[k].shape->element_type() == U8;
}

bool OnlyMoves(const HloInstructionProto& custom_call) {
  static constexpr absl::string_view kTargets[] = {"AssumeGatherIndicesInBound",
                                                   "ConcatBitcast",
                                                   "LayoutConstraint",
                                                   "MoveToDevice",
                                                   "MoveToHost",
                                                   "PadToStatic",
                                                   "SPMDFullToShardShape",
                                                   "SPMDShardToFullShape",
                                                   "Sharding",
                                                   "SliceToDynamic",
                                                   "annotate_device_placement"};
  return std::find(std::begin(kTargets), std::end(kTargets), custom_call.custom_call_target()) !=
         std::end(kTargets);
}

}  // namespace mallocgame::hlo
