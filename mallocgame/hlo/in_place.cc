// Finds updates in place: dynamic-update-slice, scatter, what instructions declare, and fusions
// whose root is an update, seen through tuples, bitcasts and nested fusions.
#include "mallocgame/hlo/in_place.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/hlo.pb.h"

namespace mallocgame::hlo {
namespace {

// How many results a scatter has. It takes as many operands, then the indices, then as many
// updates.
int32_t ScatterResults(const Module& module, int32_t i) {
  return static_cast<int32_t>(module.operands(i).size() / 2);
}

}  // namespace

absl::StatusOr<std::vector<InPlacePair>> InPlaceFinder::PairsOf(int32_t i) {
  const HloInstructionProto& proto = *module_.instruction(i).proto;
  const absl::Span<const int32_t> operands = module_.operands(i);
  const auto arrays = [this](int32_t k) { return module_.instruction(k).array_count; };
  std::vector<InPlacePair> pairs;
  for (const OutputOperandAliasing& alias : proto.output_operand_aliasing()) {
    if (alias.operand_index() < 0 || alias.operand_index() >= std::ssize(operands)) {
      return absl::InvalidArgumentError(absl::StrCat(
          module_.Where(i), ": aliases operand ", alias.operand_index(), " of ", operands.size()));
    }
    const int32_t operand = static_cast<int32_t>(alias.operand_index());
    MG_ASSIGN_OR_RETURN(const Module::ArrayRange output,
                        module_.SubShape(i, alias.output_shape_index()));
    MG_ASSIGN_OR_RETURN(const Module::ArrayRange input,
                        module_.SubShape(operands[operand], alias.operand_shape_index()));
    if (output.count != input.count) {
      return absl::InvalidArgumentError(absl::StrCat(module_.Where(i), ": aliases an output of ",
                                                     output.count, " arrays with an operand of ",
                                                     input.count));
    }
    for (int32_t k = 0; k < output.count; ++k)
      pairs.push_back({operand, input.first + k, output.first + k});
  }
  if (proto.opcode() == "dynamic-update-slice" && !operands.empty() && arrays(operands[0]) == 1 &&
      arrays(i) == 1) {
    pairs.push_back({0, 0, 0});
  } else if (proto.opcode() == "scatter" && ScatterResults(module_, i) == arrays(i)) {
    for (int32_t k = 0; k < arrays(i); ++k) {
      if (arrays(operands[k]) == 1) pairs.push_back({k, 0, k});
    }
  } else if (proto.opcode() == "fusion" && module_.called(i).size() == 1) {
    const Sources& sources = SourcesOf(module_.called(i)[0]);
    for (int32_t k = 0; k < arrays(i) && k < std::ssize(sources); ++k) {
      const std::optional<Source>& source = sources[k];
      if (!source || source->parameter >= std::ssize(operands)) continue;
      if (source->array >= arrays(operands[source->parameter])) continue;
      pairs.push_back({source->parameter, source->array, k});
    }
  }
  return pairs;
}

const InPlaceFinder::Sources& InPlaceFinder::SourcesOf(int32_t computation) {
  std::optional<Sources>& known = fused_[computation];
  if (known.has_value()) return *known;
  const int32_t root = module_.computation(computation).root;
  Sources sources;
  for (int32_t k = 0; k < module_.instruction(root).array_count; ++k)
    sources.push_back(Trace(root, k));
  known = std::move(sources);
  return *known;
}

// Goes up from an array of an instruction in a fused computation to a parameter, through what
// passes values on and through updates in place. There must be at least one update on the way.
// Operands come before users, so this ends.
std::optional<InPlaceFinder::Source> InPlaceFinder::Trace(int32_t i, int32_t array) {
  bool updated = false;
  while (true) {
    const HloInstructionProto& proto = *module_.instruction(i).proto;
    const absl::Span<const int32_t> operands = module_.operands(i);
    const std::string& opcode = proto.opcode();
    if (opcode == "parameter") {
      if (!updated || proto.parameter_number() > INT32_MAX) return std::nullopt;
      return Source{static_cast<int32_t>(proto.parameter_number()), array};
    }
    size_t operand = 0;
    if (opcode == "tuple") {
      while (operand < operands.size() &&
             array >= module_.instruction(operands[operand]).array_count) {
        array -= module_.instruction(operands[operand++]).array_count;
      }
    } else if (opcode == "get-tuple-element" && operands.size() == 1) {
      const absl::StatusOr<Module::ArrayRange> range =
          module_.SubShape(operands[0], {proto.tuple_index()});
      if (!range.ok()) return std::nullopt;
      array += range->first;
    } else if (opcode == "dynamic-update-slice") {
      updated = true;
    } else if (opcode == "scatter" &&
               ScatterResults(module_, i) == module_.instruction(i).array_count) {
      operand = array;
      array = 0;
      updated = true;
    } else if (opcode == "fusion" && module_.called(i).size() == 1) {
      const Sources& sources = SourcesOf(module_.called(i)[0]);
      if (array >= std::ssize(sources) || !sources[array]) return std::nullopt;
      operand = sources[array]->parameter;
      array = sources[array]->array;
      updated = true;
    } else if (opcode != "bitcast") {
      return std::nullopt;
    }
    if (operand >= operands.size() || array >= module_.instruction(operands[operand]).array_count)
      return std::nullopt;
    i = operands[operand];
  }
}

}  // namespace mallocgame::hlo
