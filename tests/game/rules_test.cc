// The rules one by one on programs small enough for paper: a byte of main-memory traffic and a
// cycle take 1 ps.
#include "absl/strings/str_cat.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/priority/priority_tables.h"
#include "mallocgame/game/tables.h"
#include "mallocgame/game/time/state.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/plan/validate.h"
#include "tests/catch.h"
#include "tests/support/plans.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;
using testing::ReadAtTheEnd;
using testing::TestHardware;

std::shared_ptr<const Game> MakeGame(const ProgramBuilder& builder, const Hardware& hardware,
                                     const TimeGameOptions& options = {}) {
  return testing::MakeGame(builder.Build(), hardware, options);
}

std::string Legal(const State& state) {
  std::string names;
  for (const int a : state.legal_actions())
    absl::StrAppend(&names, names.empty() ? "" : " ", ActionName(static_cast<Action>(a)));
  return names;
}

int64_t Play(State& state, Action action) {
  const auto saved = state.Apply(action);
  INFO(saved.status());
  REQUIRE(saved.ok());
  return *saved;
}

// Drops what is left to decide and returns the plan, which must be valid.
Plan Finish(State& state) {
  while (!state.IsTerminal()) Play(state, Action::kDrop);
  Plan plan = state.ToPlan();
  const Verdict verdict = Validate(state.game().program(), state.game().hardware(), plan);
  INFO(verdict.message);
  REQUIRE(verdict.ok());
  return plan;
}

TimeGameOptions PaperOptions() {
  TimeGameOptions options;
  options.paper_actions = true;
  return options;
}

TEST_CASE("Copy at a read: the latest window that hides the transfer") {
  State state(MakeGame(ReadAtTheEnd(), TestHardware(8)));
  REQUIRE(Legal(state) == "Drop Copy NoCopy CopyEarly");
  REQUIRE(Play(state, Action::kCopy) == 7);
  const Plan plan = Finish(state);
  REQUIRE(plan.residences == std::vector<Residence>{{BufferId(0), 0, 1, 3}});
  REQUIRE(plan.copies.size() == 1);
  REQUIRE(plan.copies[0].begin == 1);
  REQUIRE(plan.copies[0].end == 2);
}

TEST_CASE("CopyEarly at a read: the earliest window") {
  State state(MakeGame(ReadAtTheEnd(), TestHardware(8)));
  REQUIRE(Play(state, Action::kCopyEarly) == 7);
  const Plan plan = Finish(state);
  REQUIRE(plan.residences == std::vector<Residence>{{BufferId(0), 0, 0, 3}});
  REQUIRE(plan.copies[0].begin == 0);
  REQUIRE(plan.copies[0].end == 1);
}

TEST_CASE("the paper's game has three actions") {
  State state(MakeGame(ReadAtTheEnd(), TestHardware(8), PaperOptions()));
  REQUIRE(Legal(state) == "Drop Copy NoCopy");
}

TEST_CASE("NoCopy at the first read of a parameter: preloaded, as many as the hardware allows") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4), q = b.Parameter("q", 4), c = b.Constant("c", 4);
  b.Add({.name = "use", .reads = {p}, .cycles = {10, 3}});
  b.Add({.name = "use2", .reads = {q}, .cycles = {10, 3}});
  b.Add({.name = "use3", .reads = {c}, .cycles = {10, 3}});
  State state(MakeGame(b, TestHardware(16)));
  REQUIRE(Legal(state) == "Drop Copy NoCopy");
  REQUIRE(Play(state, Action::kNoCopy) == 7);
  REQUIRE(state.preloads() == 1);
  REQUIRE(Legal(state) == "Drop Copy");  // one preload only
  Play(state, Action::kDrop);
  REQUIRE(Legal(state) == "Drop Copy CopyEarly");  // a constant can't be preloaded
  const Plan plan = Finish(state);
  REQUIRE(plan.copies.size() == 1);
  REQUIRE(plan.copies[0].preload);

  Hardware two = TestHardware(16);
  two.max_preloads = 2;
  State more(MakeGame(b, two));
  REQUIRE(Play(more, Action::kNoCopy) == 7);
  REQUIRE(Play(more, Action::kNoCopy) == 7);
  REQUIRE(more.preloads() == 2);
  const Plan both = Finish(more);
  REQUIRE(std::count_if(both.copies.begin(), both.copies.end(),
                        [](const Copy& copy) { return copy.preload; }) == 2);
}

