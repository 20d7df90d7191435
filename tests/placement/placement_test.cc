// The placement problem on a chain that is worked out by hand, and on random programs compared with
// a slow implementation of its own.
#include "mallocgame/placement/placement.h"

#include <algorithm>
#include <cmath>

#include "mallocgame/base/rng.h"
#include "mallocgame/game/play_actions.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/time/state.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/plan/validate.h"
#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::kBytePerPs;
using testing::ProgramBuilder;
using testing::RandomProgram;
using testing::RandomProgramOptions;
using testing::TestHardware;

// 4, 2 and 1 bytes a picosecond; a flop takes one.
Hierarchy ThreeLevels(int64_t fastest, int64_t middle) {
  return {
      "three",
      {{"A", fastest, 4 * kBytePerPs}, {"B", middle, 2 * kBytePerPs}, {"C", 1 << 20, kBytePerPs}},
      kBytePerPs};
}

std::shared_ptr<const PlacementProblem> MakeProblem(std::shared_ptr<const Program> program,
                                                    const Hierarchy& hierarchy) {
  auto problem = PlacementProblem::Create(std::move(program), hierarchy);
  INFO(problem.status());
  REQUIRE(problem.ok());
  return *problem;
}

// Three nodes: x = f(image, w0); y = g(x, w1); out = h(y, x).
struct Chain {
  ProgramBuilder builder{"chain", CostKind::kRoofline};
  BufferId image = builder.Parameter("image", 4);
  BufferId w0 = builder.Parameter("w0", 8);
  BufferId w1 = builder.Constant("w1", 16);
  BufferId x = builder.Result("x", 12);
  BufferId y = builder.Result("y", 20);
  BufferId out = builder.Result("out", 4);

  std::shared_ptr<const Program> Build() {
    builder.Add({.name = "f", .reads = {image, w0}, .writes = {x}, .flops = 100});
    builder.Add({.name = "g", .reads = {x, w1}, .writes = {y}, .flops = 10});
    builder.Add({.name = "h", .reads = {y, x}, .writes = {out}, .flops = 0});
    builder.MarkOutput(out);
    return builder.Build();
  }
};

TEST_CASE("each buffer belongs to the node that reads a weight or writes an activation first") {
  const auto problem = MakeProblem(Chain().Build(), ThreeLevels(100, 100));
  const PlacementGraph& graph = problem->graph();
  REQUIRE(graph.nodes.size() == 3);
  const auto bytes = [&](size_t node, size_t kind) {
    return graph.nodes[node].tensors[kind].size_bytes;
  };
  CHECK(bytes(0, 0) == 12);  // image and w0
  CHECK(bytes(0, 1) == 12);
  CHECK(bytes(1, 0) == 16);
  CHECK(bytes(1, 1) == 20);
  CHECK(bytes(2, 0) == 0);
  CHECK(bytes(2, 1) == 4);
  CHECK(graph.nodes[0].tensors[1].begin == 0);
  CHECK(graph.nodes[0].tensors[1].end == 3);
  CHECK(graph.nodes[1].tensors[1].begin == 1);
  CHECK(graph.nodes[1].tensors[1].end == 3);
  CHECK(graph.from == std::vector<int32_t>{0, 0, 1});
  CHECK(graph.to == std::vector<int32_t>{1, 2, 2});
}

TEST_CASE("the latency of a map is what the sums on paper say") {
  const auto problem = MakeProblem(Chain().Build(), ThreeLevels(100, 100));
  // f: 24 bytes at 1 = 24, less than 100 flops; g: 48 bytes; h: 36 bytes.
  CHECK(problem->Evaluate(PlacementMap{2, 2, 2, 2, 2, 2})->latency_ps == 100 + 48 + 36);
  // x (12 bytes) at 4 a ps, w1 (16) at 2, y (20) at 1, out at 1.
  CHECK(problem->Evaluate(PlacementMap{2, 0, 1, 2, 0, 2})->latency_ps ==
        100 + (3 + 8 + 20) + (20 + 3 + 4));
}

