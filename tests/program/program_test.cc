// Program::Create: it refuses data that breaks an invariant, and makes the indices and the
// fingerprint.
#include "mallocgame/program/program.h"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;

//   tick  0      1     | 2         | 3     4    | 5     | 6    | 7
//         make   entry | condition | step  look | exit  | yes  | if
ProgramBuilder Example() {
  ProgramBuilder b("example");
  const BufferId w = b.Parameter("w", 4), s = b.Result("s", 8), t = b.Result("t", 8),
                 scalar = b.Constant("scalar", 4);
  b.MarkIneligible(scalar, "effective scalar");
  b.MarkOutput(s);
  b.Add({.name = "make", .writes = {s}, .cycles = {5, 3}});
  b.BeginLoop("loop", 7);
  b.BeginBody();
  b.Add({.name = "step", .reads = {w}, .updates = {s}, .writes = {t}});
  b.Add({.name = "look", .reads = {t, scalar}});
  b.EndLoop();
  b.BeginBranch();
  b.Add({.name = "yes", .reads = {s}});
  b.EndBranch();
  b.Add({.name = "if"});
  return b;
}

TEST_CASE("indices") {
  const auto program = Example().Build();
  CHECK(program->ticks() == 8);
  CHECK(program->instruction_count() == 7);
  CHECK(program->eligible_count() == 3);
  CHECK(program->trips(0) == 1);
  CHECK(program->trips(1) == 1);
  CHECK(program->trips(3) == 7);
  CHECK(program->loop_at(1).exit == 5);
  CHECK(program->loop_at(5).entry == 1);
  std::vector<Tick> begins, ends;
  for (Tick t = 0; t < program->ticks(); ++t) {
    begins.push_back(program->segment_begin(t));
    ends.push_back(program->segment_end(t));
  }
  CHECK(begins == std::vector<Tick>{0, 0, 2, 3, 3, 5, 6, 7});
  CHECK(ends == std::vector<Tick>{2, 2, 3, 5, 5, 6, 7, 8});

  // s is written, carried into the loop, updated there, and read in the branch.
  std::vector<Tick> ticks;
  std::vector<AccessKind> kinds;
  for (const AccessId id : program->accesses_of(BufferId(1))) {
    ticks.push_back(program->access(id).tick);
    kinds.push_back(program->access(id).kind);
  }
  CHECK(ticks == std::vector<Tick>{0, 1, 3, 6});
  CHECK(kinds == std::vector<AccessKind>{AccessKind::kWrite, AccessKind::kLoopEntry,
                                         AccessKind::kUpdate, AccessKind::kRead});
  CHECK(program->access(program->accesses_of(BufferId(1))[1]).writes_in_loop);
  CHECK_FALSE(program->access(program->accesses_of(BufferId(0))[0]).writes_in_loop);
  CHECK(program->slot(program->accesses_of(BufferId(1))[2]) == 1);
  CHECK(program->accesses_of(BufferId(3)).empty());
}

TEST_CASE("fingerprint") {
  const auto program = Example().Build();
  CHECK(program->fingerprint().size() == 16);
  CHECK(program->fingerprint() == Example().Build()->fingerprint());
  const auto differs = [&](const std::function<void(ProgramData&)>& change) {
    ProgramData data = Example().Data();
    change(data);
    const auto other = Program::Create(std::move(data));
    INFO(other.status());
    REQUIRE(other.ok());
    CHECK((*other)->fingerprint() != program->fingerprint());
  };
  differs([](ProgramData& d) { d.name = "other"; });
  differs([](ProgramData& d) { ++d.argument_bytes; });
  differs([](ProgramData& d) { d.instructions[0].name += "x"; });
  differs([](ProgramData& d) { d.instructions[0].reserved_bytes = 1; });
  differs([](ProgramData& d) { d.instructions[0].results_in_main = true; });
  differs([](ProgramData& d) { d.loops[0].trips_known = false; });
  differs([](ProgramData& d) { d.buffers[0].size_bytes = 5; });
  differs([](ProgramData& d) { d.buffers[1].is_output = false; });
  differs([](ProgramData& d) { d.cost.kind = CostKind::kRoofline; });
  differs([](ProgramData& d) { ++d.cost.pools[0].rows[0].cycles; });
  differs([](ProgramData& d) { d.cost.instructions[0].outputs[0].in_main = false; });
}

