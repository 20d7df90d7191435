// Writes plans into what the compiler's phases hand out.
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>

#include "bindings/pybind/handles.h"
#include "bindings/pybind/status.h"
#include "mallocgame/hlo/module/phase_module.h"
#include "mallocgame/hlo/write/reorder_module.h"
#include "mallocgame/hlo/write/write_plan.h"

namespace py = pybind11;

namespace mallocgame::python {
namespace {

std::tuple<py::bytes, py::bytes, Plan> WritePlanOf(const ProgramHandle& program, const Plan& plan,
                                                   const py::bytes& module,
                                                   const py::bytes& buffer_assignment,
                                                   const std::optional<Hardware>& own_hardware) {
  const PhaseModule unassigned = {std::string(ViewOf(module)),
                                  std::string(ViewOf(buffer_assignment))};
  const Hardware hardware = HardwareOr(program, own_hardware);
  auto written =
      WithoutGil([&] { return WritePlan(program.program(), plan, hardware, unassigned); });
  WrittenPlan result = ValueOrRaise(std::move(written));
  return {py::bytes(result.module.module), py::bytes(result.module.buffer_assignment),
          std::move(result.plan)};
}

py::bytes ReorderedModule(const ProgramHandle& program, const py::bytes& module) {
  const absl::string_view view = ViewOf(module);
  return py::bytes(
      ValueOrRaise(WithoutGil([&] { return ReorderModule(program.program(), view); })));
}

}  // namespace

void BindPhases(py::module_& module) {
  module.def("reorder_module", &ReorderedModule, py::arg("program"), py::arg("module"),
             "The module that a program was imported from (bytes), scheduled in the program's "
             "order. InvalidInputError: the module is damaged, or of another program.");
  module.def("write_plan", &WritePlanOf, py::arg("program"), py::arg("plan"), py::arg("module"),
             py::arg("buffer_assignment"), py::arg("hardware") = std::nullopt,
             "Writes a plan into what the compiler's first phase gives with memory space "
             "assignment off.\n\nmodule, buffer_assignment: its `opt_hlo` and `buffer_assignment`, "
             "decompressed, of which `program` was imported. hardware: None is the program's "
             "own.\n\nReturns both anew, for the later phases, and the plan as they carry it out: "
             "without evictions of what nobody reads, and with buffers in main memory that a "
             "transfer couldn't hold where the plan has them. InvalidInputError: the plan breaks a "
             "rule, or the messages are damaged or of another program. MallocGameError names the "
             "instruction, and what of the plan can't be written there.");
}

}  // namespace mallocgame::python
