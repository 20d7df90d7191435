// What the training of the solver `learned` needs.
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bindings/pybind/handles.h"
#include "bindings/pybind/pickling.h"
#include "bindings/pybind/status.h"
#include "mallocgame/solvers/learned/weights.h"
#include "mallocgame/solvers/learning.h"

namespace py = pybind11;

namespace mallocgame::python {
namespace {

using Numbers = py::array_t<float, py::array::c_style | py::array::forcecast>;

int SizeOf(const std::string& name) {
  static const auto sizes = LearnedSizes();
  return sizes.at(name);
}

absl::Span<const float> NetworkOf(const Numbers& weights) {
  if (weights.ndim() != 1 || weights.size() != SizeOf("weights")) {
    Raise(absl::InvalidArgumentError(
        absl::StrCat("weights: found ", weights.size(), " numbers, allowed: ", SizeOf("weights"))));
  }
  return {weights.data(), static_cast<size_t>(weights.size())};
}

py::array_t<int64_t> Play(const LearningGame& game, const Numbers& weights, const Numbers& styles) {
  const auto network = NetworkOf(weights);
  if (styles.ndim() != 2 || styles.shape(1) != SizeOf("style")) {
    Raise(absl::InvalidArgumentError(absl::StrCat(
        "styles: found ", styles.ndim(), " axes, allowed: [styles, ", SizeOf("style"), "]")));
  }
  const absl::Span<const float> rows(styles.data(), styles.size());
  return ToArray(WithoutGil([&] { return game.Play(network, rows); }));
}

// An array with a row for each run.
template <class T, class From>
py::array_t<T> Rows(const LearningGame& game, const std::vector<From>& values) {
  const auto runs = static_cast<py::ssize_t>(game.runs());
  const auto count = static_cast<py::ssize_t>(values.size());
  py::array_t<T> array({runs, runs == 0 ? 0 : count / runs});
  std::copy(values.begin(), values.end(), array.mutable_data());
  return array;
}

py::dict Columns(const LearningGame& game) {
  py::dict columns;
  for (const auto& [name, values] : game.Columns()) columns[py::str(name)] = ToArray(values);
  return columns;
}

}  // namespace

void BindLearned(py::module_& module) {
  py::class_<LearningGame>(module, "LearningGame")
      .def("__reduce_ex__",
           RefusePickling("pickle the Game that it was made of, and make another of it"))
      .def(py::init([](const GameHandle& game) {
             return WithoutGil([&] { return std::make_unique<LearningGame>(*game.game); });
           }),
           py::arg("game"))
      .def("__len__", &LearningGame::runs)
      .def("play", &Play, py::arg("weights"), py::arg("styles"))
      .def(
          "advice",
          [](const LearningGame& game, const Numbers& weights) {
            return Rows<float>(game, game.Advice(NetworkOf(weights)));
          },
          py::arg("weights"))
      .def(
          "services_of",
          [](const LearningGame& game, const Plan& plan) { return ToArray(game.ServicesOf(plan)); },
          py::arg("plan"))
      .def_property_readonly("parents",
                             [](const LearningGame& game) { return ToArray(game.Parents()); })
      .def_property_readonly(
          "services", [](const LearningGame& game) { return Rows<bool>(game, game.Services()); })
      .def_property_readonly(
          "features", [](const LearningGame& game) { return Rows<float>(game, game.Features()); })
      .def_property_readonly("columns", &Columns);
  module.def("bundled_weights", [] {
    const auto weights = BundledWeights();
    return ToArray(std::vector<float>(weights.begin(), weights.end()));
  });
  module.attr("LEARNED_SIZES") = py::cast(LearnedSizes());
}

}  // namespace mallocgame::python
