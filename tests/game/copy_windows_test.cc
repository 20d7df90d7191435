// CopyWindows on the strip of docs/rules.md, and against a channel of single picoseconds.
#include "mallocgame/game/time/copy_windows.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "mallocgame/base/rng.h"
#include "tests/catch.h"

namespace mallocgame {

bool operator==(const CopyWindow& a, const CopyWindow& b) {
  return a.begin == b.begin && a.end == b.end && a.start_ps == b.start_ps &&
         a.stall_ps == b.stall_ps;
}

namespace {

using Gaps = std::vector<std::pair<int64_t, int64_t>>;

Gaps GapsOf(const CopyWindows& windows) {
  Gaps gaps;
  for (const CopyWindows::Gap& gap : windows.gaps()) gaps.emplace_back(gap.begin, gap.end);
  return gaps;
}

//   instruction   |  0  |  1  | 2 |  3
//   idle time     |=====|     |===|
//   service time  0     6     6   9
//   booked        |XX...|     |...|
CopyWindows Strip(UndoLog* log) {
  CopyWindows windows(8, 1);
  windows.Advance(log, 6, false);
  const auto booked = windows.FindLatest(2, 0);
  // The copy would fit at [4, 6) too; it is served as soon as it is asked for.
  REQUIRE(booked == CopyWindow{0, 1, 0, 0});
  windows.Book(log, *booked, 2);
  windows.Advance(log, 0, false);
  windows.Advance(log, 3, false);
  REQUIRE(windows.now() == 3);
  REQUIRE(windows.now_ps() == 9);
  REQUIRE(windows.booked_until_ps() == 2);
  return windows;
}

TEST_CASE("a window begins as late as hides the copy whole, or else behind the last one") {
  UndoLog log;
  const CopyWindows windows = Strip(&log);
  REQUIRE(windows.FindLatest(3, 0) == CopyWindow{2, 3, 6, 0});
  // 5 before 9 is 4: tick 0 is the last at which 4 or less was served. The copy waits for the one
  // booked and is through at 7, in tick 2.
  REQUIRE(windows.FindLatest(5, 0) == CopyWindow{0, 3, 2, 0});
  REQUIRE(windows.FindLatest(8, 0) == std::nullopt);
  REQUIRE(windows.FindBehind(8, 0) == CopyWindow{0, 3, 2, 1});  // [2, 10): a stall of 1
  REQUIRE(windows.FindBehind(3, 0) == CopyWindow{0, 1, 2, 0});  // it needs no stall
}

TEST_CASE("a copy begins no earlier than its bytes are there") {
  UndoLog log;
  const CopyWindows windows = Strip(&log);
  REQUIRE(windows.FindLatest(3, 2) == CopyWindow{2, 3, 6, 0});
  REQUIRE(windows.FindLatest(4, 2) == std::nullopt);
  REQUIRE(windows.FindEarliest(3, 0) == CopyWindow{0, 1, 2, 0});
  REQUIRE(windows.FindEarliest(3, 1) == CopyWindow{2, 3, 6, 0});
  REQUIRE(windows.FindEarliest(4, 1) == std::nullopt);
  REQUIRE(windows.FindBehind(4, 3) == CopyWindow{3, 3, 9, 4});  // all of it is a stall
}

TEST_CASE("what is booked divides a gap, and short gaps are forgotten") {
  UndoLog log;
  CopyWindows windows(8, 2);
  windows.Advance(&log, 10, false);
  windows.Advance(&log, 10, false);
  windows.Book(&log, {1, 2, 10, 0}, 5);  // [10, 15)
  REQUIRE(GapsOf(windows) == Gaps{{0, 10}});
  windows.Book(&log, {0, 1, 3, 0}, 4);  // [3, 7)
  REQUIRE(GapsOf(windows) == Gaps{{0, 3}, {7, 10}});
  windows.Book(&log, {0, 1, 7, 0}, 2);  // [7, 9): one picosecond is left, less than any copy takes
  REQUIRE(GapsOf(windows) == Gaps{{0, 3}});
  REQUIRE(windows.FindLatest(5, 0) == CopyWindow{1, 2, 15, 0});
  REQUIRE(windows.FindEarliest(3, 0) == CopyWindow{0, 1, 0, 0});
  REQUIRE(windows.FindLatest(6, 0) == std::nullopt);
}

TEST_CASE("a stall makes service time of its own") {
  UndoLog log;
  CopyWindows windows(4, 1);
  windows.Advance(&log, 4, false);
  const CopyWindow window = windows.FindBehind(6, 0);
  REQUIRE(window == CopyWindow{0, 1, 0, 2});
  windows.Book(&log, window, 6);
  REQUIRE(windows.now_ps() == 6);
  REQUIRE(windows.booked_until_ps() == 6);
}

TEST_CASE("evictions are queued behind all others, and waited for") {
  UndoLog log;
  CopyWindows windows(8, 1);
  windows.Advance(&log, 5, false);
  REQUIRE(windows.Append(&log, 4) == 9);  // [5, 9)
  REQUIRE(windows.Append(&log, 2) == 11);
  REQUIRE(GapsOf(windows) == Gaps{{0, 5}});
  REQUIRE(windows.ServedBy(9, 1) == kNever);
  windows.Advance(&log, 4, false);
  REQUIRE(windows.ServedBy(9, 1) == 2);
  REQUIRE(windows.ServedBy(11, 1) == kNever);
  REQUIRE(windows.WaitUntil(11) == 2);
  REQUIRE(windows.ServedBy(11, 1) == 2);
  REQUIRE(windows.WaitUntil(11) == 0);
}

TEST_CASE("a segment begins with an empty channel, and windows stay inside it") {
  UndoLog log;
  CopyWindows windows = Strip(&log);
  windows.Advance(&log, 5, true);
  REQUIRE(windows.segment_begin() == 4);
  REQUIRE(windows.FindLatest(1, 0) == std::nullopt);
  REQUIRE(windows.FindBehind(3, 0) == CopyWindow{4, 4, 14, 3});
  windows.Advance(&log, 3, false);
  REQUIRE(windows.FindLatest(3, 0) == CopyWindow{4, 5, 14, 0});
  REQUIRE(windows.FindEarliest(2, 0) == CopyWindow{4, 5, 14, 0});
}

// Each picosecond of service time is free or taken. What the public functions promise, said again
// by looking at all of them.
class NaiveChannel {
 public:
  std::optional<CopyWindow> FindLatest(int64_t length, Tick available) const {
    const int64_t earliest = EarliestStart(available);
    std::optional<CopyWindow> found;
    for (const auto& [begin, end] : FreeRanges()) {
      if (end - std::max(begin, earliest) < length) continue;
      Tick tick = segment_begin;
      while (tick < now() && service[tick + 1] <= end - length) ++tick;
      found = Hidden(tick, std::max(begin, service[tick]), length);
    }
    return found;
  }
  std::optional<CopyWindow> FindEarliest(int64_t length, Tick available) const {
    for (const auto& [begin, end] : FreeRanges()) {
      const int64_t start = std::max(begin, EarliestStart(available));
      if (end - start >= length) return Hidden(LastTickAt(start), start, length);
    }
    return std::nullopt;
  }
  CopyWindow FindBehind(int64_t length, Tick available) const {
    const int64_t start = std::max(BookedUntil(), EarliestStart(available));
    if (start + length <= service.back()) return Hidden(LastTickAt(start), start, length);
    return {LastTickAt(std::min(start, service.back())), now(), start,
            start + length - service.back()};
  }
  void Book(const CopyWindow& window, int64_t length) {
    taken.resize(std::max<size_t>(taken.size(), window.start_ps + length), false);
    for (int64_t ps = window.start_ps; ps < window.start_ps + length; ++ps) {
      REQUIRE(!taken[ps]);
      taken[ps] = true;
    }
    service.back() += window.stall_ps;
  }
  void Advance(int64_t idle, bool starts_segment) {
    service.push_back(service.back() + idle);
    if (!starts_segment) return;
    segment_begin = now();
    taken.assign(service.back(), true);  // nothing before counts any more
  }
  int64_t BookedUntil() const {
    for (auto ps = static_cast<int64_t>(taken.size()); ps > service[segment_begin]; --ps) {
      if (taken[ps - 1]) return ps;
    }
    return service[segment_begin];
  }
  // All free ranges of the segment up to now, in order; the last one is open at its end.
  Gaps FreeRanges() const {
    Gaps ranges;
    for (int64_t ps = service[segment_begin]; ps < service.back(); ++ps) {
      if (ps < static_cast<int64_t>(taken.size()) && taken[ps]) continue;
      if (ranges.empty() || ranges.back().second != ps) ranges.emplace_back(ps, ps);
      ++ranges.back().second;
    }
    return ranges;
  }
  int64_t FreePs(Tick since) const {
    int64_t free = 0;
    for (const auto& [begin, end] : FreeRanges())
      free += std::max<int64_t>(0, end - std::max(begin, EarliestStart(since)));
    return free;
  }
  Tick now() const { return static_cast<Tick>(service.size()) - 1; }