TEST_CASE("what a transfer holds is decided once, where it begins") {
  ProgramBuilder b;
  const BufferId a = b.Parameter("a", 4), r = b.Result("r", 4);
  b.Add({.name = "first", .cycles = {10}});
  const Tick start = b.Add({.name = "start", .reads = {a}, .writes = {r}, .cycles = {10, 8, 8, 6}});
  b.Add({.name = "between", .reads = {a}, .cycles = {10, 5}});
  const Tick done = b.Add({.name = "done", .reads = {a}, .updates = {r}, .cycles = {10, 7, 9, 6}});
  b.Add({.name = "last", .reads = {r}, .cycles = {10, 9}});
  b.Hold(a, start, done);
  b.Hold(r, start, done);
  State state(MakeGame(b, TestHardware(8)));
  SECTION("in fast memory") {
    REQUIRE(Legal(state) == "Drop Copy NoCopy");
    REQUIRE(Play(state, Action::kCopy) == 2 + 5 + 3);
    REQUIRE(Legal(state) == "Drop NoCopy");
    REQUIRE(Play(state, Action::kNoCopy) == 2 + 1 + 1);
    REQUIRE(state.IsTerminal());
    const Plan plan = Finish(state);
    REQUIRE(plan.residences == std::vector<Residence>{{a, 0, 0, 4}, {r, 4, 1, 5}});
  }
  SECTION("in main memory") {
    Play(state, Action::kDrop);
    Play(state, Action::kDrop);
    REQUIRE(state.current_access() == testing::AccessAt(state.game().program(), r, 4));
    REQUIRE(Finish(state).residences.empty());
  }
  SECTION("in the priority game it isn't split") {
    const auto game = testing::MakeGame(b.Build(), TestHardware(8), PriorityGameOptions());
    const PriorityTables& tables = game->priority_tables();
    for (const Run& run : tables.runs) {
      const bool of_a = game->tables().buffers[run.buffer].id == a;
      REQUIRE((of_a ? run.last - run.first == 2 && !run.splits
                    : run.last - run.first != 0 ||
                          tables.arrangement.decision(run.buffer, run.first).tick == 4));
    }
  }
}

TEST_CASE("what is not hidden is a stall") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 6);
  b.Add({.name = "a", .cycles = {4}});
  b.Add({.name = "use", .reads = {p}, .cycles = {20, 5}});
  State state(MakeGame(b, TestHardware(8)));
  REQUIRE(Play(state, Action::kCopy) == 15 - 2);
  REQUIRE(state.stall_ps() == 2);
  const Plan plan = Finish(state);
  REQUIRE(plan.copies[0].begin == 0);
  REQUIRE(plan.copies[0].end == 1);
}

TEST_CASE("booked copies keep their place: a later one takes the latest gap that holds it whole") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 8), q = b.Parameter("q", 6);
  b.Add({.name = "a", .cycles = {10}});  // service time 0 to 10
  b.Add({.name = "b", .cycles = {4}});   // 10 to 14
  b.Add({.name = "use p", .reads = {p}, .cycles = {30, 0}});
  b.Add({.name = "c", .cycles = {3}});  // 14 to 17
  b.Add({.name = "use q", .reads = {q}, .cycles = {30, 0}});
  State state(MakeGame(b, TestHardware(32)));
  // [6, 14) would hide it; it starts with instruction a, at 0, and gets [0, 8).
  Play(state, Action::kCopy);
  Play(state, Action::kCopy);  // 8 to 17 is free; 6 before 17 is 11: starts with b, at 10
  const Plan plan = Finish(state);
  REQUIRE(plan.copies.size() == 2);
  REQUIRE(plan.copies[0].begin == 0);
  REQUIRE(plan.copies[0].end == 1);
  REQUIRE(plan.copies[1].begin == 1);
  REQUIRE(plan.copies[1].end == 4);
  REQUIRE(state.stall_ps() == 0);
}

