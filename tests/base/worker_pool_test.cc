// The pool shares out every index once, again and again.
#include "mallocgame/base/worker_pool.h"

#ifdef __linux__
#include <sched.h>
#endif

#include <atomic>
#include <memory>
#include <thread>

#include "mallocgame/base/home_process.h"
#include "tests/catch.h"
#include "tests/support/forked.h"

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

bool Counts(WorkerPool& pool, int count) {
  std::atomic<int> seen{0};
  pool.Run(count, 3, [&](int begin, int end) { seen += end - begin; });
  return seen == count;
}

TEST_CASE("a pool that has run in the parent runs in a child, and in the child's child") {
  for (int threads : {1, 2, 5}) {
    WorkerPool pool(threads);
    REQUIRE(Counts(pool, 100));
    REQUIRE(HoldsInChild([&] {
      return Counts(pool, 100) && pool.threads() == threads && Counts(pool, 7) &&
             HoldsInChild([&] { return Counts(pool, 50); });
    }));
    REQUIRE(Counts(pool, 100));
  }
}

TEST_CASE("a pool may end in a child, used there or not") {
  auto pool = std::make_unique<WorkerPool>(4);
  for (const bool used : {false, true}) {
    REQUIRE(HoldsInChild([&] {
      if (used && !Counts(*pool, 10)) return false;
      pool.reset();
      return true;
    }));
  }
  REQUIRE(Counts(*pool, 100));
}

TEST_CASE("a pool runs in a child that was forked while it ran") {
  WorkerPool pool(3);
  std::atomic<bool> stop{false};
  std::thread runs([&] {
    while (!stop) pool.Run(64, 1, [](int, int) {});
  });
  int held = 0;
  for (int i = 0; i < 30; ++i) {
    held += HoldsInChild([&] {
      auto* mine = new WorkerPool(2);
      const bool counts = Counts(pool, 40) && Counts(*mine, 40);
      delete mine;
      return counts;
    });
  }
  stop = true;
  runs.join();
  REQUIRE(held == 30);
}

TEST_CASE("a process knows that it is another one after a fork") {
  const HomeProcess home;
  REQUIRE(home.IsThisOne());
  REQUIRE(HoldsInChild([&] {
    const HomeProcess childs;
    return !home.IsThisOne() && childs.IsThisOne();
  }));
  REQUIRE(home.IsThisOne());
}

}  // namespace
}  // namespace mallocgame
