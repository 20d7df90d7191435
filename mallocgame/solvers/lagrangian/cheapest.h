// The cheapest way of one buffer at given prices, in any type of numbers.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "mallocgame/solvers/lagrangian/path_prices.h"
#include "mallocgame/solvers/lagrangian/paths.h"

namespace mallocgame::lagrangian {

__extension__ using Int128 = __int128;

// More than any way costs, and a 64th of it more than any price.
template <class T>
inline T Infinite() {
  return static_cast<T>(Int128{1} << 121);
}

template <class U>
using States = std::array<U, kStates>;

// How the states behind a step came about.
struct Trace {
  int32_t step = 0;
  int32_t before = 0;  // the length of the trace before it
  States<uint8_t> from = {};
  States<uint8_t> how = {};
  // kGap: buckets of the cheapest prefetch, eviction with the space before it, eviction alone; of
  // the prefetch and the eviction of a replaced plain copy. kLoop: last states of the runs.
  int32_t fetch = 0, evict = 0, least = 0, again = 0, out = 0;
  int32_t runs[4] = {};  // kLoop: where the runs inside it begin, and the end of the last
};

// The cheapest way of a buffer.
template <class T>
struct Way {
  T cost = 0;
  uint8_t end = kMain;  // its last state
  std::vector<Trace> trace;
};

template <class T>
class Cheapest {
 public:
  Cheapest(const Paths& paths, const PathPrices<T>& prices) : paths_(paths), prices_(prices) {}

  // The cheapest way on which `serves` serves the access; -1: any.
  void Find(const BufferSteps& buffer, int32_t access, uint8_t serves, Way<T>& way) {
    buffer_ = &buffer;
    copy_ = T(buffer.copy_units);
    if constexpr (std::is_floating_point_v<T>) copy_ /= kCopyUnits;
    held_access_ = access;
    held_serves_ = serves;
    trace_ = &way.trace;
    trace_->clear();
    States<T> states;
    states.fill(Infinite<T>());
    states[buffer.begin] = 0;
    if (buffer.preloads) states[kBoth] = prices_.preload;
    states = Run(buffer.first, buffer.last, states, T(buffer.bytes), false);
    size_t best = kMain;
    for (size_t s = 0; s < kStates; ++s) {
      if (buffer.ends_in_main && s != kNone && s != kMain && s != kBoth) continue;
      if (states[s] < states[best]) best = s;
    }
    way.cost = states[best];
    way.end = static_cast<uint8_t>(best);
  }

  // Adds its use.
  void Use(const BufferSteps& buffer, Way<T>& way, Usage& usage) {
    buffer_ = &buffer;
    trace_ = &way.trace;
    usage_ = &usage;
    const uint8_t begin = Back(0, trace_->size(), way.end, static_cast<double>(buffer.bytes));
    if (begin == kBoth) usage.preloads += 1;
  }

 private:
  // What leads from one state to another. The last three name a run of a loop, to which come 16 x
  // the last state of the run, where the loop writes the buffer, or else 16 x what is done while
  // the loop is entered.
  enum How : uint8_t {
    kStay,
    kHold,
    kFetch,
    kEvict,
    kHoldEvict,
    kSwap,
    kFetchAgain,
    kEvictAgain,
    kThrough,
    kHoldEvictAgain,
    kFetchEvict,
    kServedFast,
    kTaken,
    kRun0,
    kRun1,
    kRun2,
  };

  enum : uint8_t { kNothing, kHeld, kFetched, kEvicted };
  static How Entering(How run, uint8_t action) { return static_cast<How>(run + 16 * action); }

  States<T> Run(int32_t first, int32_t last, States<T> states, T bytes, bool floor) {
    for (int32_t i = first; i < last; ++i) {
      const Step& step = paths_.steps[i];
      Trace trace;
      trace.step = i;
      trace.before = static_cast<int32_t>(trace_->size());
      States<T> next;
      next.fill(Infinite<T>());
      switch (step.kind) {
        case Step::kGap:
        case Step::kSettle: Gap(step, bytes, states, next, trace); break;
        case Step::kRead:
        case Step::kUpdate: Serve(step, bytes, floor, states, next, trace); break;
        case Step::kWrite: Write(step, bytes, floor, states, next, trace); break;
        case Step::kLoop:
          Loop(i, bytes, floor, states, next, trace);
          i += step.inside;
          break;
      }
      states = next;
      trace_->push_back(trace);
    }
    return states;
  }