TEST_CASE(
    "a map that does not fit is rectified node by node and earns minus the share that moved") {
  // The fastest level holds 40 bytes: image and w0 (12), x (12), w1 (16), and then y (20) has no
  // room, nor has out (4).
  const auto problem = MakeProblem(Chain().Build(), ThreeLevels(40, 22));
  const PlacementMap all_fast(6, 0);
  CHECK(*problem->Rectify(all_fast) == PlacementMap{0, 0, 0, 1, 0, 2});
  const PlacementOutcome outcome = *problem->Evaluate(all_fast);
  CHECK(outcome.moved == Approx((20.0 + 4) / (12 + 12 + 16 + 20 + 4)));
  CHECK(outcome.reward == -outcome.moved);
  CHECK(outcome.latency_ps == problem->Evaluate(PlacementMap{0, 0, 0, 1, 0, 2})->latency_ps);
  // The compiler places activations first: x, then y (32 of 40), out; then 12 and 16 bytes of
  // weights go to the next levels.
  CHECK(problem->baseline_map() == PlacementMap{1, 0, 2, 0, 0, 0});
  const PlacementOutcome baseline = *problem->Evaluate(problem->baseline_map());
  CHECK(baseline.latency_ps == problem->baseline_ps());
  CHECK(baseline.reward == 1.0);
  const PlacementOutcome slow = *problem->Evaluate(PlacementMap(6, 2));
  CHECK(slow.reward == Approx(std::pow(static_cast<double>(problem->baseline_ps()) /
                                           static_cast<double>(slow.latency_ps),
                                       2)));
}

TEST_CASE("what lives at a loop's boundary lives all through the loop") {
  ProgramBuilder builder("loop", CostKind::kRoofline);
  const BufferId carried = builder.Result("carried", 8), inner = builder.Result("inner", 4),
                 late = builder.Result("late", 2);
  builder.Add({.name = "start", .writes = {carried}});
  builder.BeginLoop("while", 5);
  builder.BeginBody();
  builder.Add({.name = "step", .updates = {carried}, .writes = {inner}});
  builder.Add({.name = "use", .reads = {inner}});
  builder.EndLoop();
  builder.Add({.name = "end", .writes = {late}});
  builder.MarkOutput(late);
  const auto problem = MakeProblem(builder.Build(), ThreeLevels(100, 100));
  const auto& nodes = problem->graph().nodes;
  REQUIRE(nodes.size() == 4);
  CHECK(nodes[0].tensors[1].begin == 0);
  CHECK(nodes[0].tensors[1].end == 3);  // until `use`, though nothing reads it there
  CHECK(nodes[1].tensors[1].begin == 1);
  CHECK(nodes[1].tensors[1].end == 3);
  CHECK(nodes[3].tensors[1].begin == 3);
  CHECK(problem->Evaluate(PlacementMap(8, 2))->latency_ps == 8 + 5 * (8 + 8 + 4) + 5 * 4 + 2);
}

// Returns the bytes in `level` at `node`, added up tensor by tensor.
int64_t BytesAt(const PlacementGraph& graph, const PlacementMap& map, uint8_t level, int32_t node) {
  int64_t bytes = 0;
  for (size_t i = 0; i < map.size(); ++i) {
    const PlacedTensor& tensor = graph.nodes[i / 2].tensors[i % 2];
    if (map[i] == level && (i % 2 == 0 || (tensor.begin <= node && node < tensor.end)))
      bytes += tensor.size_bytes;
  }
  return bytes;
}

