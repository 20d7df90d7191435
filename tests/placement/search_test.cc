// Searches find the optimum of small problems, keep their budget, and give the same result with any
// number of threads.
#include "mallocgame/placement/search.h"

#include <algorithm>
#include <functional>

#include "mallocgame/base/rng.h"
#include "mallocgame/placement/boltzmann.h"
#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::kBytePerPs;
using testing::RandomProgram;
using testing::RandomProgramOptions;

std::shared_ptr<const PlacementProblem> SmallProblem(Rng& rng, size_t most_tensors) {
  RandomProgramOptions options;
  options.roofline = true;
  options.instructions = 6;
  while (true) {
    const Hierarchy hierarchy = {
        "three",
        {{"A", 12, 4 * kBytePerPs}, {"B", 12, 2 * kBytePerPs}, {"C", 1 << 20, kBytePerPs}},
        100 * kBytePerPs};
    auto problem = PlacementProblem::Create(RandomProgram(rng, options), hierarchy);
    if (problem.ok() && (*problem)->map_size() <= most_tensors && (*problem)->map_size() >= 6)
      return *std::move(problem);
  }
}

int64_t Optimum(const PlacementProblem& problem) {
  int64_t best = INT64_MAX, maps = 1;
  for (size_t i = 0; i < problem.map_size(); ++i) maps *= 3;
  for (int64_t m = 0; m < maps; ++m) {
    PlacementMap map;
    for (int64_t rest = m; map.size() < problem.map_size(); rest /= 3)
      map.push_back(static_cast<uint8_t>(rest % 3));
    const PlacementOutcome outcome = *problem.Evaluate(map);
    if (outcome.moved == 0) best = std::min(best, outcome.latency_ps);
  }
  return best;
}

TEST_CASE(
    "evolution, annealing and random play find the optimum of small problems, none reports less") {
  Rng rng(5);
  for (int i = 0; i < 8; ++i) {
    const auto problem = SmallProblem(rng, 8);
    const int64_t optimum = Optimum(*problem);
    for (const std::string& name : PlacementSearchNames()) {
      PlacementSearchOptions options;
      options.evaluations = 20'000;
      const PlacementSearchResult result = *SearchPlacement(*problem, name, options);
      INFO(name);
      CHECK(result.outcome.latency_ps >= optimum);
      CHECK(result.outcome.moved == 0);
      if (name == "random" || name == "evolution" || name == "anneal")
        CHECK(result.outcome.latency_ps == optimum);
      CHECK(*problem->Evaluate(result.map) == result.outcome);
    }
  }
}

TEST_CASE("the budget is kept, the curve falls, and threads change nothing") {
  Rng rng(11);
  const auto problem = SmallProblem(rng, 40);
  for (const std::string& name : PlacementSearchNames()) {
    INFO(name);
    PlacementSearchOptions options;
    options.evaluations = 1003;
    options.seed = 4;
    const PlacementSearchResult one = *SearchPlacement(*problem, name, options);
    CHECK(one.evaluations == (name == "compiler" || name == "first-come" ? 1 : 1003));
    REQUIRE(static_cast<int64_t>(one.best_ps.size()) == one.evaluations);
    const auto fits =
        std::find_if(one.best_ps.begin(), one.best_ps.end(), [](int64_t ps) { return ps > 0; });
    CHECK(std::is_sorted(fits, one.best_ps.end(), std::greater<>()));
    CHECK(one.best_ps.back() == one.outcome.latency_ps);
    options.threads = 4;
    const PlacementSearchResult four = *SearchPlacement(*problem, name, options);
    CHECK(four.map == one.map);
    CHECK(four.best_ps == one.best_ps);
    int64_t seen = 0;
    options.progress = [&](int64_t evaluations) {
      seen = evaluations;
      return evaluations < 300;
    };
    const PlacementSearchResult stopped = *SearchPlacement(*problem, name, options);
    CHECK(stopped.evaluations == seen);
    CHECK(stopped.evaluations < 700);
  }
}

TEST_CASE("greedy-dp ends where no pair of levels of one node is better") {
  Rng rng(2);
  const auto problem = SmallProblem(rng, 12);
  PlacementSearchOptions options;
  options.evaluations = static_cast<int64_t>(9 * problem->map_size() / 2 * 500);  // many descents
  const PlacementSearchResult result = *SearchPlacement(*problem, "greedy-dp", options);
  for (size_t node = 0; node < result.map.size() / 2; ++node) {
    for (uint8_t pair = 0; pair < 9; ++pair) {
      PlacementMap map = result.map;
      map[2 * node] = pair / 3;
      map[2 * node + 1] = pair % 3;
      CHECK(problem->Evaluate(map)->reward <= result.outcome.reward);
    }
  }
}

TEST_CASE("a Boltzmann chromosome draws what its priors say") {
  Rng rng(1);
  const std::vector<double> probabilities = {0.7, 0.2, 0.1, 0.05, 0.05, 0.9};
  const Boltzmann genes = Boltzmann::FromProbabilities(probabilities, 3);
  std::vector<int> count(6, 0);
  constexpr int kDraws = 20'000;
  for (int i = 0; i < kDraws; ++i) {
    std::vector<uint8_t> map;
    genes.Draw(rng, &map);
    REQUIRE(map.size() == 2);
    ++count[map[0]];
    ++count[3u + map[1]];
  }
  for (size_t i = 0; i < 6; ++i)
    CHECK(count[i] / double{kDraws} == Approx(probabilities[i]).margin(0.015));

  Boltzmann leaning = Boltzmann::Random(100, 3, rng);
  std::vector<uint8_t> wanted;
  leaning.Draw(rng, &wanted);
  leaning.LeanTowards(wanted, 4);
  int differ = 0;
  for (int i = 0; i < 100; ++i) {
    std::vector<uint8_t> map;
    leaning.Draw(rng, &map);
    for (size_t t = 0; t < 100; ++t) differ += map[t] != wanted[t];
  }
  CHECK(differ / 100.0 <= 4.5);
  CHECK(differ > 0);
}

TEST_CASE("an unknown search and a bad budget are refused") {
  Rng rng(9);
  const auto problem = SmallProblem(rng, 40);
  PlacementSearchOptions options;
  const absl::Status unknown = SearchPlacement(*problem, "annealing", options).status();
  CHECK(unknown.code() == absl::StatusCode::kNotFound);
  CHECK(std::string(unknown.message()).find("greedy-dp") != std::string::npos);
  options.evaluations = 0;
  CHECK(SearchPlacement(*problem, "random", options).status().code() ==
        absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace mallocgame
