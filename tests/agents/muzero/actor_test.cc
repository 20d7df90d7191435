// Actors: what they play elsewhere is what is played here, and bytes that are no assignment, no
// networks or no harvest are refused.
#include "agents/muzero/actor.h"

#include <deque>

#include "tests/agents/muzero/training_problem.h"
#include "tests/catch.h"

namespace mallocgame::muzero {
namespace {

std::vector<TrainingProblem> Problems() { return {TinyProblem(5, 14), TinyProblem(6, 14)}; }

// Does the first step by demonstrations that were played elsewhere.
void TakeDemonstrations(Trainer& trainer) {
  std::vector<std::string> demonstrations;
  for (const TrainingProblem& problem : trainer.problems()) {
    demonstrations.push_back(
        training::ValueOf(PlayDemonstrations(problem, trainer.config(), trainer.seed(), nullptr)));
  }
  REQUIRE(trainer.TakeDemonstrations(demonstrations).ok());
}

std::unique_ptr<Actor> ActorFor(const Trainer& trainer) {
  return training::ValueOf(Actor::Create(trainer.problems(), *trainer.Introduction()));
}

std::string PlayGroup(Trainer& trainer, int group) {
  const std::string weights = *trainer.Weights(), assignment = *trainer.Assign(group);
  return training::ValueOf(ActorFor(trainer)->Play(weights, assignment, nullptr));
}

TEST_CASE("steps whose games actors play are those of one machine") {
  for (const char* kind : kKinds) {
    const Config config = TinyConfig(kind);
    const auto here = Make(Problems(), config), there = Make(Problems(), config);
    Steps(*here, 5);
    TakeDemonstrations(*there);
    for (int step = 1; step < 5; ++step) {
      std::vector<std::string> harvests;
      for (int group = config.groups - 1; group >= 0; --group)
        harvests.insert(harvests.begin(), PlayGroup(*there, group));
      REQUIRE(there->Learn(config.updates, nullptr).ok());
      REQUIRE(absl::IsFailedPrecondition(there->Save().status()));  // the step hasn't ended
      for (int group = 0; group < config.groups; ++group)
        REQUIRE(there->Take(group, harvests[group], std::nullopt).ok());
      REQUIRE(there->EndStep()->iteration == step);
    }
    REQUIRE(*there->Save() == *here->Save());
  }
}

TEST_CASE("actors that don't wait for each other: a checkpoint goes on, stale games are dropped") {
  const Config config = TinyConfig("priority");
  const auto trainer = Make(Problems(), config);
  TakeDemonstrations(*trainer);
  // Each harvest is taken when three more have been made.
  std::deque<std::pair<int, std::string>> made;
  const auto step = [&](std::optional<int64_t> most_stale) {
    for (int group = 0; group < config.groups; ++group) {
      made.emplace_back(group, PlayGroup(*trainer, group));
      REQUIRE(trainer->Learn(1, nullptr).ok());
    }
    for (; !made.empty(); made.pop_front()) {
      REQUIRE(trainer->Take(made.front().first, made.front().second, most_stale).ok());
      REQUIRE(trainer->Learn(3, nullptr).ok());
    }
    return *trainer->EndStep();
  };
  int64_t games = 0, best_ps = trainer->Best(0)->report.latency_ps;
  double staleness = 0;
  for (int i = 0; i < 6; ++i) {
    const Progress progress = step(std::nullopt);
    REQUIRE(progress.stale == 0);
    REQUIRE(progress.searches > 0);
    games += progress.games;
    staleness += progress.staleness;
    REQUIRE(progress.best_ps[0] <= best_ps);
    best_ps = progress.best_ps[0];
  }
  REQUIRE(games > 0);
  REQUIRE(staleness > 0);
  int64_t dropped = 0;
  for (int i = 0; i < 6; ++i) {
    const Progress progress = step(2);
    dropped += progress.stale;
    REQUIRE(progress.staleness <= 2);
  }
  REQUIRE(dropped > 0);

  const std::string saved = *trainer->Save();
  REQUIRE(trainer->Assign(0).ok());
  REQUIRE(*trainer->Save() == saved);  // a group that is out is saved as it went
  const auto resumed = Trainer::Load(Problems(), saved, 1);
  REQUIRE(resumed.ok());
  REQUIRE((*resumed)->iterations() == 13);
  Steps(**resumed, 2);
}

TEST_CASE("the same assignment gives the same harvest, and only one that is out is taken") {
  const Config config = TinyConfig("priority");
  const auto trainer = Make(Problems(), config);
  REQUIRE(absl::IsFailedPrecondition(trainer->Assign(0).status()));
  REQUIRE(absl::IsFailedPrecondition(trainer->Introduction().status()));
  TakeDemonstrations(*trainer);
  REQUIRE(absl::IsFailedPrecondition(trainer->TakeDemonstrations({}).status()));
  const std::string weights = *trainer->Weights(), assignment = *trainer->Assign(1);
  const auto actor = ActorFor(*trainer);
  const std::string harvest = *actor->Play(weights, assignment, nullptr);
  // How long it took stands at the end.
  const auto without_seconds = [](const std::string& bytes) {
    return bytes.substr(0, bytes.size() - sizeof(double));
  };
  REQUIRE(without_seconds(*ActorFor(*trainer)->Play(weights, assignment, nullptr)) ==
          without_seconds(harvest));
  REQUIRE(absl::IsFailedPrecondition(trainer->Take(0, harvest, std::nullopt)));
  REQUIRE(absl::IsInvalidArgument(trainer->Take(2, harvest, std::nullopt)));
  REQUIRE(absl::IsInvalidArgument(trainer->Assign(-1).status()));
  REQUIRE(trainer->Take(1, harvest, std::nullopt).ok());
  REQUIRE(absl::IsFailedPrecondition(trainer->Take(1, harvest, std::nullopt)));
  const std::atomic<bool> cancel = true;
  REQUIRE(absl::IsCancelled(actor->Play(weights, assignment, &cancel).status()));
  REQUIRE(
      absl::IsCancelled(PlayDemonstrations(trainer->problems()[0], config, 1, &cancel).status()));
}

TEST_CASE("damaged bytes are refused, not believed") {
  const Config config = TinyConfig("priority");
  const auto trainer = Make(Problems(), config);
  TakeDemonstrations(*trainer);
  for (int i = 0; i < 3; ++i) {
    for (int group = 0; group < config.groups; ++group)
      REQUIRE(trainer->Take(group, PlayGroup(*trainer, group), std::nullopt).ok());
    REQUIRE(trainer->EndStep().ok());
  }
  const std::string introduction = *trainer->Introduction(), weights = *trainer->Weights(),
                    assignment = *trainer->Assign(0);
  const auto actor = ActorFor(*trainer);
  const std::string harvest = *actor->Play(weights, assignment, nullptr);
  const std::string demonstrations =
      *PlayDemonstrations(trainer->problems()[0], config, 1, nullptr);
  const auto refused = [](const absl::Status& status) {
    INFO(status);
    REQUIRE((absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status)));
    REQUIRE(!status.message().empty());
  };
  const auto cut = [](const std::string& bytes, size_t part) {
    return bytes.substr(0, bytes.size() * part / 16);
  };
  for (size_t part = 0; part < 16; ++part) {
    refused(Actor::Create(Problems(), cut(introduction, part)).status());
    refused(actor->Play(cut(weights, part), assignment, nullptr).status());
    refused(actor->Play(weights, cut(assignment, part), nullptr).status());
    refused(trainer->Take(0, cut(harvest, part), std::nullopt));
    refused(Make({TinyProblem(5, 14)}, config)
                ->TakeDemonstrations({cut(demonstrations, part)})
                .status());
  }
  refused(Actor::Create({TinyProblem(5, 14)}, introduction).status());
  refused(Make(Problems(), config)->TakeDemonstrations({demonstrations}).status());
  refused(actor->Play(weights + "x", assignment, nullptr).status());
  refused(actor->Play(weights, assignment + "x", nullptr).status());
  refused(trainer->Take(0, harvest + "x", std::nullopt));
  // Whatever a byte says, it is refused or taken, and nothing crashes.
  Rng rng(1);
  for (int i = 0; i < 300; ++i) {
    std::string edited = i % 2 == 0 ? assignment : harvest;
    edited[rng.Below(edited.size())] = static_cast<char>(rng.Below(256));
    const absl::Status status = i % 2 == 0 ? actor->Play(weights, edited, nullptr).status()
                                           : trainer->Take(0, edited, std::nullopt);
    if (!status.ok()) refused(status);
    if (i % 2 != 0 && status.ok()) REQUIRE(trainer->Assign(0).ok());
  }
}

}  // namespace
}  // namespace mallocgame::muzero
