// The modes of the priority game, each on a run of one buffer or two.
#include "tests/golden/examples.h"

namespace mallocgame::golden {
namespace {

using enum Mode;

Example PriorityExample(std::string file, std::string sentence) {
  Example e(std::move(file), std::move(sentence));
  e.is_priority_game = true;
  e.priority.candidates = 2;
  return e;
}

// p, 4 bytes, is read behind 10 ps, and once more behind another 10 ps.
void AddTwoUses(Example& e) {
  const BufferId p = e.program.Parameter("p", 4);
  e.program.Add({.name = "a", .cycles = {10}});
  e.program.Add({.name = "use p", .reads = {p}, .cycles = {10, 3}});
  e.program.Add({.name = "b", .cycles = {10}});
  e.program.Add({.name = "again", .reads = {p}, .cycles = {10, 3}});
}

Example Skipped() {
  Example e = PriorityExample("priority_skip", "Skip serves a run's accesses from main memory.");
  AddTwoUses(e);
  e.plays = {{"p stays in main memory", {{0, kSkip}}}};
  return e;
}

// Before p's copy is due, q fills most of fast memory.
void AddUsesBehindAnother(Example& e) {
  const BufferId q = e.program.Parameter("q", 6);
  e.program.Add({.name = "use q", .reads = {q}, .cycles = {10, 3}});
  AddTwoUses(e);
}

Example ServedLate() {
  Example e =
      PriorityExample("priority_late",
                      "Late serves a run by one residence, whose bytes are reserved from the "
                      "last tick at which the instructions hide its copy.");
  AddUsesBehindAnother(e);
  e.plays = {{"q still has room at the start", {{0, kLate}, {0, kPreload}}}};
  return e;
}

Example ServedEarly() {
  Example e = PriorityExample("priority_early",
                              "Early reserves the bytes from the first tick at which the value can "
                              "be copied.");
  AddUsesBehindAnother(e);
  e.plays = {{"q has no room at the start", {{0, kEarly}, {0, kSkip}}}};
  return e;
}

Example Preloaded() {
  Example e = PriorityExample("priority_preload",
                              "Preload serves a run of an entry parameter from before the program "
                              "starts, without a copy in the program's time.");
  AddTwoUses(e);
  e.plays = {{"p is there when the program starts", {{0, kPreload}}}};
  return e;
}

Example SplitInTwo() {
  Example e = PriorityExample("priority_split",
                              "Split cuts a run where a residence would be held longest without an "
                              "access; both parts are open then.");
  const BufferId p = e.program.Parameter("p", 4), q = e.program.Parameter("q", 4);
  e.hardware.fast_bytes = 4;
  e.program.Add({.name = "a", .cycles = {10}});
  e.program.Add({.name = "use p", .reads = {p}, .cycles = {10, 3}});
  e.program.Add({.name = "b", .cycles = {10}});
  e.program.Add({.name = "use q", .reads = {q}, .cycles = {10, 3}});
  e.program.Add({.name = "c", .cycles = {10}});
  e.program.Add({.name = "again", .reads = {p}, .cycles = {10, 3}});
  e.plays = {
      {"q lies where p did, between p's uses", {{1, kSplit}, {0, kLate}, {0, kLate}, {0, kLate}}},
      {"p is held over both uses, and q has no room", {{1, kLate}, {0, kSkip}}},
  };
  return e;
}

Example SplitBehindCopy() {
  Example e = PriorityExample("priority_split_behind_a_copy",
                              "A run that begins with a plain copy is not cut right behind it if a "
                              "prefetch can take the copy's place: nothing is held from there on.");
  const BufferId p = e.program.Constant("p", 4), q = e.program.Result("q", 4);
  e.program.Add(
      {.name = "copy", .reads = {p}, .writes = {q}, .cycles = {16, 12, 12, 8}, .plain_copy = true});
  e.program.Add({.name = "long pause", .cycles = {20}});
  e.program.Add({.name = "use", .reads = {q}, .cycles = {10, 3}});
  e.program.Add({.name = "pause", .cycles = {10}});
  e.program.Add({.name = "again", .reads = {q}, .cycles = {10, 3}});
  e.plays = {{"the copy is replaced for the first use only",
              {{0, kSplit}, {0, kSkip}, {1, kLate}, {0, kSkip}}}};
  return e;
}

Example LeastLost() {
  Example e =
      PriorityExample("priority_offset",
                      "Of the places that are free, a residence gets the one that takes the "
                      "least from prefetches, its own and others'.");
  const BufferId q = e.program.Parameter("q", 6), r = e.program.Parameter("r", 6);
  e.program.Add({.name = "a", .cycles = {10}});
  e.program.Add({.name = "use q", .reads = {q}, .cycles = {10, 3}});
  e.program.Add({.name = "use r", .reads = {r}, .cycles = {10, 3}});
  e.plays = {{"two of r's bytes come while q is used", {{0, kLate}, {0, kLate}}}};
  return e;
}

}  // namespace

std::vector<Example> PriorityExamples() {
  return {Skipped(),    ServedLate(), ServedEarly(),    Preloaded(),
          SplitInTwo(), LeastLost(),  SplitBehindCopy()};
}

}  // namespace mallocgame::golden
