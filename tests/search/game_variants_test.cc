#include "mallocgame/search/game_variants.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "mallocgame/game/time/state.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/replay/files.h"
#include "mallocgame/replay/program_file.h"
#include "mallocgame/simulator/simulate.h"
#include "tests/catch.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;
using testing::TestHardware;

TEST_CASE("a game without its largest buffers keeps them in main memory") {
  ProgramBuilder b;
  const BufferId large = b.Parameter("large", 6), small = b.Parameter("small", 2);
  b.Add({.name = "both", .reads = {large, small}, .cycles = {40, 30, 20, 10}});
  const auto game = testing::MakeGame(b.Build(), TestHardware(8));
  const auto without = GameWithoutLargest(*game);
  REQUIRE(without != nullptr);
  REQUIRE(without->options().forbidden.size() == 1);
  REQUIRE(without->program().access(without->options().forbidden[0]).buffer == large);
  REQUIRE(GameWithoutLargest(*testing::MakeGame(game->shared_program(), TestHardware(16))) ==
          nullptr);
}

TEST_CASE("a game of the other kind differs in nothing else, and of its own kind is itself") {
  ProgramBuilder b;
  const BufferId x = b.Parameter("x", 4);
  b.Add({.name = "use", .reads = {x}, .cycles = {20, 10}});
  const auto game = testing::MakeGame(b.Build(), TestHardware(8));
  const auto order = PriorityGameOf(*game);
  REQUIRE(order->options().game() == std::string("priority"));
  REQUIRE(TimeGameOf(*order)->options() == game->options());
  REQUIRE(TimeGameOf(*game) == game);
  REQUIRE(PriorityGameOf(*order) == order);
}

// `plan` without the residences of buffers under `bytes`.
Plan WithoutSmall(const Program& program, const Plan& plan, int64_t bytes) {
  Plan kept = plan;
  kept.residences.clear();
  kept.copies.clear();
  std::vector<ResidenceId> ids(plan.residences.size());
  for (size_t r = 0; r < plan.residences.size(); ++r) {
    if (program.buffer(plan.residences[r].buffer).size_bytes < bytes) continue;
    ids[r] = ResidenceId(static_cast<int64_t>(kept.residences.size()));
    kept.residences.push_back(plan.residences[r]);
  }
  for (Copy copy : plan.copies) {
    copy.residence = ids[copy.residence.index()];
    if (copy.residence.valid()) kept.copies.push_back(copy);
  }
  for (ResidenceId& r : kept.served_by)
    if (r.valid()) r = ids[r.index()];
  return kept;
}

TEST_CASE("by default a game asks about small buffers wherever XLA's plan lives on them") {
  const std::filesystem::path folder = MALLOCGAME_SOURCE_DIR "/bindings/python/mallocgame/programs";
  int programs = 0, small = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".mgp") continue;
    const auto file = ParseProgramFile(*ReadFile(entry.path().string()));
    REQUIRE(file.ok());
    REQUIRE(file->xla_plan.has_value());
    INFO(entry.path().stem().string());
    const auto game = GameByDefault(**TimeGame::Create(file->program, file->hardware, {}));
    const int64_t least = game->options().min_buffer_bytes;
    const auto latency = [&](const Plan& plan) {
      const auto report = Simulate(game->cost_model(), plan);
      REQUIRE(report.ok());
      return static_cast<double>(report->latency_ps);
    };
    const double whole = latency(*file->xla_plan);
    CHECK(latency(WithoutSmall(*file->program, *file->xla_plan, least)) <= 1.01 * whole);
    ++programs;
    small += least == kSmallBufferBytes;
  }
  CHECK(programs == 92);
  CHECK(small == 9);
}

TEST_CASE("the default time game plays XLA's plan where nearly all depends on small buffers") {
  const auto bytes = ReadFile(
      MALLOCGAME_SOURCE_DIR "/bindings/python/mallocgame/programs/wavernn_64steps_b8.tpu_v6e.mgp");
  const auto file = ParseProgramFile(*bytes);
  REQUIRE(file.ok());
  const auto least_of_play = [&](const std::shared_ptr<const Game>& game) {
    State state(game);
    state.PlayOn(game->ReadPlan(*file->xla_plan));
    return static_cast<double>(state.latency_ps());
  };
  const auto large = *TimeGame::Create(file->program, file->hardware, {});
  const double xla =
      static_cast<double>(Simulate(large->cost_model(), *file->xla_plan)->latency_ps);
  CHECK(least_of_play(large) > 1.29 * xla);
  CHECK(least_of_play(GameByDefault(*large)) < 1.001 * xla);
}

}  // namespace
}  // namespace mallocgame
