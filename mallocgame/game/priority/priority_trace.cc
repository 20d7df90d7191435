#include <algorithm>
#include <memory>

#include "mallocgame/base/error.h"
#include "mallocgame/game/incumbent_trace.h"
#include "mallocgame/game/priority/priority_decoder.h"
#include "mallocgame/game/priority/priority_difference.h"
#include "mallocgame/game/priority/priority_state.h"

namespace mallocgame {
namespace {

// Of a kick: the greatest number of decisions by which a run is moved, and the distance between the
// ranks of runs that are taken one by one.
constexpr uint32_t kMostInserted = 16;
constexpr double kNextRank = 1e-3;

bool Places(Mode mode) { return mode != Mode::kSkip && mode != Mode::kSplit; }
bool IsSplit(uint8_t action) { return static_cast<Mode>(action % kActionModes) == Mode::kSplit; }

// Whether others find the same bytes taken and wanted by both.
bool LiesAlike(const PlannedResidence& a, const PlannedResidence& b) {
  const auto wanted = [](const PlannedResidence& r) { return std::min(r.begin, r.latest_fetch); };
  return a.offset == b.offset && a.begin == b.begin && a.end == b.end && wanted(a) == wanted(b);
}

// Of a priority game; segments are runs.
class PriorityTrace final : public IncumbentTrace {
 public:
  explicit PriorityTrace(const PriorityTables& tables)
      : IncumbentTrace(tables.runs.size()), tables_(tables), difference_(tables),
        apart_(tables.runs.size()) {}

  void Follow(Position& position, int32_t end) const override;
  void Begin(int32_t agrees) override;
  void Begin(const Position& position) override;
  void Decide(Position& position, const Intent& intent) override;

 private:
  // What was decided when the incumbent was not about to decide it: where, and what was placed, as
  // an index into Arrangement::placed(); -1: nothing. May be of a game that is forgotten.
  struct Apart {
    int32_t decision = -1, placed = -1;
  };

  void AdoptPlaces(const Position& end, int32_t agrees) override;
  bool KickOwn(uint32_t at, uint32_t kind, Intent& intent, Rng& rng) override;
  void Account(const PriorityState& state, int32_t decision, int32_t placed);
  void Pass(const PriorityState& state);
  bool ChangeIsOpen(const PriorityState& state) const;
  bool IsAwaited(const PriorityState& state, int32_t run) const;

