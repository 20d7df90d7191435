// A loop whose body leaves little time to copies.
#pragma once

#include <cstdint>
#include <memory>

#include "tests/support/programs.h"

namespace mallocgame::testing {

//   tick  0      1     | 2         | 3  4  5 | 6     7
//         first  entry | condition | y  z    | exit  last
//   y takes 8 and leaves nothing, z takes 4 and leaves 2.
struct Looped {
  explicit Looped(int64_t trips) {
    ProgramBuilder b;
    const BufferId busy = b.Parameter("busy", 8), half = b.Parameter("half", 2);
    p = b.Parameter("p", 10);
    q = b.Parameter("q", 30);
    b.Add({.name = "first"});
    b.BeginLoop("loop", trips);
    b.BeginBody();
    b.Add({.name = "y", .reads = {busy}, .cycles = {8}});
    b.Add({.name = "z", .reads = {half}, .cycles = {4}});
    b.Add({.name = "end"});
    b.EndLoop();
    b.Add({.name = "last"});
    program = b.Build();
  }
  Hardware hardware = TestHardware(64);
  BufferId p, q;
  std::shared_ptr<const Program> program;
};

}  // namespace mallocgame::testing
