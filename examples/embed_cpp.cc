// mallocGame in a C++ program: loads a program file, plays the time game or the priority game
// greedily, judges the plan and compares it with XLA's.
//
//     cmake --install build/cpp --component development --prefix /opt/mallocgame
//     cmake -S tests/consumer -B build/embed -Dmallocgame_ROOT=/opt/mallocgame
//     cmake --build build/embed
//     build/embed/embed_cpp bindings/python/mallocgame/programs/resnet50_b1.tpu_v4i.mgp [priority]
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/games.h"
#include "mallocgame/game/position.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/replay/files.h"
#include "mallocgame/replay/program_file.h"
#include "mallocgame/simulator/simulate.h"

namespace mg = mallocgame;

// The legal action that saves most now; at a tie the first one.
int BestNow(mg::Position& position) {
  std::optional<int64_t> best_ps;
  int best = 0;
  for (const int action : position.legal_actions()) {
    const int64_t saved_ps = *position.Apply(action);
    position.Undo();
    if (!best_ps || saved_ps > *best_ps) {
      best_ps = saved_ps;
      best = action;
    }
  }
  return best;
}

absl::Status Run(const std::string& path, const std::string& kind) {
  const absl::StatusOr<std::string> bytes = mg::ReadFile(path);
  if (!bytes.ok()) return bytes.status();
  const absl::StatusOr<mg::ProgramFile> file = mg::ParseProgramFile(*bytes);
  if (!file.ok()) return file.status();
  const auto options = mg::OptionsOfGame(kind);
  if (!options.ok()) return options.status();
  const absl::StatusOr<std::shared_ptr<const mg::Game>> game =
      mg::Game::Create(file->program, file->hardware, **options);
  if (!game.ok()) return game.status();

  const std::unique_ptr<mg::Position> position = (*game)->NewInitialPosition();  // of either game
  while (!position->IsTerminal()) {
    const auto saved_ps = position->Apply(BestNow(*position));
    if (!saved_ps.ok()) return saved_ps.status();
  }

  const mg::Plan plan = position->ToPlan();
  const mg::Verdict verdict = mg::Validate(*file->program, file->hardware, plan);
  const auto report = mg::Simulate((*game)->cost_model(), plan);
  if (!report.ok()) return report.status();
  if (!verdict.ok() || report->latency_ps != position->latency_ps())
    return absl::InternalError("the judges disagree with the game");

  std::cout << file->program->name() << " on " << file->hardware.name << ": "
            << position->num_decisions() << " decisions\n"
            << "all in main memory " << report->all_main_ps << " ps\ngreedy " << report->latency_ps
            << " ps\n";
  if (file->xla_plan) {
    const auto xla = mg::Simulate((*game)->cost_model(), *file->xla_plan);
    if (!xla.ok()) return xla.status();
    std::cout << "XLA " << xla->latency_ps << " ps\n";
  }
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  const bool priority = argc == 3 && std::string(argv[2]) == "priority";
  if (argc != 2 && !priority) {
    std::cerr << "usage: embed_cpp PROGRAM.mgp [priority]\n";
    return 2;
  }
  const absl::Status status = Run(argv[1], priority ? "priority" : "time");
  if (!status.ok()) std::cerr << "embed_cpp: " << status.ToString() << "\n";
  return status.ok() ? 0 : 2;
}
