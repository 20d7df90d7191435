// Long calls that Ctrl-C can end.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <chrono>
#include <future>

#include "bindings/pybind/status.h"

namespace mallocgame::python {

// Runs `call(cancel)`, which gives a StatusOr, on a thread of its own, so that Ctrl-C reaches
// Python meanwhile: `cancel` is then set and the thread waited for. The call must touch no Python
// object.
template <class Call>
auto Interruptibly(Call call, Subject subject = Subject::kInput) {
  std::atomic<bool> cancel{false};
  std::future result = std::async(std::launch::async, [&] { return call(&cancel); });
  while (WithoutGil([&] {
    return result.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready;
  })) {
    if (PyErr_CheckSignals() == 0) continue;
    cancel = true;
    WithoutGil([&] { result.wait(); });
    throw pybind11::error_already_set();
  }
  return ValueOrRaise(result.get(), subject);
}

}  // namespace mallocgame::python
