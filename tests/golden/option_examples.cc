#include "tests/golden/examples.h"
#include "tests/support/plans.h"

namespace mallocgame::golden {
namespace {

using enum Action;

// p, 4 bytes, and q, 2 bytes, are read one after the other behind 10 ps.
std::vector<BufferId> AddTwoReads(Example& e) {
  const BufferId p = e.program.Parameter("p", 4), q = e.program.Parameter("q", 2);
  e.program.Add({.name = "a", .cycles = {10}});
  e.program.Add({.name = "use p", .reads = {p}, .cycles = {10, 3}});
  e.program.Add({.name = "use q", .reads = {q}, .cycles = {10, 3}});
  return {p, q};
}

Example MinBufferBytes() {
  Example e("min_buffer_bytes",
            "Buffers smaller than min_buffer_bytes stay in main memory and are not asked about.");
  AddTwoReads(e);
  e.options.min_buffer_bytes = 4;
  e.plays = {{"q, 2 bytes, is not asked", {kCopy}}};
  return e;
}

Example TooLarge() {
  Example e("buffer_larger_than_fast_memory",
            "Buffers larger than fast memory stay in main memory and are not asked about.");
  AddTwoReads(e);
  e.hardware.fast_bytes = 3;
  e.plays = {{"p, 4 bytes, is not asked", {kCopy}}};
  return e;
}

Example Ineligible() {
  Example e("ineligible_buffer",
            "A buffer that may not move has no accesses: it is not asked about, and its arrays "
            "stay in main memory for good.");
  const std::vector<BufferId> buffers = AddTwoReads(e);
  e.program.MarkIneligible(buffers[0], "effective scalar");
  e.plays = {{"p is not asked", {kCopy}}};
  return e;
}

Example KeepFree() {
  Example e("keep_free", "A share of the capacity can be kept free: no residence may take it.");
  AddTwoReads(e);
  e.options.keep_free = 0.375;
  e.plays = {
      {"3 of 8 bytes are kept free: p takes 4 of the 5, q has no place beside it",
       {kNoCopy, kDrop}},
      {"q comes as p goes, with a stall", {kCopy, kCopy}},
  };
  return e;
}

Example Forbidden() {
  Example e("forbidden_access",
            "An access that must be served from main memory has Drop as its only legal action.");
  AddTwoReads(e);
  e.options.forbidden = {AccessId(0)};
  e.plays = {{"p is forbidden, q is not", {kDrop, kCopy}}};
  return e;
}

Example ForbiddenLater() {
  Example e("forbidden_later_access",
            "If a later access is forbidden, NoCopy at a write is illegal, for it would serve that "
            "one too; Copy is legal, and the forbidden access finds the value in main memory.");
  const BufferId x = e.program.Result("x", 4);
  e.program.Add({.name = "make", .writes = {x}, .cycles = {10, 6}});
  e.program.Add({.name = "pause", .cycles = {10}});
  e.program.Add({.name = "use", .reads = {x}, .cycles = {10, 3}});
  e.options.forbidden = {AccessId(1)};
  e.plays = {{"made in fast memory, evicted, read from main memory", {kCopy, kDrop}}};
  return e;
}

Example ForbiddenInLoop() {
  Example e("forbidden_access_in_a_loop",
            "If an access inside a loop is forbidden, the buffer can't be resident over the loop.");
  const BufferId w = e.program.Parameter("w", 4);
  e.program.Add({.name = "before", .cycles = {8}});
  e.program.BeginLoop("steps", 3);
  e.program.BeginBody();
  const Tick use1 = e.program.Add({.name = "use1", .reads = {w}, .cycles = {10, 3}});
  e.program.Add({.name = "use2", .reads = {w}, .cycles = {10, 3}});
  e.program.EndLoop();
  e.options.forbidden = {testing::AccessAt(*e.program.Build(), w, use1)};
  e.plays = {
      {"only the second read in the body may be served from fast memory", {kDrop, kDrop, kCopy}}};
  return e;
}

Example PaperActions() {
  Example e("paper_actions", "The paper's game has three actions: CopyEarly is left out.");
  const BufferId p = e.program.Parameter("p", 4);
  e.program.Add({.name = "a", .cycles = {10}});
  e.program.Add({.name = "b", .cycles = {10}});
  e.program.Add({.name = "use", .reads = {p}, .cycles = {10, 3}});
  e.options.paper_actions = true;
  e.plays = {{"CopyEarly would be legal in the full game", {kCopy}}};
  return e;
}

Example NegativeSaving() {
  Example e("negative_saving",
            "A decision can cost time: where an instruction is slower from fast memory, or a stall "
            "is longer than what is saved, the saved picoseconds are negative.");
  const BufferId p = e.program.Constant("p", 6), q = e.program.Constant("q", 2);
  e.program.Add({.name = "use p", .reads = {p}, .cycles = {10, 8}});
  e.program.Add({.name = "use q", .reads = {q}, .cycles = {10, 13}});
  e.plays = {{"a stall of 6 ps for 2 saved, then 3 ps more with q in fast memory", {kCopy, kCopy}}};
  return e;
}

}  // namespace

std::vector<Example> OptionExamples() {
  return {MinBufferBytes(), TooLarge(),        Ineligible(),   KeepFree(),      Forbidden(),
          ForbiddenLater(), ForbiddenInLoop(), PaperActions(), NegativeSaving()};
}

}  // namespace mallocgame::golden
