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
                                   const std::vector<Shared>& shared,
                                   const py::bytes& backend_config, int64_t channel_id,
                                   const std::vector<py::bytes>& frontend_attributes) {
  InstructionPlacement placement{std::move(operands),
                                 std::move(results),
                                 std::move(values),
                                 {},
                                 std::string(backend_config),
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
      "Where the arrays of one instruction lie, and what else its isolated module depends "
      "on.\n\noperands: the memory spaces of each operand's arrays, depth first; results: those of "
      "the result. values: by operand, the first operand that is the same value. shared: (operand, "
      "array of it, array of the result) that lie in the same bytes; not in the hash, but in the "
      "code, so that what is kept by hash is kept by these too. backend_config, channel_id: those "
      "of the instruction in its scheduled module; empty and 0 leave those of the isolated module.")
      .def(py::init(&MakePlacement), py::kw_only(), py::arg("operands"), py::arg("results"),
           py::arg("values"), py::arg("shared") = std::vector<Shared>(),
           py::arg("backend_config") = py::bytes(), py::arg("channel_id") = 0,
           py::arg("frontend_attributes") = std::vector<py::bytes>(),
           "Describes a placement, as PlacedModule.placement() does.")
      .def_readonly("operands", &InstructionPlacement::operands,
                    "The memory spaces of each operand's arrays, depth first.")
      .def_readonly("results", &InstructionPlacement::results,
                    "The memory spaces of the result's arrays.")
      .def_readonly("values", &InstructionPlacement::values,
                    "By operand, the first operand that is the same value.")
      .def_property_readonly(
          "shared", &SharedOf,
          "(operand, array of it, array of the result) that lie in the same bytes.")
      .def_property_readonly(
          "backend_config",
          [](const InstructionPlacement& placement) { return py::bytes(placement.backend_config); },
          "Of the instruction in its scheduled module; empty: that of the isolated one.")
      .def_readonly("channel_id", &InstructionPlacement::channel_id,
                    "Of the instruction in its scheduled module; 0: that of the isolated one.")
      .def_property_readonly(
          "frontend_attributes",
          [](const InstructionPlacement& placement) {
            return std::vector<py::bytes>(placement.frontend_attributes.begin(),
                                          placement.frontend_attributes.end());
          },
          "Of the instruction and of all that it calls; empty: those of the isolated one.");
  py::class_<PlacedModule>(
      module, "PlacedModule",
      "A scheduled module with its buffer assignment, read for the placements of its instructions.")
      .def(py::init(&ReadPlacedModule), py::arg("module"), py::arg("buffer_assignment"),
           "Reads an HloModuleProtoWithConfig and a BufferAssignmentProto. InvalidInputError.")
      .def(
          "placement",
          [](const PlacedModule& placed, const std::vector<std::string>& instructions) {
            return ValueOrRaise(placed.PlacementOf(instructions));
          },
          py::arg("instructions"),
          "Returns the placement of instructions that have one hash, and so one isolated "
          "module.\n\nIt is that of the first of them in the module, with the arrays that any of "
          "them shares. InvalidInputError: there is no such instruction, or the list is empty.");
  module.def(
      "place_isolated_module", &Place, py::arg("isolated"), py::arg("placement"), py::arg("name"),
      "Returns the isolated module for another placement of its root.\n\nisolated: an "
      "HloModuleProtoWithConfig. name: the name of the module that is returned. InvalidInputError: "
      "it is no isolated module, or the placement is of another instruction.");
  module.def(
      "read_lowered_program",
      [](const py::bytes& program) {
        const hlo::LoweredProgram read = ValueOrRaise(hlo::ReadLoweredProgram(ViewOf(program)));
        return py::make_tuple(read.name, read.calls);
      },
      py::arg("isa_program_proto"),
      "Returns a program's name, a hash if others call it, and {instruction: hash that it calls}.");
  module.def(
      "read_estimated_cycles",
      [](const py::bytes& metadata) {
        return ValueOrRaise(hlo::ReadEstimatedCycles(ViewOf(metadata)));
      },
      py::arg("compiler_metadata"),
      "Returns the compiler's estimate of cycles by instruction; those without one are left out.");
}

}  // namespace mallocgame::python
