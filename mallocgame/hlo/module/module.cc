// Parses and checks HLO modules. Passes over instructions are linear; recursion is bounded by the
// protobuf parser's own depth limit (shapes) and by kMaxCallDepth (computations).
#include "mallocgame/hlo/module/module.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/arena.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/base/utf8.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/hlo/module/call_graph.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/proto_forms.h"
#include "mallocgame/hlo/module/shape_size.h"

namespace mallocgame::hlo {
namespace {

constexpr size_t kMaxModuleBytes = size_t{256} << 20;
constexpr int32_t kMaxCallDepth = 100;
// so few that the bytes of all arrays together fit into an int64
constexpr size_t kMaxArrays = size_t{1} << 22;
// bounds the work of later passes: many uses of large tuples add up
constexpr size_t kMaxOperandArrays = size_t{1} << 28;

absl::Status Invalid(absl::string_view where, absl::string_view what,
                     const Refusal& refusal = {.rule = "readable"}) {
  return Refused(refusal, absl::InvalidArgumentError(absl::StrCat(where, ": ", what)));
}

int32_t Size(size_t n) { return static_cast<int32_t>(n); }

template <class T>
absl::Span<const T> Slice(const std::vector<T>& all, int32_t first, int32_t count) {
  return absl::MakeConstSpan(all).subspan(first, count);
}

}  // namespace

Module::Module(std::unique_ptr<google::protobuf::Arena> arena, const HloProto* proto)
    : arena_(std::move(arena)), proto_(proto) {}
Module::~Module() = default;

const HloModuleProto& Module::module() const { return proto_->hlo_module(); }

absl::StatusOr<std::unique_ptr<const Module>> Module::Parse(absl::string_view bytes,
                                                            absl::string_view what) {
  if (bytes.size() > kMaxModuleBytes) {
    return Invalid(what,
                   absl::StrCat(bytes.size(), " bytes; at most ", kMaxModuleBytes, " are read"));
  }
  auto arena = std::make_unique<google::protobuf::Arena>();
  const absl::StatusOr<HloProto*> proto = ParseAnyForm(bytes, *arena);
  if (!proto.ok()) return Invalid(what, proto.status().message());
  std::unique_ptr<Module> module(new Module(std::move(arena), *proto));
  if (absl::Status status = module->Index(); !status.ok()) return Prefixed(what, status);
  const absl::StatusOr<bool> changed = FlattenCallGraph(*module, *(*proto)->mutable_hlo_module());
  if (!changed.ok()) return Prefixed(what, changed.status());
  if (*changed) {
    module.reset(new Module(std::move(module->arena_), *proto));
    if (absl::Status status = module->Index(); !status.ok()) return Prefixed(what, status);
  }
  return module;
}

absl::Status Module::Index() {
  const HloModuleProto& module = proto_->hlo_module();
  if (!IsUtf8(module.name())) return Invalid("hlo_module", "its name is not UTF-8 text");
  if (module.computations().empty()) return Invalid("hlo_module", "no computations");
  size_t count = 0;
  for (const HloComputationProto& computation : module.computations()) {
    count += computation.instructions_size();
  }
  instructions_.reserve(count);
  by_id_.reserve(count);
  by_name_.reserve(count);
  computations_.reserve(module.computations_size());
  for (const HloComputationProto& computation : module.computations()) {
    MG_RETURN_IF_ERROR(AddComputation(computation));
  }
  const auto entry = computation_by_id_.find(module.entry_computation_id());
  if (entry == computation_by_id_.end()) {
    return Invalid("hlo_module", absl::StrCat("no computation has the entry's id ",
                                              module.entry_computation_id()));
  }
  entry_ = entry->second;
  return IndexSchedule();
}

absl::Status Module::AddComputation(const HloComputationProto& proto) {
  const int32_t index = Size(computations_.size());
  if (!IsUtf8(proto.name()))
    return Invalid(absl::StrCat("computation ", index), "its name is not UTF-8 text");
  const std::string where = absl::StrCat("computation '", proto.name(), "'");
  if (proto.instructions().empty()) return Invalid(where, "no instructions");
  computations_.emplace_back();
  depth_.push_back(0);
  Computation& computation = computations_.back();
  computation.proto = &proto;
  computation.first_instruction = Size(instructions_.size());
  computation.instruction_count = proto.instructions_size();
  for (const HloInstructionProto& instruction : proto.instructions()) {
    MG_RETURN_IF_ERROR(AddInstruction(instruction, index));
  }
  if (!computation_by_id_.emplace(proto.id(), index).second) {
    return Invalid(where, absl::StrCat("its id ", proto.id(), " is another computation's too"));
  }
  const std::optional<int32_t> root = FindById(proto.root_id());
  if (!root || *root < computation.first_instruction) {
    return Invalid(where,
                   absl::StrCat("its root id ", proto.root_id(), " is no instruction of it"));
  }
  computation.root = *root;
  for (size_t p = 0; p < computation.parameters.size(); ++p) {
    if (computation.parameters[p] == kNone)
      return Invalid(where, absl::StrCat("parameter number ", p, " is missing"));
  }
  return absl::OkStatus();
}

absl::Status Module::AddInstruction(const HloInstructionProto& proto, int32_t computation_index) {
  Computation& computation = computations_[computation_index];
  const int32_t index = Size(instructions_.size());
  if (!IsUtf8(proto.name()) || !IsUtf8(proto.opcode())) {
    return Invalid(absl::StrCat("instruction ", index - computation.first_instruction,
                                " of computation '", computation.proto->name(), "'"),
                   "its name or its opcode is not UTF-8 text");
  }
  HloInstruction instruction;
  instruction.proto = &proto;
  instruction.opcode = OpcodeOf(proto);
  instruction.computation = computation_index;
  instruction.first_operand = Size(operands_.size());
  instruction.operand_count = proto.operand_ids_size();
  instruction.first_called = Size(called_.size());
  instruction.called_count = proto.called_computation_ids_size();
  instruction.first_array = Size(arrays_.size());
  instruction.first_element = Size(elements_.size());
  instructions_.push_back(instruction);

  for (const int64_t id : proto.operand_ids()) {
    const auto operand = by_id_.find(id);
    if (operand == by_id_.end() || operand->second < computation.first_instruction) {
      return InvalidAt(index, absl::StrCat("operand id ", id,
                                           " is no instruction of its computation before it"));
    }
    operands_.push_back(operand->second);
    operand_arrays_ += this->instruction(operand->second).array_count;
  }
  if (operand_arrays_ > kMaxOperandArrays) {
    return InvalidAt(
        index, absl::StrCat("operands of more than ", kMaxOperandArrays, " arrays up to here"));
  }
  int32_t& depth = depth_[computation_index];
  for (const int64_t id : proto.called_computation_ids()) {
    const auto called = computation_by_id_.find(id);
    if (called == computation_by_id_.end()) {
      return InvalidAt(
          index, absl::StrCat("called computation id ", id, " is no computation before its own"));
    }
    called_.push_back(called->second);
    depth = std::max(depth, depth_[called->second] + 1);
  }
  if (depth > kMaxCallDepth) {
    return InvalidAt(index, absl::StrCat("computations nest more than ", kMaxCallDepth, " deep"));
  }
  if (absl::Status status = AddArrays(proto.shape(), index); !status.ok()) {
    return InvalidAt(index, absl::StrCat("shape: ", status.message()));
  }
  HloInstruction& added = instructions_.back();
  added.array_count = Size(arrays_.size()) - added.first_array;
  added.element_count = Size(elements_.size()) - added.first_element;

  if (instruction.opcode == kParameter) {
    const int64_t number = proto.parameter_number();
    if (number < 0 || number >= computation.instruction_count) {
      return InvalidAt(index, absl::StrCat("parameter number ", number));
    }
    std::vector<int32_t>& parameters = computation.parameters;
    if (number >= std::ssize(parameters)) parameters.resize(number + 1, kNone);
    if (std::exchange(parameters[number], index) != kNone) {
      return InvalidAt(index,
                       absl::StrCat("parameter number ", number, " is another instruction's too"));
    }
  }
  if (!by_id_.emplace(proto.id(), index).second) {
    return InvalidAt(index, absl::StrCat("its id ", proto.id(), " is another instruction's too"));
  }
  if (!by_name_.emplace(proto.name(), index).second)
    return InvalidAt(index, "another instruction has its name");
  return absl::OkStatus();
}

absl::Status Module::AddArrays(const ShapeProto& shape, int32_t instruction) {
  const int32_t first = instructions_[instruction].first_array;
  const auto add = [&](const auto& self, const ShapeProto& part) -> absl::Status {
    if (part.element_type() == TUPLE) {
      for (const ShapeProto& element : part.tuple_shapes()) {
        if (&part == &shape) elements_.push_back(Size(arrays_.size()) - first);
        MG_RETURN_IF_ERROR(self(self, element));
      }
      return absl::OkStatus();
    }
    const ShapeProto& array = ArrayOf(part);
    if (arrays_.size() >= kMaxArrays)
      return Invalid("module", absl::StrCat("more than ", kMaxArrays, " arrays"));
    MG_ASSIGN_OR_RETURN(const int64_t bytes, TiledBytes(array, kMaxArrayBytes));
    arrays_.push_back(Array{&array, bytes, array.layout().memory_space(), &array != &part});
    return absl::OkStatus();
  };
  return add(add, shape);
}

absl::Status Module::IndexSchedule() {
  std::vector<int32_t> position(instructions_.size(), kNone);
  // The protobuf's map has no order of its own. This loop goes by computation, so that messages are
  // the same in every run.
  for (Computation& computation : computations_)
    MG_RETURN_IF_ERROR(IndexSequence(computation, position));
  return absl::OkStatus();
}

// `position` is where the instructions of the module so far stand in their sequences.
absl::Status Module::IndexSequence(Computation& computation, std::vector<int32_t>& position) {
  const auto& sequences = module().schedule().sequences();
  const auto found = sequences.find(computation.proto->id());
  if (found == sequences.end()) {
    computation.schedule.resize(computation.instruction_count);
    std::iota(computation.schedule.begin(), computation.schedule.end(),
              computation.first_instruction);
    return absl::OkStatus();
  }
  computation.scheduled = true;
  const auto invalid = [&computation](absl::string_view what, std::vector<std::string> names = {}) {
    return Invalid(absl::StrCat("schedule of computation '", computation.proto->name(), "'"), what,
                   {.rule = kScheduleRule, .instructions = std::move(names)});
  };
  if (found->second.instruction_ids_size() != computation.instruction_count) {
    return invalid(absl::StrCat(found->second.instruction_ids_size(),
                                " instructions, the computation has ",
                                computation.instruction_count));
  }
  for (const int64_t id : found->second.instruction_ids()) {
    const std::optional<int32_t> found_id = FindById(id);
    if (!found_id || *found_id < computation.first_instruction ||
        *found_id >= computation.first_instruction + computation.instruction_count) {
      return invalid(absl::StrCat("id ", id, " is no instruction of it"));
    }
    const int32_t i = *found_id;
    if (position[i] != kNone)
      return invalid(absl::StrCat("id ", id, " stands there twice"), {NameOf(i)});
    for (const int32_t operand : operands(i)) {
      if (position[operand] == kNone) {
        return invalid(
            absl::StrCat("'", NameOf(i), "' stands before its operand '", NameOf(operand), "'"),
            {NameOf(i), NameOf(operand)});
      }
    }
    position[i] = Size(computation.schedule.size());
    computation.schedule.push_back(i);
  }
  return absl::OkStatus();
}

absl::Span<const int32_t> Module::operands(int32_t i) const {
  return Slice(operands_, instruction(i).first_operand, instruction(i).operand_count);
}

absl::Span<const int32_t> Module::called(int32_t i) const {
  return Slice(called_, instruction(i).first_called, instruction(i).called_count);
}

absl::Span<const Array> Module::arrays(int32_t i) const {
  return Slice(arrays_, instruction(i).first_array, instruction(i).array_count);
}

absl::StatusOr<Module::ArrayRange> Module::SubShape(int32_t i,
                                                    absl::Span<const int64_t> index) const {
  const HloInstruction& of = instruction(i);
  const ShapeProto* shape = &of.proto->shape();
  ArrayRange range{0, of.array_count};
  if (!index.empty() && index[0] >= 0 && index[0] < of.element_count) {
    const auto element = [&](int64_t k) {
      return k < of.element_count ? elements_[of.first_element + k] : of.array_count;
    };
    range = {element(index[0]), element(index[0] + 1) - element(index[0])};
  }
  const auto count = [](const auto& self, const ShapeProto& part) -> int32_t {
    if (part.element_type() != TUPLE) return 1;
    int32_t sum = 0;
    for (const ShapeProto& element : part.tuple_shapes()) sum += self(self, element);
    return sum;
  };
  for (size_t depth = 0; depth < index.size(); ++depth) {
    if (shape->element_type() != TUPLE || index[depth] < 0 ||
        index[depth] >= shape->tuple_shapes_size()) {
      return InvalidAt(i, absl::StrCat("no shape at index {", absl::StrJoin(index, ","), "}"));
    }
    const int element = static_cast<int>(index[depth]);
    if (depth > 0) {
      for (int k = 0; k < element; ++k) range.first += count(count, shape->tuple_shapes(k));
      range.count = count(count, shape->tuple_shapes(element));
    }
    shape = &shape->tuple_shapes(element);
  }
  return range;
}

std::optional<int32_t> Module::FindByName(absl::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) return std::nullopt;
  return found->second;
}