  static void Improve(States<T>& next, Trace& trace, State to, T cost, State from, How how) {
    if (cost < next[to]) {
      next[to] = cost;
      trace.from[to] = from;
      trace.how[to] = how;
    }
  }

  // What copies in a gap cost, and where they are cheapest.
  struct Copies {
    T fetch = 0;  // a prefetch, and the space from then on
    T evict = 0;  // an eviction, and the space until then
    T least = 0;  // an eviction alone
    int32_t fetch_at = 0, evict_at = 0, least_at = 0;
  };

  void Gap(const Step& step, T bytes, const States<T>& in, States<T>& out, Trace& trace) {
    const bool settles = step.kind == Step::kSettle;
    const int32_t to = step.to, from = settles ? to : step.from;
    const T* space = prices_.space.data();
    const T end = settles ? space[to] : space[to + 1];
    const T hold = bytes * (end - space[from]);
    const T more = step.written ? prices_.written[from] - prices_.evict[from] : T(0);
    Improve(out, trace, kNone, in[kNone], kNone, kStay);
    Improve(out, trace, kMain, in[kMain], kMain, kStay);
    Improve(out, trace, kMain, in[kBoth], kBoth, kStay);
    Improve(out, trace, kBoth, in[kBoth] + hold, kBoth, kHold);
    Improve(out, trace, kFast, in[kFast] + hold, kFast, kHold);
    Improve(out, trace, kReplaced, in[kReplaced] + hold, kReplaced, kHold);
    if (IsFinite(in[kMain]) || IsFinite(in[kBoth]) || IsFinite(in[kFast])) {
      const Copies own = FindCopies(from, to, end, more, bytes);
      trace.fetch = own.fetch_at, trace.evict = own.evict_at, trace.least = own.least_at;
      Improve(out, trace, kBoth, in[kMain] + own.fetch, kMain, kFetch);
      Improve(out, trace, kBoth, in[kBoth] + own.fetch, kBoth, kFetch);
      Improve(out, trace, kMain, in[kFast] + own.evict, kFast, kEvict);
      Improve(out, trace, kBoth, in[kFast] + hold + own.least, kFast, kHoldEvict);
      // Where the best eviction is behind the best prefetch, it is cheaper to hold.
      if (own.evict_at <= own.fetch_at)
        Improve(out, trace, kBoth, in[kFast] + own.evict + own.fetch, kFast, kSwap);
    }
    if (IsFinite(in[kOperand]) || IsFinite(in[kReplaced])) {
      const Copies own = FindCopies(from, to, end, T(0), bytes);
      trace.again = own.fetch_at, trace.out = own.least_at;
      for (const State s : {kOperand, kReplaced}) {
        Improve(out, trace, kOperand, in[s], s, kStay);
        Improve(out, trace, kReplaced, in[s] + own.fetch, s, kFetchAgain);
        Improve(out, trace, kBoth, in[s] + own.fetch + own.least, s, kFetchEvict);
      }
      // From the operand to fast memory and on: two copies, neither cheaper than the least one.
      Improve(out, trace, kMain, in[kOperand] + own.least + own.least, kOperand, kThrough);
      Improve(out, trace, kMain, in[kReplaced] + own.least, kReplaced, kEvictAgain);
      Improve(out, trace, kBoth, in[kReplaced] + hold + own.least, kReplaced, kHoldEvictAgain);
    }
  }

  static bool IsFinite(T cost) { return cost < Infinite<T>() / 2; }

