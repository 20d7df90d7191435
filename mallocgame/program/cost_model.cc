// The bits of a placement, the profile's predictor and the roofline.
#include "mallocgame/program/cost_model.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace mallocgame {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

int64_t AddSaturated(int64_t a, int64_t b) { return a > kMax - b ? kMax : a + b; }

// `amount` at `per_second`, in picoseconds, rounded up.
int64_t RatePs(int64_t amount, int64_t per_second) {
  __extension__ using Wide = unsigned __int128;
  constexpr Wide kPsPerSecond = 1'000'000'000'000;
  const Wide rate = static_cast<Wide>(per_second);
  const Wide ps = (static_cast<Wide>(amount) * kPsPerSecond + rate - 1) / rate;
  return ps > static_cast<Wide>(kMax) ? kMax : static_cast<int64_t>(ps);
}

bool IsFast(const CostArray& array, uint64_t fast_slots) {
  return array.slot >= 0 && (fast_slots >> array.slot & 1) != 0;
}
bool IsMain(const CostArray& array, uint64_t fast_slots) {
  return array.slot >= 0 ? (fast_slots >> array.slot & 1) == 0 : array.in_main;
}

uint64_t FastBits(absl::Span<const CostArray> arrays, uint64_t fast_slots) {
  uint64_t bits = 0;
  for (size_t i = 0; i < arrays.size(); ++i) bits |= uint64_t{IsFast(arrays[i], fast_slots)} << i;
  return bits;
}

// Which bits of a row carry information about these arrays.
struct Masks {
  uint64_t movable = 0;  // arrays that a plan can place
  uint64_t large = 0;    // those of at least kSmallArrayBytes
};
Masks MasksOf(absl::Span<const CostArray> arrays) {
  Masks masks;
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (arrays[i].slot < 0) continue;
    masks.movable |= uint64_t{1} << i;
    if (arrays[i].size_bytes >= kSmallArrayBytes) masks.large |= uint64_t{1} << i;
  }
  return masks;
}

double BytesOf(absl::Span<const CostArray> arrays, uint64_t bits) {
  double bytes = 0;
  for (; bits != 0; bits &= bits - 1) {
    bytes += static_cast<double>(arrays[std::countr_zero(bits)].size_bytes);
  }
  return bytes;
}

// Ordinary kriging: the weighted mean of the nearest rows that has the least expected error, given
// that prices are the more alike, the more bytes lie in the same memory. Rows that agree in all
// movable arrays count as one. This file is compiled without fused multiply-add, so that the result
// is the same on every machine.
class Kriging {
 public:
  Kriging(const InstructionCost& cost, uint64_t operand_mask, uint64_t output_mask)
      : cost_(cost), operand_mask_(operand_mask), output_mask_(output_mask),
        all_(Bytes(~uint64_t{0}, ~uint64_t{0})) {}

