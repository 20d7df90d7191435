// The ascent of the Lagrangian bound.
#include <pybind11/numpy.h>
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/pybind/handles.h"
#include "bindings/pybind/pickling.h"
#include "bindings/pybind/status.h"
#include "mallocgame/solvers/lagrangian/ascent.h"

namespace py = pybind11;

namespace mallocgame::python {
namespace {

struct AscentHandle {
  // It stays where it is, as the ascent refers to it.
  std::unique_ptr<CostModel> cost_model;
  LagrangianAscent ascent;
};

AscentHandle MakeAscent(const ProgramHandle& program, const std::optional<Hardware>& own_hardware,
                        int64_t least_bytes) {
  const Hardware hardware = HardwareOr(program, own_hardware);
  RaiseIfError(ValidateHardware(hardware));
  auto cost_model = std::make_unique<CostModel>(program.file.program, hardware);
  LagrangianAscent ascent =
      ValueOrRaise(WithoutGil([&] { return LagrangianAscent::Create(*cost_model, least_bytes); }));
  return {std::move(cost_model), std::move(ascent)};
}

}  // namespace

void BindBounds(py::module_& module) {
  py::class_<AscentHandle>(
      module, "LagrangianAscent",
      "The Lagrangian dual of a program on its way up. mallocgame.bounds.bound() keeps one.")
      .def(py::init(&MakeAscent), py::arg("program"), py::arg("hardware"), py::arg("least_bytes"))
      .def("__reduce_ex__", RefusePickling("pickle the Bound that it leads to"))
      .def(
          "run",
          [](AscentHandle& handle, double seconds) {
            return WithoutGil([&] { return handle.ascent.Run(Deadline(seconds)); });
          },
          py::arg("seconds"), "Goes on for so many seconds. Returns whether it has converged.")
      .def_property_readonly(
          "value_ps", [](const AscentHandle& handle) { return handle.ascent.value_ps(); },
          "The best value so far, in floating point.")
      .def_property_readonly(
          "steps", [](const AscentHandle& handle) { return handle.ascent.steps(); },
          "How many supergradients were taken.")
      .def_property_readonly(
          "multipliers",
          [](const AscentHandle& handle) { return ToArray(handle.ascent.multipliers()); },
          "int64 array: the certificate of the best value.")
      .def_property_readonly(
          "prices", [](const AscentHandle& handle) { return handle.ascent.prices(); },
          "What the best multipliers say of space and channel.")
      .def(
          "proven_ps",
          [](const AscentHandle& handle, const std::vector<int64_t>& multipliers) {
            return ValueOrRaise(WithoutGil([&] { return handle.ascent.ProvenPs(multipliers); }));
          },
          py::arg("multipliers"),
          "What multipliers prove, in integers. InvalidInputError: they aren't allowed.");
}

}  // namespace mallocgame::python
