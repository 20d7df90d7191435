// Threads that share out the indices of a loop, and how many of them can run at a time.
#pragma once

#include <functional>
#include <memory>

namespace mallocgame {

// How many processors this thread may run on, at least 1: those of its affinity (taskset) where the
// system has one, else all.
int UsableCores();

// The most threads that a caller may ask for.
inline constexpr int kMaxThreads = 1024;

class WorkerPool {
 public:
  // The caller's thread works too, so `threads` of 1 starts none. Starts fewer if the system gives
  // no more. In a child that is forked the pool starts new ones when it runs first.
  explicit WorkerPool(int threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int threads() const { return threads_; }

  // Calls body(begin, end) on disjoint parts of [0, count), `chunk` indices each, on all threads;
  // returns when all are done. `body` must not throw. One caller at a time.
  void Run(int count, int chunk, const std::function<void(int, int)>& body);

 private:
  class Crew;

  std::unique_ptr<Crew> crew_;
  int threads_;
};

}  // namespace mallocgame
