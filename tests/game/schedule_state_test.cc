// What must hold for every schedule game on every program, and what its rules say.
#include "mallocgame/game/schedule/schedule_state.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>

#include "absl/strings/str_join.h"
#include "mallocgame/game/observation.h"
#include "mallocgame/game/schedule/schedule_game.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/schedule/instruction_order.h"
#include "mallocgame/schedule/main_memory.h"
#include "mallocgame/simulator/simulate.h"
#include "tests/catch.h"
#include "tests/support/dependences.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;
using testing::RandomAction;
using testing::RandomProgram;
using testing::TestHardware;

constexpr int64_t kPage = 16384;  // The compiler places buffers in main memory at multiples of it.

ScheduleGameOptions ScheduleOptions() {
  ScheduleGameOptions options;
  options.min_buffer_bytes = 0;
  return options;
}

std::shared_ptr<const ScheduleGame> RandomGame(Rng& rng, int most = 30) {
  const auto program = testing::WithDependences(
      *RandomProgram(rng, {.instructions = 4 + static_cast<int>(rng.Below(most)),
                           .loops = static_cast<int>(rng.Below(3)),
                           .branches = static_cast<int>(rng.Below(2)),
                           .size_unit = rng.Below(2) == 0 ? 1 : kPage,
                           .constrained = rng.Below(2) == 0}));
  int64_t unit = 1;
  for (const Buffer& buffer : program->buffers())
    if (buffer.size_bytes >= kPage) unit = kPage;
  Hardware hardware = TestHardware(unit * static_cast<int64_t>(4 + rng.Below(20)));
  hardware.max_preloads = static_cast<int32_t>(rng.Below(3));
  ScheduleGameOptions options = ScheduleOptions();
  options.candidates = 1 + static_cast<int>(rng.Below(kMaxScheduleCandidates));
  const int64_t needed = MainMemoryOf(*program).total_bytes();
  if (rng.Below(2) == 0) options.main_bytes = needed + static_cast<int64_t>(rng.Below(6)) * kPage;
  if (most > 100) options.main_bytes = int64_t{1} << 40;  // so that many units are ready
  if (rng.Below(4) == 0) {
    for (size_t a = 0; a < program->accesses().size(); ++a) {
      const uint32_t kind = rng.Below(10);
      if (kind == 0) options.forbidden.emplace_back(a);
    }
  }
  const auto game = ScheduleGame::Create(program, hardware, options);
  REQUIRE(game.ok());
  return *game;
}

std::string Visible(const Position& position) {
  return position.ToString() + absl::StrJoin(position.legal_actions(), ",") + " " +
         std::to_string(position.latency_ps()) + " " +
         absl::StrJoin(position.InstructionOrder(), ",");
}

int64_t LimitOf(const Game& game) {
  const int64_t main_bytes = static_cast<const ScheduleGameOptions&>(game.options()).main_bytes;
  return main_bytes > 0 ? main_bytes : MainMemoryOf(game.program()).total_bytes();
}

TEST_CASE("every schedule game ends in a valid plan within the limit that costs what was saved") {
  Rng rng(1);
  int64_t other_orders = 0, fell_back = 0, placed = 0, in_order = 0, pages = 0;
  for (int n = 0; n < 1500; ++n) {
    const auto game = RandomGame(rng, n % 50 == 0 ? 150 : 30);
    const int64_t limit = LimitOf(*game);
    for (int episode = 0; episode < 3; ++episode) {
      const auto position = game->NewInitialPosition();
      int64_t saved = 0;
      while (!position->IsTerminal()) {
        const int action = RandomAction(*position, rng);
        const int64_t expected = position->SavingOf(action);
        const auto step = position->Apply(action);
        REQUIRE(step.ok());
        if (!position->IsTerminal()) REQUIRE(*step == expected);
        saved += *step;
        pages += action == kNextUnits;
        REQUIRE(position->num_decisions() <= game->max_decisions());
      }
      const std::vector<Tick> order = position->InstructionOrder();
      const auto made = Reordered(game->program(), order);
      INFO("game " << n << ": " << made.status().message());
      REQUIRE(made.ok());
      REQUIRE(MainMemoryOf(*made->program).total_bytes() <= limit);
      const std::shared_ptr<const Game> planned = position->PlannedGame();
      REQUIRE(planned->program().fingerprint() == made->program->fingerprint());
      const Plan plan = position->ToPlan();
      const Verdict verdict = Validate(*made->program, game->hardware(), plan);
      INFO("game " << n << ": " << verdict.message);
      REQUIRE(verdict.ok());
      const auto report = Simulate(CostModel(made->program, game->hardware()), plan);
      REQUIRE(report.ok());
      REQUIRE(report->latency_ps == position->latency_ps());
      REQUIRE(game->all_main_ps() - saved == report->latency_ps);
      for (const AccessId id : game->options().forbidden)
        REQUIRE(!plan.served_by[made->access_of[id.index()]].valid());
      const auto& state = static_cast<const ScheduleState&>(*position);
      other_orders += !state.ordered().own;
      fell_back += state.fell_back();
      in_order += state.order_decisions();
      placed += static_cast<int64_t>(plan.residences.size());
    }
  }
  CHECK(other_orders > 1000);
  CHECK(fell_back > 100);
  CHECK(placed > 5000);
  CHECK(in_order > 10000);
  CHECK(pages > 0);
}

