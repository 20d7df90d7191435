// Numbers values by the text that describes how they are made, in which operands stand as numbers.
// Whole texts are compared, not hashes of them.
#include "mallocgame/hlo/check/computation_numbers.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "mallocgame/hlo/check/phase_reading.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/value_edges.h"
#include "nlohmann/json.hpp"

namespace mallocgame::hlo {
namespace {

void Append(std::string& key, int64_t value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class Values>
void AppendAll(std::string& key, const Values& values) {
  Append(key, static_cast<int64_t>(values.size()));
  for (const int64_t value : values) Append(key, value);
}

template <class Function>
void ForEachArray(ShapeProto& shape, const Function& function) {
  if (shape.has_layout()) function(*shape.mutable_layout());
  for (ShapeProto& element : *shape.mutable_tuple_shapes()) ForEachArray(element, function);
}

std::string WithoutSpaces(const ShapeProto& shape) {
  ShapeProto copy = shape;
  ForEachArray(copy, [](LayoutProto& layout) { layout.clear_memory_space(); });
  return copy.SerializeAsString();
}

bool IsEmpty(const nlohmann::json& value) {
  if (!value.is_structured()) return false;
  return std::all_of(value.begin(), value.end(), IsEmpty);
}

// Without what depends on where operands lie: which of them may be overwritten. Larger texts, those
// of kernels, are compared as they are.
std::string WithoutPlacement(const std::string& backend_config) {
  constexpr size_t kMost = 65536;
  if (backend_config.empty() || backend_config.size() > kMost) return backend_config;
  nlohmann::json parsed = nlohmann::json::parse(backend_config, nullptr, false);
  if (!parsed.is_object()) return backend_config;
  parsed.erase("aliasing_operands");
  return IsEmpty(parsed) ? std::string() : parsed.dump();
}

bool HasEffects(const HloInstructionProto& proto) {
  const Opcode opcode = OpcodeOf(proto);
  return proto.custom_call_has_side_effect() || proto.is_host_transfer() || opcode == kInfeed ||
         opcode == kOutfeed || opcode == kRng || opcode == kRngGetAndUpdateState;
}

}  // namespace

int32_t ValueTable::Intern(std::string&& key) {
  return numbers_.try_emplace(std::move(key), static_cast<int32_t>(numbers_.size())).first->second;
}

int32_t ValueTable::OfShape(const ShapeProto& shape) {
  ShapeProto copy = shape;
  ForEachArray(copy, [&](LayoutProto& layout) {
    if (layout.memory_space() == fast_memory_space_) layout.clear_memory_space();
  });
  return Intern("shape" + copy.SerializeAsString());
}

bool ValueTable::Alike(const ShapeProto& a, const ShapeProto& b) {
  return WithoutSpaces(a) == WithoutSpaces(b);
}

int32_t ValueTable::OfParameter(int64_t number, int64_t array, const ShapeProto& shape) {
  std::string key = "parameter";
  AppendAll(key, std::vector<int64_t>{number, array, OfShape(shape)});
  return Intern(std::move(key));
}

int32_t ValueTable::BitcastTo(const Bitcast& source, int32_t shape) {
  if (shape == source.shape) return source.of;
  std::string key = "bitcast";
  AppendAll(key, std::vector<int64_t>{source.of, shape});
  const int32_t value = Intern(std::move(key));
  bitcasts_.try_emplace(value, source);
  return value;
}

int32_t ValueTable::OfBitcast(int32_t of, const ShapeProto& operand, const ShapeProto& shape) {
  const auto known = bitcasts_.find(of);
  const Bitcast source = known != bitcasts_.end() ? known->second : Bitcast{of, OfShape(operand)};
  return BitcastTo(source, OfShape(shape));
}

int32_t ValueTable::OfSlice(int32_t of, const HloInstructionProto& slice,
                            const ShapeProto& operand) {
  Slice parts;
  const auto known = bitcasts_.find(of);
  const int32_t shape = OfShape(operand);
  parts.of = of;
  parts.source = known != bitcasts_.end() ? known->second : Bitcast{of, shape};
  std::string key = "slice";
  Append(key, of);
  Append(key, OfShape(slice.shape()));
  for (const auto& dimension : slice.slice_dimensions()) {
    parts.starts.push_back(dimension.start());
    parts.limits.push_back(dimension.limit());
    parts.strided = parts.strided || dimension.stride() != 1;
    Append(key, dimension.stride());
  }
  parts.dimensions.assign(operand.dimensions().begin(), operand.dimensions().end());
  AppendAll(key, parts.starts);
  AppendAll(key, parts.limits);
  const int32_t value = Intern(std::move(key));
  slices_.try_emplace(value, std::move(parts));
  return value;
}

int32_t ValueTable::OfJoinedSlices(absl::Span<const int32_t> slices, const ShapeProto& shape) {
  std::vector<const Slice*> parts;
  for (const int32_t slice : slices) {
    const auto found = slices_.find(slice);
    if (found == slices_.end() || found->second.strided) return kNone;
    parts.push_back(&found->second);
  }
  if (parts.empty()) return kNone;
  // They stand in the order in which they are copied.
  std::sort(parts.begin(), parts.end(),
            [](const Slice* a, const Slice* b) { return a->starts < b->starts; });
  const Slice &first = *parts.front(), &last = *parts.back();
  int64_t cut = kNone;  // the dimension along which the parts follow each other
  for (size_t d = 0; d < first.dimensions.size(); ++d) {
    const bool whole = first.starts[d] == 0 && first.limits[d] == first.dimensions[d];
    if (!whole && cut != kNone) return kNone;
    if (!whole) cut = static_cast<int64_t>(d);
  }
  for (size_t k = 0; k < parts.size(); ++k) {
    const Slice& part = *parts[k];
    if (part.of != first.of || part.dimensions != first.dimensions) return kNone;
    for (size_t d = 0; d < part.dimensions.size(); ++d) {
      const bool is_cut = static_cast<int64_t>(d) == cut;
      const int64_t begin = is_cut && k > 0 ? parts[k - 1]->limits[d] : 0;
      if (part.starts[d] != begin || (!is_cut && part.limits[d] != part.dimensions[d]))
        return kNone;
    }
  }
  if (cut == kNone ? parts.size() != 1 : last.limits[cut] != last.dimensions[cut]) return kNone;
  return BitcastTo(first.source, OfShape(shape));
}

int32_t ValueTable::OfResult(const HloInstructionProto& instruction,
                             absl::Span<const int32_t> parts) {
  HloInstructionProto proto = instruction;
  proto.clear_name();
  proto.clear_id();
  proto.clear_shape();
  proto.clear_operand_ids();
  proto.clear_control_predecessor_ids();
  proto.clear_called_computation_ids();
  if (proto.has_literal()) {
    ForEachArray(*proto.mutable_literal()->mutable_shape(),
                 [](LayoutProto& layout) { layout.clear_memory_space(); });
  }
  proto.set_backend_config(WithoutPlacement(instruction.backend_config()));
  std::string key = "result";
  AppendAll(key, parts);
  Append(key, OfShape(instruction.shape()));
  return Intern(std::move(key) + proto.SerializeAsString());
}

int32_t ValueTable::OfArray(int32_t result, int64_t array) {
  std::string key = "array";
  AppendAll(key, std::vector<int64_t>{result, array});
  return Intern(std::move(key));
}

int32_t ValueTable::OfComputation(absl::Span<const int32_t> parts) {
  std::string key = "computation";
  AppendAll(key, parts);
  return Intern(std::move(key));
}

ModuleNumbers::ModuleNumbers(const Module& module, ValueTable& table)
    : module_(module), table_(table), chains_(module), result_(module.instructions().size(), kNone),
      shape_(module.instructions().size(), kNone), array_(module.array_count(), kNone),
      computation_(module.computations().size(), kNone) {
  // A computation comes after all that it calls.
  for (int32_t c = 0; c < std::ssize(computation_); ++c) NumberComputation(c);
}

absl::Span<int32_t> ModuleNumbers::Arrays(int32_t i) {
  return absl::MakeSpan(array_).subspan(module_.instruction(i).first_array,
                                        module_.instruction(i).array_count);
}

// `given`: the numbers of what the arrays of its only parameter are, if that is known. Then they
// count as the first of those that are one value.
void ModuleNumbers::NumberComputation(int32_t computation, absl::Span<const int32_t> given) {
  const absl::Span<const int32_t> outer = std::exchange(given_, given);
  const Computation& of = module_.computation(computation);
  std::vector<int32_t> run, parts;
  for (int32_t k = 0; k < of.instruction_count; ++k) {
    const int32_t i = of.first_instruction + k;
    if (NumberMoved(i)) continue;
    NumberResult(i);
    if (module_.opcode(i) != kConstant) run.push_back(result_[i]);
  }
  // Effects happen in order; the order of all others is free.
  for (const int32_t i : of.schedule) {
    if (result_[i] != kNone && HasEffects(*module_.instruction(i).proto))
      parts.push_back(result_[i]);
  }
  parts.push_back(kNone);
  std::sort(run.begin(), run.end());
  parts.insert(parts.end(), run.begin(), run.end());
  parts.push_back(kNone);
  const absl::Span<const int32_t> root = Arrays(of.root);
  parts.insert(parts.end(), root.begin(), root.end());
  computation_[computation] = table_.OfComputation(parts);
  given_ = outer;
}

void ModuleNumbers::NumberResult(int32_t i) {
  const HloInstructionProto& proto = *module_.instruction(i).proto;
  std::vector<int32_t> parts, handed_on;
  if (module_.opcode(i) == kConditional) handed_on = NumberBranches(i, parts);
  for (const int32_t operand : parts.empty() ? module_.operands(i) : module_.operands(i).first(1)) {
    const absl::Span<const int32_t> arrays = Arrays(operand);
    if (shape_[operand] == kNone)
      shape_[operand] = table_.OfShape(module_.instruction(operand).proto->shape());
    parts.push_back(shape_[operand]);
    parts.insert(parts.end(), arrays.begin(), arrays.end());
  }
  for (const int32_t called : module_.called(i)) parts.push_back(computation_[called]);
  result_[i] = table_.OfResult(proto, parts);
  const absl::Span<int32_t> arrays = Arrays(i);
  for (size_t k = 0; k < arrays.size(); ++k)
    arrays[k] = table_.OfArray(result_[i], static_cast<int64_t>(k));
  for (size_t k = 0; k < handed_on.size() && k < arrays.size(); ++k) {
    if (handed_on[k] != kNone) arrays[k] = handed_on[k];
  }
  if (module_.opcode(i) != kWhile) return;
  // What the body hands on unchanged is what it was before the loop.
  const Computation& body = module_.computation(module_.called(i)[0]);
  const absl::Span<const int32_t> given = Arrays(body.parameters[0]), root = Arrays(body.root),
                                  init = Arrays(module_.operands(i)[0]);
  for (size_t k = 0; k < arrays.size(); ++k) {
    if (root[k] == given[k]) arrays[k] = init[k];
  }
}

// Appends what a conditional's branches are given and make of it. A branch may be given a value
// several times, at different places, which makes no difference. Returns by array of the result the
// value that all branches hand on, or kNone.
std::vector<int32_t> ModuleNumbers::NumberBranches(int32_t i, std::vector<int32_t>& parts) {
  const absl::Span<const int32_t> branches = module_.called(i), operands = module_.operands(i);
  std::vector<std::set<int32_t>> values(Arrays(i).size());
  for (size_t b = 0; b < branches.size(); ++b) {
    const Computation& branch = module_.computation(branches[b]);
    if (operands.size() != branches.size() + 1 || branch.parameters.size() != 1 ||
        Arrays(branch.parameters[0]).size() != Arrays(operands[b + 1]).size() ||
        Arrays(branch.root).size() != values.size()) {
      parts.clear();
      return {};
    }
    const absl::Span<const int32_t> given = Arrays(operands[b + 1]);
    NumberComputation(branches[b], given);
    parts.push_back(computation_[branches[b]]);
    std::set<int32_t> seen;
    for (const int32_t value : given) {
      if (seen.insert(value).second) parts.push_back(value);
    }
    const absl::Span<const int32_t> taken = Arrays(branch.parameters[0]);
    for (size_t k = 0; k < values.size(); ++k) {
      const auto passed = std::find(taken.begin(), taken.end(), Arrays(branch.root)[k]);
      values[k].insert(passed == taken.end() ? kNone : given[passed - taken.begin()]);
    }
  }
  std::vector<int32_t> handed_on;
  for (const std::set<int32_t>& all : values)
    handed_on.push_back(all.size() == 1 ? *all.begin() : kNone);
  return handed_on;
}

void ModuleNumbers::Pass(int32_t operand, Module::ArrayRange from, int32_t i, int32_t to) {
  const absl::Span<const int32_t> values = Arrays(operand).subspan(from.first, from.count);
  std::copy(values.begin(), values.end(), Arrays(i).begin() + to);
}

bool ModuleNumbers::PassAll(int32_t i) {
  const auto edges = EdgesOf(module_, chains_, i);
  if (!edges.ok()) return false;
  for (const ValueEdge& edge : *edges) {
    const auto from = *module_.SubShape(edge.from.instruction, edge.from.index),
               to = *module_.SubShape(i, edge.to.index);
    if (edge.how == Handing::kReturn || from.count != to.count) return false;
    Pass(edge.from.instruction, from, i, to.first);
  }
  return true;
}

bool ModuleNumbers::KeepsLayout(int32_t copy) const {
  const HloInstructionProto& operand = *module_.instruction(module_.operands(copy)[0]).proto;
  return ValueTable::Alike(operand.shape(), module_.instruction(copy).proto->shape());
}

bool ModuleNumbers::NumberMoved(int32_t i) {
  const HloInstructionProto& proto = *module_.instruction(i).proto;
  const Opcode opcode = module_.opcode(i);
  const absl::Span<const int32_t> operands = module_.operands(i);
  const auto all = [this](int32_t k) {
    return Module::ArrayRange{0, module_.instruction(k).array_count};
  };
  if (opcode == kParameter) {
    std::map<int32_t, int32_t> different;  // values that are given, in their order
    for (int32_t k = 0; k < all(i).count; ++k) {
      const auto count = static_cast<int32_t>(different.size());
      const int32_t place = given_.empty() ? k : different.emplace(given_[k], count).first->second;
      Arrays(i)[k] = table_.OfParameter(proto.parameter_number(), place, ShapeOf(i, k));
    }
  } else if (opcode == kTuple || opcode == kGetTupleElement || opcode == kOptBarrier ||
             opcode == kCopyStart) {
    return PassAll(i);
  } else if (opcode == kCopy && KeepsLayout(i)) {
    Pass(operands[0], all(i), i);
  } else if (opcode == kBitcast && all(i).count == 1 && all(operands[0]).count == 1) {
    Arrays(i)[0] = table_.OfBitcast(Arrays(operands[0])[0], ShapeOf(operands[0]), ShapeOf(i));
  } else if (opcode == kSlice) {
    Arrays(i)[0] = table_.OfSlice(Arrays(operands[0])[0], proto, ShapeOf(operands[0]));
  } else if (JoinsSlices(proto)) {
    std::vector<int32_t> slices;
    for (const int32_t operand : operands) slices.push_back(Arrays(operand)[0]);
    const int32_t joined = table_.OfJoinedSlices(slices, ShapeOf(i));
    if (joined == kNone) return false;
    Arrays(i)[0] = joined;
  } else {
    return NumberTransfer(i);
  }
  return true;
}

// A transfer has the value of what it transfers from its *-start on.
bool ModuleNumbers::NumberTransfer(int32_t i) {
  const Opcode opcode = module_.opcode(i);
  const absl::Span<const int32_t> operands = module_.operands(i);
  if (operands.size() != 1) return false;
  const int32_t operand = operands[0];
  const int32_t count = module_.instruction(operand).array_count;
  if (opcode == kCopyDone || opcode == kAsyncDone) return result_[operand] == kNone && PassAll(i);
  if (opcode != kAsyncStart || count != 1) return false;
  const Computation& wrapped = module_.computation(module_.called(i)[0]);
  const HloInstructionProto& root = *module_.instruction(wrapped.root).proto;
  if (wrapped.instruction_count != 2) return false;
  const absl::Span<int32_t> arrays = Arrays(i);
  arrays[0] = Arrays(operand)[0];
  if (module_.opcode(wrapped.root) == kSlice) {
    arrays[1] = table_.OfSlice(arrays[0], root, ShapeOf(operand));
  } else if (module_.opcode(wrapped.root) == kCopy &&
             ValueTable::Alike(ShapeOf(operand), root.shape())) {
    arrays[1] = arrays[0];
  } else {
    return false;
  }
  return true;
}

}  // namespace mallocgame::hlo
