#include "mallocgame/solvers/schedule/schedule_moves.h"

#include <algorithm>
#include <cmath>

namespace mallocgame {
namespace {

constexpr int kTries = 50;
constexpr double kTogether = 0.45;                // the share of moves that bring uses together
constexpr int64_t kLeastBytes = 16384;            // Smaller buffers hardly change a latency.
constexpr int64_t kPerDraw = 5, kMostDraws = 80;  // A region is drawn once for so many units.

}  // namespace

ScheduleMoves::ScheduleMoves(const ScheduleUnits& units) : units_(units) {
  size_t largest = 0;
  for (size_t r = 0; r < units.regions().size(); ++r) {
    const std::vector<Unit>& all = units.regions()[r];
    largest = std::max(largest, all.size());
    const int64_t working =
        std::count_if(all.begin(), all.end(), [](const Unit& unit) { return unit.works; });
    if (working < 2) continue;
    const int64_t draws = std::clamp<int64_t>(working / kPerDraw, 1, kMostDraws);
    regions_.insert(regions_.end(), draws, static_cast<int32_t>(r));
  }
  marked_.resize(largest);
  const Program& program = units.program();
  for (size_t b = 0; b < program.buffers().size(); ++b) {
    const Buffer& buffer = program.buffers()[b];
    if (buffer.eligible && buffer.size_bytes >= kLeastBytes &&
        program.accesses_of(BufferId(b)).size() >= 2) {
      buffers_.emplace_back(b);
    }
  }
}

bool ScheduleMoves::Propose(absl::Span<const Tick> place, UnitOrder& order, Rng& rng) {
  for (int i = 0; i < kTries; ++i) {
    const bool together = rng.Uniform() < kTogether && !buffers_.empty();
    if (together ? ProposeTogether(place, order, rng) : ProposeAnywhere(order, rng)) return true;
  }
  return false;
}

bool ScheduleMoves::ProposeTogether(absl::Span<const Tick> place, UnitOrder& order, Rng& rng) {
  const Program& program = units_.program();
  const absl::Span<const AccessId> accesses = program.accesses_of(rng.Pick(buffers_));
  Tick early = program.access(rng.Pick(accesses)).tick, late = kNever;
  for (const AccessId id : accesses) {
    const Tick tick = program.access(id).tick;
    if (place[tick] > place[early] && (late == kNever || place[tick] < place[late])) late = tick;
  }
  if (late == kNever) return false;
  // The region in which both stand, each perhaps inside a unit.
  int32_t region = program.instruction(early).region;
  while (late < program.regions()[region].begin || late >= program.regions()[region].end)
    region = program.regions()[region].parent;
  const int32_t a = units_.unit_at(early, region), b = units_.unit_at(late, region);
  std::vector<int32_t>& units = order[region];
  const size_t from = std::find(units.begin(), units.end(), a) - units.begin(),
               to = std::find(units.begin(), units.end(), b) - units.begin();
  if (a == b || to < from + 2) return false;
  size_t meet_early = from + 1, meet_late = to - 1;
  if (rng.Below(3) == 0) meet_early = meet_late = from + 1 + rng.Below(to - from - 1);
  return rng.Below(2) == 0 ? Pull(region, units, to, meet_early)
                           : Push(region, units, from, meet_late);
}

bool ScheduleMoves::ProposeAnywhere(UnitOrder& order, Rng& rng) {
  const int32_t region = rng.Pick(regions_);
  std::vector<int32_t>& units = order[region];
  const size_t at = rng.Below(units.size());
  if (!units_.regions()[region][units[at]].works) return false;
  const auto far = static_cast<size_t>(
      1 + std::exp(rng.Uniform() * std::log(static_cast<double>(units.size()))));
  return rng.Below(2) == 0 ? Pull(region, units, at, at < far ? 0 : at - far)
                           : Push(region, units, at, std::min(units.size() - 1, at + far));
}

bool ScheduleMoves::HasOtherWork(int32_t region, absl::Span<const int32_t> units) const {
  return std::any_of(units.begin(), units.end(),
                     [&](int32_t u) { return units_.regions()[region][u].works; });
}

// What is between the places and leads to the unit comes along. False: nothing that works changes
// places.
bool ScheduleMoves::Pull(int32_t region, std::vector<int32_t>& order, size_t from, size_t to) {
  const std::vector<Unit>& units = units_.regions()[region];
  std::fill(marked_.begin(), marked_.end(), 0);
  marked_[order[from]] = 1;
  first_.clear();
  second_.clear();
  for (size_t i = from + 1; i-- > to;) {
    const int32_t u = order[i];
    if (marked_[u] == 0) {
      second_.push_back(u);
      continue;
    }
    for (const int32_t before : units[u].before) marked_[before] = 1;
    first_.push_back(u);
  }
  if (!HasOtherWork(region, second_)) return false;
  std::copy(first_.rbegin(), first_.rend(), order.begin() + static_cast<std::ptrdiff_t>(to));
  std::copy(second_.rbegin(), second_.rend(),
            order.begin() + static_cast<std::ptrdiff_t>(to + first_.size()));
  return true;
}

bool ScheduleMoves::Push(int32_t region, std::vector<int32_t>& order, size_t from, size_t to) {
  const std::vector<Unit>& units = units_.regions()[region];
  std::fill(marked_.begin(), marked_.end(), 0);
  marked_[order[from]] = 1;
  first_.clear();
  second_.clear();
  for (size_t i = from; i <= to; ++i) {
    const int32_t u = order[i];
    if (marked_[u] == 0) {
      first_.push_back(u);
      continue;
    }
    for (const int32_t after : units[u].after) marked_[after] = 1;
    second_.push_back(u);
  }
  if (!HasOtherWork(region, first_)) return false;
  std::copy(first_.begin(), first_.end(), order.begin() + static_cast<std::ptrdiff_t>(from));
  std::copy(second_.begin(), second_.end(),
            order.begin() + static_cast<std::ptrdiff_t>(from + first_.size()));
  return true;
}

}  // namespace mallocgame
