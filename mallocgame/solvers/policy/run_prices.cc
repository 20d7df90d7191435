#include "mallocgame/solvers/policy/run_prices.h"

#include <algorithm>
#include <cstdint>

namespace mallocgame {
namespace {

constexpr int kSteps = 40, kCounted = 20;  // of which the last are counted
constexpr double kFirstRate = 0.6, kRateHalves = 10;
constexpr double kFirstBusy = 0.1, kLeastBusy = 1e-4;  // prices of the channel are at most 1

// Ticks [begin, end) in which a copy of `ps` may run, with what the instructions leave to it.
struct Window {
  Tick begin = 0, end = 0;
  double ps = 0, idle = 0, passes = 1;
};

class Pricing {
 public:
  Pricing(const PriorityTables& tables, RunPrices& prices)
      : tables_(tables), arrangement_(tables.arrangement), prices_(prices),
        ticks_(arrangement_.program.ticks()), runs_(tables.runs.size()), space_of_(ticks_),
        channel_of_(ticks_, kFirstBusy), space_before_(ticks_ + 1), channel_before_(ticks_ + 1),
        use_(ticks_ + 1), copies_(ticks_ + 1), worth_(runs_), chosen_(runs_), inside_(runs_) {
    for (auto* column : {&prices.pays, &prices.parts, &prices.used}) column->assign(runs_, 0);
    Describe();
  }

  void Run() {
    for (int step = 0; step < kSteps; ++step) {
      SumUp();
      Choose();
      if (step >= kSteps - kCounted) {
        for (size_t r = 0; r < runs_; ++r) prices_.used[r] += chosen_[r] / float{kCounted};
      }
      if (step + 1 < kSteps) Move(kFirstRate / (1 + step / kRateHalves));
    }
  }

 private:
  double Share(size_t r) const {
    return static_cast<double>(arrangement_.tables.buffers[tables_.runs[r].buffer].size_bytes) /
           static_cast<double>(std::max<int64_t>(1, arrangement_.game.usable_bytes()));
  }
  double Idle(Tick begin, Tick end) const {
    return static_cast<double>(arrangement_.tables.fast_idle_before[end] -
                               arrangement_.tables.fast_idle_before[begin]);
  }
  Window WindowOf(Tick begin, Tick end, double copy_ps) const {
    Window window{std::clamp(begin, 0, ticks_), std::clamp(end, 0, ticks_)};
    window.end = std::max(window.begin, window.end);
    window.ps = copy_ps;
    window.idle = Idle(window.begin, window.end);
    const Tick due = std::clamp(window.end - 1, 0, ticks_ - 1);
    window.passes = static_cast<double>(arrangement_.passes[due]);
    return window;
  }

  void Describe() {
    double saving = 0, held = 0;
    fetch_.resize(runs_);
    evict_.resize(runs_);
    share_.resize(runs_);
    for (size_t r = 0; r < runs_; ++r) {
      const ::mallocgame::Run& run = tables_.runs[r];
      share_[r] = Share(r);
      if (run.placeable) {
        const PlannedResidence& planned = run.planned;
        const auto copy_ps = static_cast<double>(arrangement_.tables.buffers[run.buffer].copy_ps);
        if (planned.fetched) fetch_[r] = WindowOf(planned.earliest_fetch, planned.need, copy_ps);
        if (planned.written >= 0)
          evict_[r] = WindowOf(planned.written, planned.eviction_deadline, copy_ps);
        if (run.parent < 0 && run.saving_ps > 0) {
          saving += static_cast<double>(run.saving_ps);
          held += share_[r] * (planned.end - planned.latest_fetch);
        }
      }
    }
    std::fill(space_of_.begin(), space_of_.end(), saving / std::max(held, 1.0) / 2);
    // Parts stand before what they are parts of.
    std::vector<int32_t> open = tables_.roots;
    while (!open.empty()) {
      const int32_t r = open.back();
      open.pop_back();
      order_.push_back(r);
      for (const int32_t part : tables_.runs[r].parts) {
        if (part >= 0) open.push_back(part);
      }
    }
    std::reverse(order_.begin(), order_.end());
  }