  const PriorityTables& tables_;
  // For each decision of the incumbent what was placed, unless the offset is -1.
  std::vector<PlannedResidence> placed_;
  // The game is compared with the incumbent's first next_ decisions. They agree in the first
  // agrees_.
  PriorityDifference difference_;
  int32_t agrees_ = 0, next_ = 0;
  std::vector<Apart> apart_;  // by run
};

void PriorityTrace::AdoptPlaces(const Position& end, int32_t agrees) {
  const auto& state = static_cast<const PriorityState&>(end);
  placed_.resize(agrees);
  placed_.resize(decisions());
  auto placed = state.arrangement().placed().rbegin();
  for (int32_t i = decisions(); i-- > agrees;) {
    if (Places(state.decided()[i].mode)) placed_[i] = *placed++;
  }
}

void PriorityTrace::Follow(Position& position, int32_t end) const {
  auto& state = static_cast<PriorityState&>(position);
  for (int32_t i = state.num_decisions(); i < end; ++i) {
    MG_CHECK(placed_[i].offset >= 0 ? state.TryApply(actions_[i], placed_[i])
                                    : state.TryApply(actions_[i]));
  }
}

void PriorityTrace::Begin(int32_t agrees) {
  agrees_ = next_ = agrees;
  difference_.Clear();
}

void PriorityTrace::Begin(const Position& position) {
  const auto& state = static_cast<const PriorityState&>(position);
  const auto decided = state.decided();
  const auto actions = state.actions();
  int32_t agrees = 0, placed = 0;
  for (; agrees < std::min(decisions(), state.num_decisions()); ++agrees) {
    if (decided[agrees].run != segments_[agrees] || actions[agrees] != actions_[agrees]) break;
    placed += placed_[agrees].offset >= 0;
  }
  Begin(agrees);
  for (int32_t i = agrees; i < state.num_decisions(); ++i)
    Account(state, i, Places(decided[i].mode) ? placed++ : -1);
}

void PriorityTrace::Decide(Position& position, const Intent& intent) {
  auto& state = static_cast<PriorityState&>(position);
  while (next_ < decisions() && !state.IsOpen(segments_[next_])) Pass(state);
  int candidate = 0;
  if (next_ < decisions() && difference_.SameOpen() && !ChangeIsOpen(state)) {
    candidate = actions_[next_] / kActionModes;
  } else {
    candidate = NextCandidate(state, intent);
    const int32_t run = state.candidates()[candidate];
    while (next_ < decision_of_[run] && !IsAwaited(state, segments_[next_])) Pass(state);
  }
  const int32_t run = state.candidates()[candidate];
  const Mode mode = intent[run].mode;
  if (next_ == decision_of_[run] && placed_[next_].offset >= 0 &&
      static_cast<int>(mode) == actions_[next_] % kActionModes &&
      difference_.SameAround(placed_[next_]) &&
      state.TryApply(PriorityAction(candidate, mode), placed_[next_])) {
    ++next_;
    return;
  }
  const auto residences = static_cast<int32_t>(state.arrangement().placed().size());
  Serve(state, candidate, mode);
  Account(state, state.num_decisions() - 1, Places(state.decided().back().mode) ? residences : -1);
}

// Counts what sets a decision of the game, which placed that, apart from the incumbent.
void PriorityTrace::Account(const PriorityState& state, int32_t decision, int32_t placed) {
  const auto& [run, mode, latency_ps, stall_ps] = state.decided()[decision];
  const PlannedResidence* const own = placed < 0 ? nullptr : &state.arrangement().placed()[placed];
  const bool split = mode == Mode::kSplit;
  const int32_t at = decision_of_[run];
  const PlannedResidence* const its = at >= 0 && placed_[at].offset >= 0 ? &placed_[at] : nullptr;
  const bool alike = own != nullptr && its != nullptr && LiesAlike(*own, *its);
  if (at >= 0 && at == next_) {
    if (const bool its_split = IsSplit(actions_[at]); its_split != split) {
      difference_.Decide(run, split);
      difference_.Decide(run, its_split);
    }
    ++next_;
    if (alike) return;
    if (own != nullptr) difference_.AddResidence(*own);
    if (its != nullptr) difference_.AddResidence(*its);
    return;
  }
  apart_[run] = {decision, placed};
  difference_.Decide(run, split);
  if (own == nullptr) return;
  if (alike && at >= agrees_ && at < next_)
    difference_.RemoveResidence(*own);
  else
    difference_.AddResidence(*own);
}

// Goes on to the incumbent's next decision, though the game does not take it now.
void PriorityTrace::Pass(const PriorityState& state) {
  const int32_t run = segments_[next_];
  difference_.Decide(run, IsSplit(actions_[next_]));
  if (const PlannedResidence& its = placed_[next_]; its.offset >= 0) {
    const auto [decision, placed] = apart_[run];
    const bool decided = decision >= agrees_ && decision < state.num_decisions() &&
                         state.decided()[decision].run == run;
    if (decided && placed >= 0 && LiesAlike(state.arrangement().placed()[placed], its))
      difference_.RemoveResidence(its);
    else
      difference_.AddResidence(its);
  }
  ++next_;
}

// Whether one of the changed runs can be taken now.
bool PriorityTrace::ChangeIsOpen(const PriorityState& state) const {
  return std::any_of(changed_.begin(), changed_.end(),
                     [&state](int32_t run) { return state.IsOpen(run); });
}

// Whether the game is about to take a run because the incumbent did.
bool PriorityTrace::IsAwaited(const PriorityState& state, int32_t run) const {
  const auto candidates = state.candidates();
  const bool shown = candidates.back() < 0 || run <= candidates.back();
  return shown && state.IsOpen(run) &&
         std::find(changed_.begin(), changed_.end(), run) == changed_.end();
}

// A coalescing or an insertion.
bool PriorityTrace::KickOwn(uint32_t at, uint32_t kind, Intent& intent, Rng& rng) {
  const int32_t segment = segments_[at], parent = tables_.runs[segment].parent;
  if (kind == 0 && parent >= 0) {
    Change(parent);
    intent[parent].mode = rng.Below(2) == 0 ? Mode::kLate : Mode::kEarly;
    return true;
  }
  if (kind != 1) return false;
  const uint32_t by = 1 + rng.Below(kMostInserted);
  const bool earlier = rng.Below(2) == 0;
  const auto last = static_cast<uint32_t>(decisions()) - 1;
  const uint32_t other = earlier ? at - std::min(at, by) : std::min(at + by, last);
  Change(segment);
  intent[segment].rank = intent[segments_[other]].rank + (earlier ? -0.5 : 0.5) * kNextRank;
  return true;
}

}  // namespace

std::unique_ptr<IncumbentTrace> PriorityGame::MakeTrace() const {
  return std::make_unique<PriorityTrace>(*priority_tables_);
}

}  // namespace mallocgame
