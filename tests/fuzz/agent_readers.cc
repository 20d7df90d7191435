// What the agents that learn read. This source sees nothing of Torch, and no protobuf.
#include <array>
#include <memory>
#include <string>

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

std::shared_ptr<const Game> SampleGame(const muzero::Config& config) {
  return *Game::Create(SampleProgram(), SampleHardware(), *config.game_options());
}

bool ReadMuZero(absl::string_view bytes) {
  if (bytes.empty()) return false;
  using muzero::Checkpoint;
  const std::string kind = bytes[0] % 2 == 0 ? "time" : "priority";
  const std::string sealed =
      training::SealCheckpoint(Checkpoint::kAgent, Checkpoint::kFormatVersion, bytes.substr(1),
                               kind, Checkpoint::kObservationVersion);
  const auto agent = muzero::Agent::Load(sealed);
  const auto load = [&](absl::string_view saved) {
    return muzero::Trainer::Load({SampleTraining()}, saved, 1);
  };
  const auto trainer = load(sealed);
  if (!trainer.ok()) return false;
  MG_CHECK(agent.ok());
  CheckSaves(**trainer, load);
  const auto game = SampleGame(SampleMuZero(kind));
  if ((*trainer)->iterations() > 0) {
    CheckResult(*game, (*trainer)->Best(0));
    CheckResult(*game, (*trainer)->BestGame(0));
  }
  TryStep(**trainer, SampleMuZero(kind));
  return true;
}

bool ReadMuZeroActor(absl::string_view bytes) {
  if (bytes.empty()) return false;
  static const auto& samples =
      *new std::array<SampleActor, 2>{SampleActor("time"), SampleActor("priority")};
  const SampleActor& sample = samples[bytes[0] & 1];
  const bool is_harvest = (bytes[0] & 2) != 0;
  bytes.remove_prefix(1);
  const auto load = [](absl::string_view saved) {
    return muzero::Trainer::Load({SampleTraining()}, saved, 1);
  };
  const auto trainer = *load(sample.saved);
  MG_CHECK(trainer->Assign(0).ok());
  std::string harvest(bytes);
  if (!is_harvest) {
    const auto played = sample.actor->Play(sample.weights, bytes, nullptr);
    if (!played.ok()) return false;
    harvest = *played;
  }
  // An assignment may be of decisions that this trainer does not have, whose harvest it leaves.
  if (!trainer->Take(0, harvest, std::nullopt).ok()) return false;
  MG_CHECK(trainer->EndStep().ok());
  CheckSaves(*trainer, load);
  CheckResult(*SampleGame(sample.trainer->config()), trainer->Best(0));
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

constexpr Reader kAgentReaders[] = {
    {"muzero", ReadMuZero}, {"muzero_actor", ReadMuZeroActor}, {"egrl", ReadEgrl}};

}  // namespace

absl::Span<const Reader> AgentReaders() { return kAgentReaders; }

}  // namespace mallocgame::fuzz
