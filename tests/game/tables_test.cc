// GameTables of small programs, by hand; reserved bytes and prices against what they stand for.
#include "mallocgame/game/tables.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/game/time/time_game.h"
#include "tests/catch.h"
#include "tests/support/plans.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::AccessAt;
using testing::ProgramBuilder;
using testing::TestHardware;

struct Tables {
  Tables(const ProgramBuilder& builder, const Hardware& hardware, int64_t min_buffer_bytes = 0,
         std::vector<AccessId> forbidden = {}) {
    TimeGameOptions options;
    options.min_buffer_bytes = min_buffer_bytes;
    options.forbidden = std::move(forbidden);
    auto made = Game::Create(builder.Build(), hardware, options);
    REQUIRE(made.ok());
    game = *std::move(made);
  }
  const Decision& At(BufferId buffer, Tick tick) const {
    const AccessId access = AccessAt(game->program(), buffer, tick);
    for (const Decision& d : tables().decisions) {
      if (d.access == access) return d;
    }
    FAIL("no decision at tick " << tick);
    return tables().decisions[0];
  }

  const GameTables& tables() const { return game->tables(); }

  std::shared_ptr<const Game> game;
};

TEST_CASE("decisions are the accesses of the buffers that may move, linked buffer by buffer") {
  ProgramBuilder b;
  const BufferId small = b.Parameter("small", 1), p = b.Parameter("p", 4),
                 huge = b.Parameter("h", 9), fixed = b.Parameter("fixed", 4), x = b.Result("x", 4);
  b.MarkIneligible(fixed, "effective scalar");
  b.Add({.name = "a", .reads = {small, p, huge, fixed}});
  b.Add({.name = "b", .reads = {p}, .writes = {x}});
  b.Add({.name = "c", .updates = {x}});
  const Tables t(b, TestHardware(8), 2);
  const std::vector<Decision>& d = t.tables().decisions;
  REQUIRE(d.size() == 4);
  REQUIRE(t.tables().first_decision == std::vector<int32_t>{0, 1, 3, 4});
  // p at tick 0 and 1, x at 1 and 2.
  REQUIRE(d[0].tick == 0);
  REQUIRE(d[0].first);
  REQUIRE(!d[0].writes);
  REQUIRE(d[0].next == 1);
  REQUIRE(d[1].bit == 0);
  REQUIRE(!d[1].first);
  REQUIRE(d[1].next == -1);
  REQUIRE(d[2].bit == 1);
  REQUIRE(d[2].first);
  REQUIRE(d[2].writes);
  REQUIRE(d[2].next == 3);
  REQUIRE(d[3].kind == AccessKind::kUpdate);
  REQUIRE(d[3].writes);
  REQUIRE(t.tables().buffers.size() == 2);
  REQUIRE(t.tables().buffers[0].preloadable);
  REQUIRE(!t.tables().buffers[1].preloadable);
  REQUIRE(t.tables().buffers[1].copy_ps == 4);
  REQUIRE(t.tables().shortest_copy_ps == 4);
}

//   tick  0      1      2          3     4     5      6
//         make   loop   condition  step  look  exit   use
//   s     write  entry             upd.               read
//   own                            write read
struct LoopExample {
  LoopExample() {
    s = b.Result("s", 4);
    own = b.Result("own", 2);
    out = b.Result("out", 2);
    b.MarkOutput(out);
    b.Add({.name = "make", .writes = {s}});
    b.BeginLoop("steps", 3);
    b.BeginBody();
    b.Add({.name = "step", .updates = {s}, .writes = {own}});
    b.Add({.name = "look", .reads = {own}});
    b.EndLoop();
    b.Add({.name = "use", .reads = {s}, .writes = {out}});
  }
  ProgramBuilder b;
  BufferId s, own, out;
};

TEST_CASE("a residence ends with the scope it begins in, a pinned one behind the last access") {
  const LoopExample e;
  const Tables t(e.b, TestHardware(16));
  REQUIRE(t.game->program().ticks() == 7);
  // In the entry: up to the program's end. Pinned, s is needed until its read at tick 6.
  REQUIRE(t.At(e.s, 0).scope_end == 7);
  REQUIRE(t.At(e.s, 0).pin_end == 7);
  REQUIRE(t.At(e.s, 1).covered_until == 5);
  REQUIRE(t.At(e.s, 1).pin_end == 7);
  REQUIRE(t.At(e.s, 1).writes);
  // In the body: up to its end, at the exit. The loop carries s, so it can't be pinned there.
  REQUIRE(t.At(e.s, 3).scope_end == 5);
  REQUIRE(t.At(e.s, 3).pin_end == kNever);
  REQUIRE(t.At(e.own, 3).scope_end == 5);
  REQUIRE(t.At(e.own, 3).pin_end == 5);
  REQUIRE(t.At(e.out, 6).pin_end == kNever);  // an output
}

