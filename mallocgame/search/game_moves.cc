#include "mallocgame/search/game_moves.h"

#include <algorithm>
#include <vector>

#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/search/game_search.h"

namespace mallocgame {
namespace {

constexpr int64_t kOftenMovedBytes = 16 << 10;  // smaller buffers seldom matter
constexpr int kTries = 32;                      // to find a decision of the kind that is looked for
// Runs that are served anew when another one gives way to them, or they to it: at most so many of
// those that matter to it, each of which saves most of so many, or at most so many of any.
constexpr int kMostOthers = 4, kRivals = 3, kMostOfAny = 8;

// Where a trial begins whose first changed rank is that of decision `at`: a run may be taken a few
// decisions earlier than the one whose rank it gets.
int32_t Before(int32_t at) { return std::max(0, at - 4); }

// Whether both may want bytes of fast memory at once.
bool MayMeet(const PlannedResidence& a, const PlannedResidence& b) {
  return a.earliest_fetch < b.end && b.earliest_fetch < a.end;
}

class PriorityMoves final : public GameMoves {
 public:
  explicit PriorityMoves(GameSearch& search)
      : search_(search), tables_(search.position().game().priority_tables()) {}

  int32_t Propose(Rng& rng) override;
  void Accepted() override;

 private:
  const Segment& wanted(int32_t run) const { return search_.intent()[run]; }
  int64_t saving_ps(int32_t decision) const {
    return tables_.runs[search_.segment(decision)].saving_ps;
  }
  int64_t bytes(int32_t run) const {
    return tables_.arrangement.tables.buffers[tables_.runs[run].buffer].size_bytes;
  }
  int32_t AnyDecision(Rng& rng) const;
  template <class Suits>
  int32_t Find(int rivals, const Suits& suits, Rng& rng) const;
  static Mode AnyMode(const Run& run, Mode now, Rng& rng);
  int32_t SimilarTo(int32_t at, Rng& rng) const;

  // Each returns as Propose does; the compound exchange -1 if there is none.
  int32_t Reassign(int32_t at, bool two, Rng& rng);
  int32_t Insert(int32_t at, Rng& rng);
  int32_t Coalesce(int32_t parent, Rng& rng);
  int32_t Exchange(int32_t at, int32_t similar);
  int32_t CompoundExchange(Rng& rng);