  void SumUp() {
    for (Tick t = 0; t < ticks_; ++t) {
      space_before_[t + 1] = space_before_[t] + space_of_[t];
      channel_before_[t + 1] = channel_before_[t] + channel_of_[t] * Idle(t, t + 1);
    }
  }

  double Pay(const Window& window) const {
    if (window.ps <= 0) return 0;
    const double late = std::max(0.0, window.ps - window.idle), hidden = window.ps - late;
    const double mean =
        window.idle > 0
            ? (channel_before_[window.end] - channel_before_[window.begin]) / window.idle
            : 1;
    return (late + hidden * mean) * window.passes;
  }

  // The worth of each run and of its parts, and which runs are chosen.
  void Choose() {
    for (const int32_t r : order_) {
      const ::mallocgame::Run& run = tables_.runs[r];
      double parts = 0;
      for (const int32_t part : run.parts) parts += part >= 0 ? worth_[part] : 0;
      prices_.parts[r] = static_cast<float>(parts);
      double own = 0;
      if (run.placeable) {
        const double space =
            share_[r] * (space_before_[run.planned.end] - space_before_[run.planned.latest_fetch]);
        const double channel = Pay(fetch_[r]) + Pay(evict_[r]);
        prices_.pays[r] = static_cast<float>(space) + static_cast<float>(channel);
        own = static_cast<double>(run.saving_ps) - space - channel;
      }
      worth_[r] = std::max({0.0, own, parts});
      chosen_[r] = own > 0 && own >= parts ? 1.0F : 0.0F;
    }
    // What is part of a chosen run isn't chosen.
    for (auto r = order_.rbegin(); r != order_.rend(); ++r) {
      const int32_t parent = tables_.runs[*r].parent;
      if (parent < 0) continue;
      inside_[*r] = inside_[parent] != 0 || chosen_[parent] != 0;
      if (inside_[*r] != 0) chosen_[*r] = 0;
    }
  }

  void Count(const Window& window) {
    if (window.ps <= 0 || window.end <= window.begin) return;
    const double rate = std::min(1.0, window.ps / std::max(window.idle, 1.0));
    copies_[window.begin] += rate;
    copies_[window.end] -= rate;
  }

  // What the chosen runs use at each tick.
  void Use() {
    std::fill(use_.begin(), use_.end(), 0);
    std::fill(copies_.begin(), copies_.end(), 0);
    for (size_t r = 0; r < runs_; ++r) {
      if (chosen_[r] == 0) continue;
      const PlannedResidence& planned = tables_.runs[r].planned;
      use_[planned.latest_fetch] += share_[r];
      use_[planned.end] -= share_[r];
      Count(fetch_[r]);
      Count(evict_[r]);
    }
    for (Tick t = 0; t < ticks_; ++t) {
      use_[t + 1] += use_[t];
      copies_[t + 1] += copies_[t];
    }
  }

  void Move(double rate) {
    Use();
    for (Tick t = 0; t < ticks_; ++t) {
      space_of_[t] *= 1 + rate * std::clamp(2 * (use_[t] - 1), -0.9, 1.0);
      channel_of_[t] =
          std::clamp(channel_of_[t] * (1 + rate * std::clamp(2 * (copies_[t] - 1), -0.9, 1.0)),
                     kLeastBusy, 1.0);
    }
  }

  const PriorityTables& tables_;
  const ArrangementTables& arrangement_;
  RunPrices& prices_;
  const Tick ticks_;
  const size_t runs_;
  std::vector<double> space_of_, channel_of_;  // prices by tick: of all fast memory; of a ps
  std::vector<double> space_before_, channel_before_;  // their sums before a tick
  std::vector<double> use_, copies_;                   // shares in use, by tick
  std::vector<double> share_, worth_;                  // by run
  std::vector<Window> fetch_, evict_;
  std::vector<float> chosen_;
  std::vector<uint8_t> inside_;
  std::vector<int32_t> order_;
};

}  // namespace

RunPrices::RunPrices(const PriorityTables& tables) { Pricing(tables, *this).Run(); }

}  // namespace mallocgame
