// Random decisions of each game on the real programs of the corpus: every play ends in a
// valid plan, and the savings add up to what the simulator says. XLA's own plan of every entry is
// valid too.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/games.h"
#include "mallocgame/game/position.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/replay/files.h"
#include "mallocgame/replay/program_file.h"
#include "mallocgame/simulator/simulate.h"
#include "tests/catch.h"
#include "tests/support/play.h"

namespace mallocgame {
namespace {

std::vector<std::string> CorpusFiles() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(
           MALLOCGAME_SOURCE_DIR "/bindings/python/mallocgame/programs")) {
    if (entry.path().extension() == ".mgp") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

ProgramFile Load(const std::string& path) {
  const auto bytes = ReadFile(path);
  REQUIRE(bytes.ok());
  auto file = ParseProgramFile(*bytes);
  INFO(path << ": " << file.status());
  REQUIRE(file.ok());
  return *std::move(file);
}

// At least so many decisions at random of each game, over all programs.
void PlayTheCorpusAtRandom(int64_t least) {
  const std::string kind = GENERATE(as<std::string>(), "time", "priority", "schedule");
  const std::vector<std::string> files = CorpusFiles();
  REQUIRE(files.size() >= 44);
  const int64_t decisions_each = least / static_cast<int64_t>(files.size()) + 1;
  int64_t decisions = 0, games = 0;
  for (size_t f = 0; f < files.size(); ++f) {
    const ProgramFile file = Load(files[f]);
    const auto game = Game::Create(file.program, file.hardware, **OptionsOfGame(kind));
    REQUIRE(game.ok());
    Rng rng(f);
    const auto position = (*game)->NewInitialPosition();
    for (int64_t played = 0; played < decisions_each; ++games) {
      int64_t saved = 0;
      while (!position->IsTerminal()) {
        const int action = testing::RandomAction(*position, rng);
        const int64_t expected = position->SavingOf(action);
        const auto step = position->Apply(action);
        if (!step.ok()) FAIL(step.status());
        // The last decision about residences shows the stalls that were not known.
        const bool shown = kind != "time" && position->IsTerminal();
        if (shown ? *step > expected : *step != expected)
          FAIL(files[f] << ": " << (*game)->ActionToString(action) << " saves " << *step);
        saved += *step;
        ++played;
        ++decisions;
      }
      const Plan plan = position->ToPlan();
      const std::shared_ptr<const Game> planned = position->PlannedGame();
      const Verdict verdict = Validate(planned->program(), file.hardware, plan);
      const auto report = Simulate(planned->cost_model(), plan);
      INFO(files[f] << ": " << verdict.message);
      REQUIRE(verdict.ok());
      REQUIRE(report.ok());
      REQUIRE(saved == report->all_main_ps - report->latency_ps);
      REQUIRE(report->latency_ps == position->latency_ps());
      while (position->num_decisions() > 0) position->Undo();
      REQUIRE(position->latency_ps() == report->all_main_ps);
    }
  }
  REQUIRE(decisions >= least);
  WARN(kind << ": " << decisions << " decisions in " << games << " games on " << files.size()
            << " programs");
}

TEST_CASE("random decisions of each game over the corpus") { PlayTheCorpusAtRandom(100'000); }

TEST_CASE("a million random decisions of each game over the corpus", "[weekly]") {
  PlayTheCorpusAtRandom(1'000'000);
}

TEST_CASE("XLA's own plan of every corpus entry is valid") {
  for (const std::string& path : CorpusFiles()) {
    const ProgramFile file = Load(path);
    REQUIRE(file.xla_plan.has_value());
    const Verdict verdict = Validate(*file.program, file.hardware, *file.xla_plan);
    INFO(path << ": " << RuleName(verdict.rule) << ": " << verdict.message);
    REQUIRE(verdict.ok());
  }
}

}  // namespace
}  // namespace mallocgame
