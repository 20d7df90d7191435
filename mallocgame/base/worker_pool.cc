#include "mallocgame/base/worker_pool.h"

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <system_error>

namespace mallocgame {

int UsableCores() {
#ifdef __linux__
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof(usable), &usable) == 0) return std::max(1, CPU_COUNT(&usable));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

WorkerPool::WorkerPool(int threads) {
  try {
    for (int i = 1; i < threads; ++i) threads_.emplace_back([this] { Work(); });
  } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch)
    // The system has no more threads: the work is shared by those there are.
  }
}

WorkerPool::~WorkerPool() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  start_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void WorkerPool::Run(int count, int chunk, const std::function<void(int, int)>& body) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    body_ = &body;
    count_ = count;
    chunk_ = chunk;
    next_.store(0, std::memory_order_relaxed);
    working_ = static_cast<int>(threads_.size());
    ++round_;
  }
  start_.notify_all();
  TakeChunks();
  std::unique_lock<std::mutex> lock(mutex_);
  done_.wait(lock, [this] { return working_ == 0; });
  body_ = nullptr;
}

void WorkerPool::Work() {
  uint64_t seen = 0;
  while (true) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      start_.wait(lock, [&] { return stop_ || round_ != seen; });
      if (stop_) return;
      seen = round_;
    }
    TakeChunks();
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--working_ == 0) done_.notify_one();
  }
}

void WorkerPool::TakeChunks() {
  while (true) {
    const int begin = next_.fetch_add(chunk_, std::memory_order_relaxed);
    if (begin >= count_) return;
    (*body_)(begin, std::min(count_, begin + chunk_));
  }
}

}  // namespace mallocgame