TEST_CASE("NoCopy at a read keeps the previous access's residence at its offset") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4), q = b.Parameter("q", 4);
  b.Add({.name = "a", .cycles = {10}});
  b.Add({.name = "use", .reads = {p}, .cycles = {10, 3}});
  b.Add({.name = "other", .reads = {q}, .cycles = {10, 3}});
  b.Add({.name = "again", .reads = {p}, .cycles = {10, 3}});
  const auto game = MakeGame(b, TestHardware(4));  // room for one of them
  State state(game);
  Play(state, Action::kCopy);
  REQUIRE(Legal(state) == "Drop Copy");  // q can be fetched behind p's first use, with a stall
  State other = state;
  Play(state, Action::kDrop);
  REQUIRE(Legal(state) == "Drop Copy NoCopy");
  REQUIRE(Play(state, Action::kNoCopy) == 7);
  const Plan plan = Finish(state);
  REQUIRE(plan.residences == std::vector<Residence>{{BufferId(0), 0, 0, 4}});
  REQUIRE(Play(other, Action::kCopy) == 7 - 4);
  REQUIRE(!other.legal_actions().Has(static_cast<int>(Action::kNoCopy)));  // q lies there now
}

// x is written by "make", read by "use"; 10 ps of "pause" between them.
ProgramBuilder MakeAndUse(bool output) {
  ProgramBuilder b;
  const BufferId x = b.Result("x", 4);
  if (output) b.MarkOutput(x);
  b.Add({.name = "make", .writes = {x}, .cycles = {10, 6}});
  b.Add({.name = "pause", .cycles = {10}});
  b.Add({.name = "use", .reads = {x}, .cycles = {10, 3}});
  return b;
}

TEST_CASE("NoCopy at a write: in fast memory until the last access, which follows unasked") {
  State state(MakeGame(MakeAndUse(false), TestHardware(8)));
  REQUIRE(Legal(state) == "Drop Copy NoCopy");
  REQUIRE(Play(state, Action::kNoCopy) == 4 + 7);
  REQUIRE(state.IsTerminal());
  const Plan plan = Finish(state);
  REQUIRE(plan.residences == std::vector<Residence>{{BufferId(0), 0, 0, 3}});
  REQUIRE(plan.copies.empty());
}

// Fast memory can hold x, or what is used between its write and its read, but not both.
ProgramBuilder Contended() {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 8), x = b.Result("x", 4);
  b.Add({.name = "make", .writes = {x}, .cycles = {10, 6}});
  b.Add({.name = "between", .cycles = {20}});
  b.Add({.name = "use p", .reads = {p}, .cycles = {10, 3}});
  b.Add({.name = "use x", .reads = {x}, .cycles = {10, 3}});
  return b;
}