  // Predicts from rows that all differ from `wanted` in a movable array.
  double Predict(absl::Span<const CostRow> rows, const CostRow& wanted) const {
    std::vector<std::pair<double, const CostRow*>> nearest;
    for (const CostRow& row : rows) nearest.emplace_back(Distance(row, wanted), &row);
    std::sort(nearest.begin(), nearest.end());
    if (nearest.size() > kMostRows) nearest.resize(kMostRows);
    const size_t n = nearest.size();
    Matrix factor{};  // lower triangle: the Cholesky factor of the matrix of the rows' likeness
    Vector likeness{}, ones{}, cycles{};
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j <= i; ++j) {
        double rest =
            i == j ? 1 + kNoise : Likeness(Distance(*nearest[i].second, *nearest[j].second));
        for (size_t k = 0; k < j; ++k) rest -= factor[i][k] * factor[j][k];
        factor[i][j] = i == j ? std::sqrt(rest) : rest / factor[j][j];
      }
      likeness[i] = Likeness(nearest[i].first), ones[i] = 1,
      cycles[i] = static_cast<double>(nearest[i].second->cycles);
    }
    const auto [least, most] =
        std::minmax_element(cycles.begin(), cycles.begin() + static_cast<std::ptrdiff_t>(n));
    const double lowest = *least, highest = *most;
    for (Vector* side : {&likeness, &ones, &cycles}) Divide(*side, factor, n);
    const double mean = Product(ones, cycles, n) / Product(ones, ones, n);
    const double predicted =
        mean + Product(likeness, cycles, n) - mean * Product(likeness, ones, n);
    return std::clamp(predicted, lowest, highest);
  }

 private:
  static constexpr size_t kMostRows = 12;   // more rows change no prediction
  static constexpr double kOfOutput = 0.5;  // an output's memory matters less than an operand's
  static constexpr double kNoise = 1e-9;    // keeps apart rows that differ in no movable array
  using Vector = std::array<double, kMostRows>;
  using Matrix = std::array<Vector, kMostRows>;

  static double Likeness(double distance) { return 4 / (4 + distance); }

  // Solves factor * x = side for x, in place; `factor` is lower triangular.
  static void Divide(Vector& side, const Matrix& factor, size_t n) {
    for (size_t i = 0; i < n; ++i) {
      for (size_t k = 0; k < i; ++k) side[i] -= factor[i][k] * side[k];
      side[i] /= factor[i][i];
    }
  }

  static double Product(const Vector& a, const Vector& b, size_t n) {
    return std::inner_product(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(n), b.begin(),
                              0.0);
  }

  double Bytes(uint64_t operands, uint64_t outputs) const {
    return BytesOf(cost_.operands, operands & operand_mask_) +
           kOfOutput * BytesOf(cost_.outputs, outputs & output_mask_);
  }

  // The share of the bytes that lie in different memories in `a` and `b`.
  double Distance(const CostRow& a, const CostRow& b) const {
    return Bytes(a.operands ^ b.operands, a.outputs ^ b.outputs) / all_;
  }

  const InstructionCost& cost_;
  const uint64_t operand_mask_, output_mask_;
  const double all_;
};

}  // namespace

PredictedCycles PredictCycles(const InstructionCost& cost, absl::Span<const CostRow> rows,
                              uint64_t operands, uint64_t outputs) {
  const Masks in = MasksOf(cost.operands), out = MasksOf(cost.outputs);
  const CostRow* exact = nullptr;
  // The row's bits that are set for arrays that never move. These lie in main memory, so the row
  // with the fewest fits best.
  int exact_extra = 0;
  const CostRow* close = nullptr;
  double close_bytes = 0;
  for (const CostRow& row : rows) {
    const uint64_t in_diff = row.operands ^ operands, out_diff = row.outputs ^ outputs;
    if ((in_diff & in.large) != 0 || (out_diff & out.large) != 0) continue;
    if ((in_diff & in.movable) == 0 && (out_diff & out.movable) == 0) {
      const int extra =
          std::popcount(row.operands & ~in.movable) + std::popcount(row.outputs & ~out.movable);
      if (exact == nullptr || extra < exact_extra) exact = &row, exact_extra = extra;
    } else if (exact == nullptr) {
      const double bytes = BytesOf(cost.operands, in_diff & in.movable) +
                           BytesOf(cost.outputs, out_diff & out.movable);
      if (close == nullptr || bytes < close_bytes) close = &row, close_bytes = bytes;
    }
  }
  if (exact != nullptr) return {exact->cycles, true};
  if (close != nullptr) return {close->cycles, false};
  const double predicted =
      Kriging(cost, in.movable, out.movable).Predict(rows, {operands, outputs, 0});
  return {predicted < 0x1p62 ? std::llround(predicted) : int64_t{1} << 62, false};
}

bool RunFits(const CostModel& cost_model) {
  const Program& program = cost_model.program();
  int64_t total = 0;
  bool fits = true;
  const auto add = [&](int64_t time, Tick t) {
    int64_t of_all_trips = 0;
    fits = fits && !__builtin_mul_overflow(time, program.trips(t), &of_all_trips) &&
           !__builtin_add_overflow(total, of_all_trips, &total) && total <= kMaxRunPs;
  };
  for (Tick t = 0; t < program.ticks(); ++t)
    add(std::max(cost_model.PriceOf(t, 0).time_ps, cost_model.PriceOf(t, ~uint64_t{0}).time_ps), t);
  for (const Access& access : program.accesses()) {
    // Its instruction may wait for a prefetch and for an eviction.
    const int64_t copy = cost_model.hardware().CopyPs(program.buffer(access.buffer).size_bytes);
    add(copy, access.tick);
    add(copy, access.tick);
  }
  return fits;
}

