// XLA's allocator as a whole: what it decides on small programs made by hand, that its plans are
// valid for every program, and that they cost what XLA's own plans cost. Its parts have tests of
// their own.
#include "mallocgame/solvers/xla/heuristic.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "mallocgame/game/time/time_game.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/replay/files.h"
#include "mallocgame/replay/program_file.h"
#include "mallocgame/simulator/simulate.h"
#include "tests/catch.h"
#include "tests/support/large_program.h"
#include "tests/support/machine.h"
#include "tests/support/plans.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::AccessAt;
using testing::ProgramBuilder;
using testing::TestHardware;

std::shared_ptr<const Game> GameOf(const std::shared_ptr<const Program>& program,
                                   const Hardware& hardware, const TimeGameOptions& options = {}) {
  auto game = Game::Create(program, hardware, options);
  REQUIRE(game.ok());
  return *game;
}

Plan Allocate(const std::shared_ptr<const Program>& program, const Hardware& hardware,
              const TimeGameOptions& options = {}, const XlaOptions& xla = {}) {
  const XlaOutcome outcome = PlanLikeXla(*GameOf(program, hardware, options), Deadline(), xla);
  REQUIRE(outcome.finished);
  const Verdict verdict = Validate(*program, hardware, outcome.plan);
  INFO(verdict.message << "\n" << PlanToString(*program, outcome.plan));
  REQUIRE(verdict.ok());
  return outcome.plan;
}

TEST_CASE(
    "a value used soon stays without a copy, a parameter is prefetched behind what hides it "
    "twice") {
  ProgramBuilder b("small", CostKind::kRoofline);
  const BufferId p = b.Parameter("p", 8), v = b.Result("v", 4), out = b.Result("out", 4);
  b.Add({.name = "a"});
  b.Add({.name = "b", .flops = 9});
  b.Add({.name = "c", .flops = 9});
  const Tick made = b.Add({.name = "d", .writes = {v}, .flops = 9});
  const Tick used = b.Add({.name = "e", .reads = {p, v}, .writes = {out}});
  b.MarkOutput(out);
  Hardware hardware = TestHardware(64);
  hardware.max_preloads = 0;
  const auto program = b.Build();
  const Plan plan = Allocate(program, hardware);
  CHECK(plan.served_by[AccessAt(*program, v, made).index()].valid());
  CHECK(plan.served_by[AccessAt(*program, v, used).index()].valid());
  CHECK(!plan.served_by[AccessAt(*program, out, used).index()].valid());
  REQUIRE(plan.copies.size() == 1);
  CHECK(plan.copies[0].begin == 2);  // 18 ps of c and d hide 8 ps best
  CHECK(plan.copies[0].end == used);
}

TEST_CASE("the largest factor is preloaded, an operand as large as the result is not") {
  ProgramBuilder b("preload", CostKind::kRoofline);
  const BufferId x = b.Parameter("x", 12), w = b.Parameter("w", 8), out = b.Result("out", 12);
  const Tick t = b.Add({.name = "fusion.1", .reads = {x, w}, .writes = {out}, .flops = 100});
  b.MarkOutput(out);
  const auto program = b.Build();
  const Plan plan = Allocate(program, TestHardware(64));
  REQUIRE(plan.copies.size() == 1);
  CHECK(plan.copies[0].preload);
  CHECK(plan.served_by[AccessAt(*program, w, t).index()].valid());
  CHECK(!plan.served_by[AccessAt(*program, x, t).index()].valid());
}