TEST_CASE("Undo takes back every decision of the schedule game, and clones are independent") {
  Rng rng(2);
  for (int n = 0; n < 200; ++n) {
    const auto game = RandomGame(rng);
    ScheduleState state(game);
    const auto observer = *Observer::Create(game, {});
    std::vector<float> numbers(observer.size());
    std::vector<std::string> seen;
    while (!state.IsTerminal()) {
      seen.push_back(Visible(state));
      observer.Write(state, numbers.data());
      for (const float number : numbers) REQUIRE((number >= -1 && number <= 1));
      if (rng.Below(4) == 0) {
        const auto clone = state.Clone();
        while (!clone->IsTerminal()) REQUIRE(clone->Apply(RandomAction(*clone, rng)).ok());
        const std::string end = Visible(*clone);
        for (int i = 0; i < 3 && clone->num_decisions() > 0; ++i) {
          const int action = clone->actions().back();
          clone->Undo();
          REQUIRE(clone->Apply(action).ok());
          REQUIRE(Visible(*clone) == end);
        }
        REQUIRE(Visible(state) == seen.back());
      }
      REQUIRE(state.Apply(RandomAction(state, rng)).ok());
    }
    REQUIRE(state.legal_actions().empty());
    observer.Write(state, numbers.data());
    REQUIRE(state.Apply(0).status().code() == absl::StatusCode::kFailedPrecondition);
    while (state.num_decisions() > 0) {
      state.Undo();
      REQUIRE(Visible(state) == seen.back());
      seen.pop_back();
    }
    REQUIRE(seen.empty());
    const auto again = game->NewInitialPosition();
    REQUIRE(Visible(*again) == Visible(state));
  }
}

// The ticks of what takes time.
std::string Work(const ScheduleTables& tables, absl::Span<const Tick> order) {
  std::string work;
  for (const Tick tick : order) {
    const Unit& unit =
        tables.units.regions()[tables.units.program().region_at(tick)][tables.units.unit_of(tick)];
    if (unit.works) absl::StrAppend(&work, tick, " ");
  }
  return work;
}

void Reach(ScheduleState& state, std::set<std::string>& orders) {
  if (state.placement() != nullptr) {
    orders.insert(Work(state.tables(), state.InstructionOrder()));
    return;
  }
  for (const int action : state.legal_actions()) {
    REQUIRE(state.Apply(action).ok());
    Reach(state, orders);
    state.Undo();
  }
}

TEST_CASE("nothing keeps a schedule game alive when its last position has gone") {
  Rng rng(3);
  for (int n = 0; n < 20; ++n) {
    std::weak_ptr<const Program> program;
    {
      ScheduleState state(RandomGame(rng));
      program = state.game().shared_program();
      while (!state.IsTerminal()) REQUIRE(state.Apply(RandomAction(state, rng)).ok());
      REQUIRE_FALSE(program.expired());
    }
    REQUIRE(program.expired());
  }
}

