// How objects are pickled: as the list of their struct's members, or not at all, and then they say
// what to do instead. Objects that never change are their own copies.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "bindings/pybind/handles.h"

namespace mallocgame::python {

// The members of a struct that its pickles hold, as std::tuple(&T::member, ...). A struct that is
// pickled, or that is a member of one, specializes it.
template <class T>
inline constexpr std::tuple<> kPickled;

template <class T>
constexpr bool kHasPickled = std::tuple_size_v<std::remove_cv_t<decltype(kPickled<T>)>> > 0;

template <class T>
pybind11::object Saved(const std::optional<T>& value);
template <class T>
pybind11::object Saved(const std::vector<T>& values);
template <class T>
void Restore(pybind11::handle saved, std::optional<T>& value);
template <class T>
void Restore(pybind11::handle saved, std::vector<T>& values);

// A value as pickles hold it. Text need not be UTF-8, so it is bytes.
template <class T>
pybind11::object Saved(const T& value) {
  if constexpr (kHasPickled<T>) {
    return std::apply(
        [&](auto... members) -> pybind11::object {
          return pybind11::make_tuple(Saved(value.*members)...);
        },
        kPickled<T>);
  } else if constexpr (std::is_enum_v<T>) {
    return pybind11::int_(static_cast<int>(value));
  } else if constexpr (std::is_same_v<T, std::string>) {
    return pybind11::bytes(value);
  } else if constexpr (std::is_base_of_v<pybind11::object, T>) {
    return value;
  } else {
    return pybind11::cast(value);
  }
}
template <class T>
pybind11::object Saved(const std::optional<T>& value) {
  return value ? Saved(*value) : pybind11::none();
}
template <class T>
pybind11::object Saved(const std::vector<T>& values) {
  if constexpr (std::is_arithmetic_v<T>) {
    return ToArray(values);
  } else {
    pybind11::list saved;
    for (const T& value : values) saved.append(Saved(value));
    return saved;
  }
}

// Puts what Saved() gave into `value`.
template <class T>
void Restore(pybind11::handle saved, T& value) {
  if constexpr (kHasPickled<T>) {
    pybind11::ssize_t next = 0;
    const auto members = saved.cast<pybind11::tuple>();
    std::apply([&](auto... member) { (Restore(members[next++], value.*member), ...); },
               kPickled<T>);
  } else if constexpr (std::is_enum_v<T>) {
    value = static_cast<T>(saved.cast<int>());
  } else {
    value = saved.cast<T>();
  }
}
template <class T>
void Restore(pybind11::handle saved, std::optional<T>& value) {
  if (!saved.is_none()) Restore(saved, value.emplace());
}
template <class T>
void Restore(pybind11::handle saved, std::vector<T>& values) {
  if constexpr (std::is_arithmetic_v<T>) {
    values = saved.cast<std::vector<T>>();
  } else {
    for (const pybind11::handle one : saved) Restore(one, values.emplace_back());
  }
}

// The argument of def() that makes objects of a struct with kPickled picklable.
template <class T>
auto Pickled() {
  return pybind11::pickle([](const T& value) { return pybind11::tuple(Saved(value)); },
                          [](const pybind11::tuple& saved) {
                            T value;
                            Restore(saved, value);
                            return value;
                          });
}

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
