#include "mallocgame/game/time/copy_windows.h"

#include <algorithm>
#include <array>

namespace mallocgame {

CopyWindows::CopyWindows(Tick ticks, int64_t shortest_ps)
    : shortest_(shortest_ps), service_(ticks + 1, 0) {}

void CopyWindows::Advance(UndoLog* log, int64_t idle_ps, bool starts_segment) {
  const int64_t served = now_ps() + idle_ps;
  service_[++now_] = served;
  if (starts_segment) {
    segment_begin_ = now_;
    booked_until_ = served;
    if (gaps_.size() > 0) gaps_.Splice(log, 0, gaps_.size(), {});
  }
}

Tick CopyWindows::LastTickAt(int64_t ps) const {
  const auto begin = service_.begin() + segment_begin_, end = service_.begin() + now_ + 1;
  return static_cast<Tick>(std::upper_bound(begin, end, ps) - service_.begin()) - 1;
}

Tick CopyWindows::FirstTickServed(int64_t ps, Tick from) const {
  const auto begin = service_.begin() + from, end = service_.begin() + now_ + 1;
  return static_cast<Tick>(std::lower_bound(begin, end, ps) - service_.begin());
}

int64_t CopyWindows::EarliestStart(Tick available) const {
  return service_[std::clamp(available, segment_begin_, now_)];
}

CopyWindow CopyWindows::Hidden(Tick begin, int64_t start_ps, int64_t length_ps) const {
  return {begin, FirstTickServed(start_ps + length_ps, begin), start_ps, 0};
}

std::optional<CopyWindow> CopyWindows::FindLatest(int64_t length_ps, Tick available) const {
  const int64_t earliest = EarliestStart(available);
  const auto fits = [&](const Gap& gap) {
    return gap.end - std::max(gap.begin, earliest) >= length_ps;
  };
  // The copy starts before the last tick that leaves it whole; it may then be served a little
  // earlier than the gap's end.
  const auto window_in = [&](const Gap& gap) {
    const Tick begin = LastTickAt(gap.end - length_ps);
    return Hidden(begin, std::max(gap.begin, service_[begin]), length_ps);
  };
  if (const Gap last = {booked_until_, now_ps()}; fits(last)) return window_in(last);
  for (size_t i = gaps_.size(); i-- > 0;) {
    if (gaps_[i].end - earliest < length_ps) return std::nullopt;
    if (fits(gaps_[i])) return window_in(gaps_[i]);
  }
  return std::nullopt;
}

std::optional<CopyWindow> CopyWindows::FindEarliest(int64_t length_ps, Tick available) const {
  const int64_t earliest = EarliestStart(available);
  const auto fits = [&](const Gap& gap) {
    return gap.end - std::max(gap.begin, earliest) >= length_ps;
  };
  const auto window_in = [&](const Gap& gap) {
    const int64_t start = std::max(gap.begin, earliest);
    return Hidden(LastTickAt(start), start, length_ps);
  };
  const auto gaps = gaps_.items();
  auto gap = std::lower_bound(gaps.begin(), gaps.end(), earliest + length_ps,
                              [](const Gap& g, int64_t ps) { return g.end < ps; });
  for (; gap != gaps.end(); ++gap) {
    if (fits(*gap)) return window_in(*gap);
  }
  if (const Gap last = {booked_until_, now_ps()}; fits(last)) return window_in(last);
  return std::nullopt;
}

CopyWindow CopyWindows::FindBehind(int64_t length_ps, Tick available) const {
  const int64_t start = std::max(booked_until_, EarliestStart(available));
  const int64_t stall = std::max<int64_t>(0, start + length_ps - now_ps());
  if (stall == 0) return Hidden(LastTickAt(start), start, length_ps);
  return {LastTickAt(std::min(start, now_ps())), now_, start, stall};
}

void CopyWindows::Book(UndoLog* log, const CopyWindow& window, int64_t length_ps) {
  const int64_t end = window.start_ps + length_ps;
  if (window.start_ps >= booked_until_) {
    if (window.start_ps - booked_until_ >= shortest_) {
      const Gap gap = {booked_until_, window.start_ps};
      gaps_.Splice(log, gaps_.size(), 0, absl::MakeConstSpan(&gap, 1));
    }
    booked_until_ = end;
    service_[now_] += window.stall_ps;
    return;
  }
  const auto gaps = gaps_.items();
  const auto gap = std::upper_bound(gaps.begin(), gaps.end(), window.start_ps,
                                    [](int64_t ps, const Gap& g) { return ps < g.begin; }) -
                   1;
  std::array<Gap, 2> left = {};
  size_t count = 0;
  if (window.start_ps - gap->begin >= shortest_) left[count++] = {gap->begin, window.start_ps};
  if (gap->end - end >= shortest_) left[count++] = {end, gap->end};
  gaps_.Splice(log, gap - gaps.begin(), 1, absl::MakeConstSpan(left.data(), count));
}

int64_t CopyWindows::Append(UndoLog* log, int64_t length_ps) {
  const int64_t start = std::max(booked_until_, now_ps());
  if (start - booked_until_ >= shortest_) {
    const Gap gap = {booked_until_, start};
    gaps_.Splice(log, gaps_.size(), 0, absl::MakeConstSpan(&gap, 1));
  }
  return booked_until_ = start + length_ps;
}

int64_t CopyWindows::WaitUntil(int64_t end_ps) {
  const int64_t stall = std::max<int64_t>(0, end_ps - now_ps());
  service_[now_] += stall;
  return stall;
}

Tick CopyWindows::ServedBy(int64_t end_ps, Tick after) const {
  const Tick tick = FirstTickServed(end_ps, after);
  return tick > now_ ? kNever : tick;
}

int64_t CopyWindows::FreePs(Tick since) const {
  const int64_t from = EarliestStart(since);
  int64_t free = std::max<int64_t>(0, now_ps() - std::max(booked_until_, from));
  for (size_t i = gaps_.size(); i > 0 && gaps_[i - 1].end > from; --i)
    free += gaps_[i - 1].end - std::max(gaps_[i - 1].begin, from);
  return free;
}

void CopyWindows::Rollback(const Moment& moment, const UndoLog& log, uint32_t mark) {
  now_ = moment.now;
  segment_begin_ = moment.segment_begin;
  service_[now_] = moment.now_ps;
  booked_until_ = moment.booked_until;
  gaps_.Rollback(log, mark);
}

}  // namespace mallocgame
