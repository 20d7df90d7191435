#include "mallocgame/hlo/write/placed_values.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/memory_spaces.h"
#include "mallocgame/hlo/module/opcodes.h"

namespace mallocgame::hlo {

PlacedValues::PlacedValues(const Module& module, const ValueFlow& flow, ModuleDraft& draft,
                           int64_t fast_memory_space, std::vector<int64_t> offsets)
    : module_(module), flow_(flow), draft_(draft), fast_memory_space_(fast_memory_space),
      offsets_(std::move(offsets)), made_at_(module.array_count()) {}

bool PlacedValues::IsEmittedWhenWanted(int32_t i) const {
  const HloInstructionProto& proto = *module_.instruction(i).proto;
  const Opcode opcode = module_.opcode(i);
  return opcode == kTuple || opcode == kGetTupleElement || opcode == kConstant ||
         opcode == kOptBarrier || Recasts(module_, i) || SetsStorageAside(proto);
}

void PlacedValues::SetSpace(ShapeProto& array, int32_t location) const {
  const int64_t space = array.layout().memory_space();
  if (location != kMainMemory) {
    array.mutable_layout()->set_memory_space(fast_memory_space_);
  } else if (space == fast_memory_space_) {
    array.mutable_layout()->set_memory_space(0);
  }
}

void PlacedValues::Define(int32_t array, int32_t location) {
  const int32_t i = flow_.InstructionOf(array);
  made_at_[array] = location;
  SetSpace(*ArraysOf(*draft_.instruction(i).mutable_shape())[array - FirstArray(i)], location);
  const bool alone = draft_.instruction(i).shape().element_type() != TUPLE;
  if (alone && flow_.Before(array) == kNone) at_[{array, location}] = i;
}

void PlacedValues::AddCopy(int32_t array, int32_t location, int32_t instruction) {
  at_[{flow_.ValueOf(array), location}] = instruction;
}

bool PlacedValues::IsAt(int32_t array, int32_t location) const {
  const int32_t value = flow_.ValueOf(array);
  return made_at_[value] == location || at_.contains({value, location}) ||
         (!made_at_[value] && location == kMainMemory &&
          IsEmittedWhenWanted(flow_.InstructionOf(value)));
}

int32_t PlacedValues::AnyLocationOf(int32_t array) const {
  if (IsAt(array, kMainMemory)) return kMainMemory;
  const int32_t value = flow_.ValueOf(array);
  if (made_at_[value]) return *made_at_[value];
  const auto copy = at_.lower_bound({value, kMainMemory});
  return copy != at_.end() && copy->first.first == value ? copy->first.second : kMainMemory;
}

std::optional<int32_t> PlacedValues::MadeAt(int32_t array) const { return made_at_[array]; }

absl::StatusOr<int32_t> PlacedValues::ArrayAt(int32_t array, int32_t location) {
  const int32_t i = flow_.InstructionOf(array);
  const int32_t before = flow_.Before(array);
  // A loop that is given one value several times hands each on as itself.
  const auto is_own = [&](int32_t a) {
    return flow_.Before(a) == kNone || (flow_.OutsideOf(a) != kNone && made_at_[a] == location);
  };
  if (is_own(array)) return ValueAt(array, location, kNone);
  if (Recasts(module_, i)) return RecastAt(i, location);
  const bool is_element = module_.opcode(i) == kGetTupleElement &&
                          module_.instruction(i).proto->shape().element_type() != TUPLE;
  if (is_element && is_own(before)) return ValueAt(before, location, i);
  return ArrayAt(before, location);
}

// `element` is an instruction of the module before that takes the value out of a tuple, or kNone.
absl::StatusOr<int32_t> PlacedValues::ValueAt(int32_t value, int32_t location, int32_t element) {
  const auto found = at_.find({value, location});
  if (found != at_.end()) return found->second;
  const int32_t i = flow_.InstructionOf(value);
  if (SetsStorageAside(*module_.instruction(i).proto)) return StorageAt(i, location);
  if (location == kMainMemory && IsEmittedWhenWanted(i) && !draft_.IsEmitted(i)) {
    draft_.Emit(i);
    for (int32_t k = 0; k < module_.instruction(i).array_count; ++k)
      Define(FirstArray(i) + k, kMainMemory);
    return ValueAt(value, location, element);
  }
  if (made_at_[value] != location || !draft_.IsEmitted(i)) {
    if (IsOutsideAt(value, location)) return TakeAlso(value, location);
    return NotThere(value, location);
  }
  MG_ASSIGN_OR_RETURN(const int32_t taken, ElementAt(value, element));
  at_[{value, location}] = taken;
  return taken;
}

bool PlacedValues::IsOutsideAt(int32_t value, int32_t location) const {
  const int32_t parameter = flow_.InstructionOf(value);
  const auto given = given_.find(parameter);
  if (given == given_.end() || draft_.instruction(parameter).shape().element_type() != TUPLE)
    return false;
  const int32_t outside =
      flow_.ValueOf(FirstArray(given->second.operand) + value - FirstArray(parameter));
  return CanBeAt(outside, location);
}

int32_t PlacedValues::TakeAlso(int32_t value, int32_t location) {
  const int32_t parameter = flow_.InstructionOf(value);
  given_[parameter].also.emplace_back(value - FirstArray(parameter), location);
  ShapeProto& tuple = *draft_.instruction(parameter).mutable_shape();
  ShapeProto shape = *ArraysOf(tuple)[value - FirstArray(parameter)];
  SetSpace(shape, location);
  const int32_t taken = draft_.Add(draft_.computation(parameter), "get-tuple-element");
  HloInstructionProto& proto = draft_.instruction(taken);
  proto.set_tuple_index(tuple.tuple_shapes_size());
  proto.add_operand_ids(draft_.instruction(parameter).id());
  *proto.mutable_shape() = *tuple.add_tuple_shapes() = std::move(shape);
  draft_.Emit(taken);
  at_[{value, location}] = taken;
  return taken;
}

absl::StatusOr<std::optional<int32_t>> PlacedValues::Widened(int32_t parameter,
                                                             absl::Span<const int32_t> locations) {
  const auto& [operand, also] = given_.at(parameter);
  if (also.empty()) return std::nullopt;
  std::vector<int32_t> elements;
  int32_t next = 0;
  for (const ShapeProto& element : module_.instruction(operand).proto->shape().tuple_shapes()) {
    MG_ASSIGN_OR_RETURN(elements.emplace_back(), Regroup(operand, element, next, locations));
  }
  for (const auto& [array, location] : also) {
    MG_ASSIGN_OR_RETURN(elements.emplace_back(), ArrayAt(FirstArray(operand) + array, location));
  }
  return MakeTuple(draft_.computation(operand), elements);
}

// Storage without a value is set aside wherever it is wanted.
absl::StatusOr<int32_t> PlacedValues::StorageAt(int32_t i, int32_t location) {
  const int32_t array = FirstArray(i);
  int32_t own = i;
  if (draft_.IsEmitted(i)) {
    own = draft_.Clone(i);
    NewValue value;
    value.instruction_id = draft_.instruction(own).id();
    value.size_bytes = module_.arrays(i)[0].size_bytes;
    value.home = i;
    value.home_array = array;
    if (location != kMainMemory) {
      value.memory_space = fast_memory_space_;
      value.fast_offset = OffsetOf(location);
    }
    AddValue(std::move(value));
    SetSpace(*draft_.instruction(own).mutable_shape(), location);
  } else {
    Define(array, location);
  }
  draft_.Emit(own);
  at_[{array, location}] = own;
  return own;
}

// Takes a value out of the tuple that its instruction makes.
absl::StatusOr<int32_t> PlacedValues::ElementAt(int32_t value, int32_t element) {
  const int32_t i = flow_.InstructionOf(value);
  const std::vector<int64_t> index =
      IndexOfArray(draft_.instruction(i).shape(), value - FirstArray(i));
  int32_t taken = i;
  for (const int64_t k : index) {
    const ShapeProto shape = draft_.instruction(taken).shape().tuple_shapes(static_cast<int>(k));
    const bool reuses = index.size() == 1 && element != kNone && !draft_.IsEmitted(element);
    const int32_t next = reuses ? element : draft_.Add(draft_.computation(i), "get-tuple-element");
    HloInstructionProto& proto = draft_.instruction(next);
    *proto.mutable_shape() = shape;
    proto.set_tuple_index(k);
    proto.clear_operand_ids();
    proto.add_operand_ids(draft_.instruction(taken).id());
    draft_.Emit(next);
    taken = next;
  }
  return taken;
}

absl::StatusOr<int32_t> PlacedValues::RecastAt(int32_t i, int32_t location) {
  const int32_t array = FirstArray(i);
  const auto found = at_.find({array, location});
  if (found != at_.end()) return found->second;
  std::vector<int64_t> operands;
  for (const int32_t operand : module_.operands(i)) {
    std::vector<int32_t> locations(module_.instruction(operand).array_count, location);
    for (int32_t k = 0; !operands.empty() && k < std::ssize(locations); ++k)
      locations[k] = AnyLocationOf(FirstArray(operand) + k);
    MG_ASSIGN_OR_RETURN(const int32_t own, ResultAt(operand, locations));
    operands.push_back(draft_.instruction(own).id());
  }
  const int32_t own = draft_.IsEmitted(i) ? draft_.Clone(i) : i;
  HloInstructionProto& proto = draft_.instruction(own);
  std::copy(operands.begin(), operands.end(), proto.mutable_operand_ids()->begin());
  SetSpace(*proto.mutable_shape(), location);
  draft_.Emit(own);
  at_[{array, location}] = own;
  return own;
}

absl::StatusOr<int32_t> PlacedValues::ResultAt(int32_t i, absl::Span<const int32_t> locations) {
  if (module_.instruction(i).proto->shape().element_type() != TUPLE)
    return ArrayAt(FirstArray(i), locations[0]);
  if (AreMadeAt(i, locations)) return i;
  auto& known = tuples_[i];
  for (const auto& [there, own] : known) {
    if (std::equal(there.begin(), there.end(), locations.begin())) return own;
  }
  const bool groups = module_.opcode(i) == kTuple;
  int32_t next = 0;
  MG_ASSIGN_OR_RETURN(const int32_t own,
                      groups ? TupleAt(i, locations)
                             : Regroup(i, module_.instruction(i).proto->shape(), next, locations));
  if (!groups) changed_.added.back().home = i;
  tuples_[i].emplace_back(std::vector<int32_t>(locations.begin(), locations.end()), own);
  return own;
}

bool PlacedValues::AreMadeAt(int32_t i, absl::Span<const int32_t> locations) const {
  if (IsEmittedWhenWanted(i) || !draft_.IsEmitted(i)) return false;
  for (size_t k = 0; k < locations.size(); ++k) {
    const auto& made = made_at_[FirstArray(i) + k];
    if (made && *made != locations[k]) return false;
  }
  return true;
}

absl::StatusOr<int32_t> PlacedValues::TupleAt(int32_t i, absl::Span<const int32_t> locations) {
  std::vector<int32_t> elements;
  for (const int32_t operand : module_.operands(i)) {
    const size_t count = module_.instruction(operand).array_count;
    MG_ASSIGN_OR_RETURN(const int32_t own, ResultAt(operand, locations.first(count)));
    elements.push_back(own);
    locations.remove_prefix(count);
  }
  const bool first = !draft_.IsEmitted(i);
  const int32_t own = first ? i : draft_.Clone(i);
  HloInstructionProto& proto = draft_.instruction(own);
  for (size_t k = 0; k < elements.size(); ++k) {
    proto.set_operand_ids(static_cast<int>(k), draft_.instruction(elements[k]).id());
    *proto.mutable_shape()->mutable_tuple_shapes(static_cast<int>(k)) =
        draft_.instruction(elements[k]).shape();
  }
  draft_.Emit(own);
  if (!first) AddTuple(own);  // The one before it may live on, as for another branch.
  return own;
}

// Makes a tuple anew of its arrays, which lie elsewhere.
absl::StatusOr<int32_t> PlacedValues::Regroup(int32_t i, const ShapeProto& shape, int32_t& next,
                                              absl::Span<const int32_t> locations) {
  if (shape.element_type() != TUPLE) {
    const int32_t k = next++;
    return ArrayAt(FirstArray(i) + k, locations[k]);
  }
  std::vector<int32_t> elements;
  for (const ShapeProto& element : shape.tuple_shapes()) {
    MG_ASSIGN_OR_RETURN(const int32_t own, Regroup(i, element, next, locations));
    elements.push_back(own);
  }
  return MakeTuple(draft_.computation(i), elements);
}

int32_t PlacedValues::MakeTuple(int32_t computation, absl::Span<const int32_t> elements) {
  const int32_t tuple = draft_.Add(computation, "tuple");
  HloInstructionProto& proto = draft_.instruction(tuple);
  proto.mutable_shape()->set_element_type(TUPLE);
  for (const int32_t element : elements) {
    proto.add_operand_ids(draft_.instruction(element).id());
    *proto.mutable_shape()->add_tuple_shapes() = draft_.instruction(element).shape();
  }
  draft_.Emit(tuple);
  AddTuple(tuple);
  return tuple;
}

void PlacedValues::AddTuple(int32_t instruction) {
  NewValue value;
  value.instruction_id = draft_.instruction(instruction).id();
  value.size_bytes = kTupleBytes;
  AddValue(std::move(value));
}

void PlacedValues::SetTableApart(int32_t tuple) {
  for (NewValue& value : changed_.added) {
    if (value.instruction_id == draft_.instruction(tuple).id() && value.index.empty())
      value.home = kNone;
  }
}

absl::Status PlacedValues::NotThere(int32_t value, int32_t location) const {
  const int32_t i = flow_.InstructionOf(value);
  return Refused(
      {.rule = "not-there", .instructions = {module_.NameOf(i)}},
      absl::UnimplementedError(absl::StrCat(
          module_.Where(i), ": array ", value - FirstArray(i), " of its result is wanted ",
          location == kMainMemory ? "in main memory"
                                  : absl::StrCat("in residence ", location, " of the plan"),
          ", where it isn't in that computation")));
}

ChangedPlaces PlacedValues::TakeChanges() {
  changed_.fast_offset.resize(made_at_.size());
  for (size_t array = 0; array < made_at_.size(); ++array) {
    if (made_at_[array].value_or(kMainMemory) != kMainMemory)
      changed_.fast_offset[array] = OffsetOf(*made_at_[array]);
  }
  return std::move(changed_);
}

}  // namespace mallocgame::hlo
