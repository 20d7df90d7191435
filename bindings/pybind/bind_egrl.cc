// The EGRL agent for Python: its trainer, generation by generation, and the trained agent. Torch
// stays inside agents/egrl.
#include <pybind11/stl.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "agents/egrl/agent.h"
#include "agents/egrl/config.h"
#include "agents/egrl/evolution.h"
#include "agents/egrl/trainer.h"
#include "bindings/pybind/agents.h"
#include "bindings/pybind/handles.h"
#include "bindings/pybind/interruptibly.h"
#include "bindings/pybind/placement_handle.h"
#include "bindings/pybind/status.h"

namespace py = pybind11;

namespace mallocgame::python {

namespace {

typing::Dict<py::str, py::float_> ToDict(const egrl::Progress& p) {
  using py::literals::operator""_a;
  return py::dict(
      "generation"_a = p.generation, "problem"_a = p.problem, "evaluations"_a = p.evaluations,
      "best_ps"_a = p.best_ps, "best_reward"_a = p.best_reward, "fresh"_a = p.fresh,
      "penalised"_a = p.penalised, "gnn_members"_a = p.gnn_members,
      "boltzmann_members"_a = p.boltzmann_members, "gnn_mean"_a = p.gnn_mean,
      "gnn_max"_a = p.gnn_max, "boltzmann_mean"_a = p.boltzmann_mean,
      "boltzmann_max"_a = p.boltzmann_max, "gradient_mean"_a = p.gradient_mean,
      "gradient_max"_a = p.gradient_max, "best_by_gnn"_a = p.best_by_gnn,
      "best_by_boltzmann"_a = p.best_by_boltzmann, "best_by_gradient"_a = p.best_by_gradient,
      "best_by_refining"_a = p.best_by_refining, "refined_mean"_a = p.refined_mean,
      "refined_max"_a = p.refined_max, "migrants"_a = p.migrants,
      "migrants_elite"_a = p.migrants_elite, "migrants_selected"_a = p.migrants_selected,
      "updates"_a = p.updates, "critic_loss"_a = p.critic_loss, "value"_a = p.value,
      "entropy"_a = p.entropy, "actor_gradient"_a = p.actor_gradient, "replay"_a = p.replay,
      "rollout_seconds"_a = p.rollout_seconds, "learn_seconds"_a = p.learn_seconds);
}

// (map, latency_ps, reward, best_ps), as Placement.search gives them.
std::tuple<py::array_t<uint8_t>, int64_t, double, py::array_t<int64_t>> Found(
    const PlacementSearchResult& result) {
  return {ToMap(result.map), result.outcome.latency_ps, result.outcome.reward,
          ToArray(result.best_ps)};
}

egrl::Problems ProblemsOf(const std::vector<PlacementHandle*>& placements) {
  egrl::Problems problems;
  for (const PlacementHandle* placement : placements) {
    if (placement == nullptr) throw py::type_error("found None, allowed: a Placement");
    problems.push_back(placement->problem);
  }
  return problems;
}

void BindEgrlTrainer(py::module_& module) {
  py::class_<egrl::Trainer>(module, "EgrlTrainer",
                            "Training, generation by generation. See mallocgame.agents.Egrl.")
      .def("__reduce_ex__", RefusePickling("save() it, and load() it where it goes on"))
      .def(py::init([](const std::vector<PlacementHandle*>& placements,
                       const AgentSettings& settings, uint64_t seed, int threads) {
             const egrl::Config config = ConfigOf<egrl::Config>(settings);
             return ValueOrRaise(WithoutGil([&] {
               return egrl::Trainer::Create(ProblemsOf(placements), config, seed, threads);
             }));
           }),
           py::arg("problems"), py::arg("settings"), py::arg("seed"), py::arg("threads"),
           "problems: with the same number of levels. threads 0: one a core.\n\nInvalidInputError: "
           "a setting that is none.")
      .def_static(
          "load",
          [](const std::vector<PlacementHandle*>& placements, const py::bytes& checkpoint,
             int threads) {
            const absl::string_view bytes = ViewOf(checkpoint);
            return ValueOrRaise(WithoutGil(
                [&] { return egrl::Trainer::Load(ProblemsOf(placements), bytes, threads); }));
          },
          py::arg("problems"), py::arg("checkpoint"), py::arg("threads"),
          "Goes on with a checkpoint of save(), with the very same stream.\n\nInvalidInputError: "
          "another version, other problems, or damaged bytes.")
      .def(
          "step",
          [](egrl::Trainer& trainer, const std::optional<py::bytes>& harvested) {
            const auto harvest = harvested ? std::optional(std::string(*harvested)) : std::nullopt;
            return ToDict(Interruptibly([&](const std::atomic<bool>* cancel) {
              return trainer.Step(cancel, harvest ? &*harvest : nullptr);
            }));
          },
          py::arg("harvest") = py::none(),
          "Does one generation of one problem, and returns what it did by name "
          "(docs/egrl.md).\n\nharvest: what egrl_harvest() made of its assignment; None: it is "
          "made here. InvalidInputError: the harvest is damaged, or of another generation.")
      .def(
          "weights",
          [](const egrl::Trainer& trainer) {
            return py::bytes(WithoutGil([&] { return trainer.Weights(); }));
          },
          "Returns the networks of this round, as egrl_harvest() takes them.")
      .def(
          "assign",
          [](const egrl::Trainer& trainer, size_t problem) {
            return py::bytes(ValueOrRaise(WithoutGil([&] { return trainer.Assign(problem); })));
          },
          py::arg("problem"),
          "Returns what the generation of a problem in this round is made from, but the "
          "networks.\n\nInvalidInputError: there is no such problem, or it has had its turn.")
      .def(
          "save",
          [](const egrl::Trainer& trainer) {
            return py::bytes(ValueOrRaise(WithoutGil([&] { return trainer.Save(); })));
          },
          "Returns the bytes of a checkpoint.")
      .def(
          "best",
          [](const egrl::Trainer& trainer, size_t problem) {
            if (problem >= trainer.problems().size()) throw py::index_error("no such problem");
            return Found(trainer.best(problem));
          },
          py::arg("problem"), "(map, latency_ps, reward, best_ps).")
      .def_property_readonly(
          "settings", [](const egrl::Trainer& trainer) { return SettingsOf(trainer.config()); },
          "All settings as text, by name.")
      .def_property_readonly("seed", &egrl::Trainer::seed,
                             "The seed that the training was begun with.")
      .def_property_readonly("generations", &egrl::Trainer::generations, "Steps done.")
      .def_property_readonly("evaluations", &egrl::Trainer::evaluations,
                             "Maps graded since the start, of all problems.")
      .def_property_readonly("parameters", &egrl::Trainer::parameters,
                             "The number of weights of the networks that play.");
}

void BindEgrlAgent(py::module_& module) {
  BindAgentClass<egrl::Agent>(
      module, "EgrlAgent",
      "A trained agent that places any program; mallocgame.agents.EgrlAgent wraps it.", "egrl")
      .def(
          "place",
          [](const AgentHandle<egrl::Agent>& handle, const PlacementHandle& placement, int samples,
             uint64_t seed) {
            return Found(ValueOrRaise(WithoutGil(
                [&] { return handle.agent->Place(*placement.problem, samples, seed); })));
          },
          py::arg("problem"), py::arg("samples"), py::arg("seed"),
          "(map, latency_ps, reward, best_ps).")
      .def_property_readonly(
          "name", [](const AgentHandle<egrl::Agent>& handle) { return handle.agent->name(); },
          "The names of the programs that it was trained on, with commas between them.")
      .def_property_readonly(
          "levels", [](const AgentHandle<egrl::Agent>& handle) { return handle.agent->levels(); },
          "The number of memory levels of the problems that it can place.")
      .def_property_readonly(
          "generations",
          [](const AgentHandle<egrl::Agent>& handle) { return handle.agent->generations(); },
          "Steps of training.")
      .def_property_readonly(
          "evaluations",
          [](const AgentHandle<egrl::Agent>& handle) { return handle.agent->evaluations(); },
          "Maps graded in training.");
}

}  // namespace

void BindEgrl(py::module_& module) {
  BindEgrlTrainer(module);
  module.def(
      "egrl_harvest",
      [](const PlacementHandle& placement, const py::bytes& networks, const py::bytes& assignment,
         int threads) {
        const absl::string_view with = ViewOf(networks), what = ViewOf(assignment);
        return py::bytes(Interruptibly([&](const std::atomic<bool>* cancel) {
          return egrl::Evolution::Harvest(*placement.problem, with, what, threads,
                                          [=] { return cancel->load(std::memory_order_relaxed); });
        }));
      },
      py::arg("problem"), py::arg("networks"), py::arg("assignment"), py::arg("threads"),
      "Makes and grades the maps of an assigned generation, and returns them for "
      "step().\n\nInvalidInputError: the bytes are damaged, or of another problem.");
  BindEgrlAgent(module);
  BindSettings<egrl::Config>(module, "egrl_settings");
  module.def("egrl_solver", &egrl::EgrlSolver,
             "Returns the solver `egrl`, which trains on the program's game within the limits.");
}

}  // namespace mallocgame::python