int64_t FloorPs(const InstructionCost& cost, uint64_t operands, uint64_t outputs,
                const Hardware& hardware) {
  int64_t bytes = 0;
  const auto add = [&](absl::Span<const CostArray> arrays, uint64_t fast) {
    for (size_t i = 0; i < arrays.size(); ++i) {
      const CostArray& array = arrays[i];
      const bool in_main = (array.slot >= 0 || array.in_main) && (fast >> i & 1) == 0;
      if (in_main) bytes = AddSaturated(bytes, std::min(array.size_bytes, array.accessed_bytes));
    }
  };
  add(cost.operands, operands);
  add(cost.outputs, outputs);
  return hardware.TransferPs(bytes);
}

CostModel::CostModel(std::shared_ptr<const Program> program, const Hardware& hardware)
    : program_(std::move(program)), hardware_(hardware) {}

Price CostModel::PriceOf(Tick tick, uint64_t fast_slots) const {
  const CostData& data = program_->cost();
  const InstructionCost& cost = data.instructions[tick];
  Price price =
      data.has_prices() ? ProfilePrice(cost, fast_slots) : RooflinePrice(cost, fast_slots);
  if (cost.link_ps > 0) AddLinkTime(cost, fast_slots, price);
  if (program_->instruction(tick).plain_copy) price.idle_ps = 0;
  return price;
}

Price CostModel::ProfilePrice(const InstructionCost& cost, uint64_t fast_slots) const {
  if (cost.kernel) {
    Price price = RooflinePrice(cost, fast_slots);
    if (price.source == PriceSource::kRoofline) price.source = PriceSource::kKernel;
    return price;
  }
  if (cost.pool < 0) {
    if (cost.unpriced_bytes == 0) return {};
    return {hardware_.TransferPs(AddSaturated(cost.unpriced_bytes, cost.unpriced_bytes)), 0,
            PriceSource::kUnpriced};
  }
  const std::vector<CostRow>& rows = program_->cost().pools[cost.pool].rows;
  const uint64_t operands = FastBits(cost.operands, fast_slots);
  const uint64_t outputs = FastBits(cost.outputs, fast_slots);
  const PredictedCycles predicted = PredictCycles(cost, rows, operands, outputs);
  int64_t time = hardware_.CyclesToPs(predicted.cycles);
  if (!predicted.exact && program_->cost().kind == CostKind::kCalibrated) {
    time = MonotonePs(cost, rows, operands, outputs, time);
  } else if (!predicted.exact) {
    const int64_t floor = FloorPs(cost, operands, outputs, hardware_);
    const auto keeps_to_it = [&](const CostRow& row) {
      return hardware_.CyclesToPs(row.cycles) >=
             FloorPs(cost, row.operands, row.outputs, hardware_);
    };
    if (time < floor && std::all_of(rows.begin(), rows.end(), keeps_to_it)) time = floor;
  }
  if (!predicted.exact && program_->caution() > 0)
    time = CautiousPs(cost, rows, operands, outputs, time);
  return {time, std::max<int64_t>(0, time - MainTransferPs(cost, fast_slots)),
          predicted.exact ? PriceSource::kExact : PriceSource::kPredicted};
}

// Rows of calibrated prices are monotone and keep to the floor, so that nothing here contradicts.
int64_t CostModel::MonotonePs(const InstructionCost& cost, absl::Span<const CostRow> rows,
                              uint64_t operands, uint64_t outputs, int64_t time) const {
  const Masks in = MasksOf(cost.operands), out = MasksOf(cost.outputs);
  int64_t least = FloorPs(cost, operands, outputs, hardware_), most = kMax;
  for (const CostRow& row : rows) {
    const uint64_t more_in = operands & ~row.operands & in.movable,
                   more_out = outputs & ~row.outputs & out.movable,
                   less_in = row.operands & ~operands & in.movable,
                   less_out = row.outputs & ~outputs & out.movable;
    const int64_t its_time = hardware_.CyclesToPs(row.cycles);
    if (less_in == 0 && less_out == 0) most = std::min(most, its_time);
    if (more_in == 0 && more_out == 0) least = std::max(least, its_time);
  }
  // Rows that differ in arrays that never move may disagree by little; less is dearer then.
  return std::max(least, std::min(time, most));
}

