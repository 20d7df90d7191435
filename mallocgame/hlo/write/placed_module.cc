// Reads where the arrays of a scheduled module lie.
#include "mallocgame/hlo/write/placed_module.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "google/protobuf/arena.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/module/buffer_assignment.h"
#include "mallocgame/hlo/module/dataflow.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/proto_forms.h"
#include "mallocgame/hlo/module/schedule.h"

namespace mallocgame::hlo {

PlacedModule::PlacedModule(PlacedModule&&) noexcept = default;
PlacedModule& PlacedModule::operator=(PlacedModule&&) noexcept = default;
PlacedModule::~PlacedModule() = default;

absl::StatusOr<PlacedModule> PlacedModule::Read(absl::string_view module,
                                                absl::string_view buffer_assignment) {
  PlacedModule placed;
  MG_ASSIGN_OR_RETURN(placed.module_, Module::Parse(module, "scheduled module"));
  MG_ASSIGN_OR_RETURN(const Schedule schedule, Flatten(*placed.module_));
  MG_ASSIGN_OR_RETURN(const Dataflow dataflow, Dataflow::Build(*placed.module_, schedule));
  placed.storage_.resize(placed.module_->array_count());
  for (int32_t array = 0; array < std::ssize(placed.storage_); ++array)
    placed.storage_[array] = dataflow.SetOf(array);
  google::protobuf::Arena arena;
  auto* assignment = google::protobuf::Arena::CreateMessage<BufferAssignmentProto>(&arena);
  if (!ParseMessage(buffer_assignment, *assignment) || assignment->logical_buffers().empty()) {
    return Refused({.rule = "readable"}, absl::InvalidArgumentError(
                                             "buffer assignment: not a serialized "
                                             "BufferAssignmentProto with logical buffers (damaged, "
                                             "cut short, or compressed)"));
  }
  MG_RETURN_IF_ERROR(placed.ReadHomes(*assignment));
  return placed;
}

absl::Status PlacedModule::ReadHomes(const BufferAssignmentProto& assignment) {
  home_.resize(storage_.size());
  const auto assigned = AssignedBuffers(assignment, *module_);
  if (!assigned.ok()) {
    return Refused({.rule = "readable"}, absl::InvalidArgumentError(absl::StrCat(
                                             "buffer assignment: ", assigned.status().message())));
  }
  for (const AssignedBuffer& one : *assigned) {
    if (one.array != kNone) home_[storage_[one.array]] = Home(one.allocation->index(), one.offset);
  }
  return absl::OkStatus();
}

absl::StatusOr<int32_t> PlacedModule::Find(absl::string_view instruction) const {
  const std::optional<int32_t> found = module_->FindByName(instruction);
  if (found) return *found;
  return Refused({.rule = "other-program", .instructions = {std::string(instruction)}},
                 absl::InvalidArgumentError(
                     absl::StrCat("the module has no instruction '", instruction, "'")));
}

InstructionPlacement PlacedModule::PlacementOfOne(int32_t i) const {
  const auto spaces = [this](int32_t of) {
    std::vector<int64_t> found;
    for (const Array& array : module_->arrays(of)) found.push_back(array.memory_space);
    return found;
  };
  const auto storages = [this](int32_t of) {
    const HloInstruction& operand = module_->instruction(of);
    return absl::MakeConstSpan(storage_).subspan(operand.first_array, operand.array_count);
  };
  InstructionPlacement placement;
  placement.results = spaces(i);
  const absl::Span<const int32_t> operands = module_->operands(i);
  for (const int32_t operand : operands) {
    placement.operands.push_back(spaces(operand));
    const auto same = std::find_if(operands.begin(), operands.end(), [&](int32_t other) {
      return storages(other) == storages(operand);
    });
    placement.values.push_back(same - operands.begin());
  }
  placement.shared = SharedArrays(i);
  placement.backend_config = module_->instruction(i).proto->backend_config();
  placement.channel_id = module_->instruction(i).proto->channel_id();
  for (const int32_t under : InstructionsUnder(*module_, i)) {
    placement.frontend_attributes.push_back(
        module_->instruction(under).proto->frontend_attributes());
  }
  return placement;
}

std::vector<SharedArray> PlacedModule::SharedArrays(int32_t instruction) const {
  const auto home = [this](int32_t of, int64_t k) -> const std::optional<Home>& {
    return home_[storage_[module_->instruction(of).first_array + k]];
  };
  const absl::Span<const int32_t> operands = module_->operands(instruction);
  std::vector<SharedArray> shared;
  const auto add_first = [&](int64_t result) {
    for (int64_t k = 0; k < std::ssize(operands); ++k) {
      for (int64_t a = 0; a < module_->instruction(operands[k]).array_count; ++a) {
        if (home(operands[k], a) != home(instruction, result)) continue;
        shared.push_back({k, a, result});
        return;
      }
    }
  };
  for (int64_t result = 0; result < module_->instruction(instruction).array_count; ++result) {
    if (home(instruction, result)) add_first(result);
  }
  return shared;
}

absl::StatusOr<InstructionPlacement> PlacedModule::PlacementOf(
    absl::Span<const std::string> instructions) const {
  if (instructions.empty()) return absl::InvalidArgumentError("no instructions: allowed are 1 up");
  std::vector<int32_t> found;
  for (const std::string& instruction : instructions) {
    MG_ASSIGN_OR_RETURN(found.emplace_back(), Find(instruction));
  }
  // XLA reads the instructions of a module in the order of their ids (HloComputation and
  // HloModule::CreateFromProto), and lowers the first of those that it lowers alike.
  std::sort(found.begin(), found.end(), [this](int32_t a, int32_t b) {
    return module_->instruction(a).proto->id() < module_->instruction(b).proto->id();
  });
  InstructionPlacement placement = PlacementOfOne(found.front());
  for (const int32_t i : found) {
    for (const SharedArray& shared : SharedArrays(i)) {
      if (std::find(placement.shared.begin(), placement.shared.end(), shared) ==
          placement.shared.end()) {
        placement.shared.push_back(shared);
      }
    }
  }
  return placement;
}

}  // namespace mallocgame::hlo
