// What the compiler decided, read from the module after memory space assignment: which arrays share
// one place, where that place is, and which transfers go between places when. Times are ticks of
// the program before assignment. Private to the folder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/opcodes.h"
#include "mallocgame/hlo/module/schedule.h"

namespace mallocgame::hlo {

// A stretch of bytes in one memory, for as long as it holds one thing.
struct Place {
  bool fast = false;
  // in fast memory; none: the buffer assignment does not tell it
  std::optional<int64_t> offset;
  // where it ends in fast memory by the buffer assignment; less than size_bytes behind the offset
  // if its array is split between two cores
  int64_t end_offset = 0;
  int64_t size_bytes = 0;
};

// An asynchronous copy or slice. It takes place in [begin, end), as a Copy does.
struct Transfer {
  int32_t from = 0, to = 0;  // indices into AssignedModule::places()
  Tick begin = 0, end = 0;
  int32_t region = 0;  // before assignment, where it begins: at an end it may be empty
  int64_t part_begin = 0, part_end = 0;  // the bytes of `to` that it fills
  bool preload = false;
  Tick started = 0, done = 0;  // in the order of the module after assignment
};

class AssignedModule {
 public:
  // `before` is the same program before assignment, and `schedule` its schedule. InvalidArgument:
  // `bytes` is no HloProto with a buffer assignment, or it is of another program or hardware.
  static absl::StatusOr<AssignedModule> Read(const Module& before, const Schedule& schedule,
                                             absl::string_view bytes, const Hardware& hardware);

  const Module& module() const { return *module_; }
  absl::Span<const Place> places() const { return places_; }
  // in the order in which they start
  absl::Span<const Transfer> transfers() const { return transfers_; }
  // The instruction of this module that `instruction` of the one before has become, if it is there.
  std::optional<int32_t> Counterpart(int32_t instruction) const;
  // The places of an instruction's arrays; kNone for arrays of zero bytes.
  absl::Span<const int32_t> PlacesOf(int32_t instruction) const;

 private:
  AssignedModule() = default;
  absl::Status Match(const Module& before, const Schedule& schedule);
  bool IsSameCopy(const Module& before, int32_t i, int32_t own) const;
  void MatchCopy(const Module& before, int32_t i);
  absl::Status BuildPlaces(const Schedule& own, const Hardware& hardware);
  absl::Status ReadOffsets(int64_t color);
  void MapTicks(const Schedule& before, const Schedule& own);
  bool IsTransfer(int32_t i) const;
  Opcode WrappedBy(int32_t start) const {
    return module_->opcode(module_->computation(module_->called(start)[0]).root);
  }
  absl::Status ReadTransfers(const Schedule& before, const Schedule& own);
  absl::Status AddTransfer(int32_t start, const Transfer& window);

  std::unique_ptr<const Module> module_;
  std::vector<int32_t> counterpart_;  // by instruction before assignment
  std::vector<int32_t> original_;     // by instruction of module_: the inverse
  std::vector<int32_t> place_of_;     // by array of module_
  struct Range {
    int64_t offset = 0, end_offset = 0;
  };
  std::vector<std::optional<Range>> range_of_;  // by array of module_, where it is told
  // by tick of this module: the next tick before assignment that has a counterpart
  std::vector<Tick> next_;
  std::vector<int32_t> region_;  // by region of this module: the one before assignment
  std::vector<Place> places_;
  std::vector<Transfer> transfers_;
};

}  // namespace mallocgame::hlo
