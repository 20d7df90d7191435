// Our strings as Python's. Names come from files and need not be UTF-8; what isn't shows as \xNN
// and never raises.
#pragma once

#include <pybind11/pybind11.h>

#include "absl/strings/string_view.h"

namespace mallocgame::python {

inline pybind11::str Text(absl::string_view text) {
  PyObject* object =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "backslashreplace");
  if (object == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::str>(object);
}

}  // namespace mallocgame::python
