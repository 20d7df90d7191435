// The placement problem: maps of levels and what they cost, and the searches that need no network.
#include <pybind11/stl.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/pybind/handles.h"
#include "bindings/pybind/interruptibly.h"
#include "bindings/pybind/pickling.h"
#include "bindings/pybind/placement_handle.h"
#include "bindings/pybind/status.h"
#include "mallocgame/base/worker_pool.h"
#include "mallocgame/placement/placement.h"
#include "mallocgame/placement/search.h"

namespace py = pybind11;

namespace mallocgame::python {

// Named tuples, which signatures name.
struct OutcomeTuple : py::tuple {
  using tuple::tuple;
};
struct OutcomesTuple : py::tuple {
  using tuple::tuple;
};
struct FoundMapTuple : py::tuple {
  using tuple::tuple;
};

}  // namespace mallocgame::python

namespace pybind11::detail {
template <>
struct handle_type_name<mallocgame::python::OutcomeTuple> {
  static constexpr auto name =  // NOLINT(readability-identifier-naming): pybind11's own
      const_name("mallocgame.placement_results.PlacementOutcome");
};
template <>
struct handle_type_name<mallocgame::python::OutcomesTuple> {
  static constexpr auto name =  // NOLINT(readability-identifier-naming): pybind11's own
      const_name("mallocgame.placement_results.PlacementOutcomes");
};
template <>
struct handle_type_name<mallocgame::python::FoundMapTuple> {
  static constexpr auto name =  // NOLINT(readability-identifier-naming): pybind11's own
      const_name("mallocgame.placement_results.FoundMap");
};
}  // namespace pybind11::detail

