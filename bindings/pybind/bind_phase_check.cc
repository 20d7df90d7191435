// The check of an assigned module before the compiler links it.
#include "bindings/pybind/handles.h"
#include "bindings/pybind/status.h"
#include "mallocgame/hlo/check/check_phase_module.h"

namespace py = pybind11;

namespace mallocgame::python {
namespace {

PhaseModule PhaseModuleOf(const py::bytes& module, const py::bytes& assignment) {
  return {std::string(module), std::string(assignment)};
}

void CheckPhase(const py::bytes& original_module, const py::bytes& original_assignment,
                const py::bytes& module, const py::bytes& assignment, const Hardware& hardware) {
  const PhaseModule original = PhaseModuleOf(original_module, original_assignment),
                    written = PhaseModuleOf(module, assignment);
  RaiseIfError(WithoutGil([&] { return CheckPhaseModule(original, written, hardware); }));
}

}  // namespace

void BindPhaseCheck(py::module_& module) {
  module.def("check_phase_module", &CheckPhase, py::arg("original_module"),
             py::arg("original_assignment"), py::arg("module"), py::arg("assignment"),
             py::arg("hardware"),
             "Says whether an assigned module may be linked.\n\noriginal_module, "
             "original_assignment: what the compiler's first phase gives with memory space "
             "assignment off (an HloModuleProtoWithConfig and a BufferAssignmentProto, "
             "decompressed). module, assignment: the same two, assigned. InvalidInputError: the "
             "message begins with the rule that is broken, such as 'rule overlap: '.");
}

}  // namespace mallocgame::python
