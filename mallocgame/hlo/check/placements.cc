#include "mallocgame/hlo/check/placements.h"

#include "absl/strings/str_cat.h"
#include "mallocgame/hlo/check/phase_rules.h"
#include "mallocgame/hlo/module/buffer_assignment.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/proto_forms.h"

namespace mallocgame::hlo {
Placements::Placements() : proto_(std::make_unique<BufferAssignmentProto>()) {}
Placements::~Placements() = default;
Placements::Placements(Placements&&) noexcept = default;

absl::StatusOr<Placements> Placements::Read(const Module& module, const Positions& positions,
                                            absl::string_view buffer_assignment) {
  Placements placements;
  placements.at_.resize(positions.size());
  if (!ParseMessage(buffer_assignment, *placements.proto_)) {
    return Refuse(PhaseRule::kReadable, {}, "the buffer assignment is no BufferAssignmentProto");
  }
  const auto assigned = AssignedBuffers(*placements.proto_, module);
  if (!assigned.ok()) {
    return Refuse(absl::IsOutOfRange(assigned.status()) ? PhaseRule::kReadable : PhaseRule::kBuffer,
                  {}, assigned.status().message());
  }
  for (const AssignedBuffer& one : *assigned) {
    const int32_t position =
        *positions.Find(one.instruction, one.buffer->defined_at().shape_index());
    Placement& placement = placements.at_[position];
    if (placement.allocation != nullptr) {
      return Refuse(PhaseRule::kBuffer, {positions.MakerOf(position)}, positions.Name(position),
                    " is placed twice: ", Where(placement), ", and in allocation ",
                    one.allocation->index(), "; once is allowed");
    }
    placement = {one.allocation, one.offset, one.size, one.buffer->color()};
    if (one.buffer->size() != one.size || one.allocation->color() != placement.color ||
        placement.end() > one.allocation->size()) {
      return Refuse(
          one.allocation->color() != placement.color ? PhaseRule::kColor : PhaseRule::kSize,
          {positions.MakerOf(position)}, positions.Name(position), " has a logical buffer of ",
          one.buffer->size(), " bytes and colour ", placement.color, ", and lies at ",
          Where(placement), ", which has ", one.allocation->size(), " bytes and colour ",
          one.allocation->color());
    }
  }
  const int buffers = placements.proto_->logical_buffers_size();
  if (std::ssize(*assigned) != buffers) {
    return Refuse(PhaseRule::kBuffer, {}, assigned->size(), " of ", buffers,
                  " logical buffers are in an allocation; all must be");
  }
  return placements;
}

std::string Where(const Placement& placement) {
  return absl::StrCat("bytes ", placement.offset, " to ", placement.end(), " of allocation ",
                      placement.allocation->index());
}

}  // namespace mallocgame::hlo
