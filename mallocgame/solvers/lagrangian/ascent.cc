#include "mallocgame/solvers/lagrangian/ascent.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/solvers/bounds.h"
#include "mallocgame/solvers/lagrangian/dual.h"

namespace mallocgame {

using lagrangian::Dual;
using lagrangian::Multiplier;
using lagrangian::Relaxed;

namespace {

constexpr int kMaxSlots = 8;  // that an instruction's placements tell apart
// Of a round: its steps at first, what its first step and its last come to, in scales.
constexpr int64_t kSteps = 1000;
constexpr double kFirstStep = 1.0, kLastStep = 1e-3;
// How much of the old mean each step keeps, of supergradients and of their squares.
constexpr double kMean = 0.9, kSquares = 0.999;
constexpr double kGain = 1e-5;  // of a round: less, and it has converged

}  // namespace

// Steps are Adam's (Kingma and Ba 2015), in units of each multiplier's scale. They get shorter over
// a round; each round begins at the best point, and from the third on is twice as long as the one
// before. In the first round prefetches pay nothing for the bytes that they need on arrival: those
// prices are large ones, and find their way better once the others are about right.
struct LagrangianAscent::Impl {
  Impl(const CostModel& cost_model, const PlacementPrices& placements, int64_t least_bytes)
      : program(cost_model.program()), hardware(cost_model.hardware()),
        dual(cost_model, placements, least_bytes) {
    double total = 0;
    for (size_t row = 0; row < placements.rows.size();) {
      const Tick tick = placements.rows[row].tick;
      int64_t least = placements.rows[row].time_ps;
      for (; row < placements.rows.size() && placements.rows[row].tick == tick; ++row)
        least = std::min(least, placements.rows[row].time_ps);
      total += static_cast<double>(least);
    }
    instruction_ps = std::max(1.0, total / std::max<Tick>(1, program.ticks()));
    const size_t size = dual.multipliers().size();
    at = best = gradient = mean = squares = std::vector<double>(size, 0.0);
  }

  double Scale(const Multiplier& multiplier) const {
    const double fill_ps = static_cast<double>(hardware.TransferPs(hardware.fast_bytes));
    switch (multiplier.relaxed) {
      case Relaxed::kServed:
      case Relaxed::kReplaced: return multiplier.scale_ps;
      case Relaxed::kSpace: return 0.2 * instruction_ps;
      case Relaxed::kChannel: return 0.3;
      case Relaxed::kArrival: return round == 0 ? 0 : std::min(0.3, 0.3 * instruction_ps / fill_ps);
      case Relaxed::kPreload: return instruction_ps;
    }
    return 0;
  }

  void BeginRound() {
    length = round < 2 ? kSteps : 2 * length;
    step = 0;
    at = best;
    std::fill(mean.begin(), mean.end(), 0.0);
    std::fill(squares.begin(), squares.end(), 0.0);
    scales.clear();
    for (const Multiplier& multiplier : dual.multipliers()) scales.push_back(Scale(multiplier));
    value_before = value;
  }

  void Step() {
    dual.Project(absl::MakeSpan(at));
    const double here = dual.Ascend(absl::MakeSpan(at), absl::MakeSpan(gradient));
    if (here > value) {
      value = here;
      best = at;
    }
    ++step;
    ++steps;
    const double length_of_step =
        kFirstStep *
        std::pow(kLastStep / kFirstStep, static_cast<double>(step) / static_cast<double>(length));
    const double mean_weight = 1 - std::pow(kMean, static_cast<double>(step));
    const double squares_weight = 1 - std::pow(kSquares, static_cast<double>(step));
    for (size_t i = 0; i < at.size(); ++i) {
      const double slope = gradient[i] * scales[i];
      mean[i] = kMean * mean[i] + (1 - kMean) * slope;
      squares[i] = kSquares * squares[i] + (1 - kSquares) * slope * slope;
      if (squares[i] == 0) continue;
      at[i] += length_of_step * scales[i] * (mean[i] / mean_weight) /
               std::sqrt(squares[i] / squares_weight);
    }
  }

  const Program& program;
  const Hardware& hardware;
  Dual dual;
  double instruction_ps = 1;  // in the mean
  std::vector<double> at, best, gradient, mean, squares, scales;
  double value = -std::numeric_limits<double>::infinity(), value_before = value;
  int64_t round = 0, length = 0, step = 0, steps = 0;  // step: of the round
  bool converged = false;
};

LagrangianAscent::LagrangianAscent(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
LagrangianAscent::LagrangianAscent(LagrangianAscent&&) noexcept = default;
LagrangianAscent::~LagrangianAscent() = default;

absl::StatusOr<LagrangianAscent> LagrangianAscent::Create(const CostModel& cost_model,
                                                          int64_t least_bytes) {
  MG_ASSIGN_OR_RETURN(const PlacementPrices placements, PricePlacements(cost_model, kMaxSlots));
  return LagrangianAscent(std::make_unique<Impl>(cost_model, placements, least_bytes));
}

bool LagrangianAscent::Run(const Deadline& deadline) {
  Impl& impl = *impl_;
  while (!impl.converged && !deadline.Passed()) {
    if (impl.step == 0) impl.BeginRound();
    impl.Step();
    if (impl.step < impl.length) continue;
    impl.converged =
        impl.round >= 2 && impl.value - impl.value_before < kGain * std::abs(impl.value);
    impl.step = 0;
    ++impl.round;
  }
  return impl.converged;
}

double LagrangianAscent::value_ps() const { return impl_->value; }
int64_t LagrangianAscent::steps() const { return impl_->steps; }

std::vector<int64_t> LagrangianAscent::multipliers() const {
  return impl_->dual.Rounded(impl_->best);
}

absl::StatusOr<int64_t> LagrangianAscent::ProvenPs(absl::Span<const int64_t> multipliers) const {
  return impl_->dual.Exact(multipliers);
}

Prices LagrangianAscent::prices() const {
  Prices prices;
  impl_->dual.TickPrices(impl_->best, prices.space_ps_per_byte, prices.channel_ps_per_ps);
  return prices;
}

}  // namespace mallocgame
