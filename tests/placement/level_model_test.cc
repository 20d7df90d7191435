// LevelModel on the chain of placement_test.cc and on a loop, by hand.
#include "mallocgame/placement/level_model.h"

#include <cstdint>
#include <vector>

#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::kBytePerPs;
using testing::ProgramBuilder;

using Map = std::vector<uint8_t>;  // weights and activations of each node

// 4, 2 and 1 bytes a picosecond; a flop takes one.
Hierarchy Levels(int64_t fastest, int64_t middle) {
  return {"three",
          {{"A", fastest, 4 * kBytePerPs}, {"B", middle, 2 * kBytePerPs}, {"C", 1000, kBytePerPs}},
          kBytePerPs};
}

// Three nodes: x = f(w0); y = g(x, w1); out = h(y). w0 has 8 bytes, w1 16, x 12, y 20, out 4. x is
// alive over nodes 0 and 1, y over 1 and 2.
struct ChainOfThree {
  ChainOfThree() {
    ProgramBuilder b("chain", CostKind::kRoofline);
    const BufferId w0 = b.Parameter("w0", 8), w1 = b.Constant("w1", 16), x = b.Result("x", 12),
                   y = b.Result("y", 20), out = b.Result("out", 4);
    b.MarkOutput(out);
    b.Add({.name = "f", .reads = {w0}, .writes = {x}, .flops = 100});
    b.Add({.name = "g", .reads = {x, w1}, .writes = {y}, .flops = 10});
    b.Add({.name = "h", .reads = {y}, .writes = {out}, .flops = 0});
    program = b.Build();
    graph = MakePlacementGraph(*program);
  }
  LevelModel Model(int64_t fastest, int64_t middle) const {
    return LevelModel(*program, Levels(fastest, middle), graph);
  }
  std::shared_ptr<const Program> program;
  PlacementGraph graph;
};

TEST_CASE("sizes: all tensors together, and the most that are alive at once") {
  const LevelModel model = ChainOfThree().Model(100, 100);
  CHECK(model.total_bytes() == 8 + 12 + 16 + 20 + 0 + 4);
  // Weights always; at node 1, x and y.
  CHECK(model.peak_bytes() == 8 + 16 + 12 + 20);
}

TEST_CASE("latency: the larger of compute and transfers, instruction by instruction") {
  const ChainOfThree chain;
  const LevelModel model = chain.Model(100, 100);
  // f: 20 bytes at 1 are less than 100 flops; g: 48 bytes; h: 24.
  CHECK(model.LatencyPs(Map{2, 2, 2, 2, 2, 2}) == 100 + 48 + 24);
  // y at 4 bytes a ps: g is 12 + 16 + 5, h 5 + 4.
  CHECK(model.LatencyPs(Map{2, 2, 2, 0, 2, 2}) == 100 + (12 + 16 + 5) + (5 + 4));
  // w1 at 2: 8 instead of 16.
  CHECK(model.LatencyPs(Map{2, 2, 1, 2, 2, 2}) == 100 + (12 + 8 + 20) + 24);
}

TEST_CASE("weights are fetched ahead while the slowest level is idle") {
  const ChainOfThree chain;
  Hierarchy hierarchy = Levels(100, 100);
  const Map slow(6, 2);
  hierarchy.staging_bytes = 10;
  // f leaves 80 of its 100 ps idle, enough for 10 bytes of w1. g moves 38 bytes at 1, and 10 at 4.
  CHECK(LevelModel(*chain.program, hierarchy, chain.graph).LatencyPs(slow) == 100 + (38 + 3) + 24);
  hierarchy.staging_bytes = 40;
  const LevelModel model(*chain.program, hierarchy, chain.graph);
  CHECK(model.LatencyPs(slow) == 100 + (32 + 4) + 24);
  // x and y at 2: f is as long, but g leaves the slowest level no less idle than before.
  CHECK(model.LatencyPs(Map{2, 1, 2, 1, 2, 2}) == 100 + (6 + 4 + 10) + (10 + 4));
  // Weights in another level are not fetched.
  CHECK(model.LatencyPs(Map{2, 2, 1, 2, 2, 2}) == 100 + (12 + 8 + 20) + 24);
  CHECK(model.Costs().staging_ps == 40);
  CHECK(model.Costs().staged_term == std::vector<int32_t>{0, 3, -1});
}

