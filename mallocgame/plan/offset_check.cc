#include "mallocgame/plan/offset_check.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/plan/offset_problem.h"

namespace mallocgame {
namespace {

// An offset may be any number, so its end may not be one.
int64_t EndOf(int64_t offset, int64_t size) {
  return offset > std::numeric_limits<int64_t>::max() - size ? std::numeric_limits<int64_t>::max()
                                                             : offset + size;
}

// The rules that look at one interval.
OffsetVerdict CheckOne(const OffsetProblem& problem, size_t i, int64_t offset) {
  const OffsetInterval& interval = problem.intervals[i];
  const auto broken = [&](OffsetRule rule, const auto&... parts) {
    OffsetVerdict verdict;
    verdict.rule = rule;
    verdict.first = i;
    verdict.message = absl::StrCat(NameOf(problem, i), ": ", parts...);
    return verdict;
  };
  if (interval.given && *interval.given != offset) {
    return broken(OffsetRule::kGiven, "found offset ", offset, ", given is ", *interval.given);
  }
  if (offset < interval.min_offset) {
    return broken(OffsetRule::kBounds, "found offset ", offset, ", allowed: ", interval.min_offset,
                  " and above");
  }
  if (offset > problem.capacity - interval.size) {
    return broken(OffsetRule::kBounds, "found bytes [", offset, ", ", EndOf(offset, interval.size),
                  "), allowed: an end up to the capacity ", problem.capacity);
  }
  const int64_t alignment = AlignmentOf(problem, interval);
  if (offset % alignment != 0) {
    return broken(OffsetRule::kAlignment, "found offset ", offset, ", allowed: a multiple of ",
                  alignment);
  }
  return {};
}

struct TakenEvent {
  int64_t time = 0;
  bool begins = false;  // ends come first
  size_t interval = 0;
  OffsetPiece piece;  // its bytes are addresses
};

OffsetVerdict Overlap(const OffsetProblem& problem, const TakenEvent& a, const TakenEvent& b) {
  OffsetVerdict verdict;
  verdict.rule = OffsetRule::kOverlap;
  const auto& [first, second] = a.interval < b.interval ? std::tie(a, b) : std::tie(b, a);
  verdict.first = first.interval;
  verdict.second = second.interval;
  verdict.begin = std::max(a.piece.begin, b.piece.begin);
  verdict.end = std::min(a.piece.end, b.piece.end);
  verdict.low = std::max(a.piece.low, b.piece.low);
  verdict.high = std::min(a.piece.high, b.piece.high);
  verdict.message =
      absl::StrCat(NameOf(problem, first.interval), " takes the bytes [", first.piece.low, ", ",
                   first.piece.high, "), and ", NameOf(problem, second.interval), " the bytes [",
                   second.piece.low, ", ", second.piece.high, ") over the same time [",
                   verdict.begin, ", ", verdict.end, ")");
  return verdict;
}

// Goes through time with the bytes that are taken, which do not overlap up to there.
OffsetVerdict CheckPairs(const OffsetProblem& problem, absl::Span<const int64_t> offsets) {
  std::vector<TakenEvent> events;
  for (size_t i = 0; i < offsets.size(); ++i) {
    for (OffsetPiece piece : PiecesOf(problem.intervals[i])) {
      piece.low += offsets[i];
      piece.high += offsets[i];
      events.push_back({piece.begin, true, i, piece});
      events.push_back({piece.end, false, i, piece});
    }
  }
  std::sort(events.begin(), events.end(), [](const TakenEvent& a, const TakenEvent& b) {
    return std::tie(a.time, a.begins, a.interval) < std::tie(b.time, b.begins, b.interval);
  });
  std::map<int64_t, const TakenEvent*> taken;  // by lowest byte
  for (const TakenEvent& event : events) {
    if (!event.begins) {
      taken.erase(event.piece.low);
      continue;
    }
    const auto above = taken.lower_bound(event.piece.low);
    if (above != taken.end() && above->first < event.piece.high)
      return Overlap(problem, *above->second, event);
    if (above != taken.begin()) {
      const TakenEvent& below = *std::prev(above)->second;
      if (below.piece.high > event.piece.low) return Overlap(problem, below, event);
    }
    taken.emplace_hint(above, event.piece.low, &event);
  }
  return {};
}

}  // namespace

const char* OffsetRuleName(OffsetRule rule) {
  switch (rule) {
    case OffsetRule::kGiven: return "given";
    case OffsetRule::kBounds: return "bounds";
    case OffsetRule::kAlignment: return "alignment";
    case OffsetRule::kOverlap: return "overlap";
    case OffsetRule::kNone: break;
  }
  return "none";
}

absl::StatusOr<OffsetVerdict> CheckOffsets(const OffsetProblem& problem,
                                           absl::Span<const int64_t> offsets) {
  MG_RETURN_IF_ERROR(CheckProblem(problem));
  if (offsets.size() != problem.intervals.size()) {
    return absl::InvalidArgumentError(absl::StrCat("offsets: found ", offsets.size(),
                                                   ", allowed: ", problem.intervals.size(),
                                                   ", one for each interval"));
  }
  OffsetVerdict verdict;
  int64_t height = 0;
  for (size_t i = 0; i < offsets.size(); ++i) {
    height = std::max(height, EndOf(offsets[i], problem.intervals[i].size));
    if (verdict.ok()) verdict = CheckOne(problem, i, offsets[i]);
  }
  if (verdict.ok()) verdict = CheckPairs(problem, offsets);
  verdict.height = height;
  return verdict;
}

}  // namespace mallocgame
