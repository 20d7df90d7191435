#include "mallocgame/base/worker_pool.h"

#ifdef __linux__
#include <sched.h>
#endif

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#include "mallocgame/base/home_process.h"

namespace mallocgame {

int UsableCores() {
#ifdef __linux__
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof(usable), &usable) == 0) return std::max(1, CPU_COUNT(&usable));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// The threads beside the caller's, and what they share.
class WorkerPool::Crew {
 public:
  explicit Crew(int threads) {
    try {
      for (int i = 1; i < threads; ++i) threads_.emplace_back([this] { Work(); });
    } catch (const std::system_error&) {  // NOLINT(bugprone-empty-catch)
      // The system has no more threads: the work is shared by those there are.
    }
  }

  ~Crew() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    start_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  int threads() const { return static_cast<int>(threads_.size()) + 1; }
  const HomeProcess& home() const { return home_; }

  void Run(int count, int chunk, const std::function<void(int, int)>& body) {
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

 private:
  void Work() {
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

  void TakeChunks() {
    while (true) {
      const int begin = next_.fetch_add(chunk_, std::memory_order_relaxed);
      if (begin >= count_) return;
      (*body_)(begin, std::min(count_, begin + chunk_));
    }
  }

  HomeProcess home_;
  std::mutex mutex_;
  std::condition_variable start_, done_;
  uint64_t round_ = 0;
  int working_ = 0;
  bool stop_ = false;
  const std::function<void(int, int)>* body_ = nullptr;
  int count_ = 0, chunk_ = 1;
  std::atomic<int> next_{0};
  std::vector<std::thread> threads_;
};

WorkerPool::WorkerPool(int threads)
    : crew_(std::make_unique<Crew>(threads)), threads_(crew_->threads()) {}

// A crew whose threads are the parent's is left as it is: they can't be joined here, and its mutex
// may be theirs.
WorkerPool::~WorkerPool() {
  if (crew_->home().IsThisOne()) return;
  [[maybe_unused]] const Crew* const left = crew_.release();
}

void WorkerPool::Run(int count, int chunk, const std::function<void(int, int)>& body) {
  if (!crew_->home().IsThisOne()) {
    [[maybe_unused]] const Crew* const left = crew_.release();
    crew_ = std::make_unique<Crew>(threads_);
    threads_ = crew_->threads();
  }
  crew_->Run(count, chunk, body);
}

}  // namespace mallocgame
