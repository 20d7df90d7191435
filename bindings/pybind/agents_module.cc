// The module mallocgame._agents with the agents that need Torch. Users import `mallocgame.agents`,
// which says what is missing if this module is not there.
#include <pybind11/pybind11.h>

#include "bindings/pybind/agents.h"

PYBIND11_MODULE(_agents, module) {
  module.doc() =
      "Agents that learn, on libtorch. NumPy arrays, never Torch tensors, come in and out.";
  // Programs, games, states and results are the core's classes.
  pybind11::module_::import("mallocgame._core");
  mallocgame::python::BindMuZero(module);
  mallocgame::python::BindEgrl(module);
}
