#include "mallocgame/hlo/check/placements.h"

#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/check/phase_rules.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/proto_forms.h"

namespace mallocgame::hlo {
namespace {

constexpr int64_t kMostBytes = kMaxArrayBytes;

absl::StatusOr<int32_t> PositionOf(const LogicalBufferProto& buffer, const Module& module,
                                   const Positions& positions) {
  const LogicalBufferProto::Location& at = buffer.defined_at();
  const std::optional<int32_t> i = at.instruction_id() != 0 || at.instruction_name().empty()
                                       ? module.FindById(at.instruction_id())
                                       : module.FindByName(at.instruction_name());
  const std::optional<int32_t> position =
      i ? positions.Find(*i, at.shape_index()) : std::optional<int32_t>();
  if (!position) {
    return Refuse(PhaseRule::kBuffer, "logical buffer ", buffer.id(), " is of instruction ",
                  at.instruction_id(), " at {", absl::StrJoin(at.shape_index(), ","),
                  "}, which the module has not");
  }
  return *position;
}

absl::Status CheckRange(const BufferAllocationProto& allocation,
                        const BufferAllocationProto::Assigned& assigned) {
  for (const int64_t value : {assigned.offset(), assigned.size(), allocation.size()}) {
    if (value >= 0 && value <= kMostBytes) continue;
    return Refuse(PhaseRule::kReadable, "allocation ", allocation.index(),
                  " has an offset or a size of ", value, "; allowed are 0 to ", kMostBytes);
  }
  return absl::OkStatus();
}

}  // namespace

Placements::Placements() : proto_(std::make_unique<BufferAssignmentProto>()) {}
Placements::~Placements() = default;
Placements::Placements(Placements&&) noexcept = default;

absl::StatusOr<Placements> Placements::Read(const Module& module, const Positions& positions,
                                            absl::string_view buffer_assignment) {
  Placements placements;
  placements.at_.resize(positions.size());
  if (!ParseMessage(buffer_assignment, *placements.proto_)) {
    return Refuse(PhaseRule::kReadable, "the buffer assignment is no BufferAssignmentProto");
  }
  absl::flat_hash_map<int64_t, const LogicalBufferProto*> buffers;
  for (const LogicalBufferProto& buffer : placements.proto_->logical_buffers()) {
    if (!buffers.emplace(buffer.id(), &buffer).second)
      return Refuse(PhaseRule::kBuffer, "two logical buffers have the id ", buffer.id());
  }
  size_t placed = 0;
  for (const BufferAllocationProto& allocation : placements.proto_->buffer_allocations()) {
    for (const BufferAllocationProto::Assigned& assigned : allocation.assigned()) {
      MG_RETURN_IF_ERROR(CheckRange(allocation, assigned));
      const auto found = buffers.find(assigned.logical_buffer_id());
      if (found == buffers.end()) {
        return Refuse(PhaseRule::kBuffer, "allocation ", allocation.index(),
                      " holds logical buffer ", assigned.logical_buffer_id(),
                      ", which there is none of");
      }
      MG_ASSIGN_OR_RETURN(const int32_t position, PositionOf(*found->second, module, positions));
      Placement& placement = placements.at_[position];
      if (placement.allocation != nullptr) {
        return Refuse(PhaseRule::kBuffer, positions.Name(position),
                      " is placed twice: ", Where(placement), ", and in allocation ",
                      allocation.index(), "; once is allowed");
      }
      placement = {&allocation, assigned.offset(), assigned.size(), found->second->color()};
      if (found->second->size() != assigned.size() || allocation.color() != placement.color ||
          placement.end() > allocation.size()) {
        return Refuse(allocation.color() != placement.color ? PhaseRule::kColor : PhaseRule::kSize,
                      positions.Name(position), " has a logical buffer of ", found->second->size(),
                      " bytes and colour ", placement.color, ", and lies at ", Where(placement),
                      ", which has ", allocation.size(), " bytes and colour ", allocation.color());
      }
      ++placed;
    }
  }
  if (placed != buffers.size()) {
    return Refuse(PhaseRule::kBuffer, placed, " of ", buffers.size(),
                  " logical buffers are in an allocation; all must be");
  }
  return placements;
}

std::string Where(const Placement& placement) {
  return absl::StrCat("bytes ", placement.offset, " to ", placement.end(), " of allocation ",
                      placement.allocation->index());
}

}  // namespace mallocgame::hlo
