// Environments that XLA steps on the CPU (bind_xla.cc).
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "mallocgame/vector/vector_env.h"

namespace mallocgame::python {

// A Python object that owns the environments and has their handle, an array of numbers, by which
// XLA's custom calls find them. InvalidInputError: the build had no headers of jaxlib.
pybind11::object MakeXlaEnvironments(std::unique_ptr<VectorEnv> environments);

}  // namespace mallocgame::python
