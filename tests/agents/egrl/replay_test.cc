// The noise on maps, the replay buffer, and a placement problem as a graph.
#include "agents/egrl/replay.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "agents/egrl/problem_graph.h"
#include "mallocgame/base/noise.h"
#include "tests/agents/egrl/training_problem.h"
#include "tests/catch.h"

namespace mallocgame::egrl {
namespace {

TEST_CASE("noise has mean 0, deviation 1, and stays within 3.5") {
  Rng rng(1);
  double sum = 0, squares = 0, most = 0;
  constexpr int kDraws = 200'000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = Noise(rng);
    sum += x;
    squares += x * x;
    most = std::max(most, std::abs(x));
  }
  REQUIRE(sum / kDraws == Approx(0).margin(0.01));
  REQUIRE(squares / kDraws == Approx(1).epsilon(0.01));
  REQUIRE(most <= 3.5);
  REQUIRE(most > 3);
}

TEST_CASE("the replay holds the last maps, and draws each as often as another") {
  Replay replay(2, 3);
  REQUIRE(!replay.Holds({{0, 0}}));
  for (const uint8_t level : std::vector<uint8_t>{0, 1, 2, 3}) replay.Add({{level, 9}}, level);
  REQUIRE(replay.size() == 3);
  REQUIRE(!replay.Holds({{0, 9}}));  // the oldest is forgotten
  for (const uint8_t level : std::vector<uint8_t>{1, 2, 3}) REQUIRE(replay.Holds({{level, 9}}));
  Rng rng(2);
  std::vector<uint8_t> maps;
  std::vector<double> rewards;
  replay.Draw(3000, rng, &maps, &rewards);
  std::map<double, int> drawn;
  for (size_t i = 0; i < rewards.size(); ++i) {
    REQUIRE(maps[2 * i] == rewards[i]);
    ++drawn[rewards[i]];
  }
  for (const double reward : {1, 2, 3}) REQUIRE(drawn[reward] == Approx(1000).epsilon(0.15));
}

TEST_CASE("a map that is held twice is known until both are forgotten") {
  const std::vector<uint8_t> five = {5}, six = {6}, seven = {7};
  Replay replay(1, 3);
  for (const auto& map : {five, five, six}) replay.Add(map, 0);
  replay.Add(seven, 0);
  REQUIRE(replay.Holds(five));
  replay.Add(seven, 0);
  REQUIRE(!replay.Holds(five));
}

TEST_CASE("a replay goes on the same from its bytes, and refuses others") {
  Replay one(2, 3);
  for (const uint8_t level : std::vector<uint8_t>{0, 1, 2, 3}) one.Add({{level, 1}}, level);
  std::string bytes;
  one.Write(bytes);
  const auto read = [&](size_t map_size, size_t capacity, int levels, absl::string_view in) {
    Replay other(map_size, capacity);
    return other.Read(in, levels);
  };
  REQUIRE(read(2, 3, 4, bytes).ok());
  REQUIRE(!read(2, 3, 3, bytes).ok());  // a level that there is not
  REQUIRE(!read(1, 3, 4, bytes).ok());
  REQUIRE(!read(2, 2, 4, bytes).ok());
  REQUIRE(!read(2, 3, 4, absl::string_view(bytes).substr(0, bytes.size() - 1)).ok());
  Replay other(2, 3);
  absl::string_view in = bytes;
  REQUIRE(other.Read(in, 4).ok());
  for (Replay* replay : {&one, &other}) replay->Add({{0, 0}}, 5);
  std::string after, other_after;
  one.Write(after);
  other.Write(other_after);
  REQUIRE((after == other_after));
}

TEST_CASE("two steps join neighbours of neighbours, numbered anew") {
  // The path 0 - 1 - 2 - 3, each linked to itself too.
  Links path;
  path.first = {0, 2, 5, 8, 10};
  path.from = {0, 1, 0, 1, 2, 1, 2, 3, 2, 3};
  const Links kept = LinksWithinTwoSteps(path, {0, 2, 3});
  REQUIRE(kept.first == std::vector<int64_t>{0, 2, 5, 7});
  REQUIRE(kept.from == std::vector<int64_t>{0, 1, 0, 1, 2, 1, 2});
}

TEST_CASE("the graph of a problem counts its decisions, and says what they fill over time") {
  const auto problem = TinyProblem(3, 12);
  const ProblemGraph graph = MakeProblemGraph(*problem);
  REQUIRE(static_cast<size_t>(graph.map_size()) == problem->map_size());
  REQUIRE(graph.real.size() == problem->map_size());
  REQUIRE(std::count(graph.real.begin(), graph.real.end(), 1.0F) == graph.decisions);
  REQUIRE(graph.links.nodes() == graph.nodes);
  for (int64_t node = 0; node < graph.nodes; ++node) {
    const auto begin = graph.links.from.begin() + graph.links.first[node],
               end = graph.links.from.begin() + graph.links.first[node + 1];
    REQUIRE(std::is_sorted(begin, end));
    REQUIRE(std::find(begin, end, node) != end);
  }
  for (size_t i = 0; i < 2 * graph.real.size(); ++i) {
    const float* slices = &graph.fill[i * ProblemGraph::kSlices];
    const float most = *std::max_element(slices, slices + ProblemGraph::kSlices);
    REQUIRE((most > 0) == (graph.real[i % graph.real.size()] > 0));
  }
}

}  // namespace
}  // namespace mallocgame::egrl