  Tick segment_begin = 0;
  std::vector<int64_t> service = {0};  // for each tick up to now
  std::vector<bool> taken;             // for each picosecond

 private:
  int64_t EarliestStart(Tick available) const {
    return service[std::clamp(available, segment_begin, now())];
  }
  Tick LastTickAt(int64_t ps) const {
    Tick tick = segment_begin;
    while (tick < now() && service[tick + 1] <= ps) ++tick;
    return tick;
  }
  CopyWindow Hidden(Tick begin, int64_t start, int64_t length) const {
    Tick end = begin;
    while (service[end] < start + length) ++end;
    return {begin, end, start, 0};
  }
};

void CompareWithNaive(uint64_t seed) {
  struct Moment {
    uint32_t mark;
    CopyWindows::Moment windows;
    NaiveChannel naive;
  };
  constexpr Tick kTicks = 60;
  Rng rng(seed);
  UndoLog log;
  CopyWindows windows(kTicks, 1);
  NaiveChannel naive;
  std::vector<Moment> moments;
  while (windows.now() < kTicks) {
    const int64_t length = 1 + rng.Below(6);
    const auto available = static_cast<Tick>(rng.Below(windows.now() + 1));
    const auto latest = windows.FindLatest(length, available);
    const auto earliest = windows.FindEarliest(length, available);
    const CopyWindow behind = windows.FindBehind(length, available);
    REQUIRE(latest == naive.FindLatest(length, available));
    REQUIRE(earliest == naive.FindEarliest(length, available));
    REQUIRE(behind == naive.FindBehind(length, available));
    REQUIRE(windows.FreePs(available) == naive.FreePs(available));
    const std::optional<CopyWindow> found = std::vector<std::optional<CopyWindow>>{
        latest, earliest, behind, std::nullopt}[rng.Below(4)];
    if (found.has_value()) {
      windows.Book(&log, *found, length);
      naive.Book(*found, length);
    }
    if (rng.Below(6) == 0) {
      const int64_t start = std::max(naive.BookedUntil(), naive.service.back());
      REQUIRE(windows.Append(&log, length) == start + length);
      naive.Book({0, 0, start, 0}, length);
      if (rng.Below(3) == 0) {
        REQUIRE(windows.WaitUntil(start + length) == start + length - naive.service.back());
        naive.service.back() = start + length;
      }
    }
    REQUIRE(windows.booked_until_ps() == naive.BookedUntil());
    REQUIRE(windows.now_ps() == naive.service.back());
    if (rng.Below(2) == 0) {
      const int64_t idle = rng.Below(6);
      const bool starts_segment = rng.Below(8) == 0;
      windows.Advance(&log, idle, starts_segment);
      naive.Advance(idle, starts_segment);
    }
    if (rng.Below(4) == 0) moments.push_back({log.Mark(), windows.moment(), naive});
    if (!moments.empty() && rng.Below(20) == 0) {
      moments.resize(1 + rng.Below(moments.size()));
      windows.Rollback(moments.back().windows, log, moments.back().mark);
      log.Rollback(moments.back().mark);
      naive = moments.back().naive;
    }
  }
}

TEST_CASE("random bookings agree with a channel of single picoseconds") {
  for (uint64_t seed = 0; seed < 100; ++seed) CompareWithNaive(seed);
}

}  // namespace
}  // namespace mallocgame
