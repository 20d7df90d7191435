// What learns the solver `policy` (benchmarks/quality/train_policy.py): its network's features, how
// plans serve runs, and games with any weights.
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "bindings/pybind/handles.h"
#include "bindings/pybind/status.h"
#include "mallocgame/solvers/policy/policy_game.h"

namespace py = pybind11;

namespace mallocgame::python {
namespace {

using Weights = py::array_t<float, py::array::c_style | py::array::forcecast>;

PolicyGame::Played Play(const PolicyGame& game, const Weights& weights) {
  const absl::Span<const float> given(weights.data(), weights.size());
  RaiseIfError(CheckPolicyWeights(given));
  return WithoutGil([&] { return game.Play(given); });
}

}  // namespace

void BindPolicy(py::module_& module) {
  py::class_<PolicyGame>(module, "_PolicyGame",
                         "Games that the network of the solver policy plays with any weights.")
      .def(py::init([](const GameHandle& game) { return PolicyGame(*game.game); }), py::arg("game"))
      .def_property_readonly(
          "features",
          [](const PolicyGame& game) {
            const auto columns = static_cast<py::ssize_t>(PolicyFeatureNames().size());
            const auto runs = static_cast<py::ssize_t>(game.features().size()) / columns;
            return py::array_t<float>({runs, columns}, game.features().data());
          },
          "What the network reads: [runs, features].")
      .def(
          "modes",
          [](const PolicyGame& game, const Plan& plan) {
            std::vector<uint8_t> modes;
            for (const Mode mode : game.ModesOf(plan)) modes.push_back(static_cast<uint8_t>(mode));
            return py::array_t<uint8_t>(static_cast<py::ssize_t>(modes.size()), modes.data());
          },
          py::arg("plan"), "How a plan serves each run: modes of actions; 7: no run of its own.")
      .def(
          "latency_ps",
          [](const PolicyGame& game, const Weights& weights) {
            return Play(game, weights).latency_ps;
          },
          py::arg("weights"), "The latency of the game with these weights.")
      .def(
          "plan",
          [](const PolicyGame& game, const Weights& weights) { return Play(game, weights).plan; },
          py::arg("weights"), "Its plan.");
  module.def(
      "_policy_weights",
      [] {
        const auto weights = LearnedPolicyWeights();
        return py::array_t<float>(static_cast<py::ssize_t>(weights.size()), weights.data());
      },
      "The weights of the library.");
  module.def("_policy_features", &PolicyFeatureNames, "The names of the network's features.");
}

}  // namespace mallocgame::python
