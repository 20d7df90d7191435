// What the agents that learn read. This source sees nothing of Torch, and no protobuf.
#include <memory>
#include <string>
#include <vector>

#include "agents/egrl/agent.h"
#include "agents/egrl/checkpoint.h"
#include "agents/egrl/trainer.h"
#include "agents/muzero/agent.h"
#include "agents/muzero/checkpoint.h"
#include "agents/muzero/trainer.h"
#include "agents/training/checkpoint_file.h"
#include "mallocgame/base/error.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/simulator/simulate.h"
#include "tests/fuzz/agent_sample.h"
#include "tests/fuzz/readers.h"

namespace mallocgame::fuzz {
namespace {

void CheckResult(const Game& game, const absl::StatusOr<SolveResult>& result) {
  MG_CHECK(result.ok() && Validate(game.program(), game.hardware(), result->plan).ok());
  const auto report = Simulate(game.cost_model(), result->plan);
  MG_CHECK(report.ok() && report->latency_ps == result->report.latency_ps);
}

// What was loaded is saved, loaded and saved again as the same bytes.
template <class Trainer, class Load>
void CheckSaves(const Trainer& loaded, const Load& load) {
  const absl::StatusOr<std::string> saved = loaded.Save();
  MG_CHECK(saved.ok());
  const auto back = load(*saved);
  MG_CHECK(back.ok() && *(*back)->Save() == *saved);
}

// A step takes as long as the settings say, so that only those of the sample are tried. Numbers
// that are not finite end it with an error, but not the process.
template <class Trainer, class Config>
void TryStep(Trainer& trainer, const Config& sample) {
  if (trainer.config() == sample) trainer.Step(nullptr).IgnoreError();
}

bool ReadMuZero(absl::string_view bytes) {
  if (bytes.empty()) return false;
  using muzero::Checkpoint;
  const GameKind kind = bytes[0] % 2 == 0 ? GameKind::kTime : GameKind::kOrder;
  const std::string sealed =
      training::SealCheckpoint(Checkpoint::kAgent, Checkpoint::kFormatVersion, bytes.substr(1),
                               kind, Checkpoint::kObservationVersion);
  const auto agent = muzero::Agent::Load(sealed);
  const muzero::TrainingProblem problem = SampleTraining();
  const auto load = [&](absl::string_view saved) {
    return muzero::Trainer::Load({problem}, saved, 1);
  };
  const auto trainer = load(sealed);
  if (!trainer.ok()) return false;
  MG_CHECK(agent.ok());
  CheckSaves(**trainer, load);
  const auto game =
      *Game::Create(problem.program, problem.hardware, SampleMuZero(kind).game_options());
  if ((*trainer)->iterations() > 0) {
    CheckResult(*game, (*trainer)->Best(0));
    CheckResult(*game, (*trainer)->BestGame(0));
  }
  TryStep(**trainer, SampleMuZero(kind));
  return true;
}

bool ReadEgrl(absl::string_view bytes) {
  using egrl::Checkpoint;
  const std::string sealed =
      training::SealCheckpoint(Checkpoint::kAgent, Checkpoint::kFormatVersion, bytes);
  const std::shared_ptr<const PlacementProblem> problem = SamplePlacement();
  if (const auto agent = egrl::Agent::Load(sealed); agent.ok()) {
    const auto placed = (*agent)->Place(*problem, 1, 1);
    MG_CHECK(!placed.ok() || problem->Evaluate(placed->map).ok());
  }
  const auto load = [&](absl::string_view saved) {
    return egrl::Trainer::Load({problem}, saved, 1);
  };
  const auto trainer = load(sealed);
  if (!trainer.ok()) return false;
  CheckSaves(**trainer, load);
  MG_CHECK(problem->Evaluate((*trainer)->best(0).map).ok());
  TryStep(**trainer, SampleEgrl());
  return true;
}

constexpr Reader kAgentReaders[] = {{"muzero", ReadMuZero}, {"egrl", ReadEgrl}};

}  // namespace

absl::Span<const Reader> AgentReaders() { return kAgentReaders; }

}  // namespace mallocgame::fuzz
