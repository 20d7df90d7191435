// What the trainer of every agent must do, whichever it is. A `load` makes a trainer of what was
// saved, with one thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "agents/training/checkpoint.h"
#include "mallocgame/base/rng.h"
#include "tests/catch.h"

namespace mallocgame::training {

// The value of a StatusOr that must have one.
template <class T>
T ValueOf(absl::StatusOr<T> result) {
  INFO(result.status());
  REQUIRE(result.ok());
  return *std::move(result);
}

// Does steps and gives the progress of the last one.
template <class Trainer>
auto Steps(Trainer& trainer, int steps) {
  auto last = ValueOf(trainer.Step(nullptr));
  for (int i = 1; i < steps; ++i) last = ValueOf(trainer.Step(nullptr));
  return last;
}

// train(seed, threads) trains anew and gives the checkpoint.
template <class Train>
void CheckSameForAllThreads(const Train& train) {
  const std::string one = train(1, 1);
  REQUIRE((train(1, 3) == one));
  REQUIRE((train(2, 1) != one));
}

// After each step of `straight` a trainer that resumes there does the same step. load(saved, step)
// makes it; compare(resumed, progress of straight, progress of resumed) is called behind each step.
template <class Trainer, class Load, class Compare>
void CheckResumesAnywhere(Trainer& straight, int steps, const Load& load, const Compare& compare) {
  std::string saved = ValueOf(straight.Save());
  for (int step = 0; step < steps; ++step) {
    const auto resumed = ValueOf(load(saved, step));
    const auto one = Steps(straight, 1), other = Steps(*resumed, 1);
    saved = ValueOf(straight.Save());
    REQUIRE((ValueOf(resumed->Save()) == saved));
    compare(*resumed, one, other);
  }
}

// A cancelled step leaves a trainer that refuses to go on; what was saved before goes on.
template <class Trainer, class Load>
void CheckCancelledStep(Trainer& trainer, const Load& load) {
  const std::string saved = ValueOf(trainer.Save());
  const std::atomic<bool> cancel{true};
  REQUIRE(absl::IsCancelled(trainer.Step(&cancel).status()));
  REQUIRE(absl::IsFailedPrecondition(trainer.Step(nullptr).status()));
  REQUIRE(absl::IsFailedPrecondition(trainer.Save().status()));
  Steps(*ValueOf(load(saved)), 1);
}

// The message with which `load` refuses bytes.
template <class Load>
std::string LoadRefusal(const Load& load, const std::string& bytes) {
  const auto loaded = load(bytes);
  REQUIRE(absl::IsInvalidArgument(loaded.status()));
  return std::string(loaded.status().message());
}

// Bytes that are no checkpoint of the agent, of another version, or damaged are refused with a
// sentence that says so.
template <class Checkpoint, class Load>
void CheckDamagedCheckpoints(const std::string& saved, const Load& load) {
  const std::string agent(Checkpoint::kAgent);
  const auto refusal = [&](const std::string& bytes) { return LoadRefusal(load, bytes); };
  const auto says = [&](const std::string& bytes, const std::string& part) {
    INFO(refusal(bytes));
    REQUIRE(refusal(bytes).find(part) != std::string::npos);
  };
  std::string other_version = saved;
  const std::string number = std::to_string(Checkpoint::kFormatVersion);
  const std::string other = "checkpoint " + std::to_string(Checkpoint::kFormatVersion + 1);
  other_version.replace(other_version.find("checkpoint " + number), 11 + number.size(), other);
  says(other_version, "another version: found 'mallocgame " + agent + " " + other);
  for (const std::string& bytes :
       {std::string(), std::string("MGP1 something else"), "mallocgame other checkpoint " + number})
    says(bytes, "not a checkpoint of the " + agent + " agent");
  for (const size_t size : {saved.size() - 1, saved.size() / 2, saved.find('\n') + 4})
    says(saved.substr(0, size), "damaged");
  for (const size_t at : {saved.size() / 3, saved.size() - 3}) {
    std::string damaged = saved;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    says(damaged, "damaged");
  }
}

// Random changes of the trainer's own part, under a right checksum, are refused or harmless.
// used(trainer) is called with some of those that load.
template <class Checkpoint, class Load, class Used>
void CheckEditedContents(const std::string& saved, int rounds, const Load& load, const Used& used) {
  const auto checkpoint = ValueOf(UnpackCheckpoint<Checkpoint>(saved));
  Rng rng(9);
  int refused = 0;
  for (int i = 0; i < rounds; ++i) {
    Checkpoint edited = checkpoint;
    for (uint32_t edits = 1 + rng.Below(3); edits > 0; --edits)
      rng.Pick(edited.training) = static_cast<char>(rng.Below(256));
    if (rng.Below(4) == 0) edited.training.resize(rng.Below(edited.training.size()));
    const auto loaded = load(PackCheckpoint(edited));
    refused += !loaded.ok();
    if (loaded.ok() && i % 10 == 0) used(**loaded);
  }
  REQUIRE(refused > 30);
}

}  // namespace mallocgame::training
