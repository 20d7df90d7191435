// What XLA's allocator reckons with on a chip (hardware/chips.h), as hardware and as options.
#pragma once

#include "mallocgame/hardware/hardware.h"
#include "mallocgame/solvers/xla/options.h"

namespace mallocgame {

// Gives a chip, known by its name, the allocator's own rates. Hardware with other rates than its
// chip's preset keeps the proportion. Other hardware stays as it is.
Hardware AsXlaReckons(Hardware hardware);

// Adds to settings what the allocator does otherwise on a chip.
XlaOptions OptionsForChip(XlaOptions options, const Hardware& hardware);

}  // namespace mallocgame
