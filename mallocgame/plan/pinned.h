// What every plan of a program holds because kernels pin arrays to fast memory (Pin::kFast): where
// these buffers lie, and the copies that fill them. No player decides about them. They lie at the
// lowest bytes, so to players these bytes are reserved as those of instructions are.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/program/pins.h"
#include "mallocgame/program/program.h"
#include "mallocgame/program/reserved_bytes.h"

namespace mallocgame {

struct PlacedPin {
  PinnedStay stay;
  int64_t offset = 0;
};

// The pins of a program, by start. A buffer that can stays all its life, if that takes no more
// than half of fast memory.
std::vector<PlacedPin> PlacePins(const Program& program, const Hardware& hardware);

// InvalidArgument names the bytes if the pins don't fit into fast memory.
absl::Status CheckPinsFit(const Program& program, const Hardware& hardware);

// By tick: the bytes that instructions reserve, and below which pins lie.
std::vector<int64_t> BytesBelowPlayers(const Program& program, const Hardware& hardware);

}  // namespace mallocgame
