#include "tests/golden/examples.h"

namespace mallocgame::golden {
namespace {

using enum Action;

Example Full() {
  Example e("full_memory",
            "A residence needs bytes that are free over its whole interval: in a full memory only "
            "Drop is legal.");
  const BufferId p = e.program.Parameter("p", 6), q = e.program.Constant("q", 4);
  e.program.Add({.name = "a", .cycles = {20}});
  e.program.Add({.name = "use p", .reads = {p}, .cycles = {10, 4}});
  e.program.Add({.name = "both", .reads = {p, q}, .cycles = {20, 14, 16, 10}});
  e.plays = {
      {"p is kept for \"both\": q has 2 bytes and needs 4", {kCopy, kNoCopy, kDrop}},
      {"p is left in main memory at \"both\": q comes behind p's first read",
       {kCopy, kDrop, kCopy}},
  };
  return e;
}

Example OneOffset() {
  Example e(
      "one_offset_over_the_whole_residence",
      "A residence has one offset from begin to end: free bytes in two places are of no use.");
  const BufferId low = e.program.Constant("l", 3), middle = e.program.Constant("m", 2),
                 high = e.program.Constant("h", 3), p = e.program.Constant("p", 4);
  e.program.Add({.name = "a", .cycles = {40}});
  e.program.Add({.name = "use", .reads = {low, middle, high}, .cycles = {20}});
  e.program.Add({.name = "keep", .reads = {middle}, .cycles = {10, 8}});
  e.program.Add({.name = "use p", .reads = {p}, .cycles = {20, 5}});
  e.program.Add({.name = "again", .reads = {middle}, .cycles = {10, 8}});
  e.plays = {
      {"m is kept between 3 free bytes below and 3 above: p comes only behind its read",
       {kCopy, kCopy, kCopy, kNoCopy, kCopy, kDrop}},
      {"m stays to the end: then p has no place", {kCopy, kCopy, kCopy, kNoCopy, kDrop, kNoCopy}},
  };
  return e;
}

// Holes of 5 and of 2 bytes when p, 2 bytes, is asked.
Example BestFit() {
  Example e("best_fit", "Best fit takes the smallest free range that holds a residence.");
  const BufferId big = e.program.Constant("big", 5), low = e.program.Constant("low", 3),
                 gap = e.program.Constant("gap", 2), p = e.program.Constant("p", 2);
  e.hardware.fast_bytes = 10;
  e.program.Add({.name = "a", .cycles = {60}});
  e.program.Add({.name = "lay", .reads = {big, low, gap}, .cycles = {20}});
  e.program.Add({.name = "keep", .reads = {low}, .cycles = {20}});
  e.program.Add({.name = "use", .reads = {p}, .cycles = {10, 3}});
  e.program.Add({.name = "end", .reads = {low}, .cycles = {20}});
  e.plays = {{"low is kept between a hole of 5 bytes below and one of 2 above",
              {kCopy, kCopy, kCopy, kNoCopy, kCopy, kNoCopy}}};
  return e;
}

Example Alignment() {
  Example e("alignment",
            "Offsets are multiples of the alignment, and a residence blocks whole units of it.");
  const BufferId p = e.program.Constant("p", 3), q = e.program.Constant("q", 5),
                 r = e.program.Constant("r", 2);
  e.hardware.alignment_bytes = 4;
  e.hardware.fast_bytes = 14;
  e.program.Add({.name = "a", .cycles = {20}});
  e.program.Add({.name = "use", .reads = {p, q, r}, .cycles = {20}});
  e.plays = {
      {"p takes [0, 4), q [4, 12); of 14 bytes the last 2 are no unit: no place for r",
       {kCopy, kCopy, kDrop}},
      {"without q, r takes [4, 8)", {kCopy, kDrop, kCopy}},
  };
  return e;
}

Example Reserved() {
  Example e("reserved_bytes",
            "An instruction reserves the lowest bytes of fast memory for itself: a residence over "
            "its tick lies above them.");
  const BufferId p = e.program.Constant("p", 4), q = e.program.Constant("q", 4);
  e.program.Add({.name = "a", .cycles = {20}});
  e.program.Add({.name = "use p", .reads = {p}, .cycles = {10, 3}});
  e.program.Add({.name = "big", .reads = {q}, .cycles = {10, 3}, .reserved_bytes = 3});
  e.program.Add({.name = "again", .reads = {p}, .cycles = {10, 3}});
  e.plays = {
      {"p lies at 0 and can't be kept over \"big\", which needs the bytes [0, 3)",
       {kCopy, kCopy, kDrop}},
      {"q lies above the 3 bytes, p comes when \"big\" is over", {kDrop, kCopy, kCopy}},
  };
  return e;
}

Example ReservedTooMuch() {
  Example e("reserved_bytes_leave_no_space",
            "Where the reserved bytes leave less than a buffer needs, it can't be resident.");
  const BufferId p = e.program.Constant("p", 4);
  e.program.Add({.name = "a", .cycles = {20}});
  e.program.Add({.name = "use", .reads = {p}, .cycles = {10, 3}, .reserved_bytes = 5});
  e.plays = {{"3 of 8 bytes are left for the 4 of p", {kDrop}}};
  return e;
}

}  // namespace

std::vector<Example> SpaceExamples() {
  return {Full(), OneOffset(), BestFit(), Alignment(), Reserved(), ReservedTooMuch()};
}

}  // namespace mallocgame::golden
