// A window hides less time the later it begins, so the ends of the range of begins are found by
// binary search.
#include "mallocgame/solvers/xla/interval_picker.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace mallocgame {
namespace {

// at last, earlier begins are tried in steps of one part in so many of the longest window
constexpr double kThinning = 100;

}  // namespace

IntervalPicker::IntervalPicker(const Program& program, absl::Span<const int64_t> elapsed_ps,
                               const Options& options)
    : program_(program), options_(options), sum_(elapsed_ps.size() + 1, 0) {
  std::vector<uint8_t> depth(program.regions().size(), 0);
  uint8_t deepest = 0;
  for (size_t i = 0; i < depth.size(); ++i) {
    for (int32_t r = static_cast<int32_t>(i); r >= 0; r = region(r).parent) {
      depth[i] += region(r).loop >= 0;
    }
    deepest = std::max(deepest, depth[i]);
  }
  for (int d = 0; d <= deepest; ++d) weight_.push_back(std::pow(options.loop_weight, d));
  std::vector<uint8_t>& base = least_depth_.emplace_back(elapsed_ps.size());
  for (size_t t = 0; t < elapsed_ps.size(); ++t) {
    base[t] = depth[program.instructions()[t].region];
    const double weighted = static_cast<double>(elapsed_ps[t]) * weight_[base[t]];
    sum_[t + 1] = sum_[t] + weighted;
  }
  if (deepest == 0) return;
  for (size_t width = 2; width <= elapsed_ps.size(); width *= 2) {
    const std::vector<uint8_t>& half = least_depth_.back();
    std::vector<uint8_t> whole(elapsed_ps.size() - width + 1);
    for (size_t t = 0; t < whole.size(); ++t) whole[t] = std::min(half[t], half[t + width / 2]);
    least_depth_.push_back(std::move(whole));
  }
}

int IntervalPicker::MinDepth(Tick s, Tick e) const {
  if (weight_.size() == 1) return 0;
  const auto count = static_cast<unsigned>(e - s + 1);
  const size_t level = std::bit_width(count) - 1;
  const std::vector<uint8_t>& row = least_depth_[level];
  return std::min(row[s], row[e + 1 - (size_t{1} << level)]);
}

double IntervalPicker::Elapsed(Tick s, Tick e) const {
  if (s < 0 || e <= s + 1) return 0;
  const Tick last = std::min(e, program_.ticks() - 1);
  const double sum = sum_[e] - sum_[s + 1];
  return sum / weight_[MinDepth(s, last)];
}

const Region& IntervalPicker::ChildOf(int32_t outer, int32_t inner) const {
  while (region(inner).parent != outer) inner = region(inner).parent;
  return region(inner);
}

Tick IntervalPicker::WindowEnd(Tick end) const {
  const int32_t own = end < program_.ticks() ? RegionOf(end) : 0;
  while (end > region(own).begin && RegionOf(end - 1) != own)
    end = ChildOf(own, RegionOf(end - 1)).begin;
  return end;
}

Tick IntervalPicker::WindowEndFrom(Tick begin, Tick end) const {
  if (begin >= end) return begin;
  const int32_t own = program_.region_at(begin);
  end = std::min(end, region(own).end);
  while (end > begin && program_.region_at(end - 1) != own) {
    int32_t child = program_.region_at(end - 1);
    while (region(child).parent >= 0 && region(child).parent != own) child = region(child).parent;
    end = region(child).begin;
  }
  return std::max(begin, end);
}

bool IntervalPicker::MayBegin(Tick s, Tick end) const {
  return s + 1 < end && RegionOf(s + 1) == RegionOf(end - 1);
}

int32_t IntervalPicker::NestedAt(Tick s, int32_t own) const {
  const int32_t next = RegionOf(s + 1);
  return next == own && s >= region(own).begin ? RegionOf(s) : next;
}

std::optional<Tick> IntervalPicker::AtOrBefore(Tick s, Tick end, Tick least) const {
  const int32_t own = RegionOf(end - 1);
  least = std::max(least, region(own).begin - 1);
  while (s >= least && NestedAt(s, own) != own) s = ChildOf(own, NestedAt(s, own)).begin - 2;
  if (s < least) return std::nullopt;
  return s;
}

std::optional<Tick> IntervalPicker::AtOrAfter(Tick s, Tick end, Tick most) const {
  const int32_t own = RegionOf(end - 1);
  s = std::max(s, region(own).begin - 1);
  while (s <= most && NestedAt(s, own) != own) s = ChildOf(own, NestedAt(s, own)).end;
  if (s > most) return std::nullopt;
  return s;
}