TEST_CASE(
    "rectified maps fit, keep what fits, and cost what a second opinion says, on random programs") {
  Rng rng(7);
  RandomProgramOptions options;
  options.roofline = true;
  int tried = 0, moved = 0;
  for (int i = 0; i < 150; ++i) {
    const auto program = RandomProgram(rng, options);
    const Hierarchy hierarchy = ThreeLevels(4 + rng.Below(20), 4 + rng.Below(20));
    const auto created = PlacementProblem::Create(program, hierarchy);
    if (!created.ok()) continue;  // nothing to place
    const PlacementProblem& problem = **created;
    for (int m = 0; m < 20; ++m) {
      PlacementMap map(problem.map_size());
      for (uint8_t& level : map) level = static_cast<uint8_t>(rng.Below(3));
      const PlacementMap fits = *problem.Rectify(map);
      const PlacementOutcome outcome = *problem.Evaluate(map);
      ++tried;
      moved += outcome.moved > 0;
      for (int32_t node = 0; node < static_cast<int32_t>(problem.graph().nodes.size()); ++node) {
        for (const uint8_t level : {uint8_t{0}, uint8_t{1}}) {
          REQUIRE(BytesAt(problem.graph(), fits, level, node) <=
                  hierarchy.levels[level].capacity_bytes);
        }
      }
      for (size_t t = 0; t < map.size(); ++t) REQUIRE(fits[t] >= map[t]);
      REQUIRE(*problem.Rectify(fits) == fits);
      REQUIRE(problem.Evaluate(fits)->latency_ps == outcome.latency_ps);

      int64_t latency = 0;
      for (const PlacementNode& node : problem.graph().nodes) {
        const InstructionCost& cost = program->cost().instructions[node.tick];
        double transfers = 0;
        for (const auto* arrays : {&cost.operands, &cost.outputs}) {
          for (const CostArray& array : *arrays) {
            int32_t tensor = -1;
            if (array.slot >= 0) {
              const int32_t access = program->instruction(node.tick).first_access + array.slot;
              tensor = problem.graph().tensor_of[program->accesses()[access].buffer.index()];
            }
            const int level = tensor < 0 ? 2 : fits[tensor];
            transfers += static_cast<double>(array.accessed_bytes) / (level == 0   ? 4
                                                                      : level == 1 ? 2
                                                                                   : 1);
          }
        }
        latency += std::max(cost.flops, static_cast<int64_t>(std::llround(transfers))) *
                   program->trips(node.tick);
      }
      // Each term is rounded to a picosecond.
      REQUIRE(std::abs(latency - outcome.latency_ps) <=
              static_cast<int64_t>(8 * program->ticks() * 16));
    }
  }
  CHECK(tried > 1000);
  CHECK(moved > 100);
  CHECK(moved < tried);
}

TEST_CASE("many maps evaluated at once give what each gives alone, with any number of threads") {
  const auto problem = MakeProblem(Chain().Build(), ThreeLevels(40, 22));
  constexpr size_t kMaps = 729;
  std::vector<uint8_t> maps;
  for (size_t m = 0; m < kMaps; ++m) {
    for (size_t i = 0, rest = m; i < 6; ++i, rest /= 3)
      maps.push_back(static_cast<uint8_t>(rest % 3));
  }
  for (const int threads : {1, 4}) {
    std::vector<PlacementOutcome> outcomes(kMaps);
    REQUIRE(problem->EvaluateMany(maps, absl::MakeSpan(outcomes), threads).ok());
    for (size_t m = 0; m < kMaps; ++m) {
      REQUIRE(outcomes[m] == *problem->Evaluate(absl::MakeConstSpan(maps).subspan(m * 6, 6)));
    }
  }
}

