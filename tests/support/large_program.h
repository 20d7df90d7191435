// A large program for measuring speed and scaling. Made up, but with the statistics of the corpus's
// training programs: under half of the instructions access anything; sizes from bytes to megabytes;
// most reads soon after the write, a fifth half the program later (a backward pass reads what the
// forward pass made); parameters read twice, some updated; a few loops.
#ifndef MALLOCGAME_TESTS_SUPPORT_LARGE_PROGRAM_H_
#define MALLOCGAME_TESTS_SUPPORT_LARGE_PROGRAM_H_

#include <cstdint>
#include <memory>

#include "mallocgame/program/program.h"

namespace mallocgame::testing {

struct LargeProgramOptions {
  int instructions = 100'000;  // ticks, exactly; at least 200
  int loops = 4;               // one after the other, of about 60 instructions
  uint64_t seed = 1;
};

// Roofline costs; a third to three times as much compute as memory time on the TPU presets. Same
// options, same program.
std::shared_ptr<const Program> LargeProgram(const LargeProgramOptions& options = {});

}  // namespace mallocgame::testing

#endif  // MALLOCGAME_TESTS_SUPPORT_LARGE_PROGRAM_H_