TEST_CASE("as many factors are preloaded as the hardware allows, the largest that fit first") {
  ProgramBuilder b("preload", CostKind::kRoofline);
  const BufferId x = b.Parameter("x", 12), out = b.Result("out", 12);
  std::vector<BufferId> factors;
  for (const int64_t size : {8, 11, 60, 9}) {
    const std::string name = std::to_string(size);
    factors.push_back(b.Parameter(name + ".w", size));
    b.Add({.name = "fusion." + name, .reads = {x, factors.back()}, .writes = {out}, .flops = 200});
  }
  b.MarkOutput(out);
  const auto program = b.Build();
  Hardware hardware = TestHardware(64);
  for (const int allowed : {0, 1, 2, 5}) {
    hardware.max_preloads = allowed;
    std::vector<BufferId> preloaded;
    const Plan plan = Allocate(program, hardware);
    for (const Copy& copy : plan.copies)
      if (copy.preload) preloaded.push_back(plan.residences[copy.residence.index()].buffer);
    std::vector<BufferId> largest = {factors[2]};  // The others don't fit beside it.
    largest.resize(std::min<size_t>(allowed, 1));
    CHECK(preloaded == largest);
  }
  hardware.fast_bytes = 32;
  for (const int allowed : {1, 2, 3, 5}) {
    hardware.max_preloads = allowed;
    const Plan plan = Allocate(program, hardware);
    std::vector<BufferId> preloaded;
    for (const Copy& copy : plan.copies)
      if (copy.preload) preloaded.push_back(plan.residences[copy.residence.index()].buffer);
    std::vector<BufferId> largest = {factors[1], factors[3], factors[0]};
    largest.resize(std::min<size_t>(allowed, 3));
    CHECK_THAT(preloaded, Catch::UnorderedEquals(largest));
  }
}

TEST_CASE("a value whose pause is too long is evicted and fetched again") {
  ProgramBuilder b("pause", CostKind::kRoofline);
  const BufferId v = b.Result("v", 4), w = b.Result("w", 4);
  b.Add({.name = "make", .writes = {v}});
  b.Add({.name = "soon", .reads = {v}, .flops = 10});
  for (int i = 0; i < 8; ++i) b.Add({.name = "wait." + std::to_string(i), .flops = 20});
  const Tick late = b.Add({.name = "late", .reads = {v}, .writes = {w}});
  const auto program = b.Build();
  XlaOptions options;
  options.inefficient_use_to_copy = 0;
  // No pause is longer than 8 times 8 ps.
  const Plan plan = Allocate(program, TestHardware(8), {}, options);
  REQUIRE(plan.copies.size() == 2);
  CHECK(plan.copies[0].kind == CopyKind::kEviction);
  CHECK(plan.copies[0].begin == 1);
  CHECK(plan.copies[1].kind == CopyKind::kPrefetch);
  CHECK(plan.served_by[AccessAt(*program, v, late).index()].valid());
  // Two copies of a buffer that is used three times are worth it at XLA's ratio, but not at a
  // higher one.
  CHECK(Allocate(program, TestHardware(8)).copies.size() == 2);
  options.inefficient_use_to_copy = 2.5;
  CHECK(Allocate(program, TestHardware(8), {}, options).copies.empty());
}

TEST_CASE("a large prefetch goes in slices that take their bytes one after the other") {
  ProgramBuilder b("slices", CostKind::kRoofline);
  const BufferId p = b.Parameter("p", 8), out = b.Result("out", 4);
  for (int i = 0; i < 9; ++i) b.Add({.name = "hide." + std::to_string(i), .flops = 4});
  const Tick use = b.Add({.name = "use", .reads = {p}, .writes = {out}});
  b.MarkOutput(out);
  const auto program = b.Build();
  XlaOptions options;
  options.min_sliced_bytes = 8;
  Hardware hardware = TestHardware(16);
  hardware.max_preloads = 0;
  const Plan plan = Allocate(program, hardware, {}, options);
  REQUIRE(plan.copies.size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    // 16 ps hide 8 ps twice, a slice every quarter
    CHECK(plan.copies[i].begin == 5 + static_cast<Tick>(i));
    CHECK(plan.copies[i].end == use);
    CHECK(plan.copies[i].part_end - plan.copies[i].part_begin == 2);
  }
}

