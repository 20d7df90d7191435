// A deadline passes by its time or by cancelling, whichever comes first.
#include "mallocgame/base/deadline.h"

#include <thread>

#include "tests/catch.h"

namespace mallocgame {
namespace {

TEST_CASE("a deadline without limits never passes") {
  CHECK(!Deadline().Passed());
  CHECK(!Deadline(0).Passed());
  CHECK(!Deadline(-1).has_time_limit());
  CHECK(!Deadline(1000).Passed());
}

TEST_CASE("a deadline passes with its time") {
  const Deadline deadline(1e-4);
  REQUIRE(deadline.has_time_limit());
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  CHECK(deadline.Passed());
  CHECK(deadline.seconds() >= 0.002);
}

TEST_CASE("a deadline passes when somebody cancels") {
  std::atomic<bool> cancel = false;
  const Deadline unlimited(0, &cancel), limited(1000, &cancel), part = limited.Share(0.5);
  CHECK(!unlimited.Passed());
  cancel = true;
  CHECK(unlimited.Passed());
  CHECK(limited.Passed());
  CHECK(part.Passed());
}

TEST_CASE("a share of a deadline is never later, and leaves the first as it was") {
  const Deadline whole(1000), never;
  CHECK(!whole.Passed());
  CHECK(!whole.Share(0.5).Passed());
  CHECK(whole.Share(0).Passed());
  CHECK(!never.Share(0).Passed());
  const Deadline over(1e-6);
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(over.Share(0.5).Passed());
}

}  // namespace
}  // namespace mallocgame
