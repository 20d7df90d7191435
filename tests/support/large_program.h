// A large program for measuring speed and scaling. It is made up, but it has the statistics of the
// corpus's training programs: under half of the instructions access anything, and sizes go from
// bytes to megabytes. Most reads come soon after the write; a fifth come half the program later, as
// a backward pass reads what the forward pass made. Parameters are read twice and some are updated.
// There are a few loops.
#pragma once

#include <cstdint>
#include <memory>

#include "mallocgame/program/program.h"

namespace mallocgame::testing {

struct LargeProgramOptions {
  int instructions = 100'000;  // the exact number of ticks; at least 200
  int loops = 4;               // one after the other, with about 60 instructions each
  uint64_t seed = 1;
};

// Its costs are a roofline's, with a third to three times as much compute as memory time on the TPU
// presets. The same options give the same program.
std::shared_ptr<const Program> LargeProgram(const LargeProgramOptions& options = {});

}  // namespace mallocgame::testing