TEST_CASE("drop backup: a dead end of an alias group goes back to its write, which is dropped") {
  TimeGameOptions options = PaperOptions();
  State at_once(MakeGame(Contended(), TestHardware(8), options));
  REQUIRE(Play(at_once, Action::kNoCopy) == 4 + 7);
  REQUIRE(Legal(at_once) == "Drop");  // the bytes are taken up to the read

  options.drop_backup = true;
  State state(MakeGame(Contended(), TestHardware(8), options));
  REQUIRE(Play(state, Action::kNoCopy) == 4);
  REQUIRE(Legal(state) == "Drop Copy");
  REQUIRE(state.SavingOf(static_cast<int>(Action::kCopy)) == -4);
  REQUIRE(Play(state, Action::kCopy) == -4);  // takes the bytes that the read of x needs
  REQUIRE(state.tick() == 0);
  REQUIRE(Legal(state) == "Drop");
  REQUIRE(state.num_decisions() == 2);

  state.Undo();
  REQUIRE(state.tick() == 2);
  REQUIRE(Legal(state) == "Drop Copy");
  State kept = state;
  Play(kept, Action::kDrop);
  REQUIRE(Legal(kept) == "NoCopy");  // the group's members agree
  REQUIRE(Play(kept, Action::kNoCopy) == 7);
  REQUIRE(kept.ToPlan().residences == std::vector<Residence>{{BufferId(1), 0, 0, 4}});

  Play(state, Action::kCopy);
  Play(state, Action::kDrop);
  REQUIRE(Play(state, Action::kCopy) == 7);
  const Plan plan = Finish(state);
  REQUIRE(plan.residences == std::vector<Residence>{{BufferId(0), 0, 1, 3}});
  REQUIRE(state.num_decisions() == 5);
  REQUIRE(state.access_of(0) == state.access_of(2));
  REQUIRE(state.DecidedMode(0) == Mode::kKeep);
  REQUIRE(state.DecidedMode(2) == Mode::kSkip);
}

TEST_CASE("a penalty makes illegal actions legal: they do the first that the rules allow") {
  TimeGameOptions options = PaperOptions();
  options.illegal_penalty = 0.5;
  State state(MakeGame(Contended(), TestHardware(8), options));
  REQUIRE(Play(state, Action::kNoCopy) == 4 + 7);
  REQUIRE(Legal(state) == "Drop Copy NoCopy");
  REQUIRE(state.feasible_actions() == ActionSet(1));
  REQUIRE(Play(state, Action::kCopy) == -25);
  REQUIRE(state.penalty_ps() == 25);
  REQUIRE(state.latency_ps() == 50 - 11);
  REQUIRE(state.DecidedMode(1) == Mode::kSkip);
  REQUIRE(Finish(state).residences == std::vector<Residence>{{BufferId(1), 0, 0, 4}});
  state.Undo();
  REQUIRE(state.penalty_ps() == 0);
}

TEST_CASE("an entry output can't be written with NoCopy") {
  State state(MakeGame(MakeAndUse(true), TestHardware(8)));
  REQUIRE(Legal(state) == "Drop Copy");
}

TEST_CASE(
    "Copy at a write: evicted in idle time that is certain; Drop later finds it in main "
    "memory") {
  State state(MakeGame(MakeAndUse(true), TestHardware(8)));
  REQUIRE(Play(state, Action::kCopy) == 4);
  REQUIRE(Legal(state) == "Drop Copy NoCopy");
  REQUIRE(Play(state, Action::kDrop) == 0);
  const Plan plan = Finish(state);
  REQUIRE(plan.copies.size() == 1);
  REQUIRE(plan.copies[0].kind == CopyKind::kEviction);
  REQUIRE(plan.copies[0].begin == 1);
  REQUIRE(plan.copies[0].end == 2);
}

TEST_CASE("an eviction that isn't certain in its segment is illegal") {
  ProgramBuilder b;
  const BufferId x = b.Result("x", 4);
  b.MarkOutput(x);
  b.Add({.name = "make", .writes = {x}, .cycles = {10, 6}});
  b.Add({.name = "short", .cycles = {3}});
  State state(MakeGame(b, TestHardware(8)));
  REQUIRE(Legal(state) == "Drop");
}

TEST_CASE("a read from main memory waits for the eviction on its way") {
  ProgramBuilder b;
  const BufferId x = b.Result("x", 4);
  b.Add({.name = "make", .writes = {x}, .cycles = {10, 6}});
  b.Add({.name = "use", .reads = {x}, .cycles = {10, 3}});
  b.Add({.name = "long", .cycles = {30}});
  State state(MakeGame(b, TestHardware(8)));
  Play(state, Action::kCopy);
  REQUIRE(Play(state, Action::kDrop) == -4);
  REQUIRE(state.stall_ps() == 4);
  Finish(state);
}

