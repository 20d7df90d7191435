// Placement in, price out: the bits of a placement, the profile predictor and the roofline.
#include "mallocgame/program/cost_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

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

bool IsFast(const CostArray& array, uint64_t fast_slots) { return array.slot >= 0 && (fast_slots >> array.slot & 1) != 0; }
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
    bytes += static_cast<double>(arrays[static_cast<size_t>(std::countr_zero(bits))].size_bytes);
  }
  return bytes;
}

// Mean of the rows weighted by 1 / (bytes placed differently)^2. Every row differs in an array of kSmallArrayBytes at least, so
// no distance is zero. Each term is a quotient: there is no product plus sum that a compiler could fuse, so the result is
// the same on every machine.
int64_t WeightedMean(const InstructionCost& cost, absl::Span<const CostRow> rows, uint64_t operands, uint64_t outputs,
                     uint64_t operand_mask, uint64_t output_mask) {
  double weights = 0, weighted = 0;
  for (const CostRow& row : rows) {
    const double distance =
        BytesOf(cost.operands, (row.operands ^ operands) & operand_mask) +
        BytesOf(cost.outputs, (row.outputs ^ outputs) & output_mask);
    const double square = distance * distance;
    weights += 1 / square;
    weighted += static_cast<double>(row.cycles) / square;
  }
  const double mean = weighted / weights;
  return mean < 0x1p62 ? std::llround(mean) : int64_t{1} << 62;
}

}  // namespace

PredictedCycles PredictCycles(const InstructionCost& cost, absl::Span<const CostRow> rows, uint64_t operands,
                              uint64_t outputs) {
  const Masks in = MasksOf(cost.operands), out = MasksOf(cost.outputs);
  const CostRow* exact = nullptr;
  int exact_extra = 0;  // bits set of arrays that never move: they lie in main memory, so the fewer the better
  const CostRow* close = nullptr;
  double close_bytes = 0;
  for (const CostRow& row : rows) {
    const uint64_t in_diff = row.operands ^ operands, out_diff = row.outputs ^ outputs;
    if ((in_diff & in.large) != 0 || (out_diff & out.large) != 0) continue;
    if ((in_diff & in.movable) == 0 && (out_diff & out.movable) == 0) {
      const int extra = std::popcount(row.operands & ~in.movable) + std::popcount(row.outputs & ~out.movable);
      if (exact == nullptr || extra < exact_extra) exact = &row, exact_extra = extra;
    } else if (exact == nullptr) {
      const double bytes = BytesOf(cost.operands, in_diff & in.movable) + BytesOf(cost.outputs, out_diff & out.movable);
      if (close == nullptr || bytes < close_bytes) close = &row, close_bytes = bytes;
    }
  }
  if (exact != nullptr) return {exact->cycles, true};
  if (close != nullptr) return {close->cycles, false};
  return {WeightedMean(cost, rows, operands, outputs, in.movable, out.movable), false};
}

CostModel::CostModel(std::shared_ptr<const Program> program, const Hardware& hardware)
    : program_(std::move(program)), hardware_(hardware) {}

Price CostModel::PriceOf(Tick tick, uint64_t fast_slots) const {
  const CostData& data = program_->cost();
  const InstructionCost& cost = data.instructions[static_cast<size_t>(tick)];
  Price price = data.kind == CostKind::kProfile ? ProfilePrice(cost, fast_slots) : RooflinePrice(cost, fast_slots);
  if (program_->instruction(tick).plain_copy) price.idle_ps = 0;
  return price;
}

Price CostModel::ProfilePrice(const InstructionCost& cost, uint64_t fast_slots) const {
  if (cost.pool < 0) {
    if (cost.unpriced_bytes == 0) return {};
    return {hardware_.TransferPs(AddSaturated(cost.unpriced_bytes, cost.unpriced_bytes)), 0, PriceSource::kUnpriced};
  }
  const PredictedCycles predicted =
      PredictCycles(cost, program_->cost().pools[static_cast<size_t>(cost.pool)].rows,
                    FastBits(cost.operands, fast_slots), FastBits(cost.outputs, fast_slots));
  int64_t main_bytes = 0;
  for (const std::vector<CostArray>* arrays : {&cost.operands, &cost.outputs}) {
    for (const CostArray& array : *arrays) {
      if (IsMain(array, fast_slots)) main_bytes = AddSaturated(main_bytes, array.size_bytes);
    }
  }
  const int64_t time = hardware_.CyclesToPs(predicted.cycles);
  return {time, std::max<int64_t>(0, time - hardware_.TransferPs(main_bytes)),
          predicted.exact ? PriceSource::kExact : PriceSource::kPredicted};
}

// XLA reference 2.2 with no pipeline overhead: elapsed = max(compute, Ra / BWar + Wa / BWaw + D / BWd) and
// idle = elapsed - D / BWd. What lies in neither memory (scalars) goes at the main-memory rate but not over its channel.
Price CostModel::RooflinePrice(const InstructionCost& cost, uint64_t fast_slots) const {
  int64_t fast_read = 0, fast_written = 0, main = 0, elsewhere = 0;
  const auto add = [&](absl::Span<const CostArray> arrays, int64_t& fast) {
    for (const CostArray& array : arrays) {
      int64_t& sum = IsFast(array, fast_slots) ? fast : IsMain(array, fast_slots) ? main : elsewhere;
      sum = AddSaturated(sum, array.accessed_bytes);
    }
  };
  add(cost.operands, fast_read);
  add(cost.outputs, fast_written);
  const int64_t compute = std::max(RatePs(cost.flops, hardware_.flops_per_second),
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
