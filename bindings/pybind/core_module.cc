// mallocgame._core: the C++ core as Python sees it. Users import `mallocgame`, which adds names of
// files and programs.
#include "bindings/pybind/handles.h"

namespace mallocgame::python {

void BindPolicy(pybind11::module_& module);  // bind_policy.cc

}  // namespace mallocgame::python

PYBIND11_MODULE(_core, module) {
  module.doc() =
      "C++ core of mallocgame: sizes are bytes, times integer picoseconds, intervals half-open.";
  // It comes before the functions whose signatures name it.
  pybind11::class_<mallocgame::Plan> plan(
      module, "Plan",
      "Which buffers lie in fast memory when, and the copies that bring them there.");
  mallocgame::python::BindProgram(module);
  mallocgame::python::BindPlan(module, plan);
  mallocgame::python::BindHlo(module);
  mallocgame::python::BindPhases(module);
  mallocgame::python::BindIsolated(module);
  mallocgame::python::BindPhaseCheck(module);
  mallocgame::python::BindGame(module);
  mallocgame::python::BindSolvers(module);
  mallocgame::python::BindPolicy(module);
  mallocgame::python::BindReplay(module);
  mallocgame::python::BindPjrt(module);
  mallocgame::python::BindOffsets(module);
  mallocgame::python::BindBounds(module);
  mallocgame::python::BindObservation(module);
  mallocgame::python::BindVector(module);
  mallocgame::python::BindPlacement(module);
  mallocgame::python::BindSearch(module);
  mallocgame::python::BindXla(module);
}