Tick IntervalPicker::SmallestWithin(Tick from, Tick to, Tick end, double limit) const {
  ++to;
  while (from < to) {
    const Tick middle = from + (to - from) / 2;
    if (Elapsed(middle, end) <= limit) {
      to = middle;
    } else {
      from = middle + 1;
    }
  }
  return from;
}

IntervalPicker::Candidates IntervalPicker::Begins(Tick first, Tick end, int64_t copy_ps,
                                                  int64_t saved_ps) const {
  Candidates c;
  c.picker_ = this;
  c.end_ = end;
  if (end <= 0 || end > program_.ticks()) return c;
  first = std::max({first, region(RegionOf(end - 1)).begin - 1, -1});
  const Tick last = end - 2;  // the window is not empty
  if (last < first) return c;
  const auto copy = static_cast<double>(copy_ps);
  // The latest begin that still hides enough: those after it hide less than `needed`.
  const double needed = options_.min_overlap * copy - static_cast<double>(saved_ps);
  const Tick too_late = SmallestWithin(first, last, end, std::nextafter(needed, -1e300));
  c.latest_ = AtOrBefore(too_late - 1, end, first);
  if (!c.latest_) return c;
  c.earliest_ =
      AtOrAfter(SmallestWithin(first, *c.latest_, end, options_.most_ps), end, *c.latest_);
  if (!c.earliest_) c.earliest_ = c.latest_;
  c.first_ = Preferred(*c.earliest_, *c.latest_, end, copy_ps);
  c.Start();
  return c;
}

std::optional<Tick> IntervalPicker::Preferred(Tick first, Tick last, Tick end,
                                              int64_t copy_ps) const {
  const double target = options_.preferred_overlap * static_cast<double>(copy_ps);
  const std::optional<Tick> under = AtOrAfter(SmallestWithin(first, last, end, target), end, last);
  const std::optional<Tick> over = AtOrBefore(under ? *under - 1 : last, end, first);
  if (!under && !over) return std::nullopt;
  Tick best = under ? *under : *over;
  if (under && over && Elapsed(*over, end) - target <= target - Elapsed(*under, end)) best = *over;
  const Tick same = SmallestWithin(first, best, end, Elapsed(best, end));
  return AtOrAfter(same, end, best);
}

// The first begin counts as one of the earlier ones.
void IntervalPicker::Candidates::Start() {
  earlier_ = first_;
  if (first_) later_ = picker_->AtOrAfter(*first_ + 1, end_, *latest_);
  turn_later_ = false;
}

std::optional<Tick> IntervalPicker::Candidates::Next() {
  if (turn_later_ && later_) {
    const Tick s = *later_;
    later_ = picker_->AtOrAfter(s + 1, end_, *latest_);
    if (earlier_) turn_later_ = false;
    return s;
  }
  if (!earlier_) return std::nullopt;
  const Tick s = *earlier_;
  earlier_ = picker_->AtOrBefore(s - 1, end_, *earliest_);
  if (earlier_ && !later_) {
    // No later ones are left; of the earlier ones only some are tried.
    const double more = picker_->Elapsed(s, end_) + picker_->Elapsed(*earliest_, end_) / kThinning;
    const Tick close =
        picker_->SmallestWithin(*earliest_, *earlier_, end_, std::nextafter(more, -1e300));
    earlier_ = picker_->AtOrBefore(std::min(close - 1, *earlier_), end_, *earliest_);
  }
  if (later_) turn_later_ = true;
  return s;
}

std::vector<Tick> IntervalPicker::SliceBegins(Tick s, Tick end, int count) const {
  const double all = Elapsed(s, end);
  std::vector<Tick> begins(count, s);
  if (s >= end - 2 || all <= 0) return begins;
  for (int k = 1; k < count; ++k) {
    // The last tick at which so much of the time is left, of those in this region that take time.
    const Tick due = SmallestWithin(begins[k - 1], end - 2, end,
                                    std::nextafter(all * (count - k) / count, -1e300));
    Tick at = std::min(due - 1, end - 2);
    const int32_t own = RegionOf(s + 1);
    while (at > begins[k - 1] && (sum_[at + 1] == sum_[at] || NestedAt(at, own) != own)) --at;
    begins[k] = std::max(at, begins[k - 1]);
  }
  return begins;
}

Tick IntervalPicker::HiddenBy(Tick from, double overlap_ps) const {
  Tick low = from + 1, high = program_.ticks();
  while (low < high) {
    const Tick middle = low + (high - low) / 2;
    if (Elapsed(from, middle) >= overlap_ps) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace mallocgame