std::optional<int32_t> Module::FindById(int64_t id) const {
  const auto found = by_id_.find(id);
  if (found == by_id_.end()) return std::nullopt;
  return found->second;
}

absl::Status CheckFastMemorySpace(const Module& module, int64_t fast_memory_space) {
  constexpr int64_t kVmem = 1, kCmem = 3;
  int64_t other = 0;
  for (int32_t i = 0; i < std::ssize(module.instructions()); ++i) {
    for (const Array& array : module.arrays(i)) {
      if (array.memory_space == fast_memory_space) return absl::OkStatus();
      if (array.memory_space == kVmem || array.memory_space == kCmem) other = array.memory_space;
    }
  }
  if (other == 0) return absl::OkStatus();
  std::vector<std::string> fitting = HardwarePresetNames();
  std::erase_if(fitting, [other](const std::string& name) {
    return HardwarePreset(name)->fast_memory_space != other;
  });
  return Refused({.rule = "other-hardware"},
                 absl::InvalidArgumentError(absl::StrCat(
                     "arrays lie in memory space S(", other, "), the fast memory of ",
                     absl::StrJoin(fitting, ", "), ", none in S(", fast_memory_space,
                     "), the hardware's fast memory: it was compiled for other hardware")));
}

const std::string& Module::NameOf(int32_t i) const { return instruction(i).proto->name(); }

absl::Status Module::InvalidAt(int32_t i, absl::string_view what) const {
  return Invalid(Where(i), what, {.rule = "readable", .instructions = {NameOf(i)}});
}

std::string Module::Where(int32_t i) const {
  return absl::StrCat("instruction '", instruction(i).proto->name(), "' of computation '",
                      computation(instruction(i).computation).proto->name(), "'");
}

}  // namespace mallocgame::hlo
