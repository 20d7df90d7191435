#include "tests/golden/examples.h"

namespace mallocgame::golden {
namespace {

using enum Action;

// Two instructions of 10 ps, then one that reads p, 4 bytes, and takes 3 ps instead of 10 if p is
// in fast memory.
void AddReadAtTheEnd(Example& e) {
  const BufferId p = e.program.Parameter("p", 4);
  e.program.Add({.name = "a", .cycles = {10}});
  e.program.Add({.name = "b", .cycles = {10}});
  e.program.Add({.name = "use", .reads = {p}, .cycles = {10, 3}});
}

Example DropAtRead() {
  Example e("drop_at_a_read", "Drop serves a read from main memory: nothing is booked or saved.");
  AddReadAtTheEnd(e);
  e.plays = {{"Drop", {kDrop}}};
  return e;
}

Example CopyAtRead() {
  Example e(
      "copy_at_a_read",
      "Copy at a read prefetches the buffer in the latest window that hides the copy, and the "
      "buffer is resident from the copy's begin to the read.");
  AddReadAtTheEnd(e);
  e.plays = {{"the copy of 4 ps is hidden while b runs", {kCopy}}};
  return e;
}

Example CopyEarlyAtRead() {
  Example e("copy_early_at_a_read",
            "CopyEarly at a read prefetches the buffer in the earliest window, and is legal where "
            "that is another window than Copy's.");
  const BufferId p = e.program.Parameter("p", 4), q = e.program.Constant("q", 4);
  e.program.Add({.name = "a", .cycles = {10}});
  e.program.Add({.name = "b", .cycles = {10}});
  e.program.Add({.name = "use p", .reads = {p}, .cycles = {4, 3}});
  e.program.Add({.name = "use q", .reads = {q}, .cycles = {4, 3}});
  e.plays = {
      {"the earliest window is during a, the latest during b", {kCopyEarly, kDrop}},
      {"p is copied early, during a: q's earliest window is in what a has left",
       {kCopyEarly, kCopyEarly}},
      {"p is copied during b, as late as can be: q's earliest window is during a",
       {kCopy, kCopyEarly}},
  };
  return e;
}

Example CopyEarlySameWindow() {
  Example e("copy_early_same_window",
            "CopyEarly is illegal where the earliest window is the latest one too.");
  const BufferId p = e.program.Parameter("p", 4);
  e.program.Add({.name = "a", .cycles = {10}});
  e.program.Add({.name = "use", .reads = {p}, .cycles = {10, 3}});
  e.plays = {{"a is the only instruction before the read", {kCopy}}};
  return e;
}

Example NoCopyAtRead() {
  Example e("no_copy_at_a_read",
            "NoCopy at a read keeps the previous access's residence until this read, at its "
            "offset, and is illegal where another residence has taken the bytes since.");
  const BufferId p = e.program.Parameter("p", 4), q = e.program.Parameter("q", 4);
  e.program.Add({.name = "a", .cycles = {10}});
  e.program.Add({.name = "use p", .reads = {p}, .cycles = {10, 3}});
  e.program.Add({.name = "use q", .reads = {q}, .cycles = {20, 3}});
  e.program.Add({.name = "again", .reads = {p}, .cycles = {10, 3}});
  e.hardware.fast_bytes = 4;
  e.plays = {
      {"q stays in main memory, p is kept", {kCopy, kDrop, kNoCopy}},
      {"q takes p's bytes behind p's first read: NoCopy is illegal at the second",
       {kCopy, kCopy, kDrop}},
      {"there is nothing to keep behind a read from main memory", {kDrop, kDrop, kDrop}},
  };
  return e;
}

Example KeptOverSeveral() {
  Example e("kept_over_several_reads",
            "A residence is extended read by read: one prefetch serves them all, and Copy in "
            "between begins a residence of its own.");
  const BufferId p = e.program.Constant("p", 4);
  e.program.Add({.name = "a", .cycles = {10}});
  for (const char* name : {"use1", "use2", "use3"})
    e.program.Add({.name = name, .reads = {p}, .cycles = {10, 5}});
  e.plays = {
      {"one residence over three reads", {kCopy, kNoCopy, kNoCopy}},
      {"Copy at the second read: a second residence beside the first", {kCopy, kCopy, kNoCopy}},
      {"Drop at the second read: nothing is left to keep", {kCopy, kDrop, kCopy}},
  };
  return e;
}

Example Preload() {
  Example e("preload",
            "NoCopy at the first read of an entry parameter preloads it: it is resident from tick "
            "0, issued by the run before; so many as the hardware allows, and no constants.");
  const BufferId p = e.program.Parameter("p", 4), q = e.program.Parameter("q", 4),
                 c = e.program.Constant("c", 4);
  e.program.Add({.name = "use p", .reads = {p}, .cycles = {10, 3}});
  e.program.Add({.name = "use q", .reads = {q}, .cycles = {10, 3}});
  e.program.Add({.name = "use c", .reads = {c}, .cycles = {10, 3}});
  e.program.Add({.name = "again", .reads = {p}, .cycles = {10, 3}});
  e.plays = {
      {"p is preloaded; the only preload is taken when q is asked; a constant never can be",
       {kNoCopy, kDrop, kDrop, kDrop}},
      {"a preloaded buffer is kept as any other", {kNoCopy, kDrop, kDrop, kNoCopy}},
      {"behind the first read there is no preload", {kDrop, kNoCopy, kDrop, kDrop}},
  };
  return e;
}

Example Order() {
  Example e("order_of_decisions",
            "Decisions come in time order, and at one tick reads before updates before writes.");
  const BufferId r = e.program.Parameter("r", 1), u = e.program.Parameter("u", 1),
                 w = e.program.Result("w", 1);
  e.program.Add({.name = "first", .reads = {r}, .cycles = {10, 9}});
  e.program.Add({.name = "all", .reads = {r}, .updates = {u}, .writes = {w}, .cycles = {14}});
  e.program.Add({.name = "last", .reads = {w}, .cycles = {10, 9}});
  e.plays = {{"r, then r, u and w at tick 1, then w", {kDrop, kDrop, kDrop, kDrop, kDrop}}};
  return e;
}

}  // namespace

std::vector<Example> ReadExamples() {
  return {DropAtRead(),   CopyAtRead(),      CopyEarlyAtRead(), CopyEarlySameWindow(),
          NoCopyAtRead(), KeptOverSeveral(), Preload(),         Order()};
}

}  // namespace mallocgame::golden
