// Tries the placements of one instruction at a time. Fast memory is sometimes slower, so only
// placements that do not fit can be left out.
#include "mallocgame/solvers/bounds.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "mallocgame/base/error.h"

namespace mallocgame {
namespace {

class Pricer {
 public:
  explicit Pricer(const CostModel& cost_model)
      : cost_model_(cost_model), program_(cost_model.program()), hardware_(cost_model.hardware()) {}

  void AddRows(Tick tick, int max_slots, PlacementPrices& prices) const {
    const std::vector<int> slots = PlaceableSlots(tick);
    const size_t told_apart = std::min<size_t>(slots.size(), max_slots);
    uint64_t decided = 0;
    for (size_t i = 0; i < told_apart; ++i) decided |= uint64_t{1} << slots[i];
    const size_t first = prices.rows.size();
    if (slots.size() > kMaxEnumeratedSlots) {
      decided = 0;
      const int64_t time = FloorPs(tick);
      prices.rows.push_back({tick, 0, time, time, false});
    } else {
      Enumerate(tick, slots, told_apart, prices.rows);
    }
    if (program_.instruction(tick).plain_copy) {
      AddReplaced(tick, first, decided, prices.rows);
      decided |= 3;
    }
    prices.decided.push_back(decided);
  }

 private:
  int64_t SizeOf(Tick tick, int slot) const {
    const size_t access = program_.instruction(tick).first_access + slot;
    return program_.buffer(program_.accesses()[access].buffer).size_bytes;
  }
  int64_t Capacity(Tick tick) const {
    return hardware_.fast_bytes - program_.instruction(tick).reserved_bytes;
  }

  bool CanBeFast(Tick tick, int slot) const {
    const AccessId access(program_.instruction(tick).first_access + slot);
    return SizeOf(tick, slot) <= Capacity(tick) && !program_.in_main_only(access);
  }

  // The slots that the price depends on and that can be in fast memory, the largest first.
  std::vector<int> PlaceableSlots(Tick tick) const {
    const InstructionCost& cost = program_.cost().instructions[tick];
    if (program_.cost().has_prices() && cost.pool < 0 && !cost.kernel) return {};
    uint64_t used = 0;
    for (const std::vector<CostArray>* arrays : {&cost.operands, &cost.outputs}) {
      for (const CostArray& array : *arrays) {
        if (array.slot >= 0 && CanBeFast(tick, array.slot)) used |= uint64_t{1} << array.slot;
      }
    }
    std::vector<int> slots;
    for (; used != 0; used &= used - 1) slots.push_back(std::countr_zero(used));
    std::stable_sort(slots.begin(), slots.end(),
                     [&](int a, int b) { return SizeOf(tick, a) > SizeOf(tick, b); });
    return slots;
  }

  // Adds a row for each placement of the first `told_apart` slots, with the least time and the
  // least use of the channel over all placements of the rest. The two may be of different
  // placements.
  void Enumerate(Tick tick, absl::Span<const int> slots, size_t told_apart,
                 std::vector<PlacementPrice>& rows) const {
    const size_t rest = slots.size() - told_apart;
    for (uint64_t own = 0; own < uint64_t{1} << told_apart; ++own) {
      PlacementPrice row = {tick, 0, 0, 0, false};
      int64_t bytes = 0;
      if (!Place(tick, slots.subspan(0, told_apart), own, row.fast, bytes)) continue;
      int64_t least_busy = 0;
      bool any = false;
      for (uint64_t other = 0; other < uint64_t{1} << rest; ++other) {
        uint64_t fast = row.fast;
        int64_t all_bytes = bytes;
        if (!Place(tick, slots.subspan(told_apart), other, fast, all_bytes)) continue;
        const Price price = cost_model_.PriceOf(tick, fast);
        const int64_t busy = price.time_ps - price.idle_ps;
        row.time_ps = any ? std::min(row.time_ps, price.time_ps) : price.time_ps;
        least_busy = any ? std::min(least_busy, busy) : busy;
        any = true;
      }
      row.idle_ps = row.time_ps - least_busy;
      rows.push_back(row);  // `other` = 0 fits wherever `own` does
    }
  }

