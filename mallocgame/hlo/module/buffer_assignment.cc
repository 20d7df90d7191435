#include "mallocgame/hlo/module/buffer_assignment.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/module/hlo.pb.h"

namespace mallocgame::hlo {
namespace {

absl::Status Unreadable(absl::Status status) {
  return Refused({.rule = "readable"}, std::move(status));
}

absl::StatusOr<int32_t> InstructionOf(const LogicalBufferProto& buffer, const Module& module) {
  const LogicalBufferProto::Location& at = buffer.defined_at();
  const std::optional<int32_t> i = at.instruction_id() != 0 || at.instruction_name().empty()
                                       ? module.FindById(at.instruction_id())
                                       : module.FindByName(at.instruction_name());
  if (i && module.SubShape(*i, at.shape_index()).ok()) return *i;
  return Unreadable(absl::InvalidArgumentError(
      absl::StrCat("logical buffer ", buffer.id(), " is of instruction ", at.instruction_id(),
                   " at {", absl::StrJoin(at.shape_index(), ","), "}, which the module has not")));
}

}  // namespace

absl::StatusOr<int32_t> ArrayAt(const Module& module, int32_t instruction,
                                absl::Span<const int64_t> index) {
  MG_ASSIGN_OR_RETURN(const Module::ArrayRange range, module.SubShape(instruction, index));
  const ShapeProto* shape = &module.instruction(instruction).proto->shape();
  for (const int64_t k : index) shape = &shape->tuple_shapes(static_cast<int>(k));
  if (shape->element_type() == TUPLE) return kNone;
  return module.instruction(instruction).first_array + range.first;
}

absl::StatusOr<std::vector<AssignedBuffer>> AssignedBuffers(const BufferAssignmentProto& assignment,
                                                            const Module& module,
                                                            std::optional<int64_t> color) {
  absl::flat_hash_map<int64_t, const LogicalBufferProto*> buffers;
  for (const LogicalBufferProto& buffer : assignment.logical_buffers()) {
    if (!buffers.emplace(buffer.id(), &buffer).second) {
      return Unreadable(absl::InvalidArgumentError(
          absl::StrCat("two logical buffers have the id ", buffer.id())));
    }
  }
  std::vector<AssignedBuffer> all;
  for (const BufferAllocationProto& allocation : assignment.buffer_allocations()) {
    if (color && allocation.color() != *color) continue;
    for (const BufferAllocationProto::Assigned& assigned : allocation.assigned()) {
      for (const auto& [what, value] :
           {std::pair("offset", assigned.offset()), std::pair("size", assigned.size()),
            std::pair("size", allocation.size())}) {
        if (value >= 0 && value <= kMaxArrayBytes) continue;
        return Unreadable(absl::OutOfRangeError(
            absl::StrCat("buffer allocation ", allocation.index(), " has ", what, " ", value,
                         "; allowed are 0 to ", kMaxArrayBytes)));
      }
      const auto found = buffers.find(assigned.logical_buffer_id());
      if (found == buffers.end()) {
        return Unreadable(absl::InvalidArgumentError(
            absl::StrCat("buffer allocation ", allocation.index(), " holds logical buffer ",
                         assigned.logical_buffer_id(), ", which there is none of")));
      }
      MG_ASSIGN_OR_RETURN(const int32_t i, InstructionOf(*found->second, module));
      MG_ASSIGN_OR_RETURN(const int32_t array,
                          ArrayAt(module, i, found->second->defined_at().shape_index()));
      all.push_back({found->second, &allocation, assigned.offset(), assigned.size(), i, array});
    }
  }
  return all;
}

}  // namespace mallocgame::hlo
