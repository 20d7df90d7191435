// The walk over the schedule. At each tick the copies that begin there are queued, those that end
// there are waited for, the instruction runs, and the time that it leaves to the channel serves the
// queue.
#include "mallocgame/simulator/simulate.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/plan/pinned.h"
#include "mallocgame/simulator/copy_channel.h"
#include "mallocgame/simulator/timeline.h"

namespace mallocgame {
namespace {

// A sum that remembers whether it ever left 64 bits.
class Sum {
 public:
  void Add(int64_t amount, int64_t times = 1) {
    int64_t product = 0;
    overflow_ |= __builtin_mul_overflow(amount, times, &product) ||
                 __builtin_add_overflow(value_, product, &value_);
  }
  int64_t value() const { return value_; }
  bool overflow() const { return overflow_; }

 private:
  int64_t value_ = 0;
  bool overflow_ = false;
};

// The indices of a plan's copies by one of their ticks, in the plan's order: a list for each tick
// and one for the program's end.
class CopiesByTick {
 public:
  template <class TickOf>
  CopiesByTick(const Plan& plan, Tick ticks, TickOf tick_of) : first_(ticks + 2, 0) {
    for (const Copy& c : plan.copies) ++first_[tick_of(c) + 1];
    for (size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    copies_.resize(plan.copies.size());
    std::vector<size_t> next(first_);
    for (size_t i = 0; i < plan.copies.size(); ++i) copies_[next[tick_of(plan.copies[i])]++] = i;
  }
  absl::Span<const size_t> at(Tick tick) const {
    const size_t t = tick;
    return absl::MakeConstSpan(copies_).subspan(first_[t], first_[t + 1] - first_[t]);
  }

 private:
  std::vector<size_t> first_, copies_;
};

// One play of the schedule for given prices.
class Player {
 public:
  Player(const CostModel& cost_model, const Plan& plan, const std::vector<Price>& prices, bool cold)
      : program_(cost_model.program()), plan_(plan), prices_(prices), cold_(cold),
        begins_(plan, program_.ticks(), [](const Copy& c) { return c.begin; }),
        ends_(plan, program_.ticks(), [](const Copy& c) { return c.end; }),
        channel_(plan.copies.size()), stall_at_(prices.size()) {
    service_ps_.reserve(plan.copies.size());
    for (const Copy& c : plan.copies)
      service_ps_.push_back(cost_model.hardware().CopyPs(c.part_end - c.part_begin));
  }

  // To `copied_at`, unless null, one for each tick, the idle time that copies used is added.
  void Run(std::vector<Sum>* copied_at = nullptr) {
    copied_at_ = copied_at;
    // Preloads are queued before everything else. When they are done before the start, they are
    // never queued.
    if (cold_) {
      for (size_t c = 0; c < plan_.copies.size(); ++c) {
        if (plan_.copies[c].preload) channel_.Enqueue(c, service_ps_[c]);
      }
    }
    Play(0, program_.ticks(), 1);
    Begin(program_.ticks());
    for (const size_t c : ends_.at(program_.ticks())) Wait(c, program_.ticks() - 1, 1);
  }

  const Sum& stall() const { return stall_; }
  const std::vector<Sum>& stall_at() const { return stall_at_; }

 private:
  // Plays the ticks [begin, end), which belong to the same loop or to none. Waits here happen
  // `times` times in one run of the program.
  void Play(Tick begin, Tick end, int64_t times) {
    for (Tick t = begin; t < end; ++t) {
      Begin(t);
      for (const size_t c : ends_.at(t)) Wait(c, t, times);
      const int64_t idle_ps = prices_[t].idle_ps;
      const int64_t left_ps = channel_.Drain(idle_ps);
      if (copied_at_ != nullptr) (*copied_at_)[t].Add(idle_ps - left_ps, times);
      if (program_.instruction(t).kind != InstructionKind::kLoopEntry) continue;
      const Loop& loop = program_.loop_at(t);
      if (loop.trips > 0) PlayPass(loop, times);
      // The second pass finds the channel as the first left it, and stands for all further ones.
      if (loop.trips > 1) PlayPass(loop, times * (loop.trips - 1));
      t = loop.exit - 1;
    }
  }

  void PlayPass(const Loop& loop, int64_t times) {
    Play(loop.entry + 1, loop.exit, times);
    // A copy that begins in the body and ends with it is needed by the next pass, so the pass waits
    // for it.
    for (const size_t c : ends_.at(loop.exit)) {
      if (plan_.copies[c].begin > loop.entry && plan_.copies[c].begin < loop.exit)
        Wait(c, loop.exit, times);
    }
  }

  void Begin(Tick tick) {
    for (const size_t c : begins_.at(tick)) {
      if (!plan_.copies[c].preload) channel_.Enqueue(c, service_ps_[c]);
    }
  }