  // In the buckets [from, to]; in the first one the channel costs `more`. Prices are not negative,
  // so that space alone ends the search.
  Copies FindCopies(int32_t from, int32_t to, T end, T more, T bytes) const {
    const T* space = prices_.space.data();
    const T* evict = prices_.evict.data();
    const T* prefetch = prices_.prefetch.data();
    const T copy = copy_;
    Copies best;
    best.fetch = Infinite<T>();
    for (int32_t q = to; q >= from; --q) {
      const T held = bytes * (end - space[q]);
      if (held >= best.fetch) break;
      const T cost = held + copy * (q == from ? prefetch[q] + more : prefetch[q]);
      if (cost < best.fetch) best.fetch = cost, best.fetch_at = q;
    }
    best.evict = best.least = copy * (evict[from] + more);
    best.evict_at = best.least_at = from;
    int32_t q = from + 1;
    for (; q <= to; ++q) {
      const T held = bytes * (space[q] - space[from]);
      if (held >= best.evict) break;
      const T cost = copy * evict[q];
      if (cost < best.least) best.least = cost, best.least_at = q;
      if (held + cost < best.evict) best.evict = held + cost, best.evict_at = q;
    }
    for (; q <= to && best.least > 0; ++q) {
      const T cost = copy * evict[q];
      if (cost < best.least) best.least = cost, best.least_at = q;
    }
    return best;
  }

  // The least cost of a prefetch in the buckets [from, to] with the space behind it.
  T Fetch(const Step& step, T bytes, int32_t& at) const {
    const T end = prices_.space[step.to + 1];
    T best = Infinite<T>();
    for (int32_t q = step.to; q >= step.from; --q) {
      const T held = bytes * (end - prices_.space[q]);
      if (held >= best) break;
      if (held + copy_ * prices_.prefetch[q] < best) {
        best = held + copy_ * prices_.prefetch[q];
        at = q;
      }
    }
    return best;
  }

  uint8_t Serves(const Step& step) const {
    return step.access == held_access_ ? step.serves & held_serves_ : step.serves;
  }

  void Serve(const Step& step, T bytes, bool floor, const States<T>& in, States<T>& out,
             Trace& trace) {
    const T fast = -prices_.served[step.access], taken = -prices_.replaced[step.access];
    const uint8_t serves = Serves(step);
    const bool by_main = (serves & kByMain) != 0 && !floor;
    const bool by_fast = (serves & kByFast) != 0;
    const bool by_replacing = (serves & kByReplacing) != 0 && !floor;
    if (step.kind == Step::kUpdate) {
      if (by_main) {
        for (const State s : {kNone, kMain, kBoth}) Improve(out, trace, kMain, in[s], s, kStay);
      }
      if (by_fast) {
        const T born = bytes * (prices_.space[step.to + 1] - prices_.space[step.to]);
        Improve(out, trace, kFast, in[kNone] + fast + born, kNone, kServedFast);
        for (const State s : {kBoth, kFast, kReplaced})
          Improve(out, trace, kFast, in[s] + fast, s, kServedFast);
      }
      return;
    }
    for (uint8_t i = 0; i < kStates; ++i) {
      const State s = static_cast<State>(i);
      if (by_main && (s == kNone || s == kMain || s == kBoth))
        Improve(out, trace, s, in[s], s, kStay);
      if (by_fast && s != kMain && s != kOperand)
        Improve(out, trace, s, in[s] + fast, s, kServedFast);
      if (by_replacing) Improve(out, trace, s, in[s] + taken, s, kTaken);
    }
  }

  void Write(const Step& step, T bytes, bool floor, const States<T>& in, States<T>& out,
             Trace& trace) {
    uint8_t old = 0;
    for (uint8_t s = 1; s < kStates; ++s) {
      if (in[s] < in[old]) old = s;
    }
    const State from = static_cast<State>(old);
    const T born = bytes * (prices_.space[step.to + 1] - prices_.space[step.to]);
    const uint8_t serves = Serves(step);
    if ((serves & kByMain) != 0 && !floor) Improve(out, trace, kMain, in[old], from, kStay);
    if ((serves & kByFast) != 0)
      Improve(out, trace, kFast, in[old] - prices_.served[step.access] + born, from, kServedFast);
    if ((serves & kByReplacing) != 0) {
      const T taken = in[old] - prices_.replaced[step.access];
      Improve(out, trace, kOperand, taken, from, kTaken);
      Improve(out, trace, kReplaced, taken + Fetch(step, bytes, trace.fetch), from, kTaken);
    }
  }