TEST_CASE("on two memories a map is played, and its latency is the game's") {
  Rng rng(3);
  int dropped = 0, games = 0;
  for (int i = 0; i < 100; ++i) {
    TimeGameOptions options;
    options.min_buffer_bytes = 0;
    const auto game = *Game::Create(RandomProgram(rng), TestHardware(24), options);
    const auto created = PlacementProblem::Create(game);
    if (!created.ok()) continue;
    const PlacementProblem& problem = **created;
    ++games;
    CHECK(problem.Evaluate(PlacementMap(problem.map_size(), 1))->latency_ps == game->all_main_ps());
    CHECK(problem.Evaluate(problem.baseline_map())->reward == 1.0);
    PlacementMap map(problem.map_size());
    for (uint8_t& level : map) level = static_cast<uint8_t>(rng.Below(2));
    const PlacementOutcome outcome = *problem.Evaluate(map);
    State state(game);
    const std::vector<uint8_t> actions = *problem.Play(map);
    for (const uint8_t number : actions) {
      const auto action = static_cast<Action>(number);
      const int32_t tensor =
          problem.graph().tensor_of[game->program().access(state.current_access()).buffer.index()];
      if (tensor < 0 || map[tensor] == 1) REQUIRE(action == Action::kDrop);
      if (action == Action::kDrop && tensor >= 0 && map[tensor] == 0) {
        REQUIRE(!state.IsLegal(Action::kNoCopy));
        REQUIRE(!state.IsLegal(Action::kCopy));
        ++dropped;
      }
      REQUIRE(state.Apply(action).ok());
    }
    REQUIRE(state.IsTerminal());
    CHECK(state.latency_ps() == outcome.latency_ps);
    CHECK(outcome.reward == Approx(std::pow(static_cast<double>(problem.baseline_ps()) /
                                                static_cast<double>(outcome.latency_ps),
                                            2)));
  }
  CHECK(games > 50);
  CHECK(dropped > 0);
}

TEST_CASE("on a priority game a map says how runs are served, and its latency is the game's") {
  Rng rng(4);
  int games = 0, otherwise = 0, closed = 0;
  for (int i = 0; i < 100; ++i) {
    PriorityGameOptions options;
    options.min_buffer_bytes = 0;
    options.candidates = 1 + static_cast<int>(rng.Below(kMaxCandidates));
    const auto game =
        *Game::Create(RandomProgram(rng, {.loops = 1, .branches = 1}), TestHardware(24), options);
    const auto created = PlacementProblem::Create(game);
    if (!created.ok()) continue;
    const PlacementProblem& problem = **created;
    const PlacementGraph& graph = problem.graph();
    ++games;
    REQUIRE(problem.graph().of_runs());
    REQUIRE(problem.level_names() ==
            std::vector<std::string>{"Late", "Early", "Preload", "Split", "Skip"});
    REQUIRE(problem.Evaluate(PlacementMap(problem.map_size(), 4))->latency_ps ==
            game->all_main_ps());
    REQUIRE(problem.Evaluate(problem.baseline_map())->reward == 1.0);

    PlacementMap map(problem.map_size());
    for (uint8_t& level : map) level = static_cast<uint8_t>(rng.Below(5));
    const PlacementOutcome outcome = *problem.Evaluate(map);
    const auto end = *PlayActions(*game, *problem.Play(map));
    REQUIRE(end->IsTerminal());
    REQUIRE(end->latency_ps() == outcome.latency_ps);
    REQUIRE(Validate(game->program(), game->hardware(), end->ToPlan()).ok());
    // What was carried out can be carried out as it is.
    const PlacementMap carried_out = *problem.Rectify(map);
    REQUIRE(problem.Evaluate(carried_out)->latency_ps == outcome.latency_ps);
    REQUIRE(problem.Evaluate(carried_out)->moved == 0);
    otherwise += outcome.moved > 0;

    // Parts of a run that is not split decide nothing.
    std::vector<bool> open(graph.nodes.size(), true);
    PlacementMap other = carried_out;
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const int32_t parent = graph.parent[n];
      if (parent >= 0) {
        REQUIRE(parent < static_cast<int32_t>(n));
        open[n] = open[parent] && carried_out[2 * parent] == PlacementProblem::kSplitLevel;
      }
      if (open[n]) continue;
      ++closed;
      for (size_t kind : {0, 1}) other[2 * n + kind] = static_cast<uint8_t>(rng.Below(5));
    }
    REQUIRE(*problem.Evaluate(other) == *problem.Evaluate(carried_out));

    // What a plan leaves in main memory all of its life is not asked for.
    const Plan plan = end->ToPlan();
    const auto planned = *PlacementProblem::Create(game, 1, &plan);
    const PlacementMap asked = planned->baseline_map();
    for (const int32_t root : graph.tensor_of) {
      if (root < 0) continue;
      const auto& accesses =
          game->program().accesses_of(graph.nodes[root / 2].tensors[0].buffers[0]);
      const bool any = std::any_of(accesses.begin(), accesses.end(),
                                   [&](AccessId a) { return plan.served_by[a.index()].valid(); });
      if (!any) REQUIRE(asked[root] == 4);
    }
  }
  CHECK(games > 50);
  CHECK(otherwise > 20);
  CHECK(closed > 100);
}

