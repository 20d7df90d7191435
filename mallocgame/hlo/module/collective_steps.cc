#include "mallocgame/hlo/module/collective_steps.h"

#include <algorithm>

#include "mallocgame/hlo/module/hlo.pb.h"

namespace mallocgame::hlo {
namespace {

bool IsParameter(const Module& module, int32_t i, int64_t number) {
  const HloInstructionProto& proto = *module.instruction(i).proto;
  return module.opcode(i) == kParameter && proto.parameter_number() == number;
}

// Whether the collective that `custom_call` starts has the parameter as an operand.
bool ReadsParameter(const Module& module, int32_t custom_call, int64_t number) {
  for (const int32_t collective : module.operands(custom_call)) {
    for (const int32_t operand : module.operands(collective)) {
      if (IsParameter(module, operand, number)) return true;
    }
  }
  return false;
}

// By array of the root of a fusion: the instruction that it is of.
std::vector<int32_t> SourcesOf(const Module& module, int32_t root) {
  if (module.opcode(root) != kTuple)
    return std::vector<int32_t>(module.instruction(root).array_count, root);
  std::vector<int32_t> sources;
  for (const int32_t operand : module.operands(root)) {
    sources.insert(sources.end(), module.instruction(operand).array_count, operand);
  }
  return sources;
}

}  // namespace

std::optional<HandedOver> HandedOverBy(const Module& module, int32_t start) {
  const Opcode begun = BegunBy(module.opcode(start));
  if (!IsCollective(begun)) return std::nullopt;
  const int32_t arrays = module.instruction(start).array_count;
  // An all-reduce-start holds nothing but its result, which its operands become.
  if (begun == kAllReduce) return HandedOver{0, {0, 0}, {0, arrays}};
  const absl::StatusOr<Module::ArrayRange> operands = module.SubShape(start, {0}),
                                           result = module.SubShape(start, {1});
  if (!operands.ok() || !result.ok()) return std::nullopt;
  const bool in_place = PermutesInPlace(*module.instruction(start).proto);
  const absl::Span<const int32_t> held =
      module.operands(start).first(in_place ? size_t{1} : module.operands(start).size());
  int32_t given = 0;
  for (const int32_t operand : held) given += module.instruction(operand).array_count;
  const int32_t made = in_place ? module.instruction(module.operands(start)[1]).array_count : given;
  if (given != operands->count || made != result->count) return std::nullopt;
  return HandedOver{held.size(), *operands, *result};
}

std::vector<bool> HandsOn(const Module& module, int32_t i) {
  const HloInstruction& instruction = module.instruction(i);
  std::vector<bool> on(instruction.array_count, false);
  if (const std::optional<HandedOver> handed = HandedOverBy(module, i)) {
    std::fill_n(on.begin() + handed->operands.first, handed->operands.count, true);
  }
  if (instruction.opcode != kFusion || module.called(i).size() != 1) return on;
  const int32_t root = module.computation(module.called(i)[0]).root;
  const bool starts = BeginsCollectiveFusion(module, i);
  const std::vector<int32_t> sources = SourcesOf(module, root);
  for (const OutputOperandAliasing& alias : instruction.proto->output_operand_aliasing()) {
    const absl::StatusOr<Module::ArrayRange> output =
        module.SubShape(i, alias.output_shape_index());
    if (!output.ok() || output->count != 1) continue;
    if (starts) {
      on[output->first] = ReadsParameter(module, root, alias.operand_index());
    } else if (output->first < std::ssize(sources)) {
      on[output->first] = IsParameter(module, sources[output->first], alias.operand_index());
    }
  }
  return on;
}

bool BeginsCollectiveFusion(const Module& module, int32_t i) {
  if (module.opcode(i) != kFusion || module.called(i).size() != 1) return false;
  const int32_t root = module.computation(module.called(i)[0]).root;
  return module.instruction(root).proto->custom_call_target() == kBeginsCollective;
}

bool StartsOrEndsCollective(const Module& module, int32_t i) {
  if (HandedOverBy(module, i)) return true;
  const bool ends = IsCollective(EndedBy(module.opcode(i))) && module.operands(i).size() == 1;
  if (!ends) return false;
  const std::optional<HandedOver> handed = HandedOverBy(module, module.operands(i)[0]);
  return handed && handed->result.count == module.instruction(i).array_count;
}

}  // namespace mallocgame::hlo