TEST_CASE("an update follows a read's rules for the old value and a write's for the new one") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4);
  b.MarkOutput(p);
  b.Add({.name = "a", .cycles = {10}});
  b.Add({.name = "step", .updates = {p}, .cycles = {20, 5}});
  b.Add({.name = "z", .cycles = {10}});
  State state(MakeGame(b, TestHardware(8)));
  // It is an output: NoCopy would leave the new value in fast memory only.
  REQUIRE(Legal(state) == "Drop Copy");
  REQUIRE(Play(state, Action::kCopy) == 15);
  const Plan plan = Finish(state);
  REQUIRE(plan.copies.size() == 2);
  REQUIRE(plan.copies[0].kind == CopyKind::kPrefetch);
  REQUIRE(plan.copies[1].kind == CopyKind::kEviction);
  REQUIRE(plan.copies[1].begin == 2);
}

// A parameter w of 6 bytes read in each of 5 trips, and 8 ps before the loop.
ProgramBuilder WeightInLoop() {
  ProgramBuilder b;
  const BufferId w = b.Parameter("w", 6);
  b.Add({.name = "before", .cycles = {8}});
  b.BeginLoop("loop", 5);
  b.BeginBody();
  b.Add({.name = "use", .reads = {w}, .cycles = {10, 2}});
  b.EndLoop();
  b.Add({.name = "after", .reads = {w}, .cycles = {10, 2}});
  return b;
}

TEST_CASE("a loop's entry is asked; Copy there serves every access inside") {
  const auto game = MakeGame(WeightInLoop(), TestHardware(8));
  State state(game);
  REQUIRE(game->program().access(state.current_access()).kind == AccessKind::kLoopEntry);
  REQUIRE(Legal(state) == "Drop Copy NoCopy");
  REQUIRE(Play(state, Action::kCopy) == 5 * 8);
  REQUIRE(game->program().instruction(state.tick()).name == "after");
  REQUIRE(Play(state, Action::kNoCopy) == 8);
  const Plan plan = Finish(state);
  REQUIRE(plan.residences.size() == 1);
  REQUIRE(plan.residences[0].end == state.game().program().ticks());
}

TEST_CASE("Drop at a loop's entry: accesses inside are asked, and stalls there count every trip") {
  const auto game = MakeGame(WeightInLoop(), TestHardware(8));
  State state(game);
  REQUIRE(Play(state, Action::kDrop) == 0);
  REQUIRE(game->program().access(state.current_access()).kind == AccessKind::kRead);
  REQUIRE(Legal(state) == "Drop Copy");  // the body begins with it: nothing hides the copy
  REQUIRE(Play(state, Action::kCopy) == 5 * (8 - 6));
  REQUIRE(state.stall_ps() == 5 * 6);
  REQUIRE(Legal(state) == "Drop Copy");  // the residence may not leave the loop
  Finish(state);
}

TEST_CASE("a buffer written in a resident loop is evicted behind it, or pinned") {
  ProgramBuilder b;
  const BufferId s = b.Parameter("s", 4);
  b.Add({.name = "before", .cycles = {8}});
  b.BeginLoop("loop", 3);
  b.BeginBody();
  b.Add({.name = "step", .updates = {s}, .cycles = {10, 2}});
  b.EndLoop();
  b.Add({.name = "pause", .cycles = {8}});
  b.Add({.name = "after", .reads = {s}, .cycles = {10, 2}});
  const auto game = MakeGame(b, TestHardware(8));
  State copied(game);
  REQUIRE(Legal(copied) == "Drop Copy NoCopy");
  REQUIRE(Play(copied, Action::kCopy) == 3 * 8);
  REQUIRE(Legal(copied) == "Drop Copy NoCopy");
  const Plan plan = Finish(copied);
  REQUIRE(plan.copies.back().kind == CopyKind::kEviction);
  REQUIRE(plan.copies.back().begin == game->program().loops()[0].exit);
  State pinned(game);
  REQUIRE(Play(pinned, Action::kNoCopy) == 3 * 8 + 8);
  REQUIRE(pinned.IsTerminal());
  Finish(pinned);
}

