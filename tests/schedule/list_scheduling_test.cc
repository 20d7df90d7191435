// The orders of list schedulers: each legal, and each what its rule says.
#include "mallocgame/schedule/list_scheduling.h"

#include <string>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/schedule/instruction_order.h"
#include "mallocgame/schedule/main_memory.h"
#include "tests/catch.h"
#include "tests/support/dependences.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;
using testing::TestHardware;
using testing::WithDependences;

std::string OrderBy(const std::shared_ptr<const Program>& program, ListRule rule) {
  const ScheduleUnits units(program);
  const CostModel cost_model(program, TestHardware(64));
  std::string names;
  for (const Tick tick : units.TicksOf(ListSchedule(units, cost_model, rule)))
    names += (names.empty() ? "" : " ") + program->instruction(tick).name;
  return names;
}

// a makes two large results, of which b and d take one each; c and e end them.
std::shared_ptr<const Program> Tree() {
  ProgramBuilder b("tree");
  const BufferId x = b.Result("x", 1), p = b.Result("p", 100), q = b.Result("q", 200),
                 r = b.Result("r", 1), s = b.Result("s", 1);
  b.MarkOutput(r);
  b.MarkOutput(s);
  b.Add({.name = "a", .writes = {x}, .cycles = {1}});
  b.Add({.name = "b", .reads = {x}, .writes = {p}, .cycles = {1}});
  b.Add({.name = "d", .reads = {x}, .writes = {q}, .cycles = {1}});
  b.Add({.name = "c", .reads = {p}, .writes = {r}, .cycles = {1}});
  b.Add({.name = "e", .reads = {q}, .writes = {s}, .cycles = {1}});
  return WithDependences(*b.Build());
}

TEST_CASE("depth first carries on what was begun, breadth first doesn't") {
  CHECK(OrderBy(Tree(), ListRule::kDepthFirst) == "a d e b c");
  CHECK(OrderBy(Tree(), ListRule::kBreadthFirst) == "a b d c e");
}

TEST_CASE("least memory takes what frees most") {
  CHECK(OrderBy(Tree(), ListRule::kLeastMemory) == "a b c d e");
  const auto program = Tree();
  const ScheduleUnits units(program);
  const CostModel cost_model(program, TestHardware(64));
  const auto order = units.TicksOf(ListSchedule(units, cost_model, ListRule::kLeastMemory));
  CHECK(LiveMainBytes(*Reordered(*program, order)->program) < LiveMainBytes(*program));
}

TEST_CASE("latency hiding lets time pass before it needs a large parameter") {
  ProgramBuilder b("hiding");
  const BufferId w = b.Parameter("w", 40), x = b.Result("x", 1), y = b.Result("y", 1);
  b.MarkOutput(x);
  b.MarkOutput(y);
  b.Add({.name = "needs w", .reads = {w}, .writes = {x}, .cycles = {50}});
  b.Add({.name = "works", .writes = {y}, .cycles = {50}});
  CHECK(OrderBy(WithDependences(*b.Build()), ListRule::kLatencyHiding) == "works needs w");
}

TEST_CASE("all rules give legal orders of random programs") {
  Rng rng(3);
  for (int p = 0; p < 100; ++p) {
    const auto program = WithDependences(*testing::RandomProgram(rng, {.instructions = 20}));
    const ScheduleUnits units(program);
    const CostModel cost_model(program, TestHardware(64));
    for (int rule = 0; rule < kListRules; ++rule) {
      const auto list_rule = static_cast<ListRule>(rule);
      INFO(ListRuleName(list_rule));
      const auto order = units.TicksOf(ListSchedule(units, cost_model, list_rule));
      const absl::Status status = CheckInstructionOrder(*program, order);
      INFO(status);
      CHECK(status.ok());
    }
  }
}

TEST_CASE("rules have names") {
  for (int rule = 0; rule < kListRules; ++rule)
    CHECK(ListRuleOf(ListRuleName(static_cast<ListRule>(rule))) == static_cast<ListRule>(rule));
  CHECK_FALSE(ListRuleOf("by name"));
}

}  // namespace
}  // namespace mallocgame
