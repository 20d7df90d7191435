// What learns the solver `policy` (benchmarks/quality/train_policy.py): games with any weights.
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
                         "Games that the rule of the solver policy plays with any weights.")
      .def(py::init([](const GameHandle& game) { return PolicyGame(*game.game); }), py::arg("game"))
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
}

}  // namespace mallocgame::python
