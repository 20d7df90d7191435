// The number of threads that a trainer works with, as its caller gives it.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "mallocgame/base/worker_pool.h"

namespace mallocgame::training {

// InvalidArgument for a number outside 0 to kMaxThreads; the message begins with `agent`.
inline absl::Status CheckThreads(absl::string_view agent, int threads) {
  if (threads >= 0 && threads <= kMaxThreads) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(agent, ": threads: found ", threads, ", allowed: 0 to ", kMaxThreads));
}

// 0 asks for one thread for each core.
inline int ThreadsOrCores(int threads) { return threads > 0 ? threads : UsableCores(); }

}  // namespace mallocgame::training