  void Loop(int32_t at, T bytes, bool floor, const States<T>& in, States<T>& out, Trace& trace) {
    const Step& step = paths_.steps[at];
    const int32_t first = at + 1, last = first + step.inside;
    const auto run = [&](int which, State begin, T held, bool all_fast) {
      States<T> states;
      states.fill(Infinite<T>());
      states[begin] = 0;
      trace.runs[which] = static_cast<int32_t>(trace_->size());
      states = Run(first, last, states, held, all_fast);
      trace.runs[which + 1] = static_cast<int32_t>(trace_->size());
      return states;
    };
    const auto least = [](const States<T>& states) {
      return static_cast<uint8_t>(std::min_element(states.begin(), states.end()) - states.begin());
    };
    if (step.apart) {
      const States<T> inside = run(0, buffer_->constant ? kMain : kNone, bytes, floor);
      trace.fetch = least(inside);
      for (uint8_t s = 0; s < kStates; ++s)
        Improve(out, trace, State(s), in[s] + inside[trace.fetch], State(s), kRun0);
      return;
    }
    if (!step.writes) {
      const States<T> outside = run(0, kMain, bytes, floor);
      const States<T> covered = run(1, kBoth, T(0), floor);
      const States<T> served = run(2, kBoth, T(0), true);
      trace.fetch = least(outside), trace.evict = least(covered), trace.least = least(served);
      const T in_all = covered[trace.evict], in_none = outside[trace.fetch];
      const T must = served[trace.least];
      const T hold = bytes * (prices_.space[step.to + 1] - prices_.space[step.to]);
      const T fetch = hold + copy_ * prices_.prefetch[step.to];
      const T evict = hold + copy_ * prices_.evict[step.to];
      Improve(out, trace, kNone, in[kNone] + in_all, kNone, Entering(kRun1, kNothing));
      for (const State s : {kMain, kBoth})
        Improve(out, trace, kMain, in[s] + in_none, s, Entering(kRun0, kNothing));
      Improve(out, trace, kBoth, in[kBoth] + hold + in_all, kBoth, Entering(kRun1, kHeld));
      Improve(out, trace, kBoth, in[kMain] + fetch + in_all, kMain, Entering(kRun1, kFetched));
      // What fast memory serves at the loop's entry it serves inside.
      for (const State s : {kFast, kReplaced}) {
        Improve(out, trace, s, in[s] + hold + must, s, Entering(kRun2, kHeld));
        Improve(out, trace, kBoth, in[s] + evict + must, s, Entering(kRun2, kEvicted));
      }
      return;
    }
    // A residence that covers the loop takes its bytes all the time, and others inside need none.
    const T held = bytes * (prices_.space[step.to + 1] - prices_.space[step.to]);
    const State begin = IsFinite(in[kNone]) ? kNone : kMain;
    const States<T> outside = run(0, begin, bytes, floor);
    const States<T> covered = run(1, begin == kNone ? kNone : kBoth, T(0), floor);
    const States<T> served = run(2, begin == kNone ? kNone : kBoth, T(0), true);
    for (const State s : {kNone, kMain, kBoth}) {
      if (!floor) {
        for (const State end : {kMain, kBoth}) {
          Improve(out, trace, kMain, in[s] + outside[end], s, static_cast<How>(kRun0 + 16 * end));
          Improve(out, trace, end, in[s] + held + covered[end], s,
                  static_cast<How>(kRun1 + 16 * end));
        }
      }
    }
    for (const State s : {kNone, kBoth, kFast, kReplaced}) {
      for (const State end : {kMain, kBoth, kFast, kOperand, kReplaced}) {
        const State behind = end == kOperand || end == kReplaced ? kFast : end;
        Improve(out, trace, behind, in[s] + held + served[end], s,
                static_cast<How>(kRun2 + 16 * end));
      }
    }
  }

