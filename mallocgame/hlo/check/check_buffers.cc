// Each value by itself: its logical buffer, and where that may lie.
#include <optional>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/check/phase_reading.h"
#include "mallocgame/hlo/check/phase_rules.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/shape_size.h"
#include "mallocgame/schedule/main_memory.h"

namespace mallocgame::hlo {
namespace {

constexpr int64_t kSmallAlignment = 4;  // of sync flags and scalars

class BufferChecker {
 public:
  BufferChecker(const PhaseReading& original, const PhaseReading& written, const Hardware& hardware)
      : original_(original), written_(written), hardware_(hardware), positions_(*written.positions),
        is_slice_(std::ssize(positions_)) {
    const Module& module = *written.module;
    for (int32_t i = 0; i < std::ssize(module.instructions()); ++i) {
      if (!JoinsSlices(written.proto(i))) continue;
      for (const int32_t slice : module.operands(i))
        is_slice_[written.flow.SourceOf(positions_.Of(slice).first)] = true;
    }
  }

  absl::Status Run() const {
    for (int32_t p = 0; p < std::ssize(positions_); ++p) MG_RETURN_IF_ERROR(Check(p));
    return absl::OkStatus();
  }

 private:
  absl::Status Check(int32_t p) const {
    const Placement& placement = written_.placements.At(p);
    const bool placed = placement.allocation != nullptr;
    if (written_.flow.Runs(positions_[p].instruction)) {
      const bool made = written_.flow.IsMade(p);
      if (placed && !made) {
        return Refuse(PhaseRule::kBuffer,
                      {positions_.MakerOf(p), positions_.MakerOf(written_.flow.SourceOf(p))},
                      positions_.Name(p), " has a logical buffer at ", Where(placement),
                      ", but is the value of ", positions_.Name(written_.flow.SourceOf(p)),
                      "; only that may have one");
      }
      if (!placed && made && (positions_[p].is_tuple || positions_[p].size_bytes > 0)) {
        return Refuse(PhaseRule::kBuffer, {positions_.MakerOf(p)}, positions_.Name(p),
                      " has no logical buffer; each value needs one");
      }
    } else if (const Placement* before = Before(p);
               placed != (before != nullptr && before->allocation != nullptr)) {
      return Refuse(PhaseRule::kBuffer, {positions_.MakerOf(p)}, positions_.Name(p), " has ",
                    placed ? "a" : "no", " logical buffer, unlike in the original");
    }
    return placed ? CheckPlacement(p, placement) : absl::OkStatus();
  }

  // The placement of the same value in the original; none if it isn't there.
  const Placement* Before(int32_t p) const {
    const int32_t i = positions_[p].instruction;
    const std::optional<int32_t> before = original_.module->FindByName(written_.proto(i).name());
    if (!before) return nullptr;
    const PositionRange own = positions_.Of(i), other = original_.positions->Of(*before);
    if (own.count != other.count) return nullptr;
    return &original_.placements.At(other.first + p - own.first);
  }

  // The compiler has sizes of its own for tables of tuples, of at least 4 bytes for each element,
  // and for what is not tiled or lies in other memories than main and fast memory.
  bool HasSize(int32_t p, int64_t size) const {
    const Position& position = positions_[p];
    if (position.is_tuple) return size >= 4 * position.shape->tuple_shapes_size();
    const bool other_memory =
        position.memory_space != 0 && position.memory_space != hardware_.fast_memory_space;
    // Flags and scalars may be tiled, and take no more than they hold.
    if (other_memory) return size >= UnpaddedBytes(*position.shape, kMaxArrayBytes).value_or(0);
    if (position.shape->layout().tiles().empty()) return size >= position.size_bytes;
    return size == position.size_bytes;
  }

  absl::Status CheckPlacement(int32_t p, const Placement& placement) const {
    const Position& position = positions_[p];
    if (placement.color != position.memory_space) {
      return Refuse(PhaseRule::kColor, {positions_.MakerOf(p)}, positions_.Name(p),
                    " has a logical buffer of colour ", placement.color,
                    ", and its layout memory space ", position.memory_space, "; they must agree");
    }
    if (!HasSize(p, placement.size)) {
      return Refuse(PhaseRule::kSize, {positions_.MakerOf(p)}, positions_.Name(p),
                    " has a logical buffer of ", placement.size, " bytes, its shape needs ",
                    position.size_bytes);
    }
    const BufferAllocationProto& allocation = *placement.allocation;
    const bool is_callers = allocation.is_entry_computation_parameter() ||
                            allocation.maybe_live_out() || allocation.is_constant();
    if (is_callers && placement.offset != 0) {
      return Refuse(PhaseRule::kBuffer, {positions_.MakerOf(p)}, positions_.Name(p), " lies at ",
                    Where(placement),
                    "; parameters, results and constants begin where their allocation does");
    }
    if (const Placement* before = Before(p);
        !IsPacked(placement.color, hardware_) &&
        (before == nullptr || before->allocation == nullptr || before->color != placement.color ||
         before->allocation->index() != allocation.index() || before->offset != placement.offset)) {
      return Refuse(PhaseRule::kBuffer, {positions_.MakerOf(p)}, positions_.Name(p), " lies at ",
                    Where(placement), " of memory ", placement.color,
                    ", elsewhere than in the original");
    }
    const bool fast = placement.color == hardware_.fast_memory_space;
    const int64_t alignment = fast                   ? hardware_.alignment_bytes
                              : placement.color == 0 ? kMainAlignment
                                                     : kSmallAlignment;
    // Slices end where tiles do, which may be smaller. Their place in the whole is another rule.
    if (placement.offset % alignment != 0 && !is_slice_[p]) {
      return Refuse(PhaseRule::kAlignment, {positions_.MakerOf(p)}, positions_.Name(p), " lies at ",
                    Where(placement), "; its offset must be a multiple of ", alignment);
    }
    if (fast && placement.end() > hardware_.fast_bytes) {
      const absl::Status status =
          Refuse(PhaseRule::kCapacity, {positions_.MakerOf(p)}, positions_.Name(p), " lies at ",
                 Where(placement), "; fast memory has ", hardware_.fast_bytes, " bytes");
      Refusal refusal = RefusalOf(status);
      refusal.exceeded_bytes = placement.end() - hardware_.fast_bytes;
      return Refused(refusal, status);
    }
    return absl::OkStatus();
  }

  const PhaseReading& original_;
  const PhaseReading& written_;
  const Hardware& hardware_;
  const Positions& positions_;
  std::vector<bool> is_slice_;  // by position: it is joined with others
};

}  // namespace

absl::Status CheckBuffers(const PhaseReading& original, const PhaseReading& written,
                          const Hardware& hardware) {
  return BufferChecker(original, written, hardware).Run();
}

}  // namespace mallocgame::hlo