TEST_CASE("the runs of a priority game as a graph: parts, and who meets whom") {
  PriorityGameOptions options;
  options.min_buffer_bytes = 0;
  const auto game = *Game::Create(Chain().Build(), TestHardware(64), options);
  const auto problem = *PlacementProblem::Create(game);
  const PlacementGraph& graph = problem->graph();
  REQUIRE(graph.features.size() == graph.nodes.size() * graph.columns.size());
  std::vector<int> nodes_of(game->program().buffers().size(), 0);
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const PlacedTensor& tensor = graph.nodes[n].tensors[0];
    REQUIRE(graph.nodes[n].tensors[1].size_bytes == 0);
    REQUIRE(tensor.buffers.size() == 1);
    ++nodes_of[tensor.buffers[0].index()];
    REQUIRE(tensor.begin >= 0);
    REQUIRE(tensor.begin < tensor.end);
    REQUIRE(tensor.end <= graph.length + 1);
    REQUIRE(graph.stake[n] > 0);
  }
  // x is written and read twice: the whole, and the parts of two splits.
  CHECK(nodes_of[Chain().w0.index()] == 1);
  CHECK(nodes_of[Chain().x.index()] == 5);
  CHECK(nodes_of[Chain().y.index()] == 3);
  const auto linked = [&](int32_t from, int32_t to) {
    for (size_t e = 0; e < graph.from.size(); ++e) {
      if (graph.from[e] == from && graph.to[e] == to) return true;
    }
    return false;
  };
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.parent[n] >= 0) CHECK(linked(graph.parent[n], static_cast<int32_t>(n)));
  }
  const auto whole = [&](BufferId id) { return graph.tensor_of[id.index()] / 2; };
  CHECK(linked(whole(Chain().x), whole(Chain().y)));
  CHECK(linked(whole(Chain().w1), whole(Chain().y)));
}

TEST_CASE("a plan on a time game asks for the tensors that it serves at all") {
  TimeGameOptions options;
  options.min_buffer_bytes = 0;
  const auto game = *Game::Create(Chain().Build(), TestHardware(64), options);
  const auto first = *PlacementProblem::Create(game);
  PlacementMap map(first->map_size(), 1);
  map[first->graph().tensor_of[Chain().x.index()]] = 0;
  const Plan plan = (*PlayActions(*game, *first->Play(map)))->ToPlan();
  const auto problem = *PlacementProblem::Create(game, std::nullopt, &plan);
  CHECK(problem->baseline_map() == map);
  CHECK(problem->baseline_ps() == first->Evaluate(map)->latency_ps);
  Plan damaged = plan;
  damaged.served_by.pop_back();
  CHECK(absl::IsInvalidArgument(PlacementProblem::Create(game, std::nullopt, &damaged).status()));
}

