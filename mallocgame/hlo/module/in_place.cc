// Finds updates in place. In a fusion they are found from the root up: through what passes values
// on to an update, and from its operand to a parameter.
#include "mallocgame/hlo/module/in_place.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/opcodes.h"

namespace mallocgame::hlo {
namespace {

using Range = Module::ArrayRange;

// How many operands, from the first on, an instruction updates. Each has one array, and is the
// result of the same number.
size_t UpdatedInOrder(const HloInstructionProto& proto) {
  const Opcode opcode = OpcodeOf(proto);
  if (opcode == kDynamicUpdateSlice || opcode == kSetDimensionSize) return 1;
  // A scatter takes as many operands as it has results, then the indices, then as many updates.
  if (opcode == kScatter) return proto.operand_ids_size() / 2;
  if (opcode == kAllReduceStart) return proto.operand_ids_size();
  return 0;
}

// Whether the result, or element 1 of the result of a *-start, is the second operand.
bool UpdatesSecond(const HloInstructionProto& proto) {
  return PermutesInPlace(proto) ||
         (proto.operand_ids_size() > 1 && OpcodeOf(proto) == kRaggedAllToAll);
}

}  // namespace

absl::StatusOr<std::vector<InPlacePair>> InPlaceFinder::PairsOf(int32_t i) {
  Pairs pairs;
  const Opcode opcode = module_.opcode(i);
  AddByOpcode(i, pairs);
  if (opcode == kFusion) {
    for (int32_t k = 0; k < module_.instruction(i).array_count; ++k) {
      if (const std::optional<InPlacePair> pair = FusedPair(i, k)) pairs.push_back(*pair);
    }
  }
  if (chains_.StartOf(i) != kNone) AddOfChain(i, pairs);
  if (opcode != kAsyncStart) MG_RETURN_IF_ERROR(AddDeclared(i, pairs));
  return pairs;
}

// What the instruction declares of its own operands.
absl::Status InPlaceFinder::AddDeclared(int32_t i, Pairs& pairs) const {
  const absl::Span<const int32_t> operands = module_.operands(i);
  for (const auto& alias : module_.instruction(i).proto->output_operand_aliasing()) {
    if (alias.operand_index() < 0 || alias.operand_index() >= std::ssize(operands)) {
      return module_.InvalidAt(
          i, absl::StrCat("aliases operand ", alias.operand_index(), " of ", operands.size()));
    }
    const auto operand = static_cast<int32_t>(alias.operand_index());
    MG_ASSIGN_OR_RETURN(const Range output, module_.SubShape(i, alias.output_shape_index()));
    MG_ASSIGN_OR_RETURN(const Range input,
                        module_.SubShape(operands[operand], alias.operand_shape_index()));
    if (output.count != input.count) {
      return module_.InvalidAt(i, absl::StrCat("aliases an output of ", output.count,
                                               " arrays with an operand of ", input.count));
    }
    for (int32_t k = 0; k < output.count; ++k)
      pairs.push_back({operand, input.first + k, output.first + k});
  }
  return absl::OkStatus();
}

void InPlaceFinder::AddByOpcode(int32_t i, Pairs& pairs) const {
  const HloInstructionProto& proto = *module_.instruction(i).proto;
  const absl::Span<const int32_t> operands = module_.operands(i);
  const auto arrays = [this](int32_t k) { return module_.instruction(k).array_count; };
  const auto in_order = static_cast<int32_t>(UpdatedInOrder(proto));
  if (in_order == arrays(i) && in_order <= std::ssize(operands)) {
    for (int32_t k = 0; k < in_order; ++k) {
      if (arrays(operands[k]) == 1) pairs.push_back({k, 0, k});
    }
  } else if (UpdatesSecond(proto)) {
    Range result = {0, arrays(i)};
    if (module_.opcode(i) == kCollectivePermuteStart) {
      const absl::StatusOr<Range> element = module_.SubShape(i, {1});
      if (!element.ok()) return;
      result = *element;
    }
    if (result.count != arrays(operands[1])) return;
    for (int32_t k = 0; k < result.count; ++k) pairs.push_back({1, k, result.first + k});
  }
}

// An async-start declares its aliases by the arguments of what it wraps. Which operand of which
// instruction an argument is depends on where it is given.
void InPlaceFinder::AddOfChain(int32_t i, Pairs& pairs) const {
  const int32_t start = chains_.StartOf(i);
  const absl::Span<const int32_t> operands = module_.operands(i);
  const bool done = module_.opcode(i) == kAsyncDone;
  for (const auto& alias : module_.instruction(start).proto->output_operand_aliasing()) {
    std::vector<int64_t> output(alias.output_shape_index().begin(),
                                alias.output_shape_index().end());
    std::vector<int64_t> input(alias.operand_shape_index().begin(),
                               alias.operand_shape_index().end());
    int64_t operand = alias.operand_index();
    if (output.empty()) continue;
    if (done) {
      // The chain, which is its only operand, has the arguments as element 0; its own result is
      // the chain's element 1.
      if (output[0] != 1) continue;
      output.erase(output.begin());
      input.insert(input.begin(), {0, operand});
      operand = 0;
    } else if (i != start) {
      operand += 1 - chains_.GivenBefore(i);  // Operand 0 of an async-update is the chain.
      if (operand < 1) continue;
    }
    if (operand < 0 || operand >= std::ssize(operands)) continue;
    const absl::StatusOr<Range> result = module_.SubShape(i, output),
                                argument = module_.SubShape(operands[operand], input);
    if (!result.ok() || !argument.ok() || result->count != argument->count) continue;
    for (int32_t k = 0; k < result->count; ++k) {
      pairs.push_back({static_cast<int32_t>(operand), argument->first + k, result->first + k});
    }
  }
}

std::optional<InPlacePair> InPlaceFinder::FusedPair(int32_t fusion, int32_t array) {
  if (module_.called(fusion).size() != 1) return std::nullopt;
  const std::vector<std::optional<Place>>& sources = SourcesOf(module_.called(fusion)[0]);
  if (array >= std::ssize(sources) || !sources[array]) return std::nullopt;
  const auto& [parameter, from] = *sources[array];
  const int64_t number = module_.instruction(parameter).proto->parameter_number();
  const absl::Span<const int32_t> operands = module_.operands(fusion);
  if (number >= std::ssize(operands)) return std::nullopt;
  if (from >= module_.instruction(operands[number]).array_count) return std::nullopt;
  return InPlacePair{static_cast<int32_t>(number), from, array};
}

const std::vector<std::optional<InPlaceFinder::Place>>& InPlaceFinder::SourcesOf(
    int32_t computation) {
  auto& known = fused_[computation];
  if (known.has_value()) return *known;
  const int32_t root = module_.computation(computation).root;
  std::vector<std::optional<Place>> sources;
  for (int32_t k = 0; k < module_.instruction(root).array_count; ++k)
    sources.push_back(Trace({root, k}));
  known = std::move(sources);
  return *known;
}

// XLA looks through one update, and through one nested fusion before it. An update of an update is
// a new array to it. So is what a nested fusion at the root only declares to be an update.
std::optional<InPlaceFinder::Place> InPlaceFinder::Trace(Place root) {
  std::optional<Place> source = UpdatedBy(PassedOn(root), /*declared=*/false);
  if (source && module_.opcode(source->instruction) == kFusion)
    source = UpdatedBy(*source, /*declared=*/true);
  if (!source || module_.opcode(source->instruction) != kParameter) return std::nullopt;
  return source;
}

// The array that an array of a result updates, seen through what passes it on. Whether what a
// fusion declares counts is `declared`.
std::optional<InPlaceFinder::Place> InPlaceFinder::UpdatedBy(Place place, bool declared) {
  const int32_t i = place.instruction;
  Pairs pairs;
  if (module_.opcode(i) != kFusion) {
    absl::StatusOr<Pairs> all = PairsOf(i);
    if (all.ok()) pairs = *std::move(all);
  } else if (const std::optional<InPlacePair> fused = FusedPair(i, place.array)) {
    pairs.push_back(*fused);
  } else if (declared && !AddDeclared(i, pairs).ok()) {
    return std::nullopt;
  }
  for (const InPlacePair& pair : pairs) {
    if (pair.output_array == place.array)
      return PassedOn({module_.operands(i)[pair.operand], pair.operand_array});
  }
  return std::nullopt;
}

// Goes from an array to the instruction that made it: up through tuples, then through elements of
// tuples, then through bitcasts of arrays. Operands come before users, so this ends.
InPlaceFinder::Place InPlaceFinder::PassedOn(Place place) const {
  auto& [i, array] = place;
  const auto opcode = [&] { return module_.opcode(i); };
  while (opcode() == kTuple) {
    const absl::Span<const int32_t> operands = module_.operands(i);
    if (std::ssize(operands) != module_.instruction(i).element_count) return place;
    // the last element that begins at the array or before it
    int64_t k = 0;
    for (int64_t end = std::ssize(operands), middle = 0; end - k > 1;) {
      middle = k + (end - k) / 2;
      (module_.SubShape(i, {middle})->first <= array ? k : end) = middle;
    }
    const int32_t inside = array - module_.SubShape(i, {k})->first;
    if (inside >= module_.instruction(operands[k]).array_count) return place;
    i = operands[k];
    array = inside;
  }
  while (opcode() == kGetTupleElement && module_.operands(i).size() == 1) {
    const int32_t tuple = module_.operands(i)[0];
    const absl::StatusOr<Range> element =
        module_.SubShape(tuple, {module_.instruction(i).proto->tuple_index()});
    if (!element.ok() || array >= element->count) return place;
    array += element->first;
    i = tuple;
  }
  while (opcode() == kBitcast && module_.operands(i).size() == 1 &&
         module_.instruction(module_.operands(i)[0]).array_count == 1) {
    i = module_.operands(i)[0];
  }
  return place;
}

}  // namespace mallocgame::hlo
