#include "mallocgame/game/order/run_prices.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

namespace mallocgame {
namespace {

// Equal pieces of the all-main time.
constexpr int kPricedPieces = 128;

class Pricing {
 public:
  explicit Pricing(const OrderTables& tables)
      : tables_(tables), arrangement_(tables.arrangement),
        usable_(std::max<int64_t>(1, arrangement_.game.usable_bytes())) {}

  Prices Find() {
    std::vector<int32_t> order(tables_.runs.size());
    std::iota(order.begin(), order.end(), 0);
    std::vector<double> worth;
    for (const Run& run : tables_.runs) worth.push_back(WorthOf(run));
    std::stable_sort(order.begin(), order.end(),
                     [&worth](int32_t a, int32_t b) { return worth[a] > worth[b]; });
    std::vector<std::vector<bool>> served;
    for (size_t b = 0; b < arrangement_.tables.buffers.size(); ++b)
      served.emplace_back(arrangement_.decisions_of(static_cast<int32_t>(b)).size());
    for (const int32_t r : order) {
      const Run& run = tables_.runs[r];
      if (!(worth[r] > 0)) break;
      std::vector<bool>& own = served[run.buffer];
      const auto first = own.begin() + run.first, end = own.begin() + run.last + 1;
      if (std::find(first, end, true) != end) continue;
      if (Fits(run, worth[r])) std::fill(first, end, true);
    }
    Prices prices;
    const std::vector<int64_t>& all_main = arrangement_.tables.all_main_before;
    for (Tick t = 0; t < arrangement_.program.ticks(); ++t)
      prices.space_ps_per_byte.push_back(price_[PieceAt(t)] *
                                         static_cast<double>(all_main[t + 1] - all_main[t]));
    return prices;
  }

 private:
  int64_t BytesOf(const Run& run) const {
    return arrangement_.tables.buffers[run.buffer].size_bytes;
  }

  // Picoseconds for each byte and picosecond held; 0 for what can't be placed or has no time of its
  // own.
  double WorthOf(const Run& run) const {
    const std::vector<int64_t>& all_main = arrangement_.tables.all_main_before;
    if (!run.placeable) return 0;
    const int64_t held = all_main[run.planned.end] - all_main[run.planned.latest_fetch];
    if (held <= 0) return 0;
    return static_cast<double>(run.saving_ps) /
           (static_cast<double>(BytesOf(run)) * static_cast<double>(held));
  }

  size_t PieceAt(Tick tick) const {
    return std::min(static_cast<size_t>(tables_.position(tick) * kPricedPieces),
                    size_t{kPricedPieces - 1});
  }

  // Takes bytes for the run if there is room; where there is none, its worth is the price.
  bool Fits(const Run& run, double worth) {
    const double begin = tables_.position(run.planned.latest_fetch) * kPricedPieces,
                 end = tables_.position(run.planned.end) * kPricedPieces;
    const double share = static_cast<double>(BytesOf(run)) / static_cast<double>(usable_);
    const auto over = [&](size_t piece) {  // what part of the piece it is held
      return share * (std::min(end, static_cast<double>(piece + 1)) -
                      std::max(begin, static_cast<double>(piece)));
    };
    const size_t first = PieceAt(run.planned.latest_fetch);
    bool fits = true;
    for (size_t p = first; p < kPricedPieces && static_cast<double>(p) < end; ++p) {
      if (taken_[p] + over(p) <= 1) continue;
      fits = false;
      price_[p] = std::max(price_[p], worth);
    }
    for (size_t p = first; fits && p < kPricedPieces && static_cast<double>(p) < end; ++p)
      taken_[p] += over(p);
    return fits;
  }

  const OrderTables& tables_;
  const ArrangementTables& arrangement_;
  const int64_t usable_;
  std::array<double, kPricedPieces> taken_ = {}, price_ = {};
};

}  // namespace

Prices RunPrices(const OrderTables& tables) { return Pricing(tables).Find(); }

}  // namespace mallocgame
