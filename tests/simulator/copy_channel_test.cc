// The copy channel alone: the cases of XLA's own test of its runtime simulator, which has two
// queues (a byte and a second there are a picosecond here), and worked examples of both
// disciplines.
#include "mallocgame/simulator/copy_channel.h"

#include "tests/catch.h"

namespace mallocgame {
namespace {

constexpr CopyKind kIn = CopyKind::kPrefetch, kOut = CopyKind::kWriteBack;

CopyChannel Channel(CopyDiscipline discipline, const std::vector<int64_t>& in,
                    const std::vector<int64_t>& out) {
  CopyChannel channel(discipline, in.size() + out.size());
  size_t copy = 0;
  for (const int64_t ps : in) channel.Enqueue(copy++, kIn, ps);
  for (const int64_t ps : out) channel.Enqueue(copy++, kOut, ps);
  return channel;
}
CopyChannel Two(const std::vector<int64_t>& in, const std::vector<int64_t>& out) {
  return Channel(CopyDiscipline::kTwoQueues, in, out);
}
CopyChannel One(const std::vector<int64_t>& in, const std::vector<int64_t>& out = {}) {
  return Channel(CopyDiscipline::kOneQueue, in, out);
}

TEST_CASE("XLA's cases: waiting") {
  SECTION("waiting again costs nothing") {
    CopyChannel c = Two({512}, {});
    CHECK(c.WaitFor(0) == 512);
    CHECK(c.WaitFor(0) == 0);
    CHECK(c.QueuedPs(kIn) == 0);
    CHECK(c.QueuedPs(kOut) == 0);
  }
  SECTION("both directions share") {
    CopyChannel c = Two({512}, {128});
    CHECK(c.WaitFor(1) == 256);
    CHECK(c.QueuedPs(kOut) == 0);
    CHECK(c.QueuedPs(kIn) == 384);
    CHECK(c.WaitFor(0) == 384);
    CHECK(c.QueuedPs(kIn) == 0);
  }
}

TEST_CASE("XLA's cases: instructions in between") {
  SECTION("no idle time") {
    CopyChannel c = Two({512}, {});
    CHECK(c.Drain(0) == 0);
    CHECK(c.QueuedPs(kIn) == 512);
  }
  SECTION("64 idle, shared") {
    CopyChannel c = Two({512}, {128});
    CHECK(c.Drain(64) == 0);
    CHECK(c.QueuedPs(kIn) == 480);
    CHECK(c.QueuedPs(kOut) == 96);
  }
  SECTION("64 idle, alone") {
    CopyChannel c = Two({512}, {});
    CHECK(c.Drain(64) == 0);
    CHECK(c.QueuedPs(kIn) == 448);
  }
  SECTION("nothing queued") {
    CopyChannel c = Two({}, {});
    CHECK(c.Drain(1024) == 1024);
  }
}

TEST_CASE("two queues: worked examples") {
  SECTION("sharing with two write-backs in turn") {
    CopyChannel c = Two({12}, {5, 10});
    CHECK(c.WaitFor(0) == 24);
    CHECK(c.QueuedPs(kOut) == 3);
    CHECK(c.WaitFor(1) == 0);
  }
  SECTION("sharing ends") {
    CopyChannel c = Two({12}, {5});
    CHECK(c.WaitFor(0) == 17);
  }
  SECTION("full bandwidth again after the sharing") {
    CopyChannel c = Two({6}, {2});
    CHECK(c.Drain(10) == 2);
    CHECK(c.QueuedPs(kIn) == 0);
  }
  SECTION("half the bandwidth, however often the other side changes") {
    CopyChannel c = Two({10}, {3, 3});
    CHECK(c.Drain(20) == 4);
  }
  SECTION("half a picosecond is rounded up") {
    CopyChannel c = Two({3}, {3});
    CHECK(c.Drain(1) == 0);
    CHECK(c.WaitFor(0) == 5);
  }
}

TEST_CASE("one queue: first in, first out, whatever the direction") {
  SECTION("the later copy waits for the earlier, which is then free") {
    CopyChannel c = One({30, 5});
    CHECK(c.WaitFor(1) == 35);
    CHECK(c.WaitFor(0) == 0);
  }
  SECTION("in the other order") {
    CopyChannel c = One({30, 5});
    CHECK(c.WaitFor(0) == 30);
    CHECK(c.WaitFor(1) == 5);
  }
  SECTION("write-backs stand in the same queue") {
    CopyChannel c = One({30}, {7});
    CHECK(c.Drain(33) == 0);
    CHECK(c.QueuedPs(kIn) == 0);
    CHECK(c.QueuedPs(kOut) == 4);
    CHECK(c.Drain(10) == 6);
  }
  SECTION("a copy queued twice is waited for twice over") {
    CopyChannel c = One({3});
    c.Enqueue(0, kIn, 3);
    CHECK(c.WaitFor(0) == 6);
  }
  SECTION("nothing to do") {
    CopyChannel c = One({0});
    CHECK(c.WaitFor(0) == 0);
    CHECK(c.Drain(5) == 5);
  }
}

}  // namespace
}  // namespace mallocgame