namespace mallocgame::python {

template <>
inline constexpr auto kPickled<MemoryLevel> =
    std::tuple(&MemoryLevel::name, &MemoryLevel::capacity_bytes, &MemoryLevel::bytes_per_second);
template <>
inline constexpr auto kPickled<Hierarchy> =
    std::tuple(&Hierarchy::name, &Hierarchy::levels, &Hierarchy::flops_per_second,
               &Hierarchy::engines, &Hierarchy::staging_bytes);

namespace {

// name, capacity_bytes, bytes_per_second
using LevelRow = std::tuple<std::string, int64_t, int64_t>;

Hierarchy MakeHierarchy(const std::string& name, const std::vector<LevelRow>& levels,
                        int64_t flops_per_second, int64_t engines, int64_t staging_bytes) {
  Hierarchy hierarchy{name, {}, flops_per_second, engines, staging_bytes};
  for (const auto& [level, capacity, rate] : levels)
    hierarchy.levels.push_back({level, capacity, rate});
  RaiseIfError(ValidateHierarchy(hierarchy));
  return hierarchy;
}

using Maps = py::array_t<uint8_t, py::array::c_style>;

std::vector<LevelRow> LevelRows(const Hierarchy& hierarchy) {
  std::vector<LevelRow> rows;
  for (const MemoryLevel& level : hierarchy.levels)
    rows.emplace_back(level.name, level.capacity_bytes, level.bytes_per_second);
  return rows;
}

PlacementHandle PlacementOn(std::shared_ptr<ProgramHandle> program, const Hierarchy& hierarchy) {
  auto problem = ValueOrRaise(PlacementProblem::Create(program->file.program, hierarchy));
  return {std::move(program), std::move(problem), nullptr, hierarchy};
}

PlacementHandle PlacementOf(const std::shared_ptr<GameHandle>& game,
                            std::optional<int64_t> baseline_ps, std::optional<Plan> plan) {
  auto problem =
      ValueOrRaise(PlacementProblem::Create(game->game, baseline_ps, plan ? &*plan : nullptr));
  return {game->program, std::move(problem), game, std::nullopt, std::move(plan)};
}

// The levels of a map [nodes, 2], or with `several` of maps [count, nodes, 2]. They are not copied
// and not cast: another dtype is refused.
absl::Span<const uint8_t> LevelsOf(const PlacementHandle& placement, const py::array& maps,
                                   bool several, const char* name) {
  const auto nodes = static_cast<py::ssize_t>(placement.nodes());
  const py::ssize_t first = several ? 1 : 0;
  if (!py::isinstance<Maps>(maps)) {
    RaiseInvalid(name, ": found an array of dtype ", py::str(maps.dtype()).cast<std::string>(),
                 " or not in C order, allowed: uint8 in C order");
  }
  if (maps.ndim() != first + 2 || maps.shape(first) != nodes || maps.shape(first + 1) != 2) {
    RaiseInvalid(name, ": found shape ", py::str(maps.attr("shape")).cast<std::string>(),
                 ", allowed: (", several ? "count, " : "", nodes, ", 2)");
  }
  return {static_cast<const uint8_t*>(maps.data()), static_cast<size_t>(maps.size())};
}

// Makes one of the named tuples of mallocgame/placement_results.py.
template <class... Fields>
py::tuple Result(const char* name, Fields&&... fields) {
  return py::module_::import("mallocgame.placement_results")
      .attr(name)(std::forward<Fields>(fields)...);
}

OutcomesTuple Outcomes(const std::vector<PlacementOutcome>& outcomes) {
  const auto count = static_cast<py::ssize_t>(outcomes.size());
  py::array_t<int64_t> latency(count);
  py::array_t<double> moved(count), reward(count);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    latency.mutable_data()[i] = outcomes[i].latency_ps;
    moved.mutable_data()[i] = outcomes[i].moved;
    reward.mutable_data()[i] = outcomes[i].reward;
  }
  return Result("PlacementOutcomes", latency, moved, reward);
}

int ThreadsOr(int threads) { return threads > 0 ? threads : UsableCores(); }

std::vector<PlacementOutcome> EvaluateMany(const PlacementHandle& placement, const py::array& maps,
                                           int threads) {
  const absl::Span<const uint8_t> levels = LevelsOf(placement, maps, /*several=*/true, "maps");
  std::vector<PlacementOutcome> outcomes(maps.shape(0));
  RaiseIfError(WithoutGil([&] {
    return placement.problem->EvaluateMany(levels, absl::MakeSpan(outcomes), ThreadsOr(threads));
  }));
  return outcomes;
}

PlacementSearchResult Search(const PlacementHandle& placement, const std::string& name,
                             int64_t evaluations, uint64_t seed, int threads) {
  PlacementSearchOptions options;
  options.evaluations = evaluations;
  options.seed = seed;
  options.threads = ThreadsOr(threads);
  return Interruptibly([&](const std::atomic<bool>* cancel) {
    options.progress = [cancel](int64_t) { return !*cancel; };
    return SearchPlacement(*placement.problem, name, options);
  });
}

py::array_t<int32_t> EdgeIndex(const PlacementHandle& placement) {
  const PlacementGraph& graph = placement.problem->graph();
  py::array_t<int32_t> edges({py::ssize_t{2}, static_cast<py::ssize_t>(graph.from.size())});
  std::copy(graph.to.begin(), graph.to.end(),
            std::copy(graph.from.begin(), graph.from.end(), edges.mutable_data()));
  return edges;
}

py::array_t<float> NodeFeaturesOf(const PlacementHandle& placement) {
  const PlacementGraph& graph = placement.problem->graph();
  return ToMatrix<float>(graph.features, static_cast<py::ssize_t>(graph.columns.size()));
}

py::array_t<int64_t> TensorBytes(const PlacementHandle& placement) {
  std::vector<int64_t> bytes;
  for (const PlacementNode& node : placement.problem->graph().nodes) {
    for (const PlacedTensor& tensor : node.tensors) bytes.push_back(tensor.size_bytes);
  }
  return ToMatrix<int64_t>(bytes, 2);
}

typing::Dict<py::str, py::object> CostsOf(const PlacementHandle& placement) {
  using py::literals::operator""_a;
  const PlacementCosts costs = ValueOrRaise(placement.problem->Costs());
  const auto nodes = static_cast<py::ssize_t>(placement.nodes());
  py::array_t<int32_t> alive({nodes, py::ssize_t{2}, py::ssize_t{2}});
  int32_t* out = alive.mutable_data();
  for (const PlacementNode& node : placement.problem->graph().nodes) {
    *out++ = 0, *out++ = static_cast<int32_t>(nodes);
    *out++ = node.tensors[1].begin, *out++ = node.tensors[1].end;
  }
  const auto term_ps =
      ToMatrix<int64_t>(costs.term_ps, static_cast<py::ssize_t>(costs.capacity_bytes.size()));
  return py::dict("capacity_bytes"_a = ToArray(costs.capacity_bytes), "alive"_a = alive,
                  "engines"_a = costs.engines, "staging_ps"_a = costs.staging_ps,
                  "staged_term"_a = ToArray(costs.staged_term), "trips"_a = ToArray(costs.trips),
                  "compute_ps"_a = ToArray(costs.compute_ps),
                  "fixed_ps"_a = ToArray(costs.fixed_ps), "term_node"_a = ToArray(costs.term_node),
                  "term_tensor"_a = ToArray(costs.term_tensor), "term_ps"_a = term_ps);
}

}  // namespace