  // Adds the chosen slots to `fast` and their sizes to `bytes`; false if they do not fit.
  bool Place(Tick tick, absl::Span<const int> slots, uint64_t chosen, uint64_t& fast,
             int64_t& bytes) const {
    for (; chosen != 0; chosen &= chosen - 1) {
      const int slot = slots[std::countr_zero(chosen)];
      bytes += SizeOf(tick, slot);  // at most 2^48 each, 64 of them
      fast |= uint64_t{1} << slot;
    }
    return fast == 0 || bytes <= Capacity(tick);
  }

  // The replaced row says where slots 0 and 1 lie, so the other rows must say so as well: each is
  // split by those of the two that it left open.
  void AddReplaced(Tick tick, size_t first, uint64_t decided,
                   std::vector<PlacementPrice>& rows) const {
    const std::vector<PlacementPrice> before(rows.begin() + static_cast<std::ptrdiff_t>(first),
                                             rows.end());
    uint64_t open = 0;
    for (int slot = 0; slot < 2; ++slot) {
      if ((decided >> slot & 1) == 0 && CanBeFast(tick, slot)) open |= uint64_t{1} << slot;
    }
    for (uint64_t more = open; more != 0; more = (more - 1) & open) {
      for (PlacementPrice row : before) {
        row.fast |= more;
        int64_t bytes = 0;
        for (int slot = 0; slot < 2; ++slot) bytes += row.fast >> slot & 1 ? SizeOf(tick, slot) : 0;
        if (bytes <= Capacity(tick)) rows.push_back(row);
      }
    }
    rows.push_back({tick, 2, 0, 0, true});
  }

  // A time that no placement beats: a profile never predicts less than its cheapest row, and a
  // roofline moves every byte at one of three rates.
  int64_t FloorPs(Tick tick) const {
    const InstructionCost& cost = program_.cost().instructions[tick];
    if (program_.cost().has_prices() && !cost.kernel) {
      const std::vector<CostRow>& rows = program_.cost().pools[cost.pool].rows;
      const auto least =
          std::min_element(rows.begin(), rows.end(),
                           [](const CostRow& a, const CostRow& b) { return a.cycles < b.cycles; });
      return hardware_.CyclesToPs(least->cycles);
    }
    Hardware best = hardware_;
    best.main_bytes_per_second =
        std::max({hardware_.main_bytes_per_second, hardware_.fast_read_bytes_per_second,
                  hardware_.fast_write_bytes_per_second});
    int64_t bytes = 0;  // at most 2^48 each, 128 of them
    for (const std::vector<CostArray>* arrays : {&cost.operands, &cost.outputs}) {
      for (const CostArray& array : *arrays) bytes += array.accessed_bytes;
    }
    return best.TransferPs(bytes);
  }

  const CostModel& cost_model_;
  const Program& program_;
  const Hardware& hardware_;
};

}  // namespace

absl::StatusOr<PlacementPrices> PricePlacements(const CostModel& cost_model, int max_slots) {
  MG_RETURN_IF_ERROR(ValidateHardware(cost_model.hardware()));
  if (max_slots < 0 || max_slots > kMaxEnumeratedSlots) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_slots: found ", max_slots, ", allowed are 0 to ", kMaxEnumeratedSlots));
  }
  const Pricer pricer(cost_model);
  PlacementPrices prices;
  for (Tick tick = 0; tick < cost_model.program().ticks(); ++tick)
    pricer.AddRows(tick, max_slots, prices);
  return prices;
}

absl::StatusOr<int64_t> NoContentionPs(const CostModel& cost_model) {
  MG_ASSIGN_OR_RETURN(const PlacementPrices prices, PricePlacements(cost_model, 0));
  const Program& program = cost_model.program();
  std::vector<int64_t> least(program.ticks(), std::numeric_limits<int64_t>::max());
  for (const PlacementPrice& row : prices.rows) {
    int64_t& time = least[row.tick];
    time = std::min(time, row.time_ps);
  }
  int64_t total = 0;
  for (Tick tick = 0; tick < program.ticks(); ++tick) {
    int64_t all_trips = 0;
    if (__builtin_mul_overflow(least[tick], program.trips(tick), &all_trips) ||
        __builtin_add_overflow(total, all_trips, &total)) {
      return absl::InvalidArgumentError(
          absl::StrCat("program '", program.name(), "' on hardware '", cost_model.hardware().name,
                       "': the bound exceeds ", std::numeric_limits<int64_t>::max(), " ps"));
    }
  }
  return total;
}

}  // namespace mallocgame
