// Training as a whole: it is the same for any number of threads and after a resume, reaches the
// optimum of tiny programs, and refuses what cannot be. Also a trained agent.
#include "agents/muzero/trainer.h"

#include <algorithm>
#include <limits>

#include "agents/muzero/agent.h"
#include "agents/muzero/checkpoint.h"
#include "agents/training/torch_runtime.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/time/state.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/replay/game_log.h"
#include "mallocgame/schedule/instruction_order.h"
#include "mallocgame/solvers/registry.h"
#include "tests/agents/muzero/training_problem.h"
#include "tests/catch.h"
#include "tests/support/play.h"

namespace mallocgame::muzero {
namespace {

auto LoaderOf(const std::vector<TrainingProblem>& problems) {
  return [problems](const std::string& saved) { return Trainer::Load(problems, saved, 1); };
}

// Finite numbers may still be too great to learn from, which ends a step with a sentence.
void StepOrSay(Trainer& trainer) {
  const auto step = trainer.Step(nullptr);
  INFO(step.status());
  REQUIRE((step.ok() || step.status().message().find("loss") != std::string::npos));
}

TEST_CASE("the same stream with one thread and with three, another with another seed") {
  for (const char* kind : kKinds) {
    const Config config = TinyConfig(kind);
    training::CheckSameForAllThreads([&](uint64_t seed, int threads) {
      const auto trainer = Make({TinyProblem(5, 14), TinyProblem(6, 14)}, config, seed, threads);
      Steps(*trainer, 4);
      return *trainer->Save();
    });
  }
}

TEST_CASE("resumed anywhere it goes on the same") {
  for (const char* kind : kKinds) {
    const Config config = TinyConfig(kind);
    const std::vector<TrainingProblem> problems = {TinyProblem(5, 14), TinyProblem(6, 14)};
    const auto straight = Make(problems, config);
    const auto load = [&](const std::string& saved, int step) {
      auto resumed = Trainer::Load(problems, saved, 2);
      REQUIRE((*resumed)->iterations() == step);
      return resumed;
    };
    training::CheckResumesAnywhere(
        *straight, 5, load, [&](Trainer& resumed, const Progress&, const Progress&) {
          for (size_t i = 0; i < problems.size(); ++i) {
            REQUIRE(resumed.Best(i)->plan == straight->Best(i)->plan);
            REQUIRE(resumed.Best(i)->found_by == straight->Best(i)->found_by);
          }
        });
  }
}

TEST_CASE(
    "tiny programs reach the optimum; plans are valid and never worse than the demonstrations") {
  for (uint64_t seed = 10; seed < 22; ++seed) {
    Config config = TinyConfig();
    config.demonstration_decisions = 0;
    const TrainingProblem problem = TinyProblem(seed, 5);
    const auto game = GameFor(problem, config);
    State start(game);
    PlayForced(start);
    if (start.IsTerminal()) continue;
    const int64_t optimum = testing::BestLatency(start);
    const auto trainer = Make({problem}, config, seed);
    Steps(*trainer, 1);
    int64_t demonstrated = trainer->Best(0)->report.latency_ps;
    for (int i = 0; i < 100 && trainer->BestGame(0)->report.latency_ps > optimum; ++i) {
      Steps(*trainer, 1);
      REQUIRE(trainer->Best(0)->report.latency_ps <= demonstrated);
      demonstrated = trainer->Best(0)->report.latency_ps;
    }
    INFO("seed " << seed);
    REQUIRE(trainer->BestGame(0)->report.latency_ps == optimum);
    const auto polished = trainer->Polish(0, 0, nullptr);
    for (const auto& result : {trainer->Best(0), trainer->BestGame(0), polished}) {
      REQUIRE(Validate(game->program(), game->hardware(), result->plan).ok());
    }
    REQUIRE(polished->report.latency_ps <= trainer->BestGame(0)->report.latency_ps);
    REQUIRE(trainer->Best(0)->report.latency_ps == polished->report.latency_ps);
  }
}

TEST_CASE("in the priority game plans are valid, games replay, and the best only gets better") {
  for (uint64_t seed = 10; seed < 20; ++seed) {
    Config config = TinyConfig("priority");
    config.candidates = static_cast<int>(1 + seed % kMaxCandidates);
    const TrainingProblem problem = TinyProblem(seed, 10);
    const auto trainer = Make({problem}, config, seed);
    Steps(*trainer, 1);
    int64_t least_ps = trainer->Best(0)->report.latency_ps;
    REQUIRE(least_ps <= Solve("greedy", {GameFor(problem, config)}, {})->report.latency_ps);
    for (int i = 0; i < 4; ++i) {
      Steps(*trainer, 1);
      const auto best = trainer->Best(0), game = trainer->BestGame(0);
      REQUIRE(best->report.latency_ps <= least_ps);
      REQUIRE(best->report.latency_ps <= game->report.latency_ps);
      least_ps = best->report.latency_ps;
      for (const auto& result : {best, game})
        REQUIRE(Validate(*problem.program, problem.hardware, result->plan).ok());
      REQUIRE(game->play->game->options().game() == std::string("priority"));
      const auto log = RecordGame(*game->play->game, game->play->actions, "muzero", seed);
      REQUIRE(log.ok());
      REQUIRE(ReplayLog(*log, problem.program)->same);
      REQUIRE(log->plan == game->plan);
    }
  }
}

TEST_CASE(
    "in the schedule game plans are of their order, games replay, and checkpoints come back") {
  int others = 0;
  for (uint64_t seed = 10; seed < 16; ++seed) {
    Config config = TinyConfig("schedule");
    config.candidates = seed % 2 == 0 ? kMaxCandidates : 3;
    const TrainingProblem problem = TinyProblem(seed, 14);
    const auto trainer = Make({problem}, config, seed);
    int64_t least_ps = std::numeric_limits<int64_t>::max();
    for (int i = 0; i < 4; ++i) {
      Steps(*trainer, 1);
      const auto best = trainer->Best(0), game = trainer->BestGame(0);
      REQUIRE(best->report.latency_ps <= least_ps);
      REQUIRE(best->report.latency_ps <= game->report.latency_ps);
      least_ps = best->report.latency_ps;
      for (const auto& result : {best, game}) {
        std::shared_ptr<const Program> program = problem.program;
        if (!result->order.empty()) program = Reordered(*program, result->order)->program;
        REQUIRE(Validate(*program, problem.hardware, result->plan).ok());
      }
      others += !std::is_sorted(game->order.begin(), game->order.end());
      REQUIRE(game->play->game->options().game() == std::string("schedule"));
      const auto log = RecordGame(*game->play->game, game->play->actions, "muzero", seed);
      REQUIRE(log.ok());
      REQUIRE(ReplayLog(*log, problem.program)->same);
      REQUIRE(log->plan == game->plan);
    }
    REQUIRE(least_ps <= Solve("greedy", {GameFor(problem, config)}, {})->report.latency_ps);
    const std::string bytes = *trainer->Save();
    REQUIRE(bytes.find(", schedule rules ") != std::string::npos);
    const auto loaded = Trainer::Load({problem}, bytes, 1);
    REQUIRE(loaded.ok());
    REQUIRE((*loaded)->Best(0)->order == trainer->Best(0)->order);
    Steps(**loaded, 1);
    Steps(*trainer, 1);
    REQUIRE(*(*loaded)->Save() == *trainer->Save());
    least_ps = trainer->Best(0)->report.latency_ps;
    const auto polished = trainer->Polish(0, 0.01, nullptr);
    REQUIRE(polished->report.latency_ps <= least_ps);
    // The polished plan is of its order too.
    REQUIRE((*Trainer::Load({problem}, *trainer->Save(), 1))->Best(0)->plan == polished->plan);
  }
  REQUIRE(others > 0);
}

TEST_CASE("an agent of the schedule game plays that game only") {
  const TrainingProblem problem = TinyProblem(11, 14);
  const auto trainer = Make({problem}, TinyConfig("schedule"));
  Steps(*trainer, 2);
  const auto agent = *Agent::Load(*trainer->Save());
  for (const char* other : {"time", "priority"}) {
    const auto game = GameFor(problem, TinyConfig(other));
    const std::string message =
        std::string(agent->Play(game, agent->config(), nullptr).status().message());
    REQUIRE_THAT(message,
                 Catch::Matchers::Contains("trained in the game 'schedule', found the game '" +
                                           std::string(other)));
    const auto elsewhere = Make({problem}, TinyConfig(other));
    Steps(*elsewhere, 2);
    const auto its =
        (*Agent::Load(*elsewhere->Save()))
            ->Play(GameFor(problem, TinyConfig("schedule")), TinyConfig(other), nullptr);
    REQUIRE_THAT(std::string(its.status().message()),
                 Catch::Matchers::Contains("found the game 'schedule'"));
    const auto tuned = Trainer::Create({problem}, TinyConfig(other), 1, 1, *trainer->Save());
    REQUIRE_THAT(
        std::string(tuned.status().message()),
        Catch::Matchers::Contains("play the game 'schedule', allowed: '" + std::string(other)));
  }
}

TEST_CASE("a checkpoint of the priority game says so, and comes back with its game") {
  const std::vector<TrainingProblem> problems = {TinyProblem(5, 14)};
  const auto trainer = Make(problems, TinyConfig("priority"));
  Steps(*trainer, 3);
  const std::string saved = *trainer->Save();
  REQUIRE(saved.find("mallocgame muzero checkpoint 12, priority rules 3, observation 1\n") == 0);
  const auto loaded = Trainer::Load(problems, saved, 1);
  REQUIRE(loaded.ok());
  REQUIRE((*loaded)->config().game == "priority");
  REQUIRE((*loaded)->BestGame(0)->play->game->options() ==
          trainer->BestGame(0)->play->game->options());
  training::CheckDamagedCheckpoints<Checkpoint>(saved, LoaderOf(problems));
  training::CheckEditedContents<Checkpoint>(saved, 300, LoaderOf(problems), StepOrSay);
  // Networks that learned from other observations would take these for something else.
  std::string other_observation = saved;
  other_observation.replace(other_observation.find("observation 1"), 13, "observation 9");
  REQUIRE(training::LoadRefusal(LoaderOf(problems), other_observation)
              .find("priority rules 3, observation 9', expected ") != std::string::npos);
  // The first line and the settings must name the same game.
  auto checkpoint = *training::UnpackCheckpoint<Checkpoint>(saved);
  std::string body;
  training::WriteField(checkpoint, body);
  const std::string other = training::SealCheckpoint(Checkpoint::kAgent, Checkpoint::kFormatVersion,
                                                     body, "time", Checkpoint::kObservationVersion);
  REQUIRE(training::LoadRefusal(LoaderOf(problems), other).find("damaged") != std::string::npos);
}

TEST_CASE("what was trained on a GPU goes on where there is none") {
  const std::vector<TrainingProblem> problems = {TinyProblem(5, 14)};
  const auto trainer = Make(problems, TinyConfig());
  Steps(*trainer, 1);
  auto checkpoint = training::ValueOf(training::UnpackCheckpoint<Checkpoint>(*trainer->Save()));
  REQUIRE(Set(checkpoint.config, "device", "cuda").ok());
  const std::string saved = training::PackCheckpoint(checkpoint);
  const char* device = training::HasCuda() ? "cuda" : "cpu";
  const auto loaded = training::ValueOf(Trainer::Load(problems, saved, 1));
  REQUIRE(loaded->config().device == device);
  REQUIRE(loaded->Step(nullptr).ok());
  REQUIRE(training::ValueOf(Agent::Load(saved))->config().device == device);
  REQUIRE(Trainer::Create(problems, loaded->config(), 1, 1, saved).ok());
  const auto asked = Trainer::Create(problems, checkpoint.config, 1, 1);
  REQUIRE(asked.ok() == training::HasCuda());
  if (!asked.ok()) REQUIRE(asked.status().message().find("found device=cuda") == 8);
}

TEST_CASE("a checkpoint whose settings ask for more than its bytes hold is refused") {
  const std::vector<TrainingProblem> problems = {TinyProblem(5, 14)};
  const auto trainer = Make(problems, TinyConfig());
  Steps(*trainer, 1);
  auto checkpoint = training::ValueOf(training::UnpackCheckpoint<Checkpoint>(*trainer->Save()));
  REQUIRE(Set(checkpoint.config, "width", "8192").ok());
  const std::string saved = training::PackCheckpoint(checkpoint);
  REQUIRE(training::LoadRefusal(LoaderOf(problems), saved).find("expected") != std::string::npos);
  REQUIRE(absl::IsInvalidArgument(Agent::Load(saved).status()));
}

TEST_CASE("what a step says of itself adds up") {
  Config config = TinyConfig(GENERATE(as<std::string>{}, "time", "priority", "schedule"));
  config.moves = 40;  // so that games end
  const auto trainer = Make({TinyProblem(5, 14)}, config);
  Steps(*trainer, 1);
  const auto progress = trainer->Step(nullptr);
  REQUIRE(progress->iteration == 1);
  REQUIRE(progress->updates == config.updates);
  // Six decisions are searched again, in two batches of 4.
  REQUIRE(progress->searches == config.groups * (config.games * config.moves + 2 * config.games));
  REQUIRE((progress->varied > 0) == (config.game != "time"));
  REQUIRE(progress->varied < config.groups * config.varied_decisions);
  REQUIRE(progress->evaluations == progress->searches);  // rollouts judge: at the roots alone
  REQUIRE(progress->games > 0);
  REQUIRE(progress->replay_steps > 0);
  REQUIRE(progress->depth >= 1);
  REQUIRE(progress->mean_return[0] <= 1);
}

TEST_CASE("a cancelled step leaves results, and the checkpoint from before goes on") {
  const std::vector<TrainingProblem> problems = {TinyProblem(5, 14)};
  const auto trainer = Make(problems, TinyConfig());
  Steps(*trainer, 2);
  training::CheckCancelledStep(*trainer, LoaderOf(problems));
  REQUIRE(trainer->Best(0).ok());
}

TEST_CASE("problems and settings that can't be are refused") {
  Config config = TinyConfig();
  REQUIRE(absl::IsInvalidArgument(Trainer::Create({}, config, 1, 1).status()));
  REQUIRE(absl::IsInvalidArgument(Trainer::Create({TinyProblem(5)}, config, 1, -1).status()));
  REQUIRE(Set(config, "preset", "paper").ok());
  config.game = "schedule";
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

TEST_CASE("checkpoints of another version, of other programs, or damaged are refused") {
  const std::vector<TrainingProblem> problems = {TinyProblem(5, 14)};
  const auto trainer = Make(problems, TinyConfig());
  Steps(*trainer, 2);
  const std::string saved = *trainer->Save();
  training::CheckDamagedCheckpoints<Checkpoint>(saved, LoaderOf(problems));
  const auto refusal = [&](const std::vector<TrainingProblem>& of) {
    return training::LoadRefusal(LoaderOf(of), saved);
  };
  REQUIRE(refusal({TinyProblem(6, 14)}).find("other programs") != std::string::npos);
  REQUIRE(refusal({TinyProblem(5, 14), TinyProblem(6, 14)}).find("other programs") !=
          std::string::npos);
  TrainingProblem elsewhere = problems[0];
  elsewhere.hardware.fast_bytes += 1;
  REQUIRE(refusal({elsewhere}).find("hardware") != std::string::npos);
}

TEST_CASE("a checkpoint of fewer steps than none, or with something behind its end, is refused") {
  const std::vector<TrainingProblem> problems = {TinyProblem(5, 14)};
  const auto trainer = Make(problems, TinyConfig());
  Steps(*trainer, 1);
  const auto saved = training::UnpackCheckpoint<Checkpoint>(*trainer->Save());
  REQUIRE(saved.ok());
  Checkpoint edited = *saved;
  edited.iterations = -1;
  const auto refusal = [&] {
    return training::LoadRefusal(LoaderOf(problems), training::PackCheckpoint(edited));
  };
  REQUIRE(refusal().find("damaged") != std::string::npos);
  edited.iterations = saved->iterations;
  REQUIRE(Trainer::Load(problems, training::PackCheckpoint(edited), 1).ok());
  edited.training += '\0';
  REQUIRE(refusal().find("damaged") != std::string::npos);
}

TEST_CASE("a checkpoint with a right checksum but wrong contents is refused, not believed") {
  const std::vector<TrainingProblem> problems = {TinyProblem(5, 14)};
  const auto trainer = Make(problems, TinyConfig());
  Steps(*trainer, 3);
  training::CheckEditedContents<Checkpoint>(*trainer->Save(), 300, LoaderOf(problems), StepOrSay);
}

TEST_CASE("training may begin with the networks of an agent, on other programs") {
  const Config config = TinyConfig("priority");
  const auto first = Make({TinyProblem(5, 14)}, config);
  Steps(*first, 3);
  const std::string saved = *first->Save();
  const auto tuned = Trainer::Create({TinyProblem(6, 14)}, config, 9, 1, saved);
  REQUIRE(tuned.ok());
  REQUIRE((*tuned)->iterations() == 0);
  const auto before = *Agent::Load(saved), after = *Agent::Load(*(*tuned)->Save());
  const auto game = GameFor(TinyProblem(21, 12), config);
  const auto start = game->NewInitialPosition();
  PlayForced(*start);
  // The value is that of a rollout, which may be the same with other networks.
  const std::vector<float> policy = before->Act(*start, nullptr)->policy;
  REQUIRE(after->Act(*start, nullptr)->policy == policy);
  const auto fresh = *Agent::Load(*Make({TinyProblem(6, 14)}, config, 9)->Save());
  REQUIRE(fresh->Act(*start, nullptr)->policy != policy);
  // What the settings say of the learning rate counts from here.
  REQUIRE(Steps(*first, 1).updates > 2 * config.updates);
  REQUIRE(Steps(**tuned, 2).updates <= 2 * config.updates);

  const auto refusal = [](const Config& other, const std::string& from) {
    const auto trainer = Trainer::Create({TinyProblem(6, 14)}, other, 9, 1, from);
    REQUIRE(absl::IsInvalidArgument(trainer.status()));
    return std::string(trainer.status().message());
  };
  REQUIRE(refusal(TinyConfig("time"), saved) ==
          "muzero: the networks to begin with play the game 'priority', allowed: 'time'");
  Config wider = config;
  REQUIRE(Set(wider, "width", "24").ok());
  REQUIRE(refusal(wider, saved).find("networks") != std::string::npos);
  REQUIRE(refusal(config, saved.substr(0, saved.size() / 2)).find("checkpoint") !=
          std::string::npos);
}

TEST_CASE("an agent solves, plays and acts, on programs seen and unseen") {
  const std::string kind = GENERATE(as<std::string>{}, "time", "priority", "schedule");
  const auto trainer = Make({TinyProblem(5, 14)}, TinyConfig(kind));
  Steps(*trainer, 3);
  const auto agent = Agent::Load(*trainer->Save());
  REQUIRE(agent.ok());
  REQUIRE((*agent)->iterations() == 3);
  REQUIRE((*agent)->programs() == std::vector<std::string>{"tiny5"});
  Config config = TinyConfig(kind);
  config.rollout_share = 0;
  const auto networks_alone = Agent::Load(*Make({TinyProblem(5, 14)}, config)->Save());
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
    std::shared_ptr<const Program> planned = game->shared_program();
    if (!result->order.empty()) planned = Reordered(*planned, result->order)->program;
    REQUIRE(Validate(*planned, game->hardware(), result->plan).ok());
    REQUIRE(result->report.latency_ps <= Solve("greedy", {game}, {})->report.latency_ps);
    REQUIRE(improvements.back() == result->report.latency_ps);
    REQUIRE(result->evaluations < 4 * limits.evaluations);
    REQUIRE(result->plan == (*agent)->Solve({game}, limits)->plan);
    // The agent among other solvers, by its name.
    const NamedSolver named = {
        "muzero",
        [&](const SolveProblem& p, const SolveLimits& l) { return (*agent)->Solve(p, l); },
        0.5,
        {game->options().game()}};
    REQUIRE(Solve("muzero", {game, nullptr, {&named, 1}}, limits)->found_by == "muzero");

    Config search = (*agent)->config();
    const auto baseline = (*agent)->Baseline(game, nullptr);
    REQUIRE(baseline->report.latency_ps <= Solve("greedy", {game}, {})->report.latency_ps);
    REQUIRE((*agent)->Play(game, search, nullptr)->report.latency_ps <=
            baseline->report.latency_ps);
    // The policy decides alone, whatever the settings of the search.
    search.simulations = 1;
    const Plan alone = (*agent)->Play(game, search, nullptr)->plan;
    search.rollout_share = 0;
    REQUIRE((*agent)->Play(game, search, nullptr)->plan == alone);
    search = (*agent)->config();
    search.preset = "paper";
    REQUIRE(absl::IsInvalidArgument((*agent)->Play(game, search, nullptr).status()));
    // Without rollouts nothing is remembered from one decision to the next.
    const auto played = (*networks_alone)->Play(game, (*networks_alone)->config(), nullptr);
    REQUIRE(played.ok());
    const auto position = game->NewInitialPosition();
    for (size_t i = 0; !position->IsTerminal(); ++i) {
      const auto advice = (*networks_alone)->Act(*position, nullptr);
      REQUIRE(advice.ok());
      for (size_t a = 0; a < advice->policy.size(); ++a) {
        if (!position->legal_actions().Has(static_cast<int>(a))) REQUIRE(advice->policy[a] == 0);
      }
      REQUIRE(advice->action == played->play->actions[i]);
      REQUIRE(position->Apply(advice->action).ok());
    }
    REQUIRE(absl::IsFailedPrecondition((*agent)->Act(*position, nullptr).status()));
  }
  const auto own_options = (*agent)->config().game_options();
  const auto fewer = testing::OptionsOf(own_options->game(),
                                        {{"paper_actions", true}, {"candidates", int64_t{2}}});
  fewer->min_buffer_bytes = own_options->min_buffer_bytes;
  const TrainingProblem problem = TinyProblem(5);
  const auto fewer_actions = *Game::Create(problem.program, problem.hardware, *fewer);
  // With fewer candidates it plays its own game, but it can't say what to do in the other.
  const auto turned = (*agent)->Play(fewer_actions, (*agent)->config(), nullptr);
  REQUIRE(turned.ok() == (kind != "time"));
  if (turned.ok()) {
    const auto own = (*agent)->Play(*Game::Create(problem.program, problem.hardware, *own_options),
                                    (*agent)->config(), nullptr);
    REQUIRE(turned->play->actions == own->play->actions);
    REQUIRE(turned->play->game->num_actions() == own->play->game->num_actions());
  } else {
    REQUIRE(absl::IsInvalidArgument(turned.status()));
  }
  REQUIRE(absl::IsInvalidArgument(
      (*agent)->Act(*fewer_actions->NewInitialPosition(), nullptr).status()));
  // The other game is refused, whatever is asked.
  const std::string other = kind == "time" ? "priority" : "time";
  const auto other_game = GameFor(problem, TinyConfig(other));
  const std::string sentence =
      "muzero: the agent was trained in the game '" + kind + "', found the game '" + other + "'";
  REQUIRE((*agent)->Solve({other_game}, {}).status().message() == sentence);
  REQUIRE((*agent)->Play(other_game, (*agent)->config(), nullptr).status().message() == sentence);
  REQUIRE((*agent)->Baseline(other_game, nullptr).status().message() == sentence);
  REQUIRE((*agent)->Act(*other_game->NewInitialPosition(), nullptr).status().message() == sentence);
}

}  // namespace
}  // namespace mallocgame::muzero