TEST_CASE("features are flags, or logarithms that are the same in every program") {
  ProgramBuilder builder("features", CostKind::kRoofline);
  const BufferId w = builder.Parameter("w", 96), x = builder.Result("x", 40),
                 y = builder.Result("y", 40);
  builder.MarkOutput(y);
  builder.Add({.name = "convolution_add_fusion.3", .reads = {w}, .writes = {x}, .flops = 5000});
  builder.Add({.name = "move", .reads = {x}, .writes = {y}, .plain_copy = true});
  const auto problem = MakeProblem(builder.Build(), ThreeLevels(100, 100));
  const auto features = problem->graph().columns;
  const auto value = [&](size_t node, absl::string_view name) {
    for (size_t column = 0; column < features.size(); ++column) {
      if (features[column].name == name)
        return problem->graph().features[node * features.size() + column];
    }
    FAIL(name);
    return 0.0F;
  };
  for (const char* flag : {"op_product", "op_fusion", "op_convolution"}) {
    CHECK(value(0, flag) == 1);
    CHECK(value(1, flag) == 0);
  }
  CHECK(value(1, "op_copy") == 1);
  CHECK(value(1, "op_data") == 1);
  CHECK(value(0, "op_copy") == 0);
  CHECK(value(1, "is_output") == 1);
  CHECK(value(0, "weight_size") == Approx(std::log(1 + 96.0) / 4));
  CHECK(value(1, "ifm_size") == Approx(std::log(1 + 40.0) / 4));
  CHECK(value(0, "ofm_size") == value(1, "ifm_size"));
  CHECK(value(0, "flops") == Approx(std::log(1 + 5000.0) / 4));
  CHECK(value(0, "n_ops_left") == Approx(std::log(2.0) / 4));
}

TEST_CASE("what can't be a placement is refused by name") {
  const auto program = Chain().Build();
  const auto problem = MakeProblem(program, ThreeLevels(40, 22));
  const auto refused = [](const absl::Status& status, const char* part) {
    INFO(status);
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(std::string(status.message()).find(part) != std::string::npos);
  };
  refused(problem->Evaluate(PlacementMap(5, 0)).status(), "found 5 levels, allowed: 6");
  refused(problem->Evaluate(PlacementMap{0, 0, 0, 3, 0, 0}).status(),
          "activations of node 1: found level 3, allowed: 0 to 2");
  std::vector<PlacementOutcome> outcomes(1);
  refused(problem->EvaluateMany(PlacementMap(6, 0), absl::MakeSpan(outcomes), 0),
          "threads: found 0");
  Hierarchy small = ThreeLevels(40, 22);
  small.levels[2].capacity_bytes = 63;
  refused(PlacementProblem::Create(program, small).status(), "at least 64");
  Hierarchy upside_down = ThreeLevels(40, 22);
  upside_down.levels[1].bytes_per_second = 5 * kBytePerPs;
  refused(ValidateHierarchy(upside_down), "levels[1] B: bytes_per_second");
  upside_down.engines = 3;  // who get five thirds
  CHECK(ValidateHierarchy(upside_down).ok());
  upside_down.engines = 0;
  refused(ValidateHierarchy(upside_down), "engines: found 0, allowed: 1 to 1024");
  small.staging_bytes = -1;
  refused(ValidateHierarchy(small), "staging_bytes: found -1, allowed: 0 to");
  refused(ValidateHierarchy({"one", {{"A", 1, 1}}, 1}), "levels: found 1, allowed: 2 to 8");
  CHECK(HierarchyPreset("nnp").status().code() == absl::StatusCode::kNotFound);
  for (const std::string& name : HierarchyPresetNames())
    CHECK(ValidateHierarchy(*HierarchyPreset(name)).ok());
  CHECK(problem->Play(PlacementMap(6, 0)).status().code() == absl::StatusCode::kFailedPrecondition);
  const auto game = *TimeGame::Create(program, TestHardware(24), {});
  refused(PlacementProblem::Create(game, -1).status(), "baseline_ps: found -1");
}

}  // namespace
}  // namespace mallocgame
