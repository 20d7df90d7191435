// Training as a whole: it is the same for any number of threads and after a resume, reaches the
// optimum of tiny problems, and refuses what cannot be. Also ablations, and a trained agent.
#include "agents/egrl/trainer.h"

#include <algorithm>
#include <cmath>

#include "agents/egrl/agent.h"
#include "agents/egrl/checkpoint.h"
#include "agents/egrl/evolution.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/solvers/registry.h"
#include "tests/agents/egrl/training_problem.h"
#include "tests/catch.h"

namespace mallocgame::egrl {
namespace {

auto LoaderOf(const std::shared_ptr<const PlacementProblem>& problem) {
  return [problem](const std::string& saved) { return Trainer::Load({problem}, saved, 1); };
}

TEST_CASE("the same stream with one thread and with three, another with another seed") {
  training::CheckSameForAllThreads([](uint64_t seed, int threads) {
    const auto trainer = Make(TinyProblem(3), TinyConfig(), seed, threads);
    Steps(*trainer, 6);
    return *trainer->Save();
  });
}

TEST_CASE("resumed anywhere it goes on the same") {
  const auto problem = TinyProblem(3, 12);
  const auto straight = Make(problem, TinyConfig());
  const auto load = [&](const std::string& saved, int step) {
    auto resumed = Trainer::Load({problem}, saved, 2);
    REQUIRE((*resumed)->generations() == step);
    return resumed;
  };
  training::CheckResumesAnywhere(*straight, 7, load,
                                 [&](Trainer& resumed, const Progress& one, const Progress& other) {
                                   REQUIRE(other.evaluations == one.evaluations);
                                   REQUIRE(other.best_by_gradient == one.best_by_gradient);
                                   REQUIRE(other.best_by_refining == one.best_by_refining);
                                   REQUIRE(other.fresh == one.fresh);
                                   REQUIRE(other.migrants == one.migrants);
                                   REQUIRE(resumed.best(0).map == straight->best(0).map);
                                   REQUIRE(resumed.best(0).best_ps == straight->best(0).best_ps);
                                 });
}

TEST_CASE("tiny problems reach their optimum, by any of the ablations but the gradient alone") {
  for (uint64_t seed : {20, 40}) {
    const auto problem = TinyProblem(seed, 6, 8);
    const int64_t optimum = Optimum(*problem);
    for (const auto& [name, value] :
         std::vector<std::pair<const char*, const char*>>{{"refined", "0"},
                                                          {"refined", "0.25"},
                                                          {"refined", "0.9"},
                                                          {"gradient", "0"},
                                                          {"boltzmann_share", "0.8"}}) {
      Config config = TinyConfig();
      REQUIRE(Set(config, name, value).ok());
      const auto trainer = Make(problem, config, seed);
      int64_t before = INT64_MAX;
      for (int i = 0; i < 150 && before > optimum; ++i) {
        Steps(*trainer, 1);
        const int64_t now = trainer->best(0).best_ps.back();
        REQUIRE((now == 0 || now >= optimum));
        if (now > 0) REQUIRE(now <= before);
        if (now > 0) before = now;
      }
      INFO(name << " " << value << " seed " << seed);
      REQUIRE(before == optimum);
      REQUIRE(problem->Evaluate(trainer->best(0).map)->latency_ps == optimum);
      REQUIRE(problem->Evaluate(trainer->best(0).map)->moved == 0);
    }
  }
}

TEST_CASE("the policy gradient alone improves on where it began") {
  Config config = TinyConfig();
  config.population = 0;
  config.rollouts = 4;
  config.refined = 0;
  const auto problem = TinyProblem(40, 6, 8);
  const auto trainer = Make(problem, config);
  const Progress first = Steps(*trainer, 1);
  const Progress last = Steps(*trainer, 100);
  REQUIRE(last.evaluations == 404);
  REQUIRE(last.gnn_members + last.boltzmann_members == 0);
  REQUIRE(last.updates > 300);
  REQUIRE(last.best_by_gradient > 0);
  REQUIRE(last.best_by_gnn + last.best_by_boltzmann + last.best_by_refining == 0);
  REQUIRE(std::isnan(last.gnn_mean));
  REQUIRE(last.best_reward > first.best_reward);
  const double all_slow = problem->Evaluate(PlacementMap(problem->map_size(), 2))->reward;
  REQUIRE(last.best_reward > all_slow);
}

TEST_CASE("as published, maps that have to be rectified earn a penalty; by default none has to") {
  const auto problem = TinyProblem(40, 12);
  const auto paper = Make(problem, TinyPaperConfig()), strong = Make(problem, TinyConfig());
  double penalised = 0, least = 1;
  for (int i = 0; i < 15; ++i) {
    const Progress progress = Steps(*paper, 1);
    penalised += progress.penalised;
    least = std::min(least, progress.boltzmann_mean);
    REQUIRE(Steps(*strong, 1).penalised == 0);
  }
  REQUIRE(penalised > 0.5);
  REQUIRE(least < 0);
  REQUIRE(problem->Evaluate(paper->best(0).map)->moved == 0);
}

// The mean reward of the actor's maps after learning for sixty generations.
double RewardAfter(const std::shared_ptr<const PlacementProblem>& problem, uint64_t seed,
                   double learning_rate) {
  Config config = TinyPaperConfig();
  config.population = 0;
  config.rollouts = 4;
  config.learning_rate = learning_rate;
  const auto trainer = Make(problem, config, seed);
  Steps(*trainer, 60);
  double sum = 0;
  for (int i = 0; i < 20; ++i) sum += Steps(*trainer, 1).gradient_mean / 20;
  return sum;
}

TEST_CASE("as published, the policy gradient's maps get better, and don't if it learns nothing") {
  const auto problem = TinyProblem(40, 6, 8, 1 << 20);
  const double most = problem->Evaluate(PlacementMap(problem->map_size(), 0))->reward;
  for (uint64_t seed : {1, 2}) {
    const double learned = RewardAfter(problem, seed, 1e-2),
                 control = RewardAfter(problem, seed, 0);
    INFO(seed << ": " << control << " to " << learned << " of " << most);
    REQUIRE(learned > control + (most - control) / 8);
  }
}

TEST_CASE("with noise the map is told without it, and the stream is the seed's") {
  Config config = TinyConfig();
  config.noise = 0.05;
  const auto problem = TinyProblem(40, 12);
  const auto trainer = Make(problem, config), again = Make(problem, config, 1, 2),
             exact = Make(problem, TinyConfig());
  Steps(*trainer, 10);
  Steps(*again, 5);
  const auto resumed = training::ValueOf(Trainer::Load({problem}, *again->Save(), 1));
  Steps(*resumed, 5);
  Steps(*exact, 10);
  REQUIRE((*trainer->Save() == *resumed->Save()));
  REQUIRE(trainer->best(0).outcome == *problem->Evaluate(trainer->best(0).map));
  REQUIRE(trainer->best(0).best_ps.back() == trainer->best(0).outcome.latency_ps);
  REQUIRE(trainer->best(0).best_ps != exact->best(0).best_ps);
}

TEST_CASE("what a generation says of itself adds up") {
  Config config = TinyConfig();
  config.warmup = 20;
  const auto trainer = Make(TinyProblem(3), config);
  const Progress first = Steps(*trainer, 1);
  constexpr int kRefinements = 3;  // a quarter of the population's and these
  REQUIRE(first.evaluations == config.population + config.rollouts + kRefinements);
  REQUIRE(first.gnn_members + first.boltzmann_members == config.population);
  REQUIRE(first.updates == 0);
  REQUIRE(first.replay == first.evaluations);
  REQUIRE(first.refined_max >= 1);
  REQUIRE(first.refined_max > first.refined_mean);
  const Progress last = Steps(*trainer, 9);
  REQUIRE(last.generation == 9);
  REQUIRE(trainer->generations() == 10);
  REQUIRE(last.evaluations == trainer->evaluations());
  REQUIRE(last.evaluations == static_cast<int64_t>(trainer->best(0).best_ps.size()));
  REQUIRE(last.updates <= last.evaluations);
  REQUIRE(last.updates >= last.evaluations - config.warmup - 2 * first.evaluations);
  REQUIRE(last.migrants >= 3);
  REQUIRE(last.migrants_elite + last.migrants_selected <= last.migrants);
  REQUIRE(last.gnn_max >= last.gnn_mean);
  REQUIRE(last.fresh <= 1);
  REQUIRE(last.best_ps == trainer->best(0).outcome.latency_ps);

  config.gradient = false;
  const auto evolution = Make(TinyProblem(3), config);
  const Progress alone = Steps(*evolution, 5);
  REQUIRE(alone.updates == 0);
  REQUIRE(alone.migrants == 0);
  REQUIRE(std::isnan(alone.gradient_mean));
}

TEST_CASE(
    "the compiler's map is graded at the begin, so that the result is not worse, by any of the "
    "ablations") {
  for (const auto& [name, value] :
       std::vector<std::pair<const char*, const char*>>{{"refined", "0.25"},
                                                        {"refined", "0.01"},
                                                        {"refined", "0.9"},
                                                        {"population", "0"},
                                                        {"gradient", "0"}}) {
    for (uint64_t seed : {3, 50}) {
      Config config = TinyConfig();
      REQUIRE(Set(config, name, value).ok());
      const auto problem = TinyProblem(seed, 12);
      const auto trainer = Make(problem, config);
      Steps(*trainer, 1);
      REQUIRE(trainer->best(0).best_ps.back() > 0);
      REQUIRE(trainer->best(0).best_ps.back() <= problem->baseline_ps());
    }
  }
}

TEST_CASE(
    "a share of the population's maps refines, and no generation grades more than the first") {
  for (const double refined : {0.0, 0.1, 0.25, 0.6}) {
    for (const int population : {0, 8}) {
      Config config = TinyConfig();
      config.refined = refined;
      config.population = population;
      config.updates = 0;
      const auto trainer = Make(TinyProblem(3, 12), config);
      const int64_t first = Steps(*trainer, 1).evaluations;
      int64_t before = first, most = 0;
      constexpr int kGenerations = 60;
      for (int i = 0; i < kGenerations; ++i) {
        const int64_t now = Steps(*trainer, 1).evaluations;
        most = std::max(most, now - before);
        before = now;
      }
      REQUIRE(most <= first);
      const int64_t rollouts = kGenerations * config.rollouts,
                    children = kGenerations * (population > 0 ? population - config.elites : 0);
      REQUIRE(static_cast<double>(before - first - rollouts) * (1 - refined) ==
              Approx(static_cast<double>(children)).epsilon(0.15));
    }
  }
}

TEST_CASE("several problems take turns, and share the networks") {
  const Problems problems = {TinyProblem(3), TinyProblem(50), TinyProblem(70, 14)};
  const auto trainer = training::ValueOf(Trainer::Create(problems, TinyConfig(), 1, 1));
  int64_t graded = 0, before = 0;
  for (int64_t i = 0; i < 12; ++i) {
    const Progress progress = Steps(*trainer, 1);
    REQUIRE(progress.problem == i % 3);
    REQUIRE(progress.best_ps == trainer->best(i % 3).outcome.latency_ps);
    REQUIRE(progress.best_ps <= problems[i % 3]->baseline_ps());
    graded = trainer->evaluations();
    REQUIRE(graded > before);
    before = graded;
  }
  REQUIRE(graded == trainer->best(0).evaluations + trainer->best(1).evaluations +
                        trainer->best(2).evaluations);
  std::string saved;
  for (int in_round = 0; in_round < 3; ++in_round) {
    saved = *trainer->Save();
    const auto again = training::ValueOf(Trainer::Load(problems, saved, 2));
    Steps(*trainer, 4);
    Steps(*again, 4);
    REQUIRE((*trainer->Save() == *again->Save()));
  }
  REQUIRE(!Trainer::Load({problems[0], problems[2], problems[1]}, saved, 1).ok());
  REQUIRE(!Trainer::Load({problems[0]}, saved, 1).ok());
  REQUIRE(absl::IsInvalidArgument(Trainer::Create({}, TinyConfig(), 1, 1).status()));
  for (const std::string kind : {"time", "priority"}) {
    const Problems mixed = {problems[0], *PlacementProblem::Create(TinyGame(5, kind))};
    REQUIRE(absl::IsInvalidArgument(Trainer::Create(mixed, TinyConfig(), 1, 1).status()));
  }
}

// The bytes of a trainer, of which a round's generations are made here or from its assignments.
std::string AfterRounds(const Problems& problems, const Config& config, int rounds, bool assigned,
                        const std::vector<std::vector<float>>& ancestors = {}) {
  const auto trainer =
      training::ValueOf(Trainer::Create(problems, config, 1, assigned ? 1 : 2, ancestors));
  for (int round = 0; round < rounds; ++round) {
    const std::string networks = trainer->Weights();
    std::vector<std::string> harvests;
    for (size_t i = 0; assigned && i < problems.size(); ++i) {
      harvests.push_back(training::ValueOf(Evolution::Harvest(
          *problems[i], networks, *trainer->Assign(i), 2, [] { return false; })));
    }
    for (size_t i = 0; i < problems.size(); ++i)
      REQUIRE(trainer->Step(nullptr, assigned ? &harvests[i] : nullptr).ok());
  }
  return training::ValueOf(trainer->Save());
}

TEST_CASE("generations that are made elsewhere are those that are made here") {
  const Problems problems = {TinyProblem(3), TinyProblem(50), TinyProblem(70, 14)};
  for (const auto& [name, value] : std::vector<std::pair<const char*, const char*>>{
           {"refined", "0.25"}, {"gradient", "0"}, {"population", "0"}}) {
    INFO(name);
    Config config = TinyConfig();
    REQUIRE(Set(config, name, value).ok());
    REQUIRE((AfterRounds(problems, config, 5, true) == AfterRounds(problems, config, 5, false)));
  }
  const Config config = TinyConfig();
  const auto parent = Make(problems[0], config, 7);
  Steps(*parent, 3);
  const auto saved = training::ValueOf(training::UnpackCheckpoint<Checkpoint>(*parent->Save()));
  const std::vector<std::vector<float>> ancestors = {saved.actor, saved.best_network};
  REQUIRE((AfterRounds(problems, config, 2, true, ancestors) ==
           AfterRounds(problems, config, 2, false, ancestors)));
}

TEST_CASE("what is assigned or harvested is checked before it is believed") {
  const Problems problems = {TinyProblem(3), TinyProblem(50)};
  const auto never = [] { return false; };
  const auto trainer = training::ValueOf(Trainer::Create(problems, TinyConfig(), 1, 1));
  Steps(*trainer, 5);
  REQUIRE(std::string(trainer->Assign(0).status().message()).find("found 0, allowed: 1 to 1") !=
          std::string::npos);
  const std::string networks = trainer->Weights(), assignment = *trainer->Assign(1);
  const auto harvest = [&](size_t problem, const std::string& with, const std::string& what) {
    return Evolution::Harvest(*problems[problem], with, what, 1, never);
  };
  REQUIRE(absl::IsInvalidArgument(harvest(0, networks, assignment).status()));
  REQUIRE(absl::IsInvalidArgument(harvest(1, networks, assignment + "x").status()));
  REQUIRE(absl::IsInvalidArgument(harvest(1, networks.substr(8), assignment).status()));
  REQUIRE(absl::IsInvalidArgument(
      Evolution::Harvest(*problems[1], networks, assignment, -1, never).status()));
  REQUIRE(absl::IsCancelled(
      Evolution::Harvest(*problems[1], networks, assignment, 1, [] { return true; }).status()));
  Config wider = TinyConfig();
  REQUIRE(Set(wider, "hidden", "16").ok());
  const auto other = training::ValueOf(Trainer::Create(problems, wider, 1, 1));
  REQUIRE(absl::IsInvalidArgument(harvest(1, other->Weights(), assignment).status()));

  const std::string saved = *trainer->Save();
  const std::string right = *harvest(1, networks, assignment);
  for (const std::string& wrong : {right.substr(0, right.size() - 1), right + "x"}) {
    const auto loaded = training::ValueOf(Trainer::Load(problems, saved, 1));
    REQUIRE(absl::IsInvalidArgument(loaded->Step(nullptr, &wrong).status()));
    REQUIRE(!loaded->Save().ok());
    REQUIRE(absl::IsFailedPrecondition(loaded->Assign(1).status()));
  }
  REQUIRE(trainer->Step(nullptr, &right).ok());
  REQUIRE(std::string(trainer->Step(nullptr, &right).status().message())
              .find("of another generation") != std::string::npos);
}

TEST_CASE("on a game the first map has everything in fast memory") {
  Config config = TinyConfig();
  const auto problem = *PlacementProblem::Create(TinyGame(5));
  const auto trainer = Make(problem, config);
  const Progress first = Steps(*trainer, 1);
  REQUIRE(first.replay == first.evaluations);
  REQUIRE(first.best_ps <= problem->Evaluate(problem->baseline_map())->latency_ps);
  const Progress last = Steps(*trainer, 20);
  REQUIRE(last.replay == last.evaluations);
}

TEST_CASE(
    "on a priority game it learns how runs are served, with the same bytes from a checkpoint") {
  const auto problem = *PlacementProblem::Create(TinyGame(5, "priority"));
  const auto trainer = Make(problem, TinyConfig());
  const int64_t first_ps = Steps(*trainer, 1).best_ps;
  REQUIRE(first_ps <= problem->Evaluate(problem->baseline_map())->latency_ps);
  Steps(*trainer, 10);
  const std::string saved = *trainer->Save();
  const Progress last = Steps(*trainer, 30);
  REQUIRE(last.updates > 0);
  REQUIRE(last.best_ps < first_ps);
  const auto resumed = training::ValueOf(Trainer::Load({problem}, saved, 3));
  Steps(*resumed, 30);
  REQUIRE(*resumed->Save() == *trainer->Save());
  // What is not open has one level, so that it is the same map.
  const ProblemGraph graph = MakeProblemGraph(*problem);
  const PlacementMap& best = trainer->best(0).map;
  const std::vector<uint8_t> open = OpenDecisions(graph, best);
  for (size_t i = 0; i < best.size(); ++i) {
    if (open[i] == 0) REQUIRE(best[i] == (i % 2 == 0 ? 0 : 4));
  }
  // Agents place other priority games, and nothing else.
  const auto agent = *Agent::Load(*trainer->Save());
  REQUIRE(agent->game() == "priority");
  const auto other = *PlacementProblem::Create(TinyGame(6, "priority"));
  REQUIRE(agent->Place(*other, 3, 1)->evaluations == 2 + 2 * 3);
  REQUIRE(absl::IsInvalidArgument(agent->Solve({TinyGame(5)}, {}).status()));
}

TEST_CASE("a cancelled generation leaves results, and the checkpoint from before goes on") {
  const auto problem = TinyProblem(3);
  const auto trainer = Make(problem, TinyConfig());
  Steps(*trainer, 3);
  const int64_t evaluations = trainer->evaluations();
  training::CheckCancelledStep(*trainer, LoaderOf(problem));
  REQUIRE(trainer->best(0).evaluations == evaluations);
}

TEST_CASE("settings and threads that can't be are refused") {
  Config config = TinyConfig();
  REQUIRE(absl::IsInvalidArgument(Trainer::Create({TinyProblem(3)}, config, 1, -1).status()));
  config.elites = 8;
  REQUIRE(absl::IsInvalidArgument(Trainer::Create({TinyProblem(3)}, config, 1, 1).status()));
}

TEST_CASE("checkpoints of another version, of another problem, or damaged are refused") {
  const auto problem = TinyProblem(3);
  const auto trainer = Make(problem, TinyConfig());
  Steps(*trainer, 3);
  const std::string saved = *trainer->Save();
  training::CheckDamagedCheckpoints<Checkpoint>(saved, LoaderOf(problem));
  REQUIRE(training::LoadRefusal(LoaderOf(TinyProblem(50)), saved)
              .find("another problem: found random (") != std::string::npos);
}

TEST_CASE("a checkpoint with a right checksum but wrong contents is refused, not believed") {
  const auto problem = TinyProblem(3);
  const auto trainer = Make(problem, TinyConfig());
  Steps(*trainer, 3);
  training::CheckEditedContents<Checkpoint>(
      *trainer->Save(), 200, LoaderOf(problem),
      [](Trainer& loaded) { (void)loaded.Step(nullptr); });  // may refuse, must not crash
}

TEST_CASE("a checkpoint whose settings ask for more than its bytes hold is refused") {
  const auto problem = TinyProblem(3);
  const char* const gradient = GENERATE("0", "1");
  Config config = TinyConfig();
  REQUIRE(Set(config, "gradient", gradient).ok());
  const auto trainer = Make(problem, config);
  Steps(*trainer, 1);
  auto checkpoint = training::ValueOf(training::UnpackCheckpoint<Checkpoint>(*trainer->Save()));
  for (const auto& [name, value] : {std::pair("hidden", "4096"), {"depth", "16"}}) {
    REQUIRE(Set(checkpoint.config, name, value).ok());
    const std::string saved = training::PackCheckpoint(checkpoint);
    REQUIRE(training::LoadRefusal(LoaderOf(problem), saved).find("expected") != std::string::npos);
    const auto agent = Agent::Load(saved);
    REQUIRE(absl::IsInvalidArgument((*agent)->Place(*problem, 1, 1).status()));
  }
}

TEST_CASE("an agent places what it has not seen, without training") {
  Config config = TinyConfig();
  const auto trainer = Make(TinyProblem(3), config);
  Steps(*trainer, 10);
  const auto agent = Agent::Load(*trainer->Save());
  INFO(agent.status());
  REQUIRE(agent.ok());
  REQUIRE((*agent)->name() == trainer->problems()[0]->program().name());
  REQUIRE((*agent)->generations() == 10);
  REQUIRE((*agent)->evaluations() == trainer->evaluations());
  REQUIRE((*agent)->config() == config);
  for (uint64_t seed : {3, 50, 70}) {
    const auto problem = TinyProblem(seed, 14);
    const auto placed = (*agent)->Place(*problem, 30, 1);
    REQUIRE(placed.ok());
    REQUIRE(placed->evaluations == 2 + 2 * 30);
    REQUIRE(*problem->Evaluate(placed->map) == placed->outcome);
    REQUIRE(placed->outcome.moved == 0);
    REQUIRE(placed->best_ps.front() > 0);  // the first map was made to fit, too
    REQUIRE((*agent)->Place(*problem, 30, 1)->best_ps == placed->best_ps);
    REQUIRE((*agent)->Place(*problem, 0, 1)->evaluations == 2);
  }
  REQUIRE(absl::IsInvalidArgument((*agent)->Place(*TinyProblem(3), -1, 1).status()));
  const auto on_tpu = *PlacementProblem::Create(TinyGame(5));
  const auto refused = (*agent)->Place(*on_tpu, 1, 1);
  REQUIRE(absl::IsInvalidArgument(refused.status()));
  REQUIRE(std::string(refused.status().message())
              .find("trained with 3 levels of memory, found a problem with 2") !=
          std::string::npos);
  REQUIRE(absl::IsInvalidArgument((*agent)->Solve({TinyGame(5)}, {}).status()));
}

TEST_CASE(
    "as a solver it plays a valid plan, no worse than all in main memory, the same each time") {
  const auto trainer = Make(*PlacementProblem::Create(TinyGame(5)), TinyConfig());
  Steps(*trainer, 4);
  const auto agent = *Agent::Load(*trainer->Save());
  const std::vector<NamedSolver> solvers = {
      EgrlSolver(),
      {"egrl", [&](const SolveProblem& p, const SolveLimits& l) { return agent->Solve(p, l); }}};
  const auto priority_trainer =
      Make(*PlacementProblem::Create(TinyGame(5, "priority")), TinyConfig());
  Steps(*priority_trainer, 4);
  const auto priority_agent = *Agent::Load(*priority_trainer->Save());
  const std::vector<NamedSolver> priority_solvers = {
      EgrlSolver(),
      {"egrl",
       [&](const SolveProblem& p, const SolveLimits& l) { return priority_agent->Solve(p, l); },
       0,
       {"priority"}}};
  const auto kind = GENERATE(as<std::string>(), "time", "priority");
  for (uint64_t seed : {5, 21, 22}) {
    const auto game = TinyGame(seed, kind);
    for (const NamedSolver& solver : kind == "time" ? solvers : priority_solvers) {
      SolveLimits limits;
      limits.seconds = 0;
      limits.evaluations = 60;
      std::vector<int64_t> improvements;
      limits.progress = [&](double, int64_t latency_ps) { improvements.push_back(latency_ps); };
      const auto result = Solve("egrl", {game, nullptr, {&solver, 1}}, limits);
      INFO(result.status());
      REQUIRE(result.ok());
      REQUIRE(Validate(game->program(), game->hardware(), result->plan).ok());
      REQUIRE(result->found_by == "egrl");
      REQUIRE(result->report.latency_ps <= game->all_main_ps());
      REQUIRE(result->evaluations <= 60);
      REQUIRE(improvements.back() == result->report.latency_ps);
      REQUIRE(result->plan == Solve("egrl", {game, nullptr, {&solver, 1}}, limits)->plan);
    }
    const std::atomic<bool> cancel{true};
    SolveLimits at_once;
    at_once.cancel = &cancel;
    const auto first = EgrlSolver().solve({game}, at_once);
    REQUIRE(first.ok());
    REQUIRE(first->report.latency_ps <= game->all_main_ps());
  }
}

}  // namespace
}  // namespace mallocgame::egrl
