#include "tests/golden/solver_plans.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/fnv.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/replay/files.h"
#include "mallocgame/replay/plan_file.h"
#include "mallocgame/replay/program_file.h"
#include "mallocgame/solvers/registry.h"
#include "tests/golden/examples.h"

namespace mallocgame::golden {
namespace {

// Small ones, and the two that show most of the rules: a training step and a decoder's loop.
constexpr absl::string_view kPrograms[] = {
    "gcn_dense_2048.tpu_v4i",      "tensornet_tt_b32.tpu_v4i_16mib",
    "wavernn_64steps_b8.tpu_v5e",  "nerf_mlp_64k.tpu_v4i",
    "muzero_unroll_b32.tpu_v4i",   "mlp_mixer_b16.tpu_v4i_16mib",
    "mlp_train_adam_b512.tpu_v6e", "moe_transformer_2l_b4_s128.tpu_v4i",
    "resnet50_b1.tpu_v4i_16mib",   "lstm_lm_train_b32_t16.tpu_v4i",
};

struct Task {
  absl::string_view solver;
  int64_t evaluations;  // 0: the solver ends by itself
};
constexpr Task kTasks[] = {
    {"all-main", 0}, {"xla-heuristic", 0}, {"greedy", 0}, {"rent", 0}, {"random", 20}};

constexpr absl::string_view kExactExamples[] = {"preload", "window_in_a_gap", "loop_that_writes"};

void AddLine(std::string& text, absl::string_view name, const std::shared_ptr<const Game>& game,
             const Task& task) {
  SolveProblem problem;
  problem.game = game;
  SolveLimits limits;
  limits.seconds = 0;  // no limit
  limits.evaluations = task.evaluations;
  limits.seed = 1;
  const auto result = Solve(task.solver, problem, limits);
  MG_CHECK(result.ok());
  absl::StrAppend(&text, absl::StrFormat("%-36s %-14s %12d %016x\n", name, task.solver,
                                         result->report.latency_ps,
                                         Fnv1aOf(PlanToJson(game->program(), result->plan))));
}

std::shared_ptr<const Game> BundledGame(absl::string_view name) {
  const auto bytes = ReadFile(
      absl::StrCat(MALLOCGAME_SOURCE_DIR "/bindings/python/mallocgame/programs/", name, ".mgp"));
  MG_CHECK(bytes.ok());
  const auto file = ParseProgramFile(*bytes);
  MG_CHECK(file.ok());
  auto game = TimeGame::Create(file->program, file->hardware);
  MG_CHECK(game.ok());
  return *std::move(game);
}

}  // namespace

std::string RecordSolverPlans() {
  std::string text =
      "The plans of the deterministic solvers: latency in ps, and FNV-1a (64 bits) of the plan's "
      "JSON text.\n\n";
  for (const absl::string_view name : kPrograms) {
    const std::shared_ptr<const Game> game = BundledGame(name);
    for (const Task& task : kTasks) AddLine(text, name, game, task);
  }
  for (const Example& example : AllExamples()) {
    for (const absl::string_view name : kExactExamples) {
      if (example.name != name) continue;
      const auto game =
          Game::Create(example.program.Build(), example.hardware, example.game_options());
      MG_CHECK(game.ok());
      AddLine(text, name, *game, {"exact", 0});
    }
  }
  return text;
}

}  // namespace mallocgame::golden
