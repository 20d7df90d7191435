#include "tests/golden/examples.h"

namespace mallocgame::golden {
namespace {

using enum Action;

// A parameter w of 6 bytes read in each of 5 trips and once behind the loop, and 8 ps before it.
void AddWeightInLoop(Example& e) {
  const BufferId w = e.program.Parameter("w", 6);
  e.program.Add({.name = "before", .cycles = {8}});
  e.program.BeginLoop("steps", 5);
  e.program.BeginBody();
  e.program.Add({.name = "use", .reads = {w}, .cycles = {10, 2}});
  e.program.EndLoop();
  e.program.Add({.name = "after", .reads = {w}, .cycles = {10, 2}});
}

Example EntryCopy() {
  Example e("loop_entry",
            "Entering a loop is asked for each buffer that it carries and uses: Copy has it "
            "fetched before the loop, resident over all of it, and serves what is inside unasked.");
  AddWeightInLoop(e);
  e.plays = {
      {"Copy: 8 ps saved in each of 5 trips; behind the loop the residence is kept",
       {kCopy, kNoCopy}},
      {"NoCopy: preloaded, and resident over the loop", {kNoCopy, kDrop}},
  };
  return e;
}

Example EntryDrop() {
  Example e("loop_entry_dropped",
            "Drop at a loop's entry leaves the buffer in main memory at the loop's boundary: the "
            "accesses inside are asked, and what they cost counts once for each trip.");
  AddWeightInLoop(e);
  e.plays = {
      {"nothing hides the copy in the body: 8 ps saved, 6 ps stalled, in each of 5 trips",
       {kDrop, kCopy, kDrop}},
      {"everything in main memory", {kDrop, kDrop, kDrop}},
  };
  return e;
}

Example Kept() {
  Example e(
      "residence_kept_over_a_loop",
      "NoCopy at a loop's entry keeps the residence of the access before over the whole loop.");
  const BufferId w = e.program.Constant("w", 6);
  e.program.Add({.name = "before", .cycles = {8}});
  e.program.Add({.name = "first", .reads = {w}, .cycles = {10, 2}});
  e.program.BeginLoop("steps", 5);
  e.program.BeginBody();
  e.program.Add({.name = "use", .reads = {w}, .cycles = {10, 2}});
  e.program.EndLoop();
  e.plays = {{"one prefetch for the read before the loop and all inside", {kCopy, kNoCopy}}};
  return e;
}

Example Written() {
  Example e("loop_that_writes",
            "A buffer that is written in a loop over which it is resident is evicted behind "
            "the loop (Copy), or kept until its last access (NoCopy).");
  const BufferId s = e.program.Parameter("s", 4);
  e.program.Add({.name = "before", .cycles = {8}});
  e.program.BeginLoop("steps", 3);
  e.program.BeginBody();
  e.program.Add({.name = "step", .updates = {s}, .cycles = {10, 2}});
  e.program.EndLoop();
  e.program.Add({.name = "pause", .cycles = {8}});
  e.program.Add({.name = "after", .reads = {s}, .cycles = {10, 2}});
  e.plays = {
      {"Copy: fetched before the loop, evicted behind it", {kCopy, kDrop}},
      {"NoCopy: preloaded, and never evicted", {kNoCopy}},
      {"Drop: the update inside is asked, but the body has no idle time to write it back in",
       {kDrop, kDrop, kDrop}},
  };
  return e;
}

Example Carried() {
  Example e("carried_by_a_loop",
            "A buffer that a loop around carries in main memory can't be written with NoCopy: its "
            "value must be back at the end of each trip.");
  const BufferId s = e.program.Parameter("s", 4);
  e.program.BeginLoop("steps", 3);
  e.program.BeginBody();
  e.program.Add({.name = "before", .cycles = {6}});
  e.program.Add({.name = "step", .updates = {s}, .cycles = {12, 4}});
  e.program.Add({.name = "behind", .cycles = {6}});
  e.program.EndLoop();
  e.plays = {
      {"Copy fetches and writes back in each trip", {kDrop, kCopy}},
      {"Drop", {kDrop, kDrop}},
  };
  return e;
}

Example Own() {
  Example e("own_buffer_of_a_loop",
            "A buffer that lives inside a loop's body has no access at the loop's entry; its "
            "residence lies inside the body, and what it saves counts once for each trip.");
  const BufferId x = e.program.Result("x", 4);
  e.program.BeginLoop("steps", 7);
  e.program.BeginBody();
  e.program.Add({.name = "make", .writes = {x}, .cycles = {10, 6}});
  e.program.Add({.name = "use", .reads = {x}, .cycles = {10, 3}});
  e.program.EndLoop();
  e.plays = {{"NoCopy: 11 ps in each of 7 trips", {kNoCopy}}};
  return e;
}

Example UndefinedCarried() {
  Example e("undefined_buffer_in_a_loop",
            "Storage without a value that a loop carries needs no prefetch at its entry; if it is "
            "left in main memory there, it holds a value from the second trip on.");
  const BufferId u = e.program.Undefined("u", 4);
  e.program.Add({.name = "before", .cycles = {8}});
  e.program.BeginLoop("steps", 3);
  e.program.BeginBody();
  e.program.Add({.name = "gap", .cycles = {5}});
  e.program.Add({.name = "step", .updates = {u}, .cycles = {10, 2}});
  e.program.Add({.name = "rest", .cycles = {5}});
  e.program.EndLoop();
  e.program.Add({.name = "pause", .cycles = {8}});
  e.program.Add({.name = "after", .reads = {u}, .cycles = {10, 2}});
  e.plays = {
      {"Copy at the entry: nothing is fetched, the value is evicted behind the loop",
       {kCopy, kDrop}},
      {"NoCopy at the entry: kept to its last access", {kNoCopy}},
      {"Drop at the entry: the update inside fetches the value and writes it back",
       {kDrop, kCopy, kDrop}},
  };
  return e;
}

Example Nested() {
  Example e("nested_loops",
            "The trips of nested loops multiply, and a residence over the outer loop covers the "
            "inner one.");
  const BufferId w = e.program.Parameter("w", 4);
  e.program.Add({.name = "before", .cycles = {8}});
  e.program.BeginLoop("outer", 3);
  e.program.BeginBody();
  e.program.Add({.name = "gap", .cycles = {6}});
  e.program.BeginLoop("inner", 5);
  e.program.BeginBody();
  e.program.Add({.name = "use", .reads = {w}, .cycles = {10, 2}});
  e.program.EndLoop();
  e.program.EndLoop();
  e.plays = {
      {"Copy at the outer entry: 8 ps saved in 15 trips, one prefetch", {kCopy}},
      {"Copy at the inner entry: a prefetch in each of 3 trips, hidden while gap runs",
       {kDrop, kCopy}},
      {"Copy at the read: a stall in each of 15 trips", {kDrop, kDrop, kCopy}},
  };
  return e;
}

Example Boundary() {
  Example e("windows_stay_out_of_loops",
            "Copy windows don't cross a loop's boundary: what is read behind a loop is fetched "
            "behind it.");
  const BufferId p = e.program.Constant("p", 4);
  e.program.Add({.name = "before", .cycles = {20}});
  e.program.BeginLoop("steps", 3);
  e.program.BeginBody();
  e.program.Add({.name = "work", .cycles = {20}});
  e.program.EndLoop();
  e.program.Add({.name = "short", .cycles = {3}});
  e.program.Add({.name = "use", .reads = {p}, .cycles = {20, 5}});
  e.plays = {{"3 of the 4 ps are hidden behind the loop, for all the time before", {kCopy}}};
  return e;
}

Example Branch() {
  Example e("branches",
            "Copy windows don't cross a branch's boundary, and a residence that begins in a branch "
            "ends there.");
  const BufferId p = e.program.Constant("p", 4);
  e.program.Add({.name = "before", .cycles = {8}});
  e.program.BeginBranch();
  e.program.Add({.name = "yes", .reads = {p}, .cycles = {20, 5}});
  e.program.EndBranch();
  e.program.BeginBranch();
  e.program.Add({.name = "no", .cycles = {4}});
  e.program.EndBranch();
  e.program.Add({.name = "choose", .cycles = {4}});
  e.program.Add({.name = "after", .reads = {p}, .cycles = {20, 5}});
  e.plays = {
      {"fetched in the branch with a stall; NoCopy is illegal behind it", {kCopy, kCopy}},
      {"in main memory in the branch, fetched behind it", {kDrop, kCopy}},
  };
  return e;
}

Example ResidenceAcrossBranch() {
  Example e("residence_across_a_branch",
            "A residence that begins before a branch may be kept in it, and behind it.");
  const BufferId p = e.program.Constant("p", 4);
  e.program.Add({.name = "before", .cycles = {8}});
  e.program.Add({.name = "use", .reads = {p}, .cycles = {20, 5}});
  e.program.BeginBranch();
  e.program.Add({.name = "yes", .reads = {p}, .cycles = {20, 5}});
  e.program.EndBranch();
  e.program.Add({.name = "choose", .cycles = {4}});
  e.program.Add({.name = "after", .reads = {p}, .cycles = {20, 5}});
  e.plays = {{"one prefetch, kept from the entry through the branch to the end",
              {kCopy, kNoCopy, kNoCopy}}};
  return e;
}

Example Call() {
  Example e("calls",
            "Copy windows don't cross the boundary of a called computation; residences do.");
  const BufferId p = e.program.Constant("p", 4);
  e.program.Add({.name = "before", .cycles = {8}});
  e.program.BeginCall();
  e.program.Add({.name = "inside", .reads = {p}, .cycles = {20, 5}});
  e.program.EndCall();
  e.program.Add({.name = "call", .cycles = {4}});
  e.program.Add({.name = "after", .reads = {p}, .cycles = {20, 5}});
  e.plays = {{"fetched inside with a stall, and kept behind the call", {kCopy, kNoCopy}}};
  return e;
}

}  // namespace

std::vector<Example> LoopExamples() {
  return {EntryCopy(),
          EntryDrop(),
          Kept(),
          Written(),
          Carried(),
          Own(),
          UndefinedCarried(),
          Nested(),
          Boundary(),
          Branch(),
          ResidenceAcrossBranch(),
          Call()};
}

}  // namespace mallocgame::golden
