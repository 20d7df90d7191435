#include "mallocgame/plan/pinned.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/rounding.h"

namespace mallocgame {
namespace {

int64_t Top(const Program& program, const PlacedPin& pin) {
  return pin.offset + program.buffer(pin.stay.buffer).size_bytes;
}

int64_t MostTop(const Program& program, const std::vector<PlacedPin>& pins) {
  int64_t most = 0;
  for (const PlacedPin& pin : pins) most = std::max(most, Top(program, pin));
  return most;
}

// The largest first, each at the lowest offset that is free all the while.
std::vector<PlacedPin> Place(const Program& program, const Hardware& hardware, bool whole) {
  absl::StatusOr<std::vector<PinnedStay>> stays = PinnedStays(program, whole);
  MG_CHECK(stays.ok());  // else Program::Create would have refused it
  const auto size = [&](const PinnedStay& stay) { return program.buffer(stay.buffer).size_bytes; };
  std::stable_sort(stays->begin(), stays->end(), [&](const PinnedStay& a, const PinnedStay& b) {
    return std::tuple(-size(a), a.begin, a.buffer) < std::tuple(-size(b), b.begin, b.buffer);
  });
  const ReservedBytes reserved(program);
  std::vector<PlacedPin> pins;
  for (PinnedStay& stay : *stays) {
    int64_t offset = RoundUp(reserved.Most(stay.begin, stay.end), hardware.alignment_bytes);
    std::vector<const PlacedPin*> meanwhile;
    for (const PlacedPin& pin : pins) {
      if (pin.stay.begin < stay.end && stay.begin < pin.stay.end) meanwhile.push_back(&pin);
    }
    std::sort(meanwhile.begin(), meanwhile.end(),
              [](const PlacedPin* a, const PlacedPin* b) { return a->offset < b->offset; });
    for (const PlacedPin* pin : meanwhile) {
      if (pin->offset >= offset + size(stay)) break;
      offset = std::max(offset, RoundUp(Top(program, *pin), hardware.alignment_bytes));
    }
    pins.push_back({std::move(stay), offset});
  }
  std::sort(pins.begin(), pins.end(), [](const PlacedPin& a, const PlacedPin& b) {
    return std::tuple(a.stay.begin, a.stay.buffer) < std::tuple(b.stay.begin, b.stay.buffer);
  });
  return pins;
}

}  // namespace

std::vector<PlacedPin> PlacePins(const Program& program, const Hardware& hardware) {
  if (!program.any_pinned()) return {};
  std::vector<PlacedPin> pins = Place(program, hardware, /*whole=*/true);
  if (MostTop(program, pins) > hardware.fast_bytes / 2)
    pins = Place(program, hardware, /*whole=*/false);
  return pins;
}

absl::Status CheckPinsFit(const Program& program, const Hardware& hardware) {
  const int64_t top = MostTop(program, PlacePins(program, hardware));
  if (top <= hardware.fast_bytes) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("program '", program.name(), "': what its kernels pin to fast memory needs ",
                   top, " bytes of it, and ", hardware.name, " has ", hardware.fast_bytes));
}

std::vector<int64_t> BytesBelowPlayers(const Program& program, const Hardware& hardware) {
  std::vector<int64_t> bytes;
  for (const Instruction& i : program.instructions()) bytes.push_back(i.reserved_bytes);
  for (const PlacedPin& pin : PlacePins(program, hardware)) {
    for (Tick t = pin.stay.begin; t < pin.stay.end; ++t)
      bytes[t] = std::max(bytes[t], Top(program, pin));
  }
  return bytes;
}

}  // namespace mallocgame
