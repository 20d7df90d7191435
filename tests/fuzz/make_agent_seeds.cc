// Writes the seeds of the agents' fuzzers: checkpoints before the first step and after some, but
// for their envelopes.
//
//   fuzz_make_agent_seeds SEEDS_FOLDER
#include <cstdio>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "agents/egrl/checkpoint.h"
#include "agents/egrl/trainer.h"
#include "agents/muzero/checkpoint.h"
#include "agents/muzero/trainer.h"
#include "mallocgame/base/error.h"
#include "mallocgame/replay/files.h"
#include "tests/fuzz/agent_sample.h"

namespace mallocgame::fuzz {
namespace {

template <class Checkpoint>
std::string BodyOf(const std::string& saved) {
  int observation = 0;
  if constexpr (requires { Checkpoint::kObservationVersion; })
    observation = Checkpoint::kObservationVersion;
  const auto opened =
      training::OpenCheckpoint(Checkpoint::kAgent, Checkpoint::kFormatVersion, saved, observation);
  MG_CHECK(opened.ok());
  return std::string(opened->body);
}

void Write(const std::string& folder, const std::string& name, const std::string& bytes) {
  std::filesystem::create_directories(folder);
  MG_CHECK(WriteFile(absl::StrCat(folder, "/", name), bytes).ok());
}

void WriteMuZero(const std::string& folder, const std::string& kind, const std::string& name) {
  const char game = kind == "time" ? 0 : 1;
  const auto trainer = *muzero::Trainer::Create({SampleTraining()}, SampleMuZero(kind), 1, 1);
  for (const char* when : {"_new", "_started", "_trained"}) {
    Write(folder, name + when,
          absl::StrCat(absl::string_view(&game, 1), BodyOf<muzero::Checkpoint>(*trainer->Save())));
    MG_CHECK(trainer->Step(nullptr).ok());
  }
}

// A checkpoint of fewer steps than none.
void WriteBelowZero(const std::string& folder) {
  const auto trainer = *muzero::Trainer::Create({SampleTraining()}, SampleMuZero("time"), 1, 1);
  auto checkpoint = *training::UnpackCheckpoint<muzero::Checkpoint>(*trainer->Save());
  checkpoint.iterations = -1;
  Write(folder, "iterations_below_zero",
        absl::StrCat(absl::string_view("\0", 1),
                     BodyOf<muzero::Checkpoint>(training::PackCheckpoint(checkpoint))));
}

void WriteMuZeroActor(const std::string& folder, const std::string& kind, const std::string& name) {
  const SampleActor sample(kind);
  const std::string assignment = *sample.trainer->Assign(0);
  const std::string harvest = *sample.actor->Play(sample.weights, assignment, nullptr);
  const auto kinded = [&](char what, const std::string& bytes) {
    const char first = static_cast<char>((kind == "time" ? 0 : 1) | what);
    return absl::StrCat(absl::string_view(&first, 1), bytes);
  };
  Write(folder, name + "_assignment", kinded(0, assignment));
  Write(folder, name + "_harvest", kinded(2, harvest));
}

int MakeAgentSeeds(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fuzz_make_agent_seeds SEEDS_FOLDER\n");
    return 2;
  }
  const std::string seeds = argv[1];
  WriteMuZero(seeds + "/muzero", "time", "time");
  WriteMuZero(seeds + "/muzero", "priority", "priority");
  WriteBelowZero(seeds + "/muzero");
  WriteMuZeroActor(seeds + "/muzero_actor", "time", "time");
  WriteMuZeroActor(seeds + "/muzero_actor", "priority", "priority");
  const auto trainer = *egrl::Trainer::Create({SamplePlacement()}, SampleEgrl(), 1, 1);
  for (const char* when : {"new", "trained"}) {
    Write(seeds + "/egrl", when, BodyOf<egrl::Checkpoint>(*trainer->Save()));
    MG_CHECK(trainer->Step(nullptr).ok());
  }
  return 0;
}

}  // namespace
}  // namespace mallocgame::fuzz

int main(int argc, char** argv) { return mallocgame::fuzz::MakeAgentSeeds(argc, argv); }
