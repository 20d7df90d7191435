// Isolated modules for other placements, and what the compile phases answer about them.
#include <pybind11/stl.h>

#include <array>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/pybind/handles.h"
#include "bindings/pybind/status.h"
#include "mallocgame/hlo/cost/lowered_programs.h"
#include "mallocgame/hlo/write/isolated_module.h"
#include "mallocgame/hlo/write/placed_module.h"

namespace py = pybind11;

namespace mallocgame::python {
namespace {

using hlo::InstructionPlacement;
using hlo::PlacedModule;
using Shared = std::array<int64_t, 3>;

std::unique_ptr<PlacedModule> ReadPlacedModule(const py::bytes& module,
                                               const py::bytes& buffer_assignment) {
  const absl::string_view bytes = ViewOf(module), assignment = ViewOf(buffer_assignment);
  auto read = WithoutGil([&] { return PlacedModule::Read(bytes, assignment); });
  return std::make_unique<PlacedModule>(ValueOrRaise(std::move(read)));
}

InstructionPlacement MakePlacement(std::vector<std::vector<int64_t>> operands,
                                   std::vector<int64_t> results, std::vector<int64_t> values,
                                   const std::vector<Shared>& shared, std::string backend_config,
                                   int64_t channel_id,
                                   const std::vector<py::bytes>& frontend_attributes) {
  InstructionPlacement placement{std::move(operands),
                                 std::move(results),
                                 std::move(values),
                                 {},
                                 std::move(backend_config),
                                 channel_id,
                                 {}};
  placement.frontend_attributes.assign(frontend_attributes.begin(), frontend_attributes.end());
  for (const auto& [operand, operand_array, result_array] : shared)
    placement.shared.push_back({operand, operand_array, result_array});
  return placement;
}

std::vector<Shared> SharedOf(const InstructionPlacement& placement) {
  std::vector<Shared> shared;
  for (const hlo::SharedArray& array : placement.shared)
    shared.push_back({array.operand, array.operand_array, array.result_array});
  return shared;
}

py::bytes Place(const py::bytes& isolated, const InstructionPlacement& placement,
                const std::string& name) {
  const absl::string_view bytes = ViewOf(isolated);
  auto placed = WithoutGil([&] { return hlo::PlaceIsolatedModule(bytes, placement, name); });
  return py::bytes(ValueOrRaise(std::move(placed)));
}

}  // namespace

void BindIsolated(py::module_& module) {
  py::class_<InstructionPlacement>(
      module, "InstructionPlacement",
      "Where the arrays of one instruction lie, and what else tells its isolated module from those "
      "of other instructions that are lowered alike.")
      .def(py::init(&MakePlacement), py::kw_only(), py::arg("operands"), py::arg("results"),
           py::arg("values"), py::arg("shared") = std::vector<Shared>(),
           py::arg("backend_config") = "", py::arg("channel_id") = 0,
           py::arg("frontend_attributes") = std::vector<py::bytes>())
      .def_readonly("operands", &InstructionPlacement::operands)
      .def_readonly("results", &InstructionPlacement::results)
      .def_readonly("values", &InstructionPlacement::values)
      .def_property_readonly("shared", &SharedOf)
      .def_property_readonly(
          "backend_config",
          [](const InstructionPlacement& placement) { return py::bytes(placement.backend_config); })
      .def_readonly("channel_id", &InstructionPlacement::channel_id)
      .def_property_readonly("frontend_attributes", [](const InstructionPlacement& placement) {
        return std::vector<py::bytes>(placement.frontend_attributes.begin(),
                                      placement.frontend_attributes.end());
      });
  py::class_<PlacedModule>(module, "PlacedModule",
                           "A scheduled module with its buffer assignment, read for the placements "
                           "of its instructions.")
      .def(py::init(&ReadPlacedModule), py::arg("module"), py::arg("buffer_assignment"))
      .def(
          "placement",
          [](const PlacedModule& placed, const std::vector<std::string>& instructions) {
            return ValueOrRaise(placed.PlacementOf(instructions));
          },
          py::arg("instructions"));
  module.def("place_isolated_module", &Place, py::arg("isolated"), py::arg("placement"),
             py::arg("name"));
  module.def(
      "read_lowered_program",
      [](const py::bytes& program) {
        const hlo::LoweredProgram read = ValueOrRaise(hlo::ReadLoweredProgram(ViewOf(program)));
        return py::make_tuple(read.name, read.calls);
      },
      py::arg("isa_program_proto"));
  module.def(
      "read_estimated_cycles",
      [](const py::bytes& metadata) {
        return ValueOrRaise(hlo::ReadEstimatedCycles(ViewOf(metadata)));
      },
      py::arg("compiler_metadata"));
}

}  // namespace mallocgame::python