TEST_CASE("a buffer that is last used in a loop is pinned until the loop is left") {
  ProgramBuilder b;
  const BufferId x = b.Result("x", 4);
  b.Add({.name = "make", .writes = {x}});
  b.BeginLoop("steps", 3);
  b.BeginBody();
  b.Add({.name = "use", .reads = {x}});
  b.EndLoop();
  b.Add({.name = "end"});
  const Tables t(b, TestHardware(8));
  REQUIRE(t.At(x, 0).pin_end == 4);  // the loop's exit tick
}

TEST_CASE("a buffer that is used behind the branch it is written in can't be pinned") {
  ProgramBuilder b;
  const BufferId x = b.Result("x", 4);
  b.BeginBranch();
  b.Add({.name = "make", .writes = {x}});
  b.EndBranch();
  b.Add({.name = "use", .reads = {x}});
  const Tables t(b, TestHardware(8));
  REQUIRE(t.At(x, 0).scope_end == 1);
  REQUIRE(t.At(x, 0).pin_end == kNever);
}

TEST_CASE("what is forbidden later, or inside a loop, is known before") {
  const LoopExample e;
  const auto program = e.b.Build();
  const Tables t(e.b, TestHardware(16), 0, {AccessAt(*program, e.s, 3)});
  REQUIRE(t.At(e.s, 3).forbidden);
  REQUIRE(!t.At(e.s, 0).forbidden);
  REQUIRE(t.At(e.s, 0).rest_forbidden);
  REQUIRE(t.At(e.s, 1).inside_forbidden);
  REQUIRE(!t.At(e.s, 3).rest_forbidden);  // the one behind it is not
}

TEST_CASE("the write of a plain copy knows its read, and the update right behind knows the write") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4), q = b.Result("q", 4), r = b.Result("r", 4);
  b.Add({.name = "copy", .reads = {p}, .writes = {q}, .plain_copy = true});
  b.Add({.name = "step", .updates = {q}});
  b.Add({.name = "copy2", .reads = {p}, .writes = {r}, .plain_copy = true});
  b.Add({.name = "change", .updates = {p}});
  b.Add({.name = "step2", .updates = {r}});
  const Tables t(b, TestHardware(16));
  const std::vector<Decision>& d = t.tables().decisions;
  REQUIRE(d[1].source == 0);
  REQUIRE(t.At(q, 1).plain_copy == 1);
  REQUIRE(t.At(r, 2).source == 3);
  REQUIRE(t.At(r, 4).plain_copy == -1);  // p has changed since
  // A transfer for the update would take the plain copy over while both its ends are in main
  // memory: the placement of its instruction is 0.
  std::vector<uint64_t> placements(5, 0);
  REQUIRE(t.tables().ReplacedWrite(t.At(q, 1), placements) == &d[1]);
  REQUIRE(t.tables().ReplacedWrite(d[1], placements) == &d[1]);
  REQUIRE(t.tables().ReplacedWrite(d[0], placements) == nullptr);
  placements[0] = 1;
  REQUIRE(t.tables().ReplacedWrite(t.At(q, 1), placements) == nullptr);
}

TEST_CASE("prices by placement; a plain copy that is taken over and a loop's entry are free") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4), q = b.Result("q", 4);
  b.Add({.name = "a", .cycles = {10}});
  b.Add(
      {.name = "copy", .reads = {p}, .writes = {q}, .cycles = {16, 12, 11, 8}, .plain_copy = true});
  b.BeginLoop("steps", 3);
  b.BeginBody();
  b.Add({.name = "use", .reads = {q}, .cycles = {10, 3}});
  b.EndLoop();
  const Tables t(b, TestHardware(8));
  const CostModel& model = t.game->cost_model();
  const auto time = [&](Tick tick, uint64_t placement) {
    return t.tables().PriceAt(model, tick, placement).time_ps;
  };
  REQUIRE(time(1, 0) == 16);
  REQUIRE(time(1, 1) == 12);
  REQUIRE(time(1, 2) == 11);
  REQUIRE(time(1, 3) == 8);
  REQUIRE(time(1, kReplaced) == 0);
  REQUIRE(time(2, 1) == 0);
  REQUIRE(time(4, 1) == 3);
  REQUIRE(t.tables().instructions[4].trips == 3);
  REQUIRE(t.tables().PriceAt(model, 4, 0).idle_ps == 10 - 4);
  // Certain are 10 ps of a, none of the plain copy, and the least of use: 3 with q in fast memory.
  REQUIRE(t.tables().certain_idle_before == std::vector<int64_t>{0, 10, 10, 10, 10, 13, 13});
}

