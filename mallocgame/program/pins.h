// How long a buffer that a kernel pins to fast memory stays there, in every plan.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// The buffer is in fast memory over the ticks [begin, end), and is served from there at `serves`.
struct PinnedStay {
  BufferId buffer;
  Tick begin = 0, end = 0;
  // Whether a copy from main memory fills it right before `begin`. Else the first access does.
  bool fetched = false;
  std::vector<AccessId> serves;
};

// The stays of all pinned buffers (Program::pinned), by buffer, then begin. A buffer stays all its
// life if a pinned access writes it; with `whole`, also if that needs no copy. Else each pinned
// access has a stay of its own: the value is copied there before, and main memory serves the rest.
// InvalidArgument: a pinned access writes a buffer that can't stay all its life, because the
// program begins or ends with it in main memory, or some access must be there, or it is used
// outside of the loop or branch where it begins.
absl::StatusOr<std::vector<PinnedStay>> PinnedStays(const Program& program, bool whole);

}  // namespace mallocgame