TEST_CASE("a buffer is resident over a loop, or in main memory at its boundary") {
  ProgramBuilder b("loop", CostKind::kRoofline);
  const BufferId w = b.Parameter("w", 8), out = b.Result("out", 4);
  b.Add({.name = "a"});
  b.Add({.name = "b", .flops = 20});
  const Tick entry = b.BeginLoop("while", 4);
  b.BeginBody();
  const Tick inside = b.Add({.name = "x", .reads = {w}, .flops = 2});
  const Tick exit = b.EndLoop();
  b.Add({.name = "last", .writes = {out}});
  b.MarkOutput(out);
  const auto program = b.Build();
  const Plan plan = Allocate(program, TestHardware(16));
  const ResidenceId place = plan.served_by[AccessAt(*program, w, entry).index()];
  REQUIRE(place.valid());
  CHECK(plan.served_by[AccessAt(*program, w, inside).index()] == place);
  CHECK(plan.residences[place.index()].end >= exit);
  TimeGameOptions options;
  options.forbidden = {AccessAt(*program, w, inside)};
  CHECK(Allocate(program, TestHardware(16), options).copies.empty());
}

TEST_CASE("an eviction that ends in a loop is done where the loop begins") {
  ProgramBuilder b("eviction", CostKind::kRoofline);
  const BufferId v = b.Result("v", 4), w = b.Result("w", 4), x = b.Result("x", 8);
  b.Add({.name = "make", .writes = {v}});
  b.Add({.name = "soon", .reads = {v}, .flops = 10});
  const Tick entry = b.BeginLoop("while", 4);
  b.BeginBody();
  b.Add({.name = "first", .flops = 2});
  const Tick inside = b.Add({.name = "second", .writes = {x}, .flops = 60});
  b.Add({.name = "third", .reads = {x}, .flops = 60});
  b.EndLoop();
  b.Add({.name = "wait", .flops = 20});
  const Tick late = b.Add({.name = "late", .reads = {v}, .writes = {w}});
  const auto program = b.Build();
  XlaOptions options;
  options.inefficient_use_to_copy = 0;
  Hardware hardware = TestHardware(8);
  hardware.main_bytes_per_second /= 4;  // 4 bytes take 16 ps, and are best hidden in 32 ps
  const Plan plan = Allocate(program, hardware, {}, options);
  REQUIRE(plan.copies.size() == 2);
  CHECK(plan.copies[0].kind == CopyKind::kEviction);
  CHECK(plan.copies[0].end == entry);
  const ResidenceId place = plan.copies[0].residence;
  CHECK(plan.residences[place.index()].end == entry);
  CHECK(plan.served_by[AccessAt(*program, v, late).index()].valid());
  // The bytes are taken until the copy would end: what needs all of them gets none there.
  CHECK(!plan.served_by[AccessAt(*program, x, inside).index()].valid());
}

TEST_CASE("what is allocated without being written is brought like any other value") {
  const auto planned = [](bool early) {
    ProgramBuilder b("undefined", CostKind::kRoofline);
    const BufferId u = b.Undefined("u", 4), out = b.Result("out", 4);
    if (early) b.Add({.name = "u"});
    for (int i = 0; i < 9; ++i) b.Add({.name = "wait." + std::to_string(i), .flops = 20});
    if (!early) b.Add({.name = "u"});
    const Tick fill = b.Add({.name = "fill", .updates = {u}});
    b.Add({.name = "use", .reads = {u}, .writes = {out}});
    const auto program = b.Build();
    Plan plan = Allocate(program, TestHardware(8));
    CHECK(plan.served_by[AccessAt(*program, u, fill).index()].valid());
    return plan;
  };
  CHECK(planned(false).copies.empty());
  // The pause since it was allocated is too long to hold its bytes.
  const Plan plan = planned(true);
  REQUIRE(plan.copies.size() == 1);
  CHECK(plan.copies[0].kind == CopyKind::kPrefetch);
}