void BindPlacement(py::module_& module) {
  module.def("placement_searches", &PlacementSearchNames,
             "The names of searches that Placement.search takes.");

  ShareCopies(py::class_<Hierarchy>(module, "Hierarchy",
                                    "A chip with several memories, the fastest first."))
      .def(py::init(&MakeHierarchy), py::arg("name"), py::arg("levels"),
           py::arg("flops_per_second"), py::arg("engines") = 1, py::arg("staging_bytes") = 0,
           "levels: 2 to 8 tuples (name, capacity_bytes, bytes_per_second), the fastest first. "
           "engines run the program at the same time and share all levels but the first. "
           "staging_bytes: of an engine, for weights of the last level that are fetched ahead. "
           "InvalidInputError if a number is out of range.")
      .def_static(
          "preset", [](const std::string& name) { return ValueOrRaise(HierarchyPreset(name)); },
          py::arg("name"), "A preset. InvalidInputError lists the names.")
      .def_static("preset_names", &HierarchyPresetNames, "The names of the presets.")
      .def_readonly("name", &Hierarchy::name, "The name of the chip.")
      .def_readonly("flops_per_second", &Hierarchy::flops_per_second,
                    "The rate of floating-point operations of an engine.")
      .def_readonly("engines", &Hierarchy::engines,
                    "How many engines run the program at the same time.")
      .def_readonly("staging_bytes", &Hierarchy::staging_bytes,
                    "The buffer of an engine for weights that are fetched ahead.")
      .def_property_readonly("levels", &LevelRows,
                             "The levels as [(name, capacity_bytes, bytes_per_second)].")
      .def(Pickled<Hierarchy>());

  ShareCopies(py::class_<PlacementHandle>(
                  module, "Placement",
                  "The placement problem of a program.\n\nEach node has one level for its weights "
                  "and one for its activations, 0 the fastest. A map is uint8 [num_nodes, 2]. On a "
                  "priority game a node is a segment, whose level says how it is served."))
      .def(py::init(&PlacementOn), py::arg("program").none(false), py::arg("hierarchy"),
           "InvalidInputError if the last level does not hold the program, or there is nothing to "
           "place.")
      .def_static(
          "of_game", &PlacementOf, py::arg("game").none(false), py::arg("baseline_ps") = py::none(),
          py::arg("plan") = py::none(),
          "The placement problem in which maps are played as games. On a time game level 0 is fast "
          "memory, level 1 main memory; on a priority game nodes are runs, and levels say how they "
          "are served. plan: what baseline_map asks for; None: everything in level 0. baseline_ps: "
          "the latency whose speed-up counts as 1; that of baseline_map if None.")
      .def(
          "evaluate",
          [](const PlacementHandle& p, const py::array& map, double noise,
             uint64_t seed) -> OutcomeTuple {
            const absl::Span<const uint8_t> levels = LevelsOf(p, map, false, "map");
            if (!(noise >= 0 && noise <= PlacementProblem::kMostNoise)) {
              RaiseInvalid("noise: found ", std::to_string(noise), ", allowed: 0 to 0.2");
            }
            Rng rng(seed);
            const PlacementOutcome found = p.problem->Measured(
                ValueOrRaise(WithoutGil([&] { return p.problem->Evaluate(levels); })), noise, rng);
            return Result("PlacementOutcome", found.latency_ps, found.moved, found.reward);
          },
          py::arg("map"), py::arg("noise") = 0.0, py::arg("seed") = 0,
          "The PlacementOutcome of a map.\n\nnoise: the relative standard deviation of the "
          "latency, as if it were measured on a chip; the same seed spreads it the same.")
      .def(
          "evaluate_many",
          [](const PlacementHandle& p, const py::array& maps, int threads) {
            return Outcomes(EvaluateMany(p, maps, threads));
          },
          py::arg("maps"), py::arg("threads") = 0,
          "The PlacementOutcomes of maps, uint8 [count, num_nodes, 2]. threads: one for each core "
          "if 0; the result does not depend on it.")
      .def(
          "rectify",
          [](const PlacementHandle& p, const py::array& map) {
            return ToMap(ValueOrRaise(p.problem->Rectify(LevelsOf(p, map, false, "map"))));
          },
          py::arg("map"), "The map that is carried out.")
      .def(
          "play",
          [](const PlacementHandle& p, const py::array& map) {
            return ToArray(ValueOrRaise(p.problem->Play(LevelsOf(p, map, false, "map"))));
          },
          py::arg("map"),
          "Returns the actions of a map on a game.\n\nInvalidInputError: the problem is on a "
          "hierarchy.")
      .def(
          "costs", &CostsOf,
          "A dict of the arrays from which the latency of a map that fits follows: the sum over "
          "nodes of trips * max(compute_ps, fixed_ps + the sum of its terms at the level of their "
          "tensor). capacity_bytes int64 [levels]; alive int32 [num_nodes, 2, 2]: the nodes "
          "[begin, end) over which each tensor takes its bytes, activations `engines` times in all "
          "levels but the first; staging_ps, and staged_term int32 [num_nodes]: how long the last "
          "level may work ahead, and the term that this helps, -1 for none; trips, compute_ps, "
          "fixed_ps int64 [num_nodes]; term_node, term_tensor int32 [terms], where a tensor is an "
          "index into the flat map; term_ps int64 [terms, levels]. InvalidInputError on a game.")
      .def(
          "search",
          [](const PlacementHandle& p, const std::string& name, int64_t evaluations, uint64_t seed,
             int threads) -> FoundMapTuple {
            const PlacementSearchResult result = Search(p, name, evaluations, seed, threads);
            return Result("FoundMap", ToMap(result.map), result.outcome.latency_ps,
                          result.outcome.reward, ToArray(result.best_ps));
          },
          py::arg("name"), py::arg("evaluations") = 4000, py::arg("seed") = 0,
          py::arg("threads") = 0,
          "Returns the fastest map that the search finds.\n\nname: one of placement_searches().")
      .def_readonly("program", &PlacementHandle::program, "The program whose tensors are placed.")
      .def_property_readonly(
          "game",
          [](const PlacementHandle& p) {
            return p.game == nullptr ? std::nullopt : std::optional(p.game);
          },
          "The Game that maps are played in; None on a hierarchy.")
      .def_property_readonly(
          "num_nodes", &PlacementHandle::nodes,
          "The number of instructions whose tensors are placed, or on a priority game of segments.")
      .def_property_readonly(
          "level_names", [](const PlacementHandle& p) { return p.problem->level_names(); },
          "The names of the levels, the fastest first.")
      .def_property_readonly(
          "baseline_map", [](const PlacementHandle& p) { return ToMap(p.problem->baseline_map()); },
          "The compiler's map; on a game that of the plan it was made with, or the map with "
          "everything in level 0.")
      .def_property_readonly(
          "baseline_ps", [](const PlacementHandle& p) { return p.problem->baseline_ps(); },
          "The latency in picoseconds whose speed-up counts as 1.")
      .def_property_readonly(
          "node_ticks",
          [](const PlacementHandle& p) {
            return ToRows<int32_t>(p.problem->graph().nodes,
                                   [](const PlacementNode& node) { return node.tick; });
          },
          "An int32 array: the tick of each node's instruction, or of its run's first access.")
      .def_property_readonly(
          "parents", [](const PlacementHandle& p) { return ToArray(p.problem->graph().parent); },
          "An int32 array [num_nodes] on a priority game: the run that each is a part of, -1 of a "
          "whole life. A part counts only where its parent is Split. Else empty.")
      .def_property_readonly(
          "features",
          [](const PlacementHandle& p) {
            typing::List<NameAndMeaning> rows;
            for (const Feature& feature : p.problem->graph().columns)
              rows.append(py::make_tuple(feature.name, feature.meaning));
            return rows;
          },
          "The columns of node_features, as [(name, meaning)].")
      .def_property_readonly("node_features", &NodeFeaturesOf,
                             "A float32 array [num_nodes, columns]; `features` names the columns.")
      .def_property_readonly("edge_index", &EdgeIndex,
                             "An int32 array [2, edges]: a node, and one that reads its "
                             "activations. On a priority game a run, and one that is a part of it, "
                             "that follows from it or that it competes with (placement_graph.h).")
      .def_property_readonly("tensor_bytes", &TensorBytes,
                             "An int64 array [num_nodes, 2]: the bytes of weights and activations.")
      .def(py::pickle(
          [](const PlacementHandle& p) -> py::tuple {
            if (p.game != nullptr) return py::make_tuple(p.game, p.problem->baseline_ps(), p.plan);
            return py::make_tuple(p.program, *p.hierarchy);
          },
          [](const py::tuple& saved) {
            if (py::isinstance<GameHandle>(saved[0])) {
              return PlacementOf(saved[0].cast<std::shared_ptr<GameHandle>>(),
                                 saved[1].cast<int64_t>(), saved[2].cast<std::optional<Plan>>());
            }
            return PlacementOn(saved[0].cast<std::shared_ptr<ProgramHandle>>(),
                               saved[1].cast<Hierarchy>());
          }));
}

}  // namespace mallocgame::python
