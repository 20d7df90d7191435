#include "tests/golden/examples.h"

namespace mallocgame::golden {
namespace {

using enum Action;

Example Strip() {
  Example e(
      "copy_windows",
      "Copies are served first in, first out, in the idle time of the instructions: the "
      "window of a Copy is the latest that hides it whole; what nothing hides goes behind the "
      "last booked copy, and the rest is a stall (the picture of docs/rules.md).");
  const BufferId x = e.program.Constant("x", 2), p = e.program.Constant("p", 3),
                 q = e.program.Constant("q", 5), r = e.program.Constant("r", 8);
  e.hardware.fast_bytes = 16;
  e.program.Add({.name = "a", .cycles = {6}});
  e.program.Add({.name = "b", .reads = {x}, .cycles = {2, 0}});
  e.program.Add({.name = "c", .cycles = {3}});
  e.program.Add({.name = "d", .reads = {p, q, r}, .cycles = {30}});
  e.plays = {
      {"of 9 ps, x has [0, 2); p needs 3: c hides it whole", {kCopy, kCopy, kDrop, kDrop}},
      {"q needs 5: it must begin at 4 or before, so its window begins at a",
       {kCopy, kDrop, kCopy, kDrop}},
      {"r needs 8: nothing holds it, it gets [2, 10) and d waits for 1 ps",
       {kCopy, kDrop, kDrop, kCopy}},
  };
  return e;
}

Example GapBetween() {
  Example e("window_in_a_gap",
            "A copy that isn't hidden behind the last booked one goes into the latest gap between "
            "booked copies that takes it whole; what is booked keeps its place.");
  const BufferId x = e.program.Constant("x", 4), y = e.program.Constant("y", 3),
                 z = e.program.Constant("z", 3);
  e.hardware.fast_bytes = 16;
  e.program.Add({.name = "a", .cycles = {5}});
  e.program.Add({.name = "b", .cycles = {5}});
  e.program.Add({.name = "use x", .reads = {x}, .cycles = {4, 0}});
  e.program.Add({.name = "use y", .reads = {y}, .cycles = {3, 0}});
  e.program.Add({.name = "use z", .reads = {z}, .cycles = {3, 0}});
  e.plays = {
      {"of 10 ps, x has [5, 9); the 1 ps behind it doesn't hold y, which gets [0, 3)",
       {kCopy, kCopy, kDrop}},
      {"neither the 2 ps before x nor the 1 ps behind it hold z: it stalls for 2",
       {kCopy, kCopy, kCopy}},
  };
  return e;
}

Example LaterWindowForSpace() {
  Example e("window_moves_until_there_is_space",
            "If the latest window that hides a copy has no space, the copy goes behind the last "
            "booked one, as soon as there is space.");
  const BufferId x = e.program.Constant("x", 6), p = e.program.Constant("p", 4);
  e.program.Add({.name = "a", .cycles = {10}});
  e.program.Add({.name = "use x", .reads = {x}, .cycles = {10, 8}});
  e.program.Add({.name = "b", .cycles = {2}});
  e.program.Add({.name = "use p", .reads = {p}, .cycles = {20, 3}});
  e.plays = {
      {"x lies there until tick 2: p can come from then on, and stalls for 2 ps", {kCopy, kCopy}},
      {"x is left in main memory: p comes meanwhile", {kDrop, kCopy}},
  };
  return e;
}

Example EvictionInTheChannel() {
  Example e("evictions_share_the_channel",
            "Evictions and prefetches share one channel, first in, first out.");
  const BufferId x = e.program.Result("x", 4), p = e.program.Result("p", 4);
  e.program.Add({.name = "make", .writes = {x, p}, .cycles = {16, 12, 12, 8}});
  e.program.Add({.name = "a", .cycles = {6}});
  e.program.Add({.name = "use", .reads = {p}, .cycles = {10, 3}});
  e.program.Add({.name = "z", .cycles = {10}});
  e.program.MarkOutput(x);
  e.plays = {
      {"x's eviction takes 4 of the 6 ps of a: p's prefetch stalls for 2", {kCopy, kDrop, kCopy}},
      {"without the eviction, p's prefetch is hidden", {kDrop, kDrop, kCopy}},
  };
  return e;
}

Example OutstandingPrefetches() {
  Example e("outstanding_prefetches",
            "No more prefetches overlap than the hardware has: further ones are illegal.");
  const BufferId p = e.program.Constant("p", 2), q = e.program.Constant("q", 2);
  e.program.Add({.name = "a", .cycles = {10}});
  e.program.Add({.name = "use", .reads = {p, q}, .cycles = {12, 10, 10, 8}});
  e.hardware.max_outstanding_prefetches = 1;
  e.plays = {{"p's prefetch is the one; q's window would share its tick", {kCopy, kDrop}}};
  return e;
}

Example OutstandingEvictions() {
  Example e("outstanding_evictions",
            "No more evictions overlap than the hardware has: Copy at a further write is "
            "illegal.");
  const BufferId x = e.program.Result("x", 2), y = e.program.Result("y", 2);
  e.program.Add({.name = "make", .writes = {x, y}, .cycles = {12, 10, 10, 8}});
  e.program.Add({.name = "a", .cycles = {10}});
  e.program.MarkOutput(x);
  e.program.MarkOutput(y);
  e.hardware.max_outstanding_evictions = 1;
  e.plays = {{"x's eviction is the one", {kCopy, kDrop}}};
  return e;
}

}  // namespace

std::vector<Example> ChannelExamples() {
  return {Strip(),
          GapBetween(),
          LaterWindowForSpace(),
          EvictionInTheChannel(),
          OutstandingPrefetches(),
          OutstandingEvictions()};
}

}  // namespace mallocgame::golden