TEST_CASE("a plain copy's result in fast memory: the transfer takes the instruction's place") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4), q = b.Result("q", 4);
  b.Add({.name = "a", .cycles = {10}});
  b.Add(
      {.name = "copy", .reads = {p}, .writes = {q}, .cycles = {16, 12, 12, 8}, .plain_copy = true});
  b.Add({.name = "use", .reads = {q}, .cycles = {10, 3}});
  State state(MakeGame(b, TestHardware(8)));
  Play(state, Action::kDrop);
  REQUIRE(Play(state, Action::kNoCopy) == 16 + 7);
  REQUIRE(state.stall_ps() == 0);
  const Plan plan = Finish(state);
  REQUIRE(plan.copies.size() == 1);
  REQUIRE(plan.copies[0].replaces == 1);
}

TEST_CASE("a plain copy can still be replaced at the first update of its result") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4), q = b.Result("q", 4);
  b.MarkOutput(q);
  b.Add(
      {.name = "copy", .reads = {p}, .writes = {q}, .cycles = {16, 12, 12, 8}, .plain_copy = true});
  b.Add({.name = "pause", .cycles = {10}});
  b.Add({.name = "step", .updates = {q}, .cycles = {10, 3}});
  b.Add({.name = "after", .cycles = {10}});
  State state(MakeGame(b, TestHardware(8)));
  Play(state, Action::kDrop);
  REQUIRE(Play(state, Action::kDrop) == 0);
  REQUIRE(Play(state, Action::kCopy) == 7 + 16);  // the copy's time is saved too
  const Plan plan = Finish(state);
  REQUIRE(plan.copies.size() == 2);
  REQUIRE(plan.copies[0].replaces == 0);
  REQUIRE(plan.copies[0].begin == 1);
  REQUIRE(plan.residences[0].begin == 1);
}

TEST_CASE("space: one offset over the whole residence, beside what instructions reserve") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4);
  b.Add({.name = "a", .cycles = {10}});
  b.Add({.name = "use", .reads = {p}, .cycles = {10, 3}, .reserved_bytes = 3});
  {
    State state(MakeGame(b, TestHardware(6)));
    REQUIRE(Legal(state) == "Drop");
  }
  State state(MakeGame(b, TestHardware(7)));
  Play(state, Action::kCopy);
  REQUIRE(Finish(state).residences[0].offset == 3);
}

TEST_CASE("best fit takes the smallest hole") {
  ProgramBuilder b;
  const BufferId big = b.Parameter("big", 5), low = b.Parameter("low", 3),
                 wall = b.Parameter("wall", 2), p = b.Parameter("p", 2);
  const BufferId wall2 = b.Parameter("wall2", 3);
  b.Add({.name = "a", .cycles = {100}});
  b.Add({.name = "lay", .reads = {big, low, wall, wall2}, .cycles = {20}});
  b.Add({.name = "keep", .reads = {low, wall2}, .cycles = {20}});
  b.Add({.name = "use", .reads = {p}, .cycles = {10, 3}});
  b.Add({.name = "end", .reads = {low, wall2}, .cycles = {20}});
  State state(MakeGame(b, TestHardware(13)));
  // big 0-5, low 5-8, wall 8-10, wall2 10-13
  for (int i = 0; i < 4; ++i) Play(state, Action::kCopy);
  // low and wall2 stay: holes 0-5 and 8-10
  for (int i = 0; i < 2; ++i) Play(state, Action::kNoCopy);
  Play(state, Action::kCopy);
  for (int i = 0; i < 2; ++i) Play(state, Action::kNoCopy);
  REQUIRE(Finish(state).residences.back().offset == 8);
}