TEST_CASE("a fingerprint leaves out what instructions are called in the source") {
  ProgramData data = Example().Data();
  data.instructions[0].op_name = "jit(step)/layer_3/dot_general";
  const auto program = Program::Create(data);
  CHECK((*program)->fingerprint() == Example().Build()->fingerprint());
}

TEST_CASE("fingerprints are the same on every machine") {
  ProgramBuilder b("fixed");
  b.Add({.name = "only", .reads = {b.Parameter("p", 4)}});
  CHECK(b.Build()->fingerprint() == "f6d916360b98a274");
}

TEST_CASE("invariants") {
  const auto broken = [](const std::function<void(ProgramData&)>& change, const std::string& part) {
    ProgramData data = Example().Data();
    change(data);
    const auto program = Program::Create(std::move(data));
    REQUIRE_FALSE(program.ok());
    CHECK(program.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(program.status().message()), Catch::Contains(part));
  };
  SECTION("counts") {
    broken([](ProgramData& d) { d = ProgramData(); }, "0 instructions");
    broken([](ProgramData& d) { d.regions.clear(); }, "0 regions");
    broken([](ProgramData& d) { d.argument_bytes = -1; }, "argument_bytes is -1");
  }
  SECTION("regions") {
    broken([](ProgramData& d) { d.regions[0].end = 7; }, "all ticks");
    broken([](ProgramData& d) { d.regions[0].trips = 2; }, "run once");
    broken([](ProgramData& d) { d.regions[1].kind = RegionKind::kEntry; }, "region 1");
    broken([](ProgramData& d) { d.regions[1].end = 9; }, "[2, 9)");
    broken([](ProgramData& d) { d.regions[1].parent = 1; }, "parent 1");
    broken([](ProgramData& d) { d.regions[2].parent = 7; }, "parent 7");
    broken([](ProgramData& d) { d.regions[2].parent = 1; }, "innermost around it is 0");
    broken([](ProgramData& d) { d.regions[2].begin = 2; }, "region 1");
    broken([](ProgramData& d) { d.regions[2].trips = 6; }, "multiply to 7");
    broken([](ProgramData& d) { d.regions[2].loop = 1; }, "loop 1");
    broken([](ProgramData& d) { d.regions[3].loop = 0; }, "loop 0");
    broken([](ProgramData& d) { d.regions[3].end = 8; }, "not before its parent");
    broken([](ProgramData& d) { d.instructions[3].region = 0; }, "tick 3 ('step')");
  }
  SECTION("loops") {
    broken([](ProgramData& d) { d.loops[0].trips = -1; }, "-1 trips");
    broken([](ProgramData& d) { d.loops[0].trips = INT64_MAX; }, "trips");
    broken([](ProgramData& d) { d.loops[0].exit = 8; }, "exit 8");
    broken([](ProgramData& d) { d.loops[0].exit = 6; }, "ticks 1 and 6");
    broken([](ProgramData& d) { d.regions[1].kind = RegionKind::kLoopBody; }, "regions 1 and 2");
    broken([](ProgramData& d) { d.instructions[0].kind = InstructionKind::kLoopEntry; }, "3 ticks");
    broken([](ProgramData& d) { std::swap(d.regions[1].kind, d.regions[2].kind); },
           "condition and body");
  }
  SECTION("instructions and accesses") {
    broken([](ProgramData& d) { d.instructions[4].logical_time = 4; },
           "logical_time 4, it must be 3");
    broken([](ProgramData& d) { d.instructions[4].reserved_bytes = -1; }, "reserved_bytes");
    broken([](ProgramData& d) { d.instructions[4].access_count = 65; }, "65");
    broken([](ProgramData& d) { d.instructions[4].first_access = 0; }, "must start at");
    broken([](ProgramData& d) { d.accesses.push_back(d.accesses.back()); }, "accesses, but");
    broken([](ProgramData& d) { d.accesses[0].tick = 1; }, "tick 0 ('make')");
    broken([](ProgramData& d) { d.accesses[0].buffer = BufferId(4); }, "buffer 4 of 4");
    broken([](ProgramData& d) { d.accesses[0].buffer = BufferId(3); }, "not eligible");
    broken([](ProgramData& d) { d.accesses[0].kind = AccessKind::kLoopEntry; }, "kind");
    broken([](ProgramData& d) { std::swap(d.accesses[3], d.accesses[4]); }, "not sorted");
    broken([](ProgramData& d) { std::swap(d.accesses[1], d.accesses[2]); }, "not sorted");
    broken([](ProgramData& d) { d.accesses[4].buffer = BufferId(0); },
           "two accesses of buffer 'w'");
    broken([](ProgramData& d) { d.instructions[0].plain_copy = true; }, "plain copy");
    broken([](ProgramData& d) { d.instructions[d.loops[0].exit].results_in_main = true; },
           "the tick of a loop makes no results");
  }
  SECTION("buffers") {
    broken([](ProgramData& d) { d.buffers[0].size_bytes = 0; }, "'w'");
    broken([](ProgramData& d) { d.buffers[0].size_bytes = INT64_MAX; }, "'w'");
    broken([](ProgramData& d) { d.buffers[0].origin = BufferOrigin::kInstruction; }, "'w'");
    broken([](ProgramData& d) { d.buffers[3].ineligible_because.clear(); }, "'scalar'");
    broken([](ProgramData& d) { d.buffers[0].ineligible_because = "why not"; }, "'w'");
  }
  SECTION("loop entries") {
    broken([](ProgramData& d) { d.accesses[2].writes_in_loop = false; }, "'s'");
    broken([](ProgramData& d) { d.accesses[1].writes_in_loop = true; }, "'w'");
    broken([](ProgramData& d) { d.accesses[3].writes_in_loop = true; }, "'w'");
    broken(
        [](ProgramData& d) {
          d.accesses.erase(d.accesses.begin() + 1);
          d.instructions[1].access_count = 1;
          for (size_t t = 2; t < d.instructions.size(); ++t) --d.instructions[t].first_access;
        },
        "'w' lives outside the loop 'loop' too");
    broken([](ProgramData& d) { d.accesses[2].buffer = BufferId(2); }, "'t'");
  }
  SECTION("transfers") {
    const auto held = [](size_t access, Tick until) {
      return [=](ProgramData& d) { d.accesses[access].held_until = until; };
    };
    broken(held(0, 1), "held_until of buffer");
    broken(held(0, 100), "held_until of buffer");
    broken(held(1, 4), "held_until of buffer");  // a loop's entry
    broken(held(0, 4), "which follows no access of it in the same region");
  }
  SECTION("costs") {
    broken([](ProgramData& d) { d.cost.instructions.pop_back(); }, "7 costs");
    broken([](ProgramData& d) { d.cost.instructions[0].pool = 1; }, "pool 1 of 1");
    broken([](ProgramData& d) { d.cost.pools[0].rows.clear(); }, "no rows");
    broken([](ProgramData& d) { std::swap(d.cost.pools[0].rows[0], d.cost.pools[0].rows[1]); },
           "sorted");
    broken([](ProgramData& d) { d.cost.pools[0].rows[1] = d.cost.pools[0].rows[0]; }, "distinct");
    broken([](ProgramData& d) { d.cost.pools[0].rows[1].cycles = -1; }, "-1 cycles");
    broken([](ProgramData& d) { d.cost.instructions[0].outputs[0].slot = 1; }, "slot 1");
    broken([](ProgramData& d) { d.cost.instructions[0].outputs.resize(65); }, "65 outputs");
    broken([](ProgramData& d) { d.cost.instructions[0].flops = -1; }, "flops");
  }
}