TEST_CASE("engines share all levels but the first") {
  const ChainOfThree chain;
  const auto model = [&](int64_t middle) {
    Hierarchy hierarchy = Levels(100, middle);
    hierarchy.engines = 2;
    return LevelModel(*chain.program, hierarchy, chain.graph);
  };
  CHECK(model(100).LatencyPs(Map(6, 2)) == 100 + 2 * 48 + 2 * 24);
  CHECK(model(100).LatencyPs(Map(6, 0)) == 100 + (3 + 4 + 5) + (5 + 1));
  // Weights once, x and y twice.
  CHECK(model(100).peak_bytes() == 8 + 16 + 2 * (12 + 20));
  LevelModel::Occupancy occupancy;
  Map map(6, 1);
  CHECK(model(88).Rectify(absl::MakeSpan(map), &occupancy) == 0);
  CHECK(model(87).Rectify(absl::MakeSpan(map), &occupancy) == 20);
  CHECK(map == Map{1, 1, 1, 2, 1, 1});
}

TEST_CASE("rectifying moves what does not fit to the next level with room, in order") {
  const ChainOfThree chain;
  LevelModel::Occupancy occupancy;
  SECTION("everything fits") {
    Map map(6, 0);
    CHECK(chain.Model(100, 100).Rectify(absl::MakeSpan(map), &occupancy) == 0);
    CHECK(map == Map(6, 0));
  }
  SECTION("activations share bytes over time") {
    // Weights take 24 of 56; x (12) and y (20) meet at node 1, out comes as x is gone.
    Map map(6, 0);
    CHECK(chain.Model(56, 100).Rectify(absl::MakeSpan(map), &occupancy) == 0);
    // With one byte less y has no room, but out, behind it, has.
    CHECK(chain.Model(55, 100).Rectify(absl::MakeSpan(map), &occupancy) == 20);
    CHECK(map == Map{0, 0, 0, 1, 0, 0});
  }
  SECTION("a level without room is passed over") {
    Map map(6, 0);
    CHECK(chain.Model(24, 19).Rectify(absl::MakeSpan(map), &occupancy) == 16 + 20);
    // w0 (8) and x (12) leave 4 of 24: w1 (16) goes to the middle, where y (20) has no room; out
    // (4) fits where x was.
    CHECK(map == Map{0, 0, 1, 2, 0, 0});
  }
  SECTION("what was slow by choice stays, and the same occupancy serves again") {
    const LevelModel model = chain.Model(24, 19);
    Map map = {2, 2, 2, 2, 2, 2};
    CHECK(model.Rectify(absl::MakeSpan(map), &occupancy) == 0);
    CHECK(map == Map(6, 2));
    map = {2, 0, 2, 2, 2, 2};
    CHECK(model.Rectify(absl::MakeSpan(map), &occupancy) == 0);
  }
}

TEST_CASE("the compiler places all activations first") {
  // x and y fill 32 of 40 bytes at node 1; w0 takes the other 8; w1 has no room there or in 15.
  CHECK(ChainOfThree().Model(40, 15).CompilerMap() == Map{0, 0, 2, 0, 0, 0});
}

TEST_CASE("trips multiply, and what is not placed lies in the slowest level") {
  ProgramBuilder b("loop", CostKind::kRoofline);
  const BufferId w = b.Parameter("w", 8), fixed = b.Parameter("fixed", 3), x = b.Result("x", 4);
  b.MarkIneligible(fixed, "effective scalar");
  b.BeginLoop("steps", 5);
  b.BeginBody();
  b.Add({.name = "use", .reads = {w, fixed}, .writes = {x}, .flops = 1});
  b.EndLoop();
  const auto program = b.Build();
  const PlacementGraph graph = MakePlacementGraph(*program);
  const LevelModel model(*program, Levels(100, 100), graph);
  REQUIRE(graph.nodes.size() == 1);
  CHECK(model.LatencyPs(Map{2, 2}) == 5 * (8 + 3 + 4));
  CHECK(model.LatencyPs(Map{0, 1}) == 5 * (2 + 3 + 2));
  const PlacementCosts costs = model.Costs();
  CHECK(costs.trips == std::vector<int64_t>{5});
  CHECK(costs.compute_ps == std::vector<int64_t>{1});
  CHECK(costs.fixed_ps == std::vector<int64_t>{3});
  CHECK(costs.term_node == std::vector<int32_t>{0, 0});
  CHECK(costs.term_tensor == std::vector<int32_t>{0, 1});
  CHECK(costs.term_ps == std::vector<int64_t>{2, 4, 8, 1, 2, 4});  // by term, then by level
}

}  // namespace
}  // namespace mallocgame
