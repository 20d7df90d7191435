// Training as a whole: the same stream for any number of threads and after a resume, the optimum of
// tiny programs, refusals.
#include "agents/muzero/trainer.h"

#include <algorithm>

#include "agents/muzero/agent.h"
#include "agents/muzero/checkpoint.h"
#include "mallocgame/game/state.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/solvers/registry.h"
#include "tests/agents/muzero/training_problem.h"
#include "tests/catch.h"
#include "tests/support/play.h"

namespace mallocgame::muzero {
namespace {

std::unique_ptr<Trainer> Make(std::vector<TrainingProblem> problems, const Config& config,
                              uint64_t seed = 1, int threads = 1) {
  auto trainer = Trainer::Create(std::move(problems), config, seed, threads);
  INFO(trainer.status());
  REQUIRE(trainer.ok());
  return *std::move(trainer);
}

void Steps(Trainer& trainer, int steps) {
  for (int i = 0; i < steps; ++i) {
    const auto progress = trainer.Step(nullptr);
    INFO(progress.status());
    REQUIRE(progress.ok());
  }
}

TEST_CASE("the same stream with one thread and with three, another with another seed") {
  for (const char* model : {"true", "learned"}) {
    Config config = TinyConfig();
    config.search_model = model;
    const auto train = [&](uint64_t seed, int threads) {
      const auto trainer = Make({TinyProblem(5, 14), TinyProblem(6, 14)}, config, seed, threads);
      Steps(*trainer, 4);
      return *trainer->Save();
    };
    const std::string one = train(1, 1);
    REQUIRE((train(1, 3) == one));
    REQUIRE((train(2, 1) != one));
  }
}

TEST_CASE("resumed anywhere it goes on the same") {
  for (const char* model : {"true", "learned"}) {
    Config config = TinyConfig();
    config.search_model = model;
    const std::vector<TrainingProblem> problems = {TinyProblem(5, 14), TinyProblem(6, 14)};
    const auto straight = Make(problems, config);
    std::string saved = *straight->Save();
    for (int step = 0; step < 5; ++step) {
      auto resumed = Trainer::Load(problems, saved, 2);
      INFO(resumed.status());
      REQUIRE(resumed.ok());
      REQUIRE((*resumed)->iterations() == step);
      Steps(*straight, 1);
      Steps(**resumed, 1);
      saved = *straight->Save();
      REQUIRE((*(*resumed)->Save() == saved));
      for (size_t i = 0; i < problems.size(); ++i) {
        REQUIRE((*resumed)->Best(i)->plan == straight->Best(i)->plan);
        REQUIRE((*resumed)->Best(i)->found_by == straight->Best(i)->found_by);
      }
    }
  }
}

TEST_CASE(
    "tiny programs reach the optimum; plans are valid and never worse than the demonstrations") {
  for (uint64_t seed = 10; seed < 22; ++seed) {
    Config config = TinyConfig();
    config.demonstration_decisions = 0;
    config.varied_decisions = 2000;
    config.selection = seed % 2 == 0 ? "gumbel" : "puct";
    config.search_model = seed % 4 < 2 ? "true" : "learned";
    const TrainingProblem problem = TinyProblem(seed, 5);
    const auto game = GameFor(problem, config);
    State start = game->InitialState();
    PlayForced(start);
    if (start.IsTerminal()) continue;
    const int64_t optimum = testing::BestLatency(start);
    const auto trainer = Make({problem}, config, seed);
    Steps(*trainer, 1);
    int64_t demonstrated = trainer->Best(0)->report.latency_ps;
    for (int i = 0; i < 40 && trainer->BestGame(0)->report.latency_ps > optimum; ++i) {
      Steps(*trainer, 1);
      REQUIRE(trainer->Best(0)->report.latency_ps <= demonstrated);
      demonstrated = trainer->Best(0)->report.latency_ps;
    }
    REQUIRE(trainer->BestGame(0)->report.latency_ps == optimum);
    const auto polished = trainer->Polish(0, 0, nullptr);
    for (const auto& result : {trainer->Best(0), trainer->BestGame(0), polished}) {
      REQUIRE(Validate(game->program(), game->hardware(), result->plan).ok());
    }
    REQUIRE(polished->report.latency_ps <= trainer->BestGame(0)->report.latency_ps);
    REQUIRE(trainer->Best(0)->report.latency_ps == polished->report.latency_ps);
  }
}

TEST_CASE("what a step says of itself adds up") {
  const Config config = TinyConfig();
  const auto trainer = Make({TinyProblem(5, 14)}, config);
  Steps(*trainer, 1);
  const auto progress = trainer->Step(nullptr);
  REQUIRE(progress->iteration == 1);
  REQUIRE(progress->updates == config.updates);
  // 6 reanalysed: two batches of 4
  REQUIRE(progress->searches == config.groups * (config.games * config.moves + 2 * config.games));
  REQUIRE(progress->varied > 0);
  REQUIRE(progress->varied < config.groups * config.varied_decisions);
  REQUIRE(progress->evaluations > progress->searches);
  REQUIRE(progress->games > 0);
  REQUIRE(progress->replay_steps > 0);
  REQUIRE(progress->depth >= 1);
  REQUIRE(progress->mean_return[0] <= 1);
}

TEST_CASE("a cancelled step leaves results, and the checkpoint from before goes on") {
  const Config config = TinyConfig();
  const std::vector<TrainingProblem> problems = {TinyProblem(5, 14)};
  const auto trainer = Make(problems, config);
  Steps(*trainer, 2);
  const std::string saved = *trainer->Save();
  const std::atomic<bool> cancel{true};
  REQUIRE(absl::IsCancelled(trainer->Step(&cancel).status()));
  REQUIRE(absl::IsFailedPrecondition(trainer->Step(nullptr).status()));
  REQUIRE(absl::IsFailedPrecondition(trainer->Save().status()));
  REQUIRE(trainer->Best(0).ok());
  const auto resumed = Trainer::Load(problems, saved, 1);
  Steps(**resumed, 1);
}

TEST_CASE("problems and settings that can't be are refused") {
  Config config = TinyConfig();
  REQUIRE(absl::IsInvalidArgument(Trainer::Create({}, config, 1, 1).status()));
  REQUIRE(absl::IsInvalidArgument(Trainer::Create({TinyProblem(5)}, config, 1, -1).status()));
  config.best_share = 1;
  REQUIRE(absl::IsInvalidArgument(Trainer::Create({TinyProblem(5)}, config, 1, 1).status()));
  config = TinyConfig();
  config.min_buffer_bytes = 1 << 20;
  const auto nothing = Trainer::Create({TinyProblem(5)}, config, 1, 1);
  REQUIRE(absl::IsInvalidArgument(nothing.status()));
  REQUIRE(std::string(nothing.status().message()).find("nothing is to be decided") !=
          std::string::npos);
  const auto trainer = Make({TinyProblem(5)}, TinyConfig());
  REQUIRE(absl::IsFailedPrecondition(trainer->Best(0).status()));
}

TEST_CASE(
    "checkpoints of another version, of other programs, or damaged are refused with a sentence") {
  const std::vector<TrainingProblem> problems = {TinyProblem(5, 14)};
  const auto trainer = Make(problems, TinyConfig());
  Steps(*trainer, 2);
  const std::string saved = *trainer->Save();
  const auto refusal = [&](const std::vector<TrainingProblem>& of, const std::string& bytes) {
    const auto loaded = Trainer::Load(of, bytes, 1);
    REQUIRE(absl::IsInvalidArgument(loaded.status()));
    return std::string(loaded.status().message());
  };
  REQUIRE(refusal({TinyProblem(6, 14)}, saved).find("other programs") != std::string::npos);
  REQUIRE(refusal({TinyProblem(5, 14), TinyProblem(6, 14)}, saved).find("other programs") !=
          std::string::npos);
  TrainingProblem elsewhere = problems[0];
  elsewhere.hardware.fast_bytes += 1;
  REQUIRE(refusal({elsewhere}, saved).find("hardware") != std::string::npos);
  std::string other_version = saved;
  other_version.replace(other_version.find("checkpoint 1"), 12, "checkpoint 9");
  const std::string message = refusal(problems, other_version);
  REQUIRE(message.find("another version: found 'mallocgame muzero checkpoint 9") !=
          std::string::npos);
  REQUIRE(refusal(problems, "").find("not a checkpoint") != std::string::npos);
  REQUIRE(refusal(problems, "MGP1 something else").find("not a checkpoint") != std::string::npos);
  for (size_t size : {saved.size() - 1, saved.size() / 2, size_t{60}}) {
    REQUIRE(refusal(problems, saved.substr(0, size)).find("damaged") != std::string::npos);
  }
  for (size_t at : {saved.size() / 3, saved.size() - 3}) {
    std::string damaged = saved;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    REQUIRE(refusal(problems, damaged).find("damaged") != std::string::npos);
  }
}

TEST_CASE("a checkpoint with a right checksum but wrong contents is refused, not believed") {
  const std::vector<TrainingProblem> problems = {TinyProblem(5, 14)};
  const auto trainer = Make(problems, TinyConfig());
  Steps(*trainer, 3);
  const auto checkpoint = UnpackCheckpoint(*trainer->Save());
  REQUIRE(checkpoint.ok());
  Rng rng(9);
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    Checkpoint edited = *checkpoint;
    for (uint32_t edits = 1 + rng.Below(3); edits > 0; --edits) {
      rng.Pick(edited.training) = static_cast<char>(rng.Below(256));
    }
    if (rng.Below(4) == 0) edited.training.resize(rng.Below(edited.training.size()));
    const auto loaded = Trainer::Load(problems, PackCheckpoint(edited), 1);
    refused += !loaded.ok();
    if (loaded.ok() && i % 10 == 0) Steps(**loaded, 1);
  }
  REQUIRE(refused > 30);
}

TEST_CASE("an agent solves, plays and acts, on programs seen and unseen") {
  const auto trainer = Make({TinyProblem(5, 14)}, TinyConfig());
  Steps(*trainer, 3);
  const auto agent = Agent::Load(*trainer->Save());
  REQUIRE(agent.ok());
  REQUIRE((*agent)->iterations() == 3);
  REQUIRE((*agent)->programs() == std::vector<std::string>{"tiny5"});
  for (uint64_t seed : {5, 21, 22, 23}) {
    const TrainingProblem problem = TinyProblem(seed, 12);
    const auto game = GameFor(problem, (*agent)->config());
    SolveLimits limits;
    limits.seconds = 0;
    limits.evaluations = 60;
    std::vector<int64_t> improvements;
    limits.progress = [&](double, int64_t latency_ps) { improvements.push_back(latency_ps); };
    const auto result = (*agent)->Solve({game}, limits);
    INFO(result.status());
    REQUIRE(result.ok());
    REQUIRE(Validate(game->program(), game->hardware(), result->plan).ok());
    REQUIRE(result->report.latency_ps <= Solve("greedy", {game}, {})->report.latency_ps);
    REQUIRE(improvements.back() == result->report.latency_ps);
    REQUIRE(result->plan == (*agent)->Solve({game}, limits)->plan);
    // Among others, by name.
    const NamedSolver named = {
        "muzero",
        [&](const SolveProblem& p, const SolveLimits& l) { return (*agent)->Solve(p, l); }, 0.5};
    REQUIRE(Solve("muzero", {game, nullptr, {&named, 1}}, limits)->found_by == "muzero");

    const auto played = (*agent)->Play(game, nullptr);
    REQUIRE(played.ok());
    State state = game->InitialState();
    for (size_t i = 0; !state.IsTerminal(); ++i) {
      const auto advice = (*agent)->Act(state);
      REQUIRE(advice.ok());
      REQUIRE(state.IsLegal(advice->action));
      for (size_t a = 0; a < advice->policy.size(); ++a) {
        if (!state.IsLegal(static_cast<Action>(a))) REQUIRE(advice->policy[a] == 0);
      }
      REQUIRE(static_cast<uint8_t>(advice->action) == played->actions[i]);
      REQUIRE(state.Apply(advice->action).ok());
    }
    REQUIRE(absl::IsFailedPrecondition((*agent)->Act(state).status()));
  }
  GameOptions paper = (*agent)->config().game_options();
  paper.paper_actions = true;
  const TrainingProblem problem = TinyProblem(5);
  const auto three_actions = *Game::Create(problem.program, problem.hardware, paper);
  REQUIRE(absl::IsInvalidArgument((*agent)->Play(three_actions, nullptr).status()));
}

}  // namespace
}  // namespace mallocgame::muzero