TEST_CASE("an output gets a place where it could stay to the end, if there is one") {
  // v is made while w, which is worth more, has the lowest bytes. Behind its last use x will come
  // to lie in the lowest range that w leaves, so that v, an output, is put above both.
  ProgramBuilder b("output", CostKind::kRoofline);
  const BufferId w = b.Result("w", 8), x = b.Result("x", 8), v = b.Result("v", 4),
                 out = b.Result("out", 4), last = b.Result("last", 4);
  b.Add({.name = "make w", .writes = {w}});
  b.Add({.name = "use w", .reads = {w}, .writes = {out}});
  const Tick made = b.Add({.name = "make v", .writes = {v}});
  b.Add({.name = "use v", .reads = {v}, .writes = {last}});
  b.Add({.name = "make x", .writes = {x}});
  b.Add({.name = "use x", .reads = {x}, .writes = {b.Result("y", 4)}});
  for (int k = 0; k < 4; ++k) b.Add({.name = "work", .flops = 9});
  for (const bool is_output : {false, true}) {
    if (is_output) b.MarkOutput(v);
    const auto program = b.Build();
    const Plan plan = Allocate(program, TestHardware(64));
    const ResidenceId place = plan.served_by[AccessAt(*program, v, made).index()];
    REQUIRE(place.valid());
    CHECK((plan.residences[place.index()].offset >= 8) == is_output);
  }
}

TEST_CASE("a plain copy of a parameter becomes a prefetch") {
  ProgramBuilder b("replace", CostKind::kRoofline);
  const BufferId p = b.Parameter("p", 8), c = b.Result("c", 8), out = b.Result("out", 4);
  b.Add({.name = "a"});
  b.Add({.name = "b", .flops = 20});
  const Tick copy = b.Add({.name = "copy", .reads = {p}, .writes = {c}, .plain_copy = true});
  b.Add({.name = "use", .reads = {c}, .writes = {out}});
  b.MarkOutput(out);
  const auto program = b.Build();
  const Plan plan = Allocate(program, TestHardware(64));
  REQUIRE(plan.copies.size() == 1);
  CHECK(plan.copies[0].replaces == copy);
  CHECK(plan.copies[0].end == copy + 1);
  CHECK(!plan.served_by[AccessAt(*program, p, copy).index()].valid());
}

TEST_CASE(
    "every random program gets a valid plan that a machine carries out, within its constraints") {
  int fast = 0, copies = 0, slices = 0, loops = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed, 3);
    testing::RandomProgramOptions options;
    options.instructions = 4 + static_cast<int>(rng.Below(rng.Below(4) == 0 ? 60 : 16));
    options.loops = static_cast<int>(rng.Below(3));
    options.branches = static_cast<int>(rng.Below(2));
    options.constrained = rng.Below(2) == 0;
    options.roofline = rng.Below(2) == 0;
    const auto program = testing::RandomProgram(rng, options);
    Hardware hardware = TestHardware(4 + rng.Below(60), rng.Below(3) == 0 ? 4 : 1);
    hardware.max_preloads = static_cast<int32_t>(rng.Below(3));
    hardware.max_outstanding_prefetches = 1 + static_cast<int32_t>(rng.Below(4));
    hardware.max_outstanding_evictions = 1 + static_cast<int32_t>(rng.Below(4));
    TimeGameOptions game_options;
    for (size_t a = 0; a < program->accesses().size(); ++a) {
      const AccessId id(static_cast<int64_t>(a));
      if (seed % 4 == 0 && rng.Below(8) == 0) game_options.forbidden.push_back(id);
    }
    game_options.keep_free = seed % 4 == 2 ? 0.25 : 0;
    XlaOptions xla;
    if (rng.Below(2) == 0) xla.min_overlap = 0.2, xla.preferred_overlap = 0.5;
    if (rng.Below(2) == 0) xla.min_sliced_bytes = 3;
    const Plan plan = Allocate(program, hardware, game_options, xla);
    for (const auto timing : {testing::CopyTiming::kAtOnce, testing::CopyTiming::kLate}) {
      const std::string error = testing::RunPlan(*program, hardware, plan, timing);
      INFO("seed " << seed << ": " << error);
      REQUIRE(error.empty());
    }
    for (const AccessId id : game_options.forbidden) REQUIRE(!plan.served_by[id.index()].valid());
    const int64_t most =
        hardware.fast_bytes -
        static_cast<int64_t>(game_options.keep_free * static_cast<double>(hardware.fast_bytes));
    for (const Residence& r : plan.residences)
      REQUIRE(r.offset + program->buffer(r.buffer).size_bytes <= most);
    copies += static_cast<int>(plan.copies.size());
    for (const Copy& copy : plan.copies) slices += copy.part_begin > 0;
    for (size_t a = 0; a < plan.served_by.size(); ++a) {
      fast += plan.served_by[a].valid();
      loops += plan.served_by[a].valid() && program->accesses()[a].kind == AccessKind::kLoopEntry;
    }
  }
  // The test says something only if the plans move something.
  CHECK(fast > 30000);
  CHECK(copies > 5000);
  CHECK(slices > 500);
  CHECK(loops > 1000);
}

