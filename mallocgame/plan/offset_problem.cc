#include "mallocgame/plan/offset_problem.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"

namespace mallocgame {
namespace {

// The sum of 2^16 sizes of this many bytes fits 64 bits.
constexpr int64_t kMaxBytes = int64_t{1} << 44;

template <class... Parts>
absl::Status Refused(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::Status CheckRange(absl::string_view what, int64_t found, int64_t least) {
  if (found >= least && found <= kMaxBytes) return absl::OkStatus();
  return Refused(what, ": found ", found, ", allowed: ", least, " to ", kMaxBytes);
}

absl::Status CheckSteps(const std::string& name, const OffsetInterval& interval) {
  const std::vector<OffsetStep>& steps = interval.steps;
  if (steps.empty()) return absl::OkStatus();
  bool good = steps.front().begin == interval.begin && steps.front().size > 0 &&
              steps.back().begin < interval.end && steps.back().size == interval.size;
  for (size_t k = 1; k < steps.size(); ++k) {
    good = good && steps[k].begin > steps[k - 1].begin && steps[k].size > steps[k - 1].size;
  }
  if (good) return absl::OkStatus();
  return Refused(name, ": its steps must rise from its start to its size ", interval.size);
}

// The gaps as far as they lie within the interval, in the order of time.
std::vector<OffsetGap> GapsWithin(const OffsetInterval& interval) {
  std::vector<OffsetGap> gaps;
  for (OffsetGap gap : interval.gaps) {
    gap.begin = std::max(gap.begin, interval.begin);
    gap.end = std::min(gap.end, interval.end);
    if (gap.begin < gap.end) gaps.push_back(gap);
  }
  std::sort(gaps.begin(), gaps.end(),
            [](const OffsetGap& a, const OffsetGap& b) { return a.begin < b.begin; });
  return gaps;
}

absl::Status CheckInterval(const OffsetProblem& problem, size_t i) {
  const OffsetInterval& interval = problem.intervals[i];
  const std::string name = NameOf(problem, i);
  MG_RETURN_IF_ERROR(CheckRange(name + ": size", interval.size, 0));
  MG_RETURN_IF_ERROR(CheckRange(name + ": min_offset", interval.min_offset, 0));
  MG_RETURN_IF_ERROR(CheckRange(name + ": alignment", interval.alignment, 1));
  MG_RETURN_IF_ERROR(CheckRange(name + ": offset", interval.given.value_or(0), 0));
  if (interval.begin > interval.end) {
    return Refused(name, ": found times [", interval.begin, ", ", interval.end,
                   "), allowed: an end at or above the start");
  }
  const int64_t more = problem.alignment / std::gcd(interval.alignment, problem.alignment);
  if (interval.alignment > kMaxBytes / more) {
    return Refused(name, ": found alignment ", interval.alignment, " together with ",
                   problem.alignment, ", allowed: a common multiple up to ", kMaxBytes);
  }
  MG_RETURN_IF_ERROR(CheckSteps(name, interval));
  if (const absl::Status gaps = CheckGaps(interval); !gaps.ok())
    return Refused(name, ": ", gaps.message());
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckProblem(const OffsetProblem& problem) {
  MG_RETURN_IF_ERROR(CheckRange("capacity", problem.capacity, 0));
  MG_RETURN_IF_ERROR(CheckRange("alignment", problem.alignment, 1));
  if (!problem.names.empty() && problem.names.size() != problem.intervals.size()) {
    return Refused("names: found ", problem.names.size(), ", allowed: ", problem.intervals.size());
  }
  for (size_t i = 0; i < problem.intervals.size(); ++i)
    MG_RETURN_IF_ERROR(CheckInterval(problem, i));
  return absl::OkStatus();
}

absl::Status CheckGaps(const OffsetInterval& interval) {
  for (const OffsetGap& gap : interval.gaps) {
    if (gap.begin > gap.end) {
      return Refused("found a gap over the times [", gap.begin, ", ", gap.end,
                     "), allowed: an end at or above the start");
    }
    if (gap.low < 0 || gap.low > gap.high || gap.high > interval.size) {
      return Refused("found a gap that takes the bytes [", gap.low, ", ", gap.high,
                     "), allowed: within [0, ", interval.size, ")");
    }
  }
  const std::vector<OffsetGap> gaps = GapsWithin(interval);
  for (size_t k = 1; k < gaps.size(); ++k) {
    if (gaps[k - 1].end > gaps[k].begin) {
      return Refused("found two gaps at the time ", gaps[k].begin, ", allowed: one at a time");
    }
  }
  return absl::OkStatus();
}

std::string NameOf(const OffsetProblem& problem, size_t interval) {
  return problem.names.empty() ? absl::StrCat("interval ", interval) : problem.names[interval];
}

int64_t AlignmentOf(const OffsetProblem& problem, const OffsetInterval& interval) {
  return std::lcm(problem.alignment, interval.alignment);
}

std::vector<OffsetPiece> PiecesOf(const OffsetInterval& interval) {
  if (interval.size == 0) return {};
  std::vector<OffsetPiece> pieces;
  const auto add = [&pieces](int64_t begin, int64_t end, int64_t low, int64_t high) {
    if (begin >= end || low == high) return;
    OffsetPiece* last = pieces.empty() ? nullptr : &pieces.back();
    if (last != nullptr && last->end == begin && last->low == low && last->high == high) {
      last->end = end;
    } else {
      pieces.push_back({begin, end, low, high});
    }
  };
  // Adds what the steps take over [begin, end).
  size_t step = 0;
  const auto add_steps = [&](int64_t begin, int64_t end) {
    const std::vector<OffsetStep>& steps = interval.steps;
    if (steps.empty()) return add(begin, end, 0, interval.size);
    for (; step < steps.size() && begin < end; ++step) {
      const int64_t next = step + 1 < steps.size() ? steps[step + 1].begin : interval.end;
      if (next <= begin) continue;
      add(begin, std::min(next, end), 0, steps[step].size);
      if (next > end) return;
      begin = next;
    }
  };
  int64_t time = interval.begin;
  if (!interval.gaps.empty()) {
    for (const OffsetGap& gap : GapsWithin(interval)) {
      add_steps(time, gap.begin);
      add(gap.begin, gap.end, gap.low, gap.high);
      time = gap.end;
    }
  }
  add_steps(time, interval.end);
  return pieces;
}

}  // namespace mallocgame
