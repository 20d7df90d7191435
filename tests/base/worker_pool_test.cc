// The pool shares out every index once, again and again.
#include "mallocgame/base/worker_pool.h"

#ifdef __linux__
#include <sched.h>
#endif

#include <thread>

#include "tests/catch.h"

namespace mallocgame {
namespace {

TEST_CASE("every index once, whatever the threads, the count and the chunk") {
  for (int threads : {1, 2, 5}) {
    WorkerPool pool(threads);
    for (int round = 0; round < 300; ++round) {
      const int count = round % 37, chunk = 1 + round % 8;
      std::vector<int> seen(count, 0);
      pool.Run(count, chunk, [&](int begin, int end) {
        for (int i = begin; i < end; ++i) ++seen[i];
      });
      REQUIRE(seen == std::vector<int>(count, 1));
    }
  }
}

TEST_CASE("a thread that is bound to one core may use one") {
  REQUIRE(UsableCores() >= 1);
#ifdef __linux__
  std::thread([] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    REQUIRE(sched_setaffinity(0, sizeof(one), &one) == 0);
    REQUIRE(UsableCores() == 1);
  }).join();
#endif
}

TEST_CASE("a pool that never runs stops") {
  for (int i = 0; i < 50; ++i) WorkerPool pool(4);
}

}  // namespace
}  // namespace mallocgame
