// Objects that can't be pickled say what to do instead, and those that never change are their own
// copies.
#ifndef MALLOCGAME_BINDINGS_PYBIND_PICKLING_H_
#define MALLOCGAME_BINDINGS_PYBIND_PICKLING_H_

#include <pybind11/pybind11.h>

#include <string>

namespace mallocgame::python {

// The method __reduce_ex__ of a class whose objects can't be pickled or copied: TypeError.
// `instead` completes "Search can't be pickled or copied: ".
inline auto RefusePickling(std::string instead) {
  namespace py = pybind11;
  return [instead = std::move(instead)](const py::object& self, const py::object&) -> py::object {
    throw py::type_error(py::cast<std::string>(py::type::of(self).attr("__name__")) +
                         " can't be pickled or copied: " + instead);
  };
}

// copy.copy() and copy.deepcopy() of an object of this class, which never changes, are the object
// itself, however large it is.
template <class... Options>
pybind11::class_<Options...> ShareCopies(pybind11::class_<Options...> of) {
  of.def("__copy__", [](const pybind11::object& self) { return self; });
  of.def(
      "__deepcopy__", [](const pybind11::object& self, const pybind11::dict&) { return self; },
      pybind11::arg("memo"));
  return of;
}

}  // namespace mallocgame::python

#endif  // MALLOCGAME_BINDINGS_PYBIND_PICKLING_H_
