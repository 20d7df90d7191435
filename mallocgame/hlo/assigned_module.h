// What the compiler decided, read from the module after memory space assignment: which arrays share
// one place, where that place is, and which transfers go between places when. Times are ticks of
// the program before assignment. Private to the folder.
#ifndef MALLOCGAME_HLO_ASSIGNED_MODULE_H_
#define MALLOCGAME_HLO_ASSIGNED_MODULE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/hlo/module.h"

namespace mallocgame::hlo {

// One place in memory, for as long as it holds one thing.
struct Place {
  bool fast = false;
  int64_t offset = -1;  // in fast memory, from the buffer assignment; -1: not told
  int64_t size_bytes = 0;
};

// An asynchronous copy or slice. [begin, end) as in Copy.
struct Transfer {
  int32_t from = 0, to = 0;  // indices into AssignedModule::places()
  Tick begin = 0, end = 0;
  int64_t part_begin = 0, part_end = 0;  // bytes of the place it goes to
  bool preload = false;
};

class AssignedModule {
 public:
  // `before` is the same program before assignment, flattened. InvalidArgument: `bytes` is no
  // HloProto with a buffer assignment, or of another program.
  static absl::StatusOr<AssignedModule> Read(const Module& before, const Timeline& timeline,
                                             absl::string_view bytes, const Hardware& hardware);

  const Module& module() const { return *module_; }
  absl::Span<const Place> places() const { return places_; }
  // in schedule order of their starts
  absl::Span<const Transfer> transfers() const { return transfers_; }
  // The instruction of this module that `instruction` of the one before has become; -1 if it is
  // gone.
  int32_t Counterpart(int32_t instruction) const { return counterpart_[instruction]; }
  // The places of an instruction's arrays; -1 for arrays of zero bytes.
  absl::Span<const int32_t> PlacesOf(int32_t instruction) const;
  // Those that the loop of this while carries.
  absl::Span<const int32_t> CarriedBy(int32_t loop) const { return PlacesOf(loop); }

 private:
  AssignedModule() = default;
  absl::Status Match(const Module& before, const Timeline& timeline);
  absl::Status BuildPlaces(const Timeline& own, const Hardware& hardware);
  absl::Status ReadOffsets(int64_t color);
  void MapTicks(const Timeline& before, const Timeline& own);
  absl::Status ReadTransfers(const Timeline& own);
  absl::Status AddTransfer(int32_t start, Tick begin, Tick end);

  std::unique_ptr<const Module> module_;
  std::vector<int32_t> counterpart_;
  std::vector<int32_t> original_;   // the other way
  std::vector<int32_t> place_of_;   // by array of module_
  std::vector<int64_t> offset_of_;  // by array of module_; -1: not told
  // by tick of this module: the next tick before assignment that is matched
  std::vector<Tick> next_;
  std::vector<Place> places_;
  std::vector<Transfer> transfers_;
};

}  // namespace mallocgame::hlo

#endif  // MALLOCGAME_HLO_ASSIGNED_MODULE_H_
