// Actions that can't be used are refused in the caller's words (mallocgame/_arguments.py).
#pragma once

#include <pybind11/pybind11.h>

#include <string>

#include "absl/status/status.h"
#include "bindings/pybind/status.h"

namespace mallocgame::python {

// A value as messages show it.
inline std::string Found(pybind11::handle value) {
  return pybind11::module_::import("mallocgame._arguments")
      .attr("found")(value)
      .cast<std::string>();
}

// The action that `given` is: an int, an integer of NumPy, or whatever else Python takes as an
// index. InvalidActionError: it is none of the `count` actions of a game.
inline int ActionOf(pybind11::handle given, int count) {
  if (!PyBool_Check(given.ptr()) && PyIndex_Check(given.ptr())) {
    const Py_ssize_t action = PyNumber_AsSsize_t(given.ptr(), nullptr);  // clipped
    if (action == -1 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();  // an array of several numbers
    } else if (action >= 0 && action < count) {
      return static_cast<int>(action);
    }
  }
  Raise(absl::InvalidArgumentError("action: found " + Found(given) +
                                   ", allowed: an integer from 0 to " + std::to_string(count - 1)),
        Subject::kAction);
}

}  // namespace mallocgame::python