TEST_CASE("bad options name what, found and allowed") {
  const auto program = ReadAtTheEnd().Build();
  TimeGameOptions options;
  options.keep_free = 1.0;
  REQUIRE(std::string(Game::Create(program, TestHardware(8), options).status().message())
              .find("keep_free") == 0);
  options = {};
  options.min_buffer_bytes = -1;
  REQUIRE(Game::Create(program, TestHardware(8), options).status().code() ==
          absl::StatusCode::kInvalidArgument);
  options = {};
  options.forbidden = {AccessId(7)};
  REQUIRE(std::string(Game::Create(program, TestHardware(8), options).status().message())
              .find("access 7") != std::string::npos);
  REQUIRE(!TimeGame::Create(program, Hardware{}, {}).ok());
}

TEST_CASE("a program that takes longer than can be added up is refused") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4);
  b.BeginLoop("loop", 8);
  b.BeginBody();
  const Tick work = b.Add({.name = "work", .reads = {p}});
  b.EndLoop();
  const auto refusal = [&](int64_t link_ps) {
    ProgramData data = b.Data();
    data.cost.instructions[work].link_ps = link_ps;
    const auto game = TimeGame::Create(*Program::Create(data), TestHardware(8), {});
    return std::string(game.status().message());
  };
  CHECK(refusal(int64_t{1} << 50).empty());
  CHECK_THAT(refusal(int64_t{1} << 58), Catch::Contains("a run of more than"));
  CHECK_THAT(refusal(int64_t{1} << 60), Catch::Contains("a run of more than"));  // beyond 64 bits
}

TEST_CASE("forbidden placements") {
  const auto use = AccessId(0);
  State forbidden(
      testing::MakeGame(ReadAtTheEnd().Build(), TestHardware(8), std::vector<AccessId>{use}));
  REQUIRE(Legal(forbidden) == "Drop");
  State no_room(MakeGame(ReadAtTheEnd(), TestHardware(3)));
  REQUIRE(no_room.IsTerminal());  // the buffer doesn't fit at all: it isn't asked about
}

TEST_CASE("at most the hardware's number of copies is outstanding") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 2), q = b.Parameter("q", 2);
  b.Add({.name = "a", .cycles = {10}});
  b.Add({.name = "use", .reads = {p, q}, .cycles = {10}});
  Hardware hardware = TestHardware(8);
  hardware.max_outstanding_prefetches = 1;
  State state(MakeGame(b, hardware));
  Play(state, Action::kCopy);
  REQUIRE(!state.IsLegal(Action::kCopy));
}

TEST_CASE("an instruction with 64 accesses, all in fast memory, is not taken for a replaced copy") {
  ProgramBuilder b;
  testing::Op op = {.name = "wide"};
  for (int i = 0; i < 64; ++i) op.reads.push_back(b.Parameter(absl::StrCat("p", i), 1));
  op.cycles = {100};
  b.Add({.name = "before", .cycles = {1000}});
  b.Add(op);
  Hardware hardware = TestHardware(64);
  hardware.max_outstanding_prefetches = 64;
  State state(MakeGame(b, hardware));
  for (int i = 0; i < 64; ++i) REQUIRE(Play(state, Action::kCopy) == 0);
  REQUIRE(state.latency_ps() == 1100);
  Finish(state);
}

TEST_CASE("the printed form names the access and the legal actions") {
  State state(MakeGame(ReadAtTheEnd(), TestHardware(8)));
  REQUIRE(state.ToString() ==
          "tiny on test, decision 0, latency 0.000 us (all main 0.000 us), stall 0.000 us, 0 KiB "
          "resident\n"
          "tick 2: use (fusion) reads p, 0 KiB\n"
          "legal: Drop Copy NoCopy CopyEarly\n");
}

}  // namespace
}  // namespace mallocgame