int64_t CostModel::CautiousPs(const InstructionCost& cost, absl::Span<const CostRow> rows,
                              uint64_t operands, uint64_t outputs, int64_t time) const {
  const uint64_t in = MasksOf(cost.operands).large, out = MasksOf(cost.outputs).large;
  int64_t cheapest = kMax;
  for (const CostRow& row : rows) {
    if ((row.operands & ~operands & in) == 0 && (row.outputs & ~outputs & out) == 0)
      cheapest = std::min(cheapest, hardware_.CyclesToPs(row.cycles));
  }
  const int64_t least = cheapest == kMax ? time : std::max(time, cheapest);
  return AddSaturated(least, std::llround(program_->caution() * static_cast<double>(least)));
}

int64_t CostModel::MainTransferPs(const InstructionCost& cost, uint64_t fast_slots) const {
  int64_t main_bytes = 0;
  for (const std::vector<CostArray>* arrays : {&cost.operands, &cost.outputs}) {
    for (const CostArray& array : *arrays) {
      if (IsMain(array, fast_slots)) main_bytes = AddSaturated(main_bytes, array.size_bytes);
    }
  }
  return hardware_.TransferPs(main_bytes);
}

// Links take and give what lies in main memory over its channel, unless the rest of the price has
// counted these bytes already.
void CostModel::AddLinkTime(const InstructionCost& cost, uint64_t fast_slots, Price& price) const {
  const int64_t own = price.source == PriceSource::kFree ? MainTransferPs(cost, fast_slots) : 0;
  price.idle_ps = AddSaturated(price.idle_ps, std::max<int64_t>(0, cost.link_ps - own));
  price.time_ps = AddSaturated(price.time_ps, cost.link_ps);
  price.link_ps = cost.link_ps;
  if (price.source == PriceSource::kFree) price.source = PriceSource::kModelled;
}

// The formula of XLA reference 2.2 without pipeline overhead: elapsed = max(compute, Ra / BWar +
// Wa / BWaw + D / BWd) and idle = elapsed - D / BWd. Ra and Wa are the bytes read and written in
// fast memory, D those in main memory. Arrays in neither memory (scalars) go at the main-memory
// rate, but not over its channel.
Price CostModel::RooflinePrice(const InstructionCost& cost, uint64_t fast_slots) const {
  int64_t fast_read = 0, fast_written = 0, main = 0, elsewhere = 0;
  const auto add = [&](absl::Span<const CostArray> arrays, int64_t& fast) {
    for (const CostArray& array : arrays) {
      int64_t& sum = IsFast(array, fast_slots)   ? fast
                     : IsMain(array, fast_slots) ? main
                                                 : elsewhere;
      sum = AddSaturated(sum, array.accessed_bytes);
    }
  };
  add(cost.operands, fast_read);
  add(cost.outputs, fast_written);
  const int64_t compute =
      std::max(RatePs(cost.flops, hardware_.flops_per_second),
               RatePs(cost.transcendentals, hardware_.transcendentals_per_second));
  const int64_t main_ps = RatePs(main, hardware_.main_bytes_per_second);
  const int64_t memory =
      AddSaturated(AddSaturated(RatePs(fast_read, hardware_.fast_read_bytes_per_second),
                                RatePs(fast_written, hardware_.fast_write_bytes_per_second)),
                   AddSaturated(main_ps, RatePs(elsewhere, hardware_.main_bytes_per_second)));
  const int64_t elapsed = std::max(compute, memory);
  if (elapsed == 0) return {};
  return {elapsed, elapsed - main_ps, PriceSource::kRoofline};
}

}  // namespace mallocgame