TEST_CASE("nesting has a limit") {
  const auto nested = [](int depth) {
    ProgramBuilder b;
    for (int i = 0; i < depth; ++i) {
      b.BeginLoop(absl::StrCat("loop", i), 2);
      b.BeginBody();
    }
    b.Add({.name = "work"});
    for (int i = 0; i < depth; ++i) b.EndLoop();
    return Program::Create(b.Data()).status();
  };
  CHECK(nested(8).ok());
  CHECK_THAT(std::string(nested(9).message()), Catch::Contains("deeper than 8"));
}

TEST_CASE("generated programs keep all invariants and differ") {
  std::vector<std::string> fingerprints;
  size_t loops = 0, copies = 0, outputs = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    const auto program = testing::RandomProgram(rng);
    fingerprints.push_back(program->fingerprint());
    loops += program->loops().size();
    for (const Instruction& i : program->instructions()) copies += i.plain_copy;
    for (const Buffer& b : program->buffers()) outputs += b.is_output;
  }
  CHECK(loops > 100);
  CHECK(copies > 100);
  CHECK(outputs > 200);
  std::sort(fingerprints.begin(), fingerprints.end());
  CHECK(std::unique(fingerprints.begin(), fingerprints.end()) == fingerprints.end());
}

}  // namespace
}  // namespace mallocgame
