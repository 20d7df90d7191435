#include "mallocgame/solvers/playing/order_guide.h"

#include <algorithm>

#include "mallocgame/base/error.h"

namespace mallocgame {
namespace {

bool Places(Service service) { return service != Service::kSkip && service != Service::kSplit; }
bool IsSplit(uint8_t action) { return static_cast<Service>(action % kServices) == Service::kSplit; }

// Whether others find the same bytes taken and wanted by both.
bool LiesAlike(const PlannedResidence& a, const PlannedResidence& b) {
  const auto wanted = [](const PlannedResidence& r) { return std::min(r.begin, r.latest_fetch); };
  return a.offset == b.offset && a.begin == b.begin && a.end == b.end && wanted(a) == wanted(b);
}

}  // namespace

OrderGuide::OrderGuide(const OrderTables& tables)
    : decision_of_(tables.runs.size(), -1), difference_(tables), apart_(tables.runs.size()) {}

void OrderGuide::Adopt(const OrderState& state, int32_t agrees) {
  MG_CHECK(state.IsTerminal());
  const auto decided = state.decided();
  for (int32_t i = agrees; i < decisions(); ++i) decision_of_[runs_[i]] = -1;
  runs_.resize(agrees);
  for (int32_t i = agrees; i < state.num_decisions(); ++i) {
    decision_of_[decided[i].run] = i;
    runs_.push_back(decided[i].run);
  }
  actions_.assign(state.actions().begin(), state.actions().end());
  placed_.resize(agrees);
  placed_.resize(decided.size());
  auto placed = state.arrangement().placed().rbegin();
  for (int32_t i = decisions(); i-- > agrees;) {
    if (Places(decided[i].service)) placed_[i] = *placed++;
  }
  changed_.clear();
}

void OrderGuide::Follow(OrderState& state, int32_t end) const {
  for (int32_t i = state.num_decisions(); i < end; ++i) {
    MG_CHECK(placed_[i].offset >= 0 ? state.TryApply(actions_[i], placed_[i])
                                    : state.TryApply(actions_[i]));
  }
}

void OrderGuide::Begin(int32_t agrees) {
  agrees_ = next_ = agrees;
  difference_.Clear();
}

void OrderGuide::Begin(const OrderState& state) {
  const auto decided = state.decided();
  const auto actions = state.actions();
  int32_t agrees = 0, placed = 0;
  for (; agrees < std::min(decisions(), state.num_decisions()); ++agrees) {
    if (decided[agrees].run != runs_[agrees] || actions[agrees] != actions_[agrees]) break;
    placed += placed_[agrees].offset >= 0;
  }
  Begin(agrees);
  for (int32_t i = agrees; i < state.num_decisions(); ++i)
    Account(state, i, Places(decided[i].service) ? placed++ : -1);
}

void OrderGuide::Decide(OrderState& state, const OrderPreferences& preferences) {
  while (next_ < decisions() && !state.IsOpen(runs_[next_])) Pass(state);
  int candidate = 0;
  if (next_ < decisions() && difference_.SameOpen() && !ChangeIsOpen(state)) {
    candidate = actions_[next_] / kServices;
  } else {
    candidate = PreferredCandidate(state, preferences);
    const int32_t run = state.candidates()[candidate];
    while (next_ < decision_of_[run] && !IsAwaited(state, runs_[next_])) Pass(state);
  }
  const int32_t run = state.candidates()[candidate];
  const uint8_t service = preferences[run].service;
  if (next_ == decision_of_[run] && placed_[next_].offset >= 0 &&
      service == actions_[next_] % kServices && difference_.SameAround(placed_[next_]) &&
      state.TryApply(OrderAction(candidate, static_cast<Service>(service)), placed_[next_])) {
    ++next_;
    return;
  }
  const auto residences = static_cast<int32_t>(state.arrangement().placed().size());
  ServePreferred(state, candidate, preferences);
  Account(state, state.num_decisions() - 1,
          Places(state.decided().back().service) ? residences : -1);
}

// Counts what sets a decision of the game, which placed that, apart from the guide.
void OrderGuide::Account(const OrderState& state, int32_t decision, int32_t placed) {
  const auto& [run, service, latency_ps, stall_ps] = state.decided()[decision];
  const PlannedResidence* const own = placed < 0 ? nullptr : &state.arrangement().placed()[placed];
  const bool split = service == Service::kSplit;
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

// Goes on to the guide's next decision, though the game does not take it now.
void OrderGuide::Pass(const OrderState& state) {
  const int32_t run = runs_[next_];
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
bool OrderGuide::ChangeIsOpen(const OrderState& state) const {
  return std::any_of(changed_.begin(), changed_.end(),
                     [&state](int32_t run) { return state.IsOpen(run); });
}

// Whether the game is about to take a run because the guide did.
bool OrderGuide::IsAwaited(const OrderState& state, int32_t run) const {
  const auto candidates = state.candidates();
  const bool shown = candidates.back() < 0 || run <= candidates.back();
  return shown && state.IsOpen(run) &&
         std::find(changed_.begin(), changed_.end(), run) == changed_.end();
}

}  // namespace mallocgame