  void Wait(size_t copy, Tick tick, int64_t times) {
    const int64_t stall = channel_.WaitFor(copy);
    stall_.Add(stall, times);
    stall_at_[tick].Add(stall, times);
  }

  const Program& program_;
  const Plan& plan_;
  const std::vector<Price>& prices_;
  const bool cold_;
  const CopiesByTick begins_, ends_;
  CopyChannel channel_;
  std::vector<int64_t> service_ps_;  // for each copy: the time it takes the whole channel
  Sum stall_;
  std::vector<Sum> stall_at_;
  std::vector<Sum>* copied_at_ = nullptr;
};

// Which slots of the instruction the plan serves from fast memory, as bits.
uint64_t FastSlots(const Program& program, const Plan& plan, Tick tick) {
  const Instruction& i = program.instruction(tick);
  uint64_t fast = 0;
  for (int32_t slot = 0; slot < i.access_count; ++slot) {
    if (plan.served_by[i.first_access + slot].valid()) fast |= uint64_t{1} << slot;
  }
  return fast;
}

Sum MainBytes(const InstructionCost& cost, uint64_t fast_slots, int64_t trips) {
  Sum bytes;
  for (const std::vector<CostArray>* arrays : {&cost.operands, &cost.outputs}) {
    for (const CostArray& a : *arrays) {
      const bool in_main = a.slot >= 0 ? (fast_slots >> a.slot & 1) == 0 : a.in_main;
      if (in_main) bytes.Add(std::min(a.size_bytes, a.accessed_bytes), trips);
    }
  }
  return bytes;
}

// The price of each tick under the plan. A plain copy that the plan takes over is free and leaves
// no time.
std::vector<Price> PricesOf(const CostModel& cost_model, const Plan& plan) {
  const Program& program = cost_model.program();
  std::vector<Price> prices(program.instructions().size());
  std::vector<bool> replaced(prices.size(), false);
  for (const Copy& c : plan.copies) {
    if (c.replaces >= 0) replaced[c.replaces] = true;
  }
  for (Tick t = 0; t < program.ticks(); ++t) {
    if (!replaced[t]) prices[t] = cost_model.PriceOf(t, FastSlots(program, plan, t));
  }
  return prices;
}

struct Sums {
  Sum compute, all_main, exact, predicted, unpriced, kernel, modelled, prefetched, written_back,
      preloaded;
};

void AddCompute(const CostModel& cost_model, const std::vector<Price>& prices, Sums& sums) {
  const Program& program = cost_model.program();
  std::vector<uint64_t> pinned(program.any_pinned() ? program.ticks() : 0);
  for (const PlacedPin& pin : PlacePins(program, cost_model.hardware())) {
    const PinnedStay& stay = pin.stay;
    for (const AccessId access : stay.serves)
      pinned[program.access(access).tick] |= uint64_t{1} << program.slot(access);
    if (!stay.fetched) continue;
    sums.all_main.Add(cost_model.hardware().CopyPs(program.buffer(stay.buffer).size_bytes),
                      program.trips(stay.begin));
  }
  for (Tick t = 0; t < program.ticks(); ++t) {
    const Price& price = prices[t];
    const int64_t trips = program.trips(t);
    sums.compute.Add(price.time_ps, trips);
    sums.all_main.Add(cost_model.PriceOf(t, pinned.empty() ? 0 : pinned[t]).time_ps, trips);
    const int64_t priced_ps = price.time_ps - price.link_ps;
    if (price.source == PriceSource::kExact) sums.exact.Add(priced_ps, trips);
    if (price.source == PriceSource::kPredicted) sums.predicted.Add(priced_ps, trips);
    if (price.source == PriceSource::kUnpriced) sums.unpriced.Add(priced_ps, trips);
    if (price.source == PriceSource::kKernel) sums.kernel.Add(priced_ps, trips);
    sums.modelled.Add(price.link_ps, trips);
  }
}

void AddBytes(const Program& program, const Plan& plan, Sums& sums) {
  for (const Copy& c : plan.copies) {
    const int64_t trips = c.begin < program.ticks() ? program.trips(c.begin) : 1;
    Sum& sum = c.preload                       ? sums.preloaded
               : c.kind == CopyKind::kPrefetch ? sums.prefetched
                                               : sums.written_back;
    sum.Add(c.part_end - c.part_begin, c.preload ? 1 : trips);
  }
}

absl::Status TooMuch(const CostModel& cost_model) {
  return absl::OutOfRangeError(absl::StrCat("program '", cost_model.program().name(),
                                            "' on hardware '", cost_model.hardware().name,
                                            "': a total of the simulation exceeds ",
                                            std::numeric_limits<int64_t>::max(), " ps or bytes"));
}

// Fills in the bytes resident at each tick; the bytes of a slice count from the start of its own
// copy. False if they exceed 64 bits.
bool FillOccupancy(const Program& program, const Plan& plan, Report& report) {
  std::vector<Sum> change(program.instructions().size() + 1);
  const auto add = [&change](Tick begin, Tick end, int64_t bytes) {
    change[begin].Add(bytes);
    change[end].Add(-bytes);
  };
  for (const Residence& r : plan.residences)
    add(r.begin, r.end, program.buffer(r.buffer).size_bytes);
  for (const Copy& c : plan.copies) {
    const Residence& r = plan.residences[c.residence.index()];
    const Tick begin = std::clamp(c.begin, r.begin, r.end);
    if (c.kind == CopyKind::kPrefetch) add(r.begin, begin, c.part_begin - c.part_end);
  }
  Sum resident;
  bool overflow = false;
  report.fast_bytes_at.reserve(program.instructions().size());
  for (size_t t = 0; t + 1 < change.size(); ++t) {
    resident.Add(change[t].value());
    overflow |= change[t].overflow();
    report.fast_bytes_at.push_back(resident.value());
    report.peak_fast_bytes = std::max(report.peak_fast_bytes, resident.value());
  }
  return !overflow && !resident.overflow();
}

}  // namespace

absl::StatusOr<Report> Simulate(const CostModel& cost_model, const Plan& plan) {
  const Program& program = cost_model.program();
  const Hardware& hardware = cost_model.hardware();
  MG_RETURN_IF_ERROR(CheckWellFormed(program, hardware, plan));
  const std::vector<Price> prices = PricesOf(cost_model, plan);
  Sums sums;
  AddCompute(cost_model, prices, sums);
  AddBytes(program, plan, sums);
  Player warm(cost_model, plan, prices, /*cold=*/false);
  warm.Run();
  Sum latency;
  latency.Add(sums.compute.value());
  latency.Add(warm.stall().value());
  Sum cold = latency;
  bool overflow = warm.stall().overflow();
  if (std::any_of(plan.copies.begin(), plan.copies.end(),
                  [](const Copy& c) { return c.preload; })) {
    Player player(cost_model, plan, prices, /*cold=*/true);
    player.Run();
    cold = Sum();
    cold.Add(sums.compute.value());
    cold.Add(player.stall().value());
    overflow |= player.stall().overflow();
  }
  Report report;
  overflow |= !FillOccupancy(program, plan, report) || latency.overflow() || cold.overflow();
  for (const Sum* sum :
       {&sums.compute, &sums.all_main, &sums.prefetched, &sums.written_back, &sums.preloaded}) {
    overflow |= sum->overflow();
  }
  if (overflow) return TooMuch(cost_model);
  report.latency_ps = latency.value();
  report.latency_cold_ps = cold.value();
  report.compute_ps = sums.compute.value();
  report.stall_ps = warm.stall().value();
  report.all_main_ps = sums.all_main.value();
  report.prefetched_bytes = sums.prefetched.value();
  report.written_back_bytes = sums.written_back.value();
  report.preloaded_bytes = sums.preloaded.value();
  report.exact_ps = sums.exact.value();
  report.predicted_ps = sums.predicted.value();
  report.unpriced_ps = sums.unpriced.value();
  report.kernel_ps = sums.kernel.value();
  report.modelled_ps = sums.modelled.value();
  report.stall_at_ps.reserve(warm.stall_at().size());
  for (const Sum& sum : warm.stall_at()) report.stall_at_ps.push_back(sum.value());
  return report;
}

absl::StatusOr<std::vector<TickTime>> Timeline(const CostModel& cost_model, const Plan& plan) {
  const Program& program = cost_model.program();
  const Hardware& hardware = cost_model.hardware();
  MG_RETURN_IF_ERROR(CheckWellFormed(program, hardware, plan));
  const std::vector<Price> prices = PricesOf(cost_model, plan);
  std::vector<Sum> copied_at(prices.size());
  Player player(cost_model, plan, prices, /*cold=*/false);
  player.Run(&copied_at);
  std::vector<TickTime> times;
  times.reserve(prices.size());
  bool overflow = false;
  for (Tick t = 0; t < program.ticks(); ++t) {
    const size_t i = t;
    Sum compute, idle;
    compute.Add(prices[i].time_ps, program.trips(t));
    idle.Add(prices[i].idle_ps, program.trips(t));
    const Sum& stall = player.stall_at()[i];
    // What takes no time, such as a tuple, moves nothing either.
    const Sum bytes = prices[i].source == PriceSource::kFree
                          ? Sum()
                          : MainBytes(program.cost().instructions[i], FastSlots(program, plan, t),
                                      program.trips(t));
    for (const Sum& sum : {compute, idle, stall, copied_at[i], bytes}) overflow |= sum.overflow();
    times.push_back({compute.value(), stall.value(), idle.value(), copied_at[i].value(),
                     prices[i].source, bytes.value()});
  }
  if (overflow) return TooMuch(cost_model);
  return times;
}

}  // namespace mallocgame
