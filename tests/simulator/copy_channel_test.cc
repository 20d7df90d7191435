// The copy channel alone: worked examples.
#include "mallocgame/simulator/copy_channel.h"

#include "tests/catch.h"

namespace mallocgame {
namespace {

CopyChannel Channel(const std::vector<int64_t>& services_ps) {
  CopyChannel channel(services_ps.size());
  for (size_t copy = 0; copy < services_ps.size(); ++copy) channel.Enqueue(copy, services_ps[copy]);
  return channel;
}

TEST_CASE("copies are served first in, first out") {
  SECTION("the later copy waits for the earlier, which is then free") {
    CopyChannel c = Channel({30, 5});
    CHECK(c.WaitFor(1) == 35);
    CHECK(c.WaitFor(0) == 0);
  }
  SECTION("in the other order") {
    CopyChannel c = Channel({30, 5});
    CHECK(c.WaitFor(0) == 30);
    CHECK(c.WaitFor(1) == 5);
  }
  SECTION("idle time serves one copy after the other") {
    CopyChannel c = Channel({30, 7});
    CHECK(c.Drain(33) == 0);
    CHECK(c.WaitFor(0) == 0);
    CHECK(c.Drain(10) == 6);
  }
  SECTION("no idle time") {
    CopyChannel c = Channel({512});
    CHECK(c.Drain(0) == 0);
    CHECK(c.WaitFor(0) == 512);
    CHECK(c.WaitFor(0) == 0);
  }
  SECTION("a copy queued twice is waited for twice over") {
    CopyChannel c = Channel({3});
    c.Enqueue(0, 3);
    CHECK(c.WaitFor(0) == 6);
  }
  SECTION("nothing to do") {
    CopyChannel c = Channel({0});
    CHECK(c.WaitFor(0) == 0);
    CHECK(c.Drain(5) == 5);
  }
}

}  // namespace
}  // namespace mallocgame
