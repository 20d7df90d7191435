// The program as a graph: a node for each instruction and each buffer, edges by access and by time,
// and the state of the buffers.
#include "mallocgame/game/time/graph.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "mallocgame/game/time/time_game.h"
#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;
using testing::RandomProgram;
using testing::TestHardware;

int Column(absl::Span<const Feature> features, const std::string& name) {
  const auto found = std::find_if(features.begin(), features.end(),
                                  [&](const Feature& f) { return f.name == name; });
  REQUIRE(found != features.end());
  return static_cast<int>(found - features.begin());
}

std::shared_ptr<const Game> MakeGame(std::shared_ptr<const Program> program, int64_t fast_bytes) {
  TimeGameOptions options;
  options.min_buffer_bytes = 0;
  auto game = Game::Create(std::move(program), TestHardware(fast_bytes), options);
  REQUIRE(game.ok());
  return *game;
}

TEST_CASE("nodes and edges of a program of two instructions") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4), r = b.Result("r", 2);
  b.Add({.name = "make", .reads = {p}, .writes = {r}, .cycles = {10000, 3000, 10000, 3000}});
  b.Add({.name = "change", .updates = {r}, .cycles = {5000}});
  const auto game = MakeGame(b.Build(), 8);
  const GraphObserver observer(game);
  const ProgramGraph& graph = observer.graph();
  REQUIRE(graph.instructions == 2);
  REQUIRE(graph.buffers == 2);
  REQUIRE(graph.from == std::vector<int32_t>{2, 0, 3, 1, 0});
  REQUIRE(graph.to == std::vector<int32_t>{0, 3, 1, 3, 1});
  const auto node = [&](int n, const char* name) {
    return graph.node_features[n * NodeFeatures().size() + Column(NodeFeatures(), name)];
  };
  const auto edge = [&](int e, const char* name) {
    return graph.edge_features[e * EdgeFeatures().size() + Column(EdgeFeatures(), name)];
  };
  REQUIRE(node(0, "is_buffer") == 0);
  REQUIRE(node(2, "is_buffer") == 1);
  REQUIRE(node(2, "share") == 0.5F);
  REQUIRE(node(2, "is_parameter") == 1);
  REQUIRE(node(3, "is_parameter") == 0);
  REQUIRE(edge(0, "is_read") == 1);
  REQUIRE(edge(0, "saving") == Approx(3.0 / 32));  // 7 ns
  REQUIRE(edge(1, "is_write") == 1);
  REQUIRE(edge(2, "is_update") == 1);
  REQUIRE(edge(4, "is_order") == 1);

  State state(game);
  std::vector<float> rows(2 * BufferStateFeatures().size());
  const auto standing = [&](int buffer, const char* name) {
    observer.Write(state, rows.data());
    return rows[buffer * BufferStateFeatures().size() + Column(BufferStateFeatures(), name)];
  };
  REQUIRE(standing(p.value, "current") == 1);
  REQUIRE(standing(p.value, "in_main") == 1);
  REQUIRE(state.Apply(Action::kDrop).ok());
  REQUIRE(standing(r.value, "current") == 1);
  REQUIRE(state.Apply(Action::kNoCopy).ok());  // r in fast memory for good
  REQUIRE(state.IsTerminal());
  REQUIRE(standing(r.value, "in_main") == 0);
  REQUIRE(standing(r.value, "forced") == 1);
}

TEST_CASE("graphs of random programs: edges between nodes, features in [-1, 1]") {
  Rng rng(9);
  for (int g = 0; g < 300; ++g) {
    const auto game = MakeGame(RandomProgram(rng), 4 + rng.Below(30));
    const GraphObserver observer(game);
    const ProgramGraph& graph = observer.graph();
    const int32_t nodes = graph.instructions + graph.buffers;
    REQUIRE(graph.node_features.size() == nodes * NodeFeatures().size());
    REQUIRE(graph.from.size() == graph.to.size());
    REQUIRE(graph.edge_features.size() == graph.from.size() * EdgeFeatures().size());
    for (size_t e = 0; e < graph.from.size(); ++e) {
      REQUIRE(
          (0 <= graph.from[e] && graph.from[e] < nodes && 0 <= graph.to[e] && graph.to[e] < nodes));
    }
    const auto bounded = [](const std::vector<float>& xs) {
      return std::all_of(xs.begin(), xs.end(), [](float x) { return std::abs(x) <= 1.0F; });
    };
    REQUIRE((bounded(graph.node_features) && bounded(graph.edge_features)));
    State state(game);
    std::vector<float> rows(graph.buffers * BufferStateFeatures().size());
    while (!state.IsTerminal()) {
      observer.Write(state, rows.data());
      REQUIRE(bounded(rows));
      const ActionSet legal = state.legal_actions();
      REQUIRE(state.Apply(legal[legal.size() - 1]).ok());
    }
  }
}

}  // namespace
}  // namespace mallocgame