TEST_CASE("every legal order within the limit can be played, and no other") {
  Rng rng(3);
  size_t reached = 0, several = 0, refused = 0;
  for (int n = 0; n < 400; ++n) {
    const auto game = RandomGame(rng, 4);
    const Program& program = game->program();
    if (program.ticks() > 8) continue;
    std::set<std::string> playable, legal;
    ScheduleState state(game);
    Reach(state, playable);
    std::vector<Tick> order(program.ticks());
    std::iota(order.begin(), order.end(), 0);
    do {
      if (!CheckInstructionOrder(program, order).ok()) continue;
      const MainMemory memory = MainMemoryOf(*Reordered(program, order)->program);
      REQUIRE(state.tables().PackedBytes(order) == memory.packed_bytes);
      if (memory.total_bytes() <= LimitOf(*game)) {
        legal.insert(Work(state.tables(), order));
      } else {
        ++refused;
      }
    } while (std::next_permutation(order.begin(), order.end()));
    INFO("game " << n << "\n"
                 << absl::StrJoin(playable, "\n") << "\nlegal\n"
                 << absl::StrJoin(legal, "\n"));
    REQUIRE(playable == legal);
    reached += playable.size();
    several += playable.size() > 1;
  }
  CHECK(reached > 1000);
  CHECK(several > 50);
  CHECK(refused > 100);
}

// `chains` independent chains of two instructions: make, then use.
std::shared_ptr<const Program> Chains(int chains) {
  ProgramBuilder b("chains");
  const BufferId w = b.Parameter("w", kPage);
  std::vector<BufferId> made;
  for (int i = 0; i < chains; ++i) {
    made.push_back(b.Result("m" + std::to_string(i), kPage));
    b.Add({.name = "make" + std::to_string(i),
           .reads = {w},
           .writes = {made.back()},
           .cycles = {10, 6, 7, 3}});
    const BufferId used = b.Result("u" + std::to_string(i), kPage);
    b.MarkOutput(used);
    b.Add({.name = "use" + std::to_string(i),
           .reads = {made.back()},
           .writes = {used},
           .cycles = {10, 6, 7, 3}});
  }
  return testing::WithDependences(*b.Build());
}

TEST_CASE("Next turns a page, and what has no room isn't shown") {
  ScheduleGameOptions options = ScheduleOptions();
  options.main_bytes = int64_t{1} << 30;
  const auto wide = *ScheduleGame::Create(Chains(20), TestHardware(4 * kPage), options);
  ScheduleState state(wide);
  CHECK(state.shown().size() == kReadyShown);
  CHECK(state.has_next());
  REQUIRE(state.Apply(kNextUnits).ok());
  CHECK(state.shown().size() == 4);
  CHECK_FALSE(state.has_next());
  CHECK_FALSE(state.Apply(kNextUnits).ok());
  CHECK_FALSE(state.Apply(4).ok());
  CHECK_FALSE(state.Apply(kOrderingActions).ok());
  CHECK(state.Apply(kNextUnits).status().message() ==
        "action 16 (Next) is illegal at decision 1; legal: 0, 1, 2, 3");
  REQUIRE(state.Apply(3).ok());
  CHECK(state.page() == 0);
  CHECK(wide->program().instruction(state.order().Ticks()[0]).name == "make19");

  // One value at a time has room, as in the program's own order.
  const auto narrow = *ScheduleGame::Create(Chains(5), TestHardware(4 * kPage), ScheduleOptions());
  ScheduleState tight(narrow);
  // Behind the first the rest of the program's order has room, behind the others it hasn't.
  CHECK(tight.shown().size() == 1);
  REQUIRE(tight.has_next());
  REQUIRE(tight.Apply(kNextUnits).ok());
  CHECK(tight.shown().size() == 4);
  CHECK_FALSE(tight.has_next());
  REQUIRE(tight.Apply(1).ok());
  CHECK(tight.fitting().size() == 1);
}

