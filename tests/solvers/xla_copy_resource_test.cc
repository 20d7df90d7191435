// The time that copies take of each other: a worked example, and a queue served tick by tick.
#include "mallocgame/solvers/xla/copy_resource.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "mallocgame/base/rng.h"
#include "tests/catch.h"

namespace mallocgame {
namespace {

TEST_CASE("copy resource: the reference's example") {
  // All numbers are twice the reference's, because that has halves.
  CopyResource resource(std::vector<int64_t>{0, 8, 4, 6, 2, 10, 4});
  REQUIRE(resource.HasRoom(2, 6, 12));
  resource.Add(2, 6, 12);              // behind tick 1: 4 + 6 + 2 at ticks 2, 3, 4
  CHECK(!resource.HasRoom(4, 6, 11));  // 2 ps of the first are left at tick 4
  REQUIRE(resource.HasRoom(4, 6, 10));
  const CopyResource::Key second = resource.Add(4, 6, 10);
  // This one begins before both: it has 8 ps at tick 1, and the 2 ps that are left delay the
  // others.
  CHECK(!resource.HasRoom(1, 6, 10));
  resource.Remove(second);
  CHECK(resource.HasRoom(1, 6, 10));
  CHECK(resource.HasRoom(4, 4, 0));
  CHECK(!resource.HasRoom(4, 4, 1));
}

TEST_CASE("copy resource: room is what a queue served tick by tick has") {
  Rng rng(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> time(12);
    for (int64_t& t : time) t = rng.Below(5);
    struct Window {
      Tick begin, end;
      int64_t work;
      CopyResource::Key key;
    };
    std::vector<Window> windows;
    CopyResource resource(time);
    // Served first in, first out, all are done by their ends.
    const auto in_time = [&time](std::vector<Window> all) {
      std::stable_sort(all.begin(), all.end(),
                       [](const Window& a, const Window& b) { return a.begin < b.begin; });
      size_t front = 0;
      for (Tick t = 0; t <= 12; ++t) {
        for (const Window& w : all) {
          if (w.end == t && w.work > 0) return false;
        }
        int64_t left = t < 12 ? time[t] : 0;
        while (front < all.size() && all[front].begin <= t) {
          const int64_t served = std::min(left, all[front].work);
          left -= served;
          all[front].work -= served;
          if (all[front].work > 0) break;
          ++front;
        }
      }
      return true;
    };
    for (int i = 0; i < 12; ++i) {
      if (!windows.empty() && rng.Below(4) == 0) {
        const size_t gone = rng.Below(windows.size());
        resource.Remove(windows[gone].key);
        windows.erase(windows.begin() + static_cast<std::ptrdiff_t>(gone));
        continue;
      }
      const auto begin = static_cast<Tick>(rng.Below(12));
      Window added = {
          begin, begin + static_cast<Tick>(rng.Below(13 - begin)), 1 + rng.Below(6), {}};
      std::vector<Window> with = windows;
      with.push_back(added);
      REQUIRE(resource.HasRoom(added.begin, added.end, added.work) == in_time(with));
      if (!in_time(with)) continue;
      added.key = resource.Add(added.begin, added.end, added.work);
      windows.push_back(added);
    }
  }
}

}  // namespace
}  // namespace mallocgame