TEST_CASE("certain is the least idle time of all placements, wherever that is") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4);
  b.Add({.name = "fast", .reads = {p}, .cycles = {10, 3}});   // 6 idle in main memory, 3 in fast
  b.Add({.name = "slow", .reads = {p}, .cycles = {10, 30}});  // 6 and 30
  const Tables t(b, TestHardware(8));
  REQUIRE(t.tables().certain_idle_before == std::vector<int64_t>{0, 3, 9});
}

TEST_CASE("an instruction with more accesses than the table holds is priced when it is asked") {
  ProgramBuilder b;
  testing::Op op = {.name = "wide"};
  for (int i = 0; i < kMaxTableBits + 1; ++i)
    op.reads.push_back(b.Parameter(absl::StrCat("p", i), 2));
  op.cycles = {100};
  b.Add(op);
  const Tables t(b, TestHardware(64));
  REQUIRE(t.tables().prices.empty());
  // 11 buffers of 2 bytes, two of them in fast memory: 18 of 100 ps are used.
  REQUIRE(t.tables().PriceAt(t.game->cost_model(), 0, 0b11).idle_ps == 100 - 18);
  REQUIRE(t.tables().certain_idle_before == std::vector<int64_t>{0, 0});
}

TEST_CASE("instructions that cost the same wherever their arrays lie share their prices") {
  ProgramBuilder b;
  const BufferId small = b.Parameter("small", 1), p = b.Parameter("p", 4), q = b.Parameter("q", 4),
                 r = b.Parameter("r", 5), x = b.Result("x", 4), y = b.Result("y", 4);
  b.Add({.name = "a", .reads = {p}, .writes = {x}});
  b.Add({.name = "same", .reads = {q}, .writes = {y}});
  b.Add({.name = "larger", .reads = {r}, .updates = {x}});
  b.Add({.name = "other slots", .reads = {small, p}});
  b.Add({.name = "other flops", .reads = {q}, .updates = {y}, .flops = 1'000'000});
  const Tables t(b, TestHardware(8), 2);
  const std::vector<InstructionPrices>& instructions = t.tables().instructions;
  REQUIRE(instructions[0].first == instructions[1].first);
  REQUIRE(t.tables().prices.size() == 4 + 4 + 2 + 4);
  const CostModel& model = t.game->cost_model();
  for (Tick tick = 0; tick < 5; ++tick) {
    for (uint64_t placement = 0; placement <= t.tables().AllFast(tick); ++placement) {
      const TimeAndIdle looked_up = t.tables().PriceAt(model, tick, placement),
                        computed = t.tables().ComputePrice(model, tick, placement);
      REQUIRE(looked_up.time_ps == computed.time_ps);
      REQUIRE(looked_up.idle_ps == computed.idle_ps);
    }
  }
}

TEST_CASE("placements count decisions, prices slots: buffers that are not asked lie between") {
  ProgramBuilder b;
  const BufferId small = b.Parameter("small", 1), p = b.Parameter("p", 4);
  b.Add({.name = "use", .reads = {small, p}, .cycles = {20, 19, 12, 11}});
  const Tables t(b, TestHardware(8), 2);
  REQUIRE(t.tables().PriceAt(t.game->cost_model(), 0, 1).time_ps == 12);  // p, in slot 1
}

TEST_CASE(
    "the most bytes that a range of instructions reserves, and which is the first with more") {
  Rng rng(1);
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 1);
  constexpr Tick kTicks = 37;
  for (Tick i = 0; i < kTicks; ++i)
    b.Add({.name = absl::StrCat("i", i), .reads = {p}, .reserved_bytes = rng.Below(50)});
  const Tables t(b, TestHardware(64));
  for (Tick begin = 0; begin <= kTicks; ++begin) {
    int64_t most = 0;
    REQUIRE(t.tables().reserved.Most(begin, begin) == 0);
    for (Tick end = begin + 1; end <= kTicks; ++end) {
      most = std::max(most, t.game->program().instruction(end - 1).reserved_bytes);
      REQUIRE(t.tables().reserved.Most(begin, end) == most);
      const int64_t bytes = rng.Below(50);
      Tick first = begin;
      while (first < end && t.game->program().instruction(first).reserved_bytes <= bytes) ++first;
      REQUIRE(t.tables().reserved.FirstAbove(begin, end, bytes) == first);
    }
  }
}

TEST_CASE("segments begin where regions begin or end") {
  const LoopExample e;
  const Tables t(e.b, TestHardware(16));
  REQUIRE(t.tables().starts_segment == std::vector<uint8_t>{1, 0, 1, 1, 0, 1, 0, 0});
}

}  // namespace
}  // namespace mallocgame