// Two makes whose bytes fit, after which nothing fits.
TEST_CASE("where main memory ends an order, the program's own goes on") {
  ProgramBuilder b("dead end");
  const BufferId a = b.Result("a", 2 * kPage), c = b.Result("c", 2 * kPage),
                 big = b.Result("big", 3 * kPage), out = b.Result("out", kPage);
  b.MarkOutput(out);
  b.Add({.name = "make a", .writes = {a}, .cycles = {1}});
  b.Add({.name = "make big", .reads = {a}, .writes = {big}, .cycles = {1}});
  b.Add({.name = "make c", .writes = {c}, .cycles = {1}});
  b.Add({.name = "use", .reads = {big, c}, .writes = {out}, .cycles = {1}});
  const auto program = testing::WithDependences(*b.Build());
  CHECK(MainMemoryOf(*program).packed_bytes == 5 * kPage);
  const auto game = *ScheduleGame::Create(program, TestHardware(kPage), ScheduleOptions());
  ScheduleState state(game);
  CHECK(state.shown().size() == 1);  // make a
  REQUIRE(state.Apply(kNextUnits).ok());
  CHECK(state.shown().size() == 1);  // make c
  REQUIRE(state.Apply(0).ok());      // and then make a; but make big has no room behind both
  REQUIRE(state.placement() != nullptr);
  CHECK(state.fell_back());
  CHECK(state.ordered().own);
  state.Undo();
  CHECK_FALSE(state.fell_back());
  state.Undo();
  REQUIRE(state.Apply(0).ok());
  CHECK_FALSE(state.fell_back());

  ScheduleGameOptions more = ScheduleOptions();
  more.main_bytes = MainMemoryOf(*program).total_bytes() + 2 * kPage;
  ScheduleState free(*ScheduleGame::Create(program, TestHardware(kPage), more));
  REQUIRE(free.Apply(1).ok());
  CHECK_FALSE(free.fell_back());
  CHECK(free.InstructionOrder() == std::vector<Tick>{2, 0, 1, 3});
}

TEST_CASE("a loop's body is ordered when the loop is taken") {
  ProgramBuilder b("loop");
  const BufferId w = b.Parameter("w", kPage), x = b.Result("x", kPage), y = b.Result("y", kPage);
  b.MarkOutput(x);
  b.MarkOutput(y);
  b.Add({.name = "first", .writes = {x}, .cycles = {5}});
  b.BeginLoop("loop", 3);
  b.BeginBody();
  const BufferId p = b.Result("p", kPage), q = b.Result("q", kPage);
  b.Add({.name = "in1", .reads = {w}, .writes = {p}, .cycles = {5}});
  b.Add({.name = "in2", .reads = {w}, .writes = {q}, .cycles = {5}});
  b.EndLoop();
  b.Add({.name = "last", .writes = {y}, .cycles = {5}});
  const auto program = testing::WithDependences(*b.Build());
  ScheduleGameOptions options = ScheduleOptions();
  options.main_bytes = int64_t{1} << 30;
  const auto game = *ScheduleGame::Create(program, TestHardware(4 * kPage), options);
  ScheduleState state(game);
  REQUIRE(state.shown().size() == 3);
  REQUIRE(state.Apply(1).ok());  // the loop
  CHECK(state.order().region() > 0);
  REQUIRE(state.shown().size() == 2);
  REQUIRE(state.Apply(1).ok());  // in2, and then in1 alone is left
  CHECK(state.order().region() == 0);
  CHECK(state.shown().size() == 2);
}

TEST_CASE("without dependences the own order is played, and options are checked") {
  Rng rng(5);
  const auto program = RandomProgram(rng, {.instructions = 12});
  const auto game = ScheduleGame::Create(program, TestHardware(16), ScheduleOptions());
  REQUIRE(game.ok());
  ScheduleState state(*game);
  REQUIRE(state.placement() != nullptr);
  CHECK(state.ordered().own);

  ScheduleGameOptions options = ScheduleOptions();
  options.candidates = kMaxScheduleCandidates;
  REQUIRE(ScheduleGame::Create(program, TestHardware(16), options).ok());
  CHECK(options.num_actions() <= ActionSet::kMaxActions);
  options.candidates = kMaxScheduleCandidates + 1;
  CHECK_FALSE(ScheduleGame::Create(program, TestHardware(16), options).ok());
  options.candidates = 1;
  options.main_bytes = 1;
  CHECK_FALSE(ScheduleGame::Create(program, TestHardware(16), options).ok());
}

}  // namespace
}  // namespace mallocgame
