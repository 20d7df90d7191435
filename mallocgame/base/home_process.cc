#include "mallocgame/base/home_process.h"

#if __has_include(<pthread.h>)
#include <pthread.h>
#endif

#include <atomic>

namespace mallocgame {
namespace {

std::atomic<int64_t> forks{0};

}  // namespace

HomeProcess::HomeProcess() {
#if __has_include(<pthread.h>)
  [[maybe_unused]] static const int counted =
      pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
#endif
  forks_ = forks.load(std::memory_order_relaxed);
}

bool HomeProcess::IsThisOne() const { return forks_ == forks.load(std::memory_order_relaxed); }

}  // namespace mallocgame