  // Adds the use of the way that ends in `state` behind the trace [begin, end); returns where it
  // began.
  uint8_t Back(size_t begin, size_t end, uint8_t state, double bytes) {
    while (end > begin) {
      const Trace& trace = (*trace_)[end - 1];
      const Step& step = paths_.steps[trace.step];
      const uint8_t how = trace.how[state];
      if (step.kind == Step::kLoop) {
        const int which = (how & 15) - kRun0;
        const int32_t ends[] = {trace.fetch, trace.evict, trace.least};
        const int more = how / 16;
        const bool carried = step.writes && !step.apart;
        const auto inner = static_cast<uint8_t>(carried      ? more
                                                : step.apart ? trace.fetch
                                                             : ends[which]);
        if (carried ? which > 0 : more > kNothing) Hold(step.to, step.to + 1, bytes);
        if (!carried && more == kFetched) usage_->prefetch_ps[step.to] += CopyPs();
        if (!carried && more == kEvicted) usage_->evict_ps[step.to] += CopyPs();
        Back(trace.runs[which], trace.runs[which + 1], inner, which > 0 ? 0.0 : bytes);
      } else if (step.kind == Step::kGap || step.kind == Step::kSettle) {
        BackGap(step, trace, how, bytes);
      } else {
        if (how == kServedFast) {
          usage_->served[step.access] += 1;
          usage_->served_by.emplace_back(step.access, kByFast);
          const bool born = step.kind == Step::kWrite ||
                            (step.kind == Step::kUpdate && trace.from[state] == kNone);
          if (born) Hold(step.to, step.to + 1, bytes);
        }
        if (how == kTaken) {
          usage_->replaced[step.access] += 1;
          usage_->served_by.emplace_back(step.access, kByReplacing);
          if (step.kind == Step::kWrite && state == kReplaced) {
            usage_->prefetch_ps[trace.fetch] += CopyPs();
            Hold(trace.fetch, step.to + 1, bytes);
          }
        }
      }
      state = trace.from[state];
      end = trace.before;
    }
    return state;
  }

  void BackGap(const Step& step, const Trace& trace, uint8_t how, double bytes) {
    const bool settles = step.kind == Step::kSettle;
    const int32_t from = settles ? step.to : step.from, end = settles ? step.to : step.to + 1;
    switch (how) {
      case kHold: Hold(from, end, bytes); break;
      case kFetch:
        Prefetch(step, trace.fetch, from);
        Hold(trace.fetch, end, bytes);
        break;
      case kEvict:
        Evict(step, trace.evict, from);
        Hold(from, trace.evict, bytes);
        break;
      case kHoldEvict:
        Evict(step, trace.least, from);
        Hold(from, end, bytes);
        break;
      case kSwap:
        Evict(step, trace.evict, from);
        Prefetch(step, trace.fetch, from);
        Hold(from, trace.evict, bytes);
        Hold(trace.fetch, end, bytes);
        break;
      case kFetchAgain:
      case kFetchEvict:
        Prefetch(step, trace.again, -1);
        Hold(trace.again, end, bytes);
        if (how == kFetchEvict) Evict(step, trace.out, -1);
        break;
      case kHoldEvictAgain:
        Evict(step, trace.out, -1);
        Hold(from, end, bytes);
        break;
      case kEvictAgain: Evict(step, trace.out, -1); break;
      case kThrough:
        Evict(step, trace.out, -1);
        Evict(step, trace.out, -1);
        break;
      default: break;
    }
  }

  double CopyPs() const { return static_cast<double>(buffer_->copy_units) / kCopyUnits; }

  void Hold(int32_t from, int32_t to, double bytes) {
    usage_->bytes[from] += bytes;
    usage_->bytes[to] -= bytes;
  }

  // `first`: the bucket behind the value's writer.
  void Evict(const Step& step, int32_t bucket, int32_t first) {
    const bool written = step.written && bucket == first;
    (written ? usage_->written_ps : usage_->evict_ps)[bucket] += CopyPs();
  }

  void Prefetch(const Step& step, int32_t bucket, int32_t first) {
    const double work = CopyPs();
    usage_->prefetch_ps[bucket] += work;
    if (!step.written || bucket != first) return;
    usage_->written_ps[bucket] += work;
    usage_->evict_ps[bucket] -= work;
  }

  const Paths& paths_;
  const PathPrices<T>& prices_;
  const BufferSteps* buffer_ = nullptr;
  T copy_ = 0;
  Usage* usage_ = nullptr;
  std::vector<Trace>* trace_ = nullptr;
  int32_t held_access_ = -1;
  uint8_t held_serves_ = 0;
};

}  // namespace mallocgame::lagrangian