  GameSearch& search_;
  const PriorityTables& tables_;
  std::vector<int32_t> large_;  // decisions about buffers that are not small
};

void PriorityMoves::Accepted() {
  large_.clear();
  for (int32_t i = 0; i < search_.decisions(); ++i) {
    if (bytes(search_.segment(i)) >= kOftenMovedBytes) large_.push_back(i);
  }
}

// Seldom one about a small buffer.
int32_t PriorityMoves::AnyDecision(Rng& rng) const {
  return large_.empty() || rng.Below(8) == 0 ? static_cast<int32_t>(rng.Below(search_.decisions()))
                                             : rng.Pick(large_);
}

Mode PriorityMoves::AnyMode(const Run& run, Mode now, Rng& rng) {
  for (;;) {
    const auto mode = static_cast<Mode>(rng.Below(kActionModes));
    if (mode != now && (mode != Mode::kSplit || run.splits) &&
        (mode != Mode::kPreload || run.preloadable) &&
        (mode != Mode::kEarly || PriorityState::HasEarly(run)))
      return mode;
  }
}

// A decision about a run that `suits`: of the first `rivals` found the one that saves most. -1:
// none was found.
template <class Suits>
int32_t PriorityMoves::Find(int rivals, const Suits& suits, Rng& rng) const {
  int32_t best = -1;
  for (int i = 0; i < kTries && rivals > 0; ++i) {
    const int32_t decision = AnyDecision(rng);
    if (!suits(search_.segment(decision))) continue;
    if (best < 0 || saving_ps(decision) > saving_ps(best)) best = decision;
    --rivals;
  }
  return best;
}

// A decision that serves a buffer of at most twice or half the size otherwise, without a split; -1:
// none was found.
int32_t PriorityMoves::SimilarTo(int32_t at, Rng& rng) const {
  const int32_t run = search_.segment(at);
  const Mode mode = wanted(run).mode;
  if (mode == Mode::kSplit) return -1;
  const auto suits = [&](int32_t other) {
    const Mode its = wanted(other).mode;
    return its != mode && its != Mode::kSplit && bytes(other) <= 2 * bytes(run) &&
           bytes(run) <= 2 * bytes(other);
  };
  return Find(1, suits, rng);
}

// A run goes to main memory or comes into fast memory, and a few others are served anew where it
// pays. They are taken last, where their savings are known: what several small ones save together
// may be more than what a large one does, and less for each of them alone. In half of the trials
// the others are those that matter most to the first one. In the other half they are any, as what
// pays may also depend on what else the same instruction finds in fast memory.
int32_t PriorityMoves::CompoundExchange(Rng& rng) {
  const bool goes = rng.Below(2) == 0, any = rng.Below(2) == 0;
  const auto lies = [this](int32_t run, bool in_fast_memory) {
    const Mode mode = wanted(run).mode;
    return mode != Mode::kSplit && (mode != Mode::kSkip) == in_fast_memory;
  };
  const int32_t at = Find(1, [&](int32_t run) { return lies(run, goes); }, rng);
  if (at < 0) return -1;
  const int32_t run = search_.segment(at);
  std::vector<int32_t> others;
  for (uint32_t count = 1 + rng.Below(any ? kMostOfAny : kMostOthers); count > 0; --count) {
    const bool in_fast_memory = any && rng.Below(2) == 0 ? goes : !goes;
    const auto suits = [&](int32_t other) {
      return other != run && lies(other, in_fast_memory) &&
             (any || MayMeet(tables_.runs[run].planned, tables_.runs[other].planned));
    };
    const int32_t other = Find(any ? 1 : kRivals, suits, rng);
    if (other < 0) break;
    if (std::find(others.begin(), others.end(), other) == others.end()) others.push_back(other);
  }
  if (others.empty()) return -1;
  const int32_t first = std::min(at, *std::min_element(others.begin(), others.end()));
  const int32_t from = Before(first);
  Mode mode = Mode::kSkip;
  double rank = wanted(run).rank;
  if (!goes) {
    do mode = AnyMode(tables_.runs[run], Mode::kSkip, rng);
    while (mode == Mode::kSplit);
    rank = std::min(rank, wanted(search_.segment(first)).rank - 0.5);
  }
  double last = 0;  // the highest rank of all decisions
  for (int32_t i = 0; i < search_.decisions(); ++i)
    last = std::max(last, wanted(search_.segment(i)).rank);
  search_.GoTo(from);
  search_.Want(run, mode, rank);
  for (const int32_t other : others) search_.Want(search_.segment(other), Mode::kPaying, ++last);
  return from;
}

int32_t PriorityMoves::Coalesce(int32_t parent, Rng& rng) {
  const int32_t from = search_.decision_of(parent);
  search_.GoTo(from);
  search_.Want(parent, rng.Below(2) == 0 ? Mode::kLate : Mode::kEarly);
  return from;
}

int32_t PriorityMoves::Insert(int32_t at, Rng& rng) {
  const int32_t run = search_.segment(at);
  const int32_t by = 1 + static_cast<int32_t>(rng.Below(16));
  const bool earlier = rng.Below(2) == 0;
  const int32_t other = std::clamp(earlier ? at - by : at + by, 0, search_.decisions() - 1);
  const double rank = wanted(search_.segment(other)).rank + (earlier ? -0.5 : 0.5);
  const int32_t from = Before(std::min(at, other));
  search_.GoTo(from);
  search_.Want(run, wanted(run).mode, rank);
  return from;
}

int32_t PriorityMoves::Exchange(int32_t at, int32_t similar) {
  const int32_t run = search_.segment(at), other = search_.segment(similar);
  const int32_t from = Before(std::min(at, similar));
  const Segment own = wanted(run), its = wanted(other);
  search_.GoTo(from);
  search_.Want(run, its.mode, its.rank);
  search_.Want(other, own.mode, own.rank);
  return from;
}

int32_t PriorityMoves::Reassign(int32_t at, bool two, Rng& rng) {
  const int32_t run = search_.segment(at);
  search_.GoTo(at);
  search_.Want(run, AnyMode(tables_.runs[run], wanted(run).mode, rng));
  if (!two) return at;
  const int32_t later = at + static_cast<int32_t>(rng.Below(search_.decisions() - at));
  const int32_t second = search_.segment(later);
  if (second != run) search_.Want(second, AnyMode(tables_.runs[second], wanted(second).mode, rng));
  return at;
}

int32_t PriorityMoves::Propose(Rng& rng) {
  if (rng.Below(5) == 0) {
    if (const int32_t from = CompoundExchange(rng); from >= 0) return from;
  }
  const int32_t at = AnyDecision(rng);
  const uint32_t kind = rng.Below(16);
  const int32_t parent = tables_.runs[search_.segment(at)].parent;
  if (kind < 3 && parent >= 0) return Coalesce(parent, rng);
  if (kind < 6) return Insert(at, rng);
  if (kind >= 14) {
    if (const int32_t similar = SimilarTo(at, rng); similar >= 0) return Exchange(at, similar);
  }
  return Reassign(at, /*two=*/kind < 9, rng);
}

}  // namespace

std::unique_ptr<GameMoves> GameMoves::Create(GameSearch& search) {
  return std::make_unique<PriorityMoves>(search);
}

}  // namespace mallocgame