TEST_CASE(
    "a large program is allocated, deterministically; an interrupted run is valid as far as it "
    "got") {
  testing::LargeProgramOptions options;
  options.instructions = 8000;
  const auto program = testing::LargeProgram(options);
  const Hardware hardware = *HardwarePreset("tpu_v4i");
  const Plan plan = Allocate(program, hardware);
  CHECK(plan == Allocate(program, hardware));
  const auto game = GameOf(program, hardware);
  CHECK(Simulate(game->cost_model(), plan)->latency_ps < game->all_main_ps() * 9 / 10);
  XlaOutcome stopped;
  for (double seconds = 10; stopped.finished; seconds /= 2)
    stopped = PlanLikeXla(*game, Deadline(seconds));
  CHECK(Validate(*program, hardware, stopped.plan).ok());
  CHECK(!stopped.plan.residences.empty());
  const std::atomic<bool> cancel = true;
  CHECK(!PlanLikeXla(*game, Deadline(0, &cancel)).finished);
}

TEST_CASE("on the corpus: near XLA's own plans in places and as fast") {
  std::vector<std::filesystem::path> paths;
  const std::filesystem::path folder =
      std::filesystem::path(MALLOCGAME_SOURCE_DIR) / "bindings/python/mallocgame/programs";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".mgp") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  REQUIRE(paths.size() >= 90);
  std::vector<double> deviations;
  int nearly_the_same = 0;
  for (const auto& path : paths) {
    INFO(path.string());
    const auto bytes = ReadFile(path.string());
    REQUIRE(bytes.ok());
    const auto file = ParseProgramFile(*bytes);
    REQUIRE(file.ok());
    const Plan plan = Allocate(file->program, file->hardware);
    if (!file->xla_plan) continue;
    const CostModel cost_model(file->program, file->hardware);
    const auto own = Simulate(cost_model, plan);
    const auto xla = Simulate(cost_model, *file->xla_plan);
    REQUIRE((own.ok() && xla.ok()));
    const double ratio =
        static_cast<double>(own->latency_ps) / static_cast<double>(xla->latency_ps);
    // Of what decides on this chip more is unknown (docs/xla-heuristic.md).
    if (file->hardware.name == "tpu7x") continue;
    CHECK(ratio < 1.1);
    CHECK(ratio > 0.95);
    deviations.push_back(std::abs(ratio - 1));
    const size_t accesses = plan.served_by.size();
    size_t same = 0;
    for (size_t a = 0; a < accesses; ++a)
      same += (plan.served_by[a].value < 0) == (file->xla_plan->served_by[a].value < 0) ? 1 : 0;
    nearly_the_same += 100 * same >= 99 * accesses ? 1 : 0;
  }
  REQUIRE(!deviations.empty());
  std::sort(deviations.begin(), deviations.end());
  CHECK(deviations[deviations.size() / 2] < 0.001);
  CHECK(nearly_the_same >= 72);
}

}  // namespace
}  // namespace mallocgame
