#include "mallocgame/solvers/playing/order_changes.h"

#include <algorithm>

namespace mallocgame {
namespace {

constexpr int64_t kOftenChangedBytes = 16 << 10;  // smaller buffers seldom matter
constexpr int kTries = 32;  // to find a decision of the kind that is looked for
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

}  // namespace

OrderChanges::OrderChanges(OrderSearch& search)
    : search_(search), tables_(search.state().tables()) {
  Accepted();
}

void OrderChanges::Accepted() {
  large_.clear();
  const GameTables& tables = tables_.arrangement.tables;
  for (int32_t i = 0; i < search_.decisions(); ++i) {
    if (tables.buffers[tables_.runs[search_.run(i)].buffer].size_bytes >= kOftenChangedBytes)
      large_.push_back(i);
  }
}

// Seldom one about a small buffer.
int32_t OrderChanges::AnyDecision(Rng& rng) const {
  return large_.empty() || rng.Below(8) == 0 ? static_cast<int32_t>(rng.Below(search_.decisions()))
                                             : rng.Pick(large_);
}

Service OrderChanges::AnyService(const Run& run, Service now, Rng& rng) const {
  for (;;) {
    const auto service = static_cast<Service>(rng.Below(kServices));
    if (service == now || (service == Service::kSplit && !run.splits) ||
        (service == Service::kPreload && !run.preloadable))
      continue;
    if (service == Service::kEarly && run.planned.earliest_fetch >= run.planned.latest_fetch &&
        run.planned.end >= run.roomy.end)
      continue;
    return service;
  }
}

// A decision about a run that `suits`: of the first `rivals` found the one that saves most. -1:
// none was found.
template <class Suits>
int32_t OrderChanges::Find(int rivals, const Suits& suits, Rng& rng) const {
  int32_t best = -1;
  for (int i = 0; i < kTries && rivals > 0; ++i) {
    const int32_t decision = AnyDecision(rng);
    if (!suits(search_.run(decision))) continue;
    if (best < 0 || saving_ps(decision) > saving_ps(best)) best = decision;
    --rivals;
  }
  return best;
}

// A decision that serves a buffer of at most twice or half the size otherwise, without a split; -1:
// none was found.
int32_t OrderChanges::SimilarTo(int32_t at, Rng& rng) const {
  constexpr auto kSplit = static_cast<uint8_t>(Service::kSplit);
  const auto bytes = [this](int32_t run) {
    return tables_.arrangement.tables.buffers[tables_.runs[run].buffer].size_bytes;
  };
  const int32_t run = search_.run(at);
  const uint8_t service = preference(run).service;
  if (service == kSplit) return -1;
  const auto suits = [&](int32_t other) {
    const uint8_t its = preference(other).service;
    return its != service && its != kSplit && bytes(other) <= 2 * bytes(run) &&
           bytes(run) <= 2 * bytes(other);
  };
  return Find(1, suits, rng);
}

// A run goes to main memory or comes into fast memory, and a few others are served anew where it
// pays. They are taken last, where their savings are known: what several small ones save together
// may be more than what a large one does, and less for each of them alone. In half of the trials
// the others are those that matter most to the first one. In the other half they are any, as what
// pays may also depend on what else the same instruction finds in fast memory. Returns as Propose
// does, or -1 if there are no such runs.
int32_t OrderChanges::ProposeGivingWay(Rng& rng) {
  const bool goes = rng.Below(2) == 0, any = rng.Below(2) == 0;
  const auto lies = [this](int32_t run, bool in_fast_memory) {
    const auto service = static_cast<Service>(preference(run).service);
    return service != Service::kSplit && (service != Service::kSkip) == in_fast_memory;
  };
  const int32_t at = Find(1, [&](int32_t run) { return lies(run, goes); }, rng);
  if (at < 0) return -1;
  const int32_t run = search_.run(at);
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
  OrderPreference its = {static_cast<uint8_t>(Service::kSkip), preference(run).rank};
  if (!goes) {
    Service service = Service::kSplit;
    while (service == Service::kSplit) service = AnyService(tables_.runs[run], Service::kSkip, rng);
    its = {static_cast<uint8_t>(service),
           std::min(its.rank, preference(search_.run(first)).rank - 0.5)};
  }
  double last = 0;  // the highest rank of all decisions
  for (int32_t i = 0; i < search_.decisions(); ++i)
    last = std::max(last, preference(search_.run(i)).rank);
  search_.GoTo(from);
  search_.Prefer(run, its);
  for (const int32_t other : others) search_.Prefer(search_.run(other), {kPayingService, ++last});
  return from;
}

int32_t OrderChanges::Propose(Rng& rng) {
  if (rng.Below(5) == 0) {
    if (const int32_t from = ProposeGivingWay(rng); from >= 0) return from;
  }
  const int32_t at = AnyDecision(rng);
  const int32_t run = search_.run(at);
  const OrderPreference now = preference(run);
  const uint32_t kind = rng.Below(16);
  const int32_t parent = tables_.runs[run].parent;
  if (kind < 3 && parent >= 0) {  // one residence instead of several
    const int32_t from = search_.decision_of(parent);
    search_.GoTo(from);
    const Service service = rng.Below(2) == 0 ? Service::kLate : Service::kEarly;
    search_.Prefer(parent, {static_cast<uint8_t>(service), preference(parent).rank});
    return from;
  }
  if (kind < 6) {  // earlier or later, by a few decisions
    const int32_t by = 1 + static_cast<int32_t>(rng.Below(16));
    const bool earlier = rng.Below(2) == 0;
    const int32_t other = std::clamp(earlier ? at - by : at + by, 0, search_.decisions() - 1);
    const double rank = preference(search_.run(other)).rank + (earlier ? -0.5 : 0.5);
    const int32_t from = Before(std::min(at, other));
    search_.GoTo(from);
    search_.Prefer(run, {now.service, rank});
    return from;
  }
  if (kind >= 14) {  // one in place of another: alone, each step of that would lose
    if (const int32_t similar = SimilarTo(at, rng); similar >= 0) {
      const int32_t other = search_.run(similar), from = Before(std::min(at, similar));
      const OrderPreference its = preference(other);
      search_.GoTo(from);
      search_.Prefer(run, its);
      search_.Prefer(other, now);
      return from;
    }
  }
  search_.GoTo(at);
  const Service service = AnyService(tables_.runs[run], static_cast<Service>(now.service), rng);
  search_.Prefer(run, {static_cast<uint8_t>(service), now.rank});
  if (kind < 9) {  // and another one after it
    const int32_t later = at + static_cast<int32_t>(rng.Below(search_.decisions() - at));
    const int32_t second = search_.run(later);
    if (second == run) return at;
    const OrderPreference its = preference(second);
    search_.Prefer(second, {static_cast<uint8_t>(AnyService(
                                tables_.runs[second], static_cast<Service>(its.service), rng)),
                            its.rank});
  }
  return at;
}

}  // namespace mallocgame
