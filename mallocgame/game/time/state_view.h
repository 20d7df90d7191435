// What the observers read of a State beside its public methods: how each buffer stands, what each
// action would do, and the memory and the copy channel as the game keeps them. State::view() gives
// it. A view copies nothing: it holds as long as the State lives and stays as it is.
//
// Absent values in the structs of this folder: an index is -1; an end, or a start that must come
// after something, is tick 0; kNever is a tick that never comes.
#pragma once

#include <array>
#include <cstdint>

#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/time/copy_windows.h"
#include "mallocgame/game/time/fast_memory.h"
#include "mallocgame/game/time/time_game.h"

namespace mallocgame {

// What a buffer's past means for its next decision.
struct BufferState {
  // The residence that served the buffer's last access: where it lies, the tick at which it ends (0
  // if main memory served that access, so that there is nothing to keep), and the tick beyond which
  // it may not be kept.
  int64_t offset = 0;
  Tick resident_end = 0;
  Tick scope_end = 0;
  Tick used_until = 0;    // every access that it served so far is before this tick
  Tick forced_until = 0;  // accesses before this tick follow from an earlier decision
  Tick main_since = 0;    // the value is in main memory from this tick on; kNever if it is not
  bool has_value = false;
  // The eviction that is decided and not waited for: the tick at which it begins, 0 if there is
  // none, and where it ends on the channel's service axis, -1 if it has not begun yet.
  Tick eviction_begin = 0;
  int64_t eviction_end_ps = -1;
  int32_t bound_by = -1;  // with drop_backup: the decision that binds it to fast memory
};

// What an action would do at the current decision.
struct ActionEffect {
  bool legal = false;
  bool transfer = false;  // books a prefetch in `window`
  bool extend = false;    // keeps the previous access's residence, instead of a new one
  bool preload = false;   // the new residence is filled before the program starts
  CopyWindow window;
  int64_t offset = 0;  // of the new residence
  // The ticks of the new residence; for one that is kept, the ticks that it gets in addition.
  Tick begin = 0, end = 0;
  Tick scope_end = 0;     // the new residence may not be kept beyond this tick
  Tick eviction_end = 0;  // where the window of an eviction ends; 0 if there is none
};

struct StateView {
  const FastMemory& memory;
  const CopyWindows& windows;
  absl::Span<const BufferState> buffers;  // one for each of GameTables::buffers
  // For each tick: bit i is set if its i-th decision is served from fast memory; or kReplaced.
  absl::Span<const uint64_t> placements;
  // For each tick: how many windows of prefetches and of evictions cover it.
  absl::Span<const uint8_t> prefetches, evictions;
  // One for each action. They hold for feasible actions, after State::legal_actions() was
  // called.
  const std::array<ActionEffect, kActions>& effects;
  int32_t decision;  // index into GameTables::decisions of the current one; -1 at the end
};

}  // namespace mallocgame
