// The one place where an absl::Status becomes a Python exception, with the refusal that it carries.
// The classes themselves are Python's (mallocgame/errors.py), because each has a built-in class
// beside MallocGameError as its base.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "bindings/pybind/text.h"
#include "mallocgame/base/refusal.h"

namespace mallocgame::python {

// What the failed call was about: the same Status code means different things for a file and for a
// setting.
enum class Subject { kInput, kFile, kAction, kEnded };

inline const char* ExceptionName(const absl::Status& status, Subject subject) {
  if (subject == Subject::kEnded) return "GameOverError";
  if (subject == Subject::kAction) return "InvalidActionError";
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kDataLoss: return "InvalidInputError";
    case absl::StatusCode::kNotFound:
      return subject == Subject::kFile ? "MissingFileError" : "InvalidInputError";
    default: return subject == Subject::kFile ? "FileAccessError" : "MallocGameError";
  }
}

// Needs the GIL.
[[noreturn]] inline void Raise(const absl::Status& status, Subject subject = Subject::kInput) {
  const auto type =
      pybind11::module_::import("mallocgame.errors").attr(ExceptionName(status, subject));
  const pybind11::object error = type(Text(status.message()));
  if (const Refusal refusal = RefusalOf(status); !refusal.rule.empty()) {
    pybind11::list instructions, accesses;
    for (const std::string& name : refusal.instructions) instructions.append(Text(name));
    for (const int32_t access : refusal.accesses) accesses.append(access);
    error.attr("about")(Text(refusal.rule), instructions, accesses, refusal.exceeded_bytes);
  }
  pybind11::set_error(type, error);
  throw pybind11::error_already_set();
}

// InvalidInputError with a message of these parts.
template <class... Parts>
[[noreturn]] void RaiseInvalid(const Parts&... parts) {
  Raise(absl::InvalidArgumentError(absl::StrCat(parts...)));
}

inline void RaiseIfError(const absl::Status& status, Subject subject = Subject::kInput) {
  if (!status.ok()) Raise(status, subject);
}

template <class T>
T ValueOrRaise(absl::StatusOr<T> result, Subject subject = Subject::kInput) {
  if (!result.ok()) Raise(result.status(), subject);
  return *std::move(result);
}

// Runs `call` with the GIL released; it must touch no Python object.
template <class Call>
auto WithoutGil(Call&& call) {
  const pybind11::gil_scoped_release release;
  return std::forward<Call>(call)();
}

}  // namespace mallocgame::python
