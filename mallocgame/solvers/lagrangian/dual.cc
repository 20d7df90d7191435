#include "mallocgame/solvers/lagrangian/dual.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"

namespace mallocgame::lagrangian {
namespace {

constexpr int64_t kPsPerSecond = 1'000'000'000'000;
// What a picosecond, all of a stall's price, and a picosecond of copies come to in units of integer
// values, multipliers and copies. In floating point they are 1.
constexpr int64_t kOne = int64_t{1} << 40, kShare = int64_t{1} << 30;
template <class T>
constexpr T One() {
  return std::is_floating_point_v<T> ? T(1) : T(kOne);
}
template <class T>
constexpr T Share() {
  return std::is_floating_point_v<T> ? T(1) : T(kShare);
}
template <class T>
constexpr T CopyUnits() {
  return std::is_floating_point_v<T> ? T(1) : T(kCopyUnits);
}
// Units of the value in those of integer multipliers.
constexpr int64_t kPrices = int64_t{1} << 10, kBytes = int64_t{1} << 30;  // of kOne
constexpr int64_t kOfPrice = kOne / kPrices, kOfByte = kOne / kBytes;
// Larger integer multipliers aren't allowed: sums of what is paid at them keep to 128 bits.
constexpr int64_t kMost = int64_t{1} << 60, kMostOfByte = int64_t{1} << 50;

}  // namespace

Dual::Dual(const CostModel& cost_model, const PlacementPrices& prices, int64_t least_bytes)
    : program_(cost_model.program()), hardware_(cost_model.hardware()), levels_(program_) {
  const size_t accesses = program_.accesses().size();
  served_.assign(accesses, -1);
  replaced_.assign(accesses, -1);
  std::vector<uint8_t> serves(accesses, 0);
  std::vector<bool> is_written(program_.buffers().size());
  for (size_t i = 0; i < accesses; ++i) {
    const Access& access = program_.accesses()[i];
    const bool writes = access.kind == AccessKind::kUpdate || access.kind == AccessKind::kWrite;
    if (writes && program_.in_main_only(AccessId(static_cast<int64_t>(i)))) serves[i] = kByMain;
    if (access.kind != AccessKind::kRead) is_written[access.buffer.index()] = true;
  }
  rows_of_.resize(program_.ticks());
  size_t row = 0;
  for (Tick tick = 0; tick < program_.ticks(); ++tick) {
    AddInstruction(tick, prices, row, serves, is_written, least_bytes);
  }
  paths_ = FindPaths(program_, levels_, serves, least_bytes, hardware_);
  space_.assign(program_.ticks(), -1);
  for (Tick tick = 0; tick < program_.ticks(); ++tick) {
    if (levels_.loop_ending_at(tick) < 0) space_[tick] = Add({Relaxed::kSpace, tick});
  }
  channel_.resize(levels_.positions());
  for (int32_t p = 0; p < levels_.positions(); ++p) channel_[p] = Add({Relaxed::kChannel, p});
  arrival_.assign(levels_.positions(), -1);
  for (Tick tick = 0; tick < program_.ticks(); ++tick) {
    // While a loop runs copies may arrive in many instructions.
    const int32_t behind = levels_.point(tick) + 1;
    const bool loop = levels_.loop_ending_at(tick) >= 0 ||
                      program_.instruction(tick).kind == InstructionKind::kLoopEntry;
    if (!loop) arrival_[behind] = Add({Relaxed::kArrival, behind});
  }
  preload_ = Add({Relaxed::kPreload, 0});
  MakeForest();
}

int32_t Dual::Add(const Multiplier& multiplier) {
  multipliers_.push_back(multiplier);
  return static_cast<int32_t>(multipliers_.size() - 1);
}

void Dual::AddInstruction(Tick tick, const PlacementPrices& prices, size_t& row,
                          std::vector<uint8_t>& serves, const std::vector<bool>& is_written,
                          int64_t least_bytes) {
  const size_t begin = row;
  while (row < prices.rows.size() && prices.rows[row].tick == tick) ++row;
  const Instruction& instruction = program_.instruction(tick);
  const uint64_t decided = row - begin > 1 ? prices.decided[tick] : 0;
  Rows& own = rows_of_[tick];
  own.first = static_cast<int32_t>(rows_.size());
  std::vector<int> slots;
  for (uint64_t rest = decided; rest != 0; rest &= rest - 1)
    slots.push_back(std::countr_zero(rest));
  const int64_t trips = program_.trips(tick);
  for (size_t i = begin; i < row; ++i) {
    const PlacementPrice& price = prices.rows[i];
    Row placement = {price.time_ps * trips, trips == 0 ? 0 : price.idle_ps, 0, price.replaced};
    for (size_t s = 0; s < slots.size(); ++s) {
      if ((price.fast >> slots[s] & 1) != 0) placement.fast |= 1U << s;
    }
    rows_.push_back(placement);
  }
  own.last = static_cast<int32_t>(rows_.size());
  for (size_t s = 0; s < slots.size(); ++s) {
    const int32_t access = instruction.first_access + slots[s];
    const BufferId buffer = program_.accesses()[access].buffer;
    const int64_t bytes = program_.buffer(buffer).size_bytes;
    const bool matters = bytes >= least_bytes && bytes <= hardware_.fast_bytes;
    uint8_t by = 0;
    int64_t saves = hardware_.TransferPs(bytes) * trips;
    std::vector<int64_t> time(size_t{1} << slots.size(), -1);  // by what is in fast memory
    for (int32_t i = own.first; i < own.last; ++i) {
      const Row& own_row = rows_[i];
      by |= own_row.replaced ? kByReplacing : (own_row.fast >> s & 1) != 0 ? kByFast : kByMain;
      if (own_row.replaced) continue;
      time[own_row.fast] = own_row.time_ps;
      const int64_t other = time[own_row.fast ^ 1U << s];
      if (other >= 0) saves = std::max(saves, std::abs(own_row.time_ps - other));
    }
    if (serves[access] == kByMain) by &= kByMain | kByReplacing;
    serves[access] = by;
    const auto scale = static_cast<double>(saves);
    if (matters && (by & kByFast) != 0 && by != kByFast)
      served_[access] = Add({Relaxed::kServed, access, is_written[buffer.index()], scale});
    if (matters && (by & kByReplacing) != 0)
      replaced_[access] = Add({Relaxed::kReplaced, access, true, scale});
    own.accesses.push_back(access);
    if ((by & kByReplacing) != 0) own.replaced.push_back(access);
  }
}

void Dual::Project(absl::Span<double> at) const {
  for (size_t i = 0; i < multipliers_.size(); ++i) {
    if (!multipliers_[i].is_signed) at[i] = std::max(at[i], 0.0);
  }
  std::vector<double> around(levels_.levels().size(), 0.0);
  for (size_t l = 0; l < levels_.levels().size(); ++l) {
    const Level& level = levels_.levels()[l];
    if (level.parent >= 0) around[l] = around[level.parent] + at[channel_[level.exit]];
    for (int32_t p = level.first; p <= level.last; ++p) {
      double& channel = at[channel_[p]];
      const double most = std::max(0.0, 1.0 - around[l]);
      if (arrival_[p] < 0) {
        channel = std::min(channel, most);
        continue;
      }
      double& arrival = at[arrival_[p]];
      const double excess = channel + arrival - most;
      if (excess <= 0) continue;
      channel -= std::clamp(excess / 2, std::min(channel, excess - arrival), channel);
      arrival = std::clamp(most - channel, 0.0, arrival);
    }
  }
}

template <class T>
PathPrices<T> Dual::PricesAt(const std::vector<T>& at) const {
  PathPrices<T> prices;
  const size_t accesses = program_.accesses().size();
  prices.served.assign(accesses, T(0));
  prices.replaced.assign(accesses, T(0));
  for (size_t i = 0; i < accesses; ++i) {
    if (served_[i] >= 0) prices.served[i] = at[served_[i]];
    if (replaced_[i] >= 0) prices.replaced[i] = at[replaced_[i]];
  }
  prices.preload = at[preload_];
  const std::vector<Level>& levels = levels_.levels();
  // What copies in a level pay for the time that loops around it lend, and its share of a stall.
  std::vector<T> lent(levels.size(), T(0)), around(levels.size(), T(0));
  prices.evict.assign(levels_.positions(), T(0));
  prices.prefetch = prices.written = prices.evict;
  std::vector<T> point(levels_.positions(), T(0));  // of a byte
  for (size_t l = 0; l < levels.size(); ++l) {
    const Level& level = levels[l];
    if (level.parent >= 0) {
      const T share = at[channel_[level.exit]];
      around[l] = around[level.parent] + share;
      lent[l] = (lent[level.parent] + T(level.parent_trips) * share) * T(level.passes);
    }
    for (int32_t p = level.first; p <= level.last; ++p) {
      const T arrival = arrival_[p] < 0 ? T(0) : at[arrival_[p]] * T(level.trips);
      prices.evict[p] = T(level.trips) * at[channel_[p]] + lent[l];
      prices.prefetch[p] = prices.evict[p] + arrival;
      // Only a stall has time for it.
      prices.written[p] =
          std::max(prices.evict[p],
                   lent[l] + T(level.trips) * (Share<T>() - around[l]) - StallTime(arrival));
      if (arrival_[p] >= 0) point[p - 1] = ByteTime(arrival);
    }
  }
  for (Tick tick = 0; tick < program_.ticks(); ++tick) {
    if (space_[tick] >= 0) point[levels_.point(tick)] += at[space_[tick]];
  }
  // What lies in fast memory at the end of a loop lies there all the time.
  for (size_t l = levels.size(); l-- > 1;) {
    for (int32_t p = levels[l].first; p < levels[l].last; ++p) point[levels[l].exit] += point[p];
  }
  prices.space.assign(levels_.positions() + 1, T(0));
  for (int32_t p = 0; p < levels_.positions(); ++p)
    prices.space[p + 1] = prices.space[p] + point[p];
  return prices;
}

template <class T>
Dual::Cheap<T> Dual::CheapestRows(Tick tick, int32_t access, const PathPrices<T>& prices) const {
  const Rows& own = rows_of_[tick];
  const T channel = prices.evict[levels_.point(tick) + 1];
  std::vector<T>& sums = std::get<std::vector<T>>(sums_);  // of prices, by what is in fast memory
  sums.resize(std::max(sums.size(), size_t{1} << own.accesses.size()));
  sums[0] = T(0);
  uint32_t bit = 0;
  for (size_t s = 0; s < own.accesses.size(); ++s) {
    if (own.accesses[s] == access) bit = 1U << s;
    const T price = prices.served[own.accesses[s]];
    for (size_t i = 0; i < size_t{1} << s; ++i) sums[i + (size_t{1} << s)] = sums[i] + price;
  }
  T replaced = T(0);
  for (const int32_t a : own.replaced) replaced += prices.replaced[a];
  const T none = Infinite<T>();
  Cheap<T> cheap = {{none, none, none}, {-1, -1, -1}};
  for (int32_t i = own.first; i < own.last; ++i) {
    const Row& row = rows_[i];
    const T cost = T(row.time_ps) * One<T>() - channel * (T(row.idle_ps) * CopyUnits<T>()) +
                   (row.replaced ? replaced : sums[row.fast]);
    const int by = access < 0 ? 0 : row.replaced ? 2 : (row.fast & bit) != 0 ? 1 : 0;
    if (cost < cheap.cost[by]) {
      cheap.cost[by] = cost;
      cheap.row[by] = i;
    }
  }
  return cheap;
}

std::vector<int64_t> Dual::Rounded(absl::Span<const double> at) const {
  std::vector<int64_t> rounded(at.size());
  // What rounding an arrival's price up comes to, in units of a share, and one for each product.
  const auto margin = static_cast<double>(hardware_.main_bytes_per_second) * 1e-12 + 4;
  for (size_t i = 0; i < at.size(); ++i) {
    double value = at[i];
    switch (multipliers_[i].relaxed) {
      case Relaxed::kServed:
      case Relaxed::kReplaced:
      case Relaxed::kPreload: value *= static_cast<double>(kPrices); break;
      case Relaxed::kSpace:
        value *= static_cast<double>(kBytes) / static_cast<double>(hardware_.fast_bytes);
        break;
      case Relaxed::kChannel: value *= static_cast<double>(kShare); break;
      case Relaxed::kArrival: value = value * static_cast<double>(kShare) - 2 * margin; break;
    }
    const auto most =
        static_cast<double>(multipliers_[i].relaxed == Relaxed::kSpace ? kMostOfByte : kMost);
    value = std::clamp(value, multipliers_[i].is_signed ? -most : 0.0, most);
    rounded[i] = static_cast<int64_t>(std::floor(value));
  }
  return rounded;
}

absl::StatusOr<int64_t> Dual::Exact(absl::Span<const int64_t> at) const {
  if (at.size() != multipliers_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("multipliers: found ", at.size(), ", needed ", multipliers_.size()));
  }
  std::vector<Int128> exact(at.size());
  for (size_t i = 0; i < at.size(); ++i) {
    const Multiplier& own = multipliers_[i];
    const int64_t most = own.relaxed == Relaxed::kSpace ? kMostOfByte : kMost;
    if (at[i] > most || at[i] < (own.is_signed ? -most : 0)) {
      return absl::InvalidArgumentError(absl::StrCat("multipliers[", i, "]: found ", at[i],
                                                     ", allowed are ", own.is_signed ? -most : 0,
                                                     " to ", most));
    }
    exact[i] = at[i];
    if (own.relaxed == Relaxed::kSpace) exact[i] *= kOfByte;
    if (own.relaxed == Relaxed::kServed || own.relaxed == Relaxed::kReplaced ||
        own.relaxed == Relaxed::kPreload) {
      exact[i] *= kOfPrice;
    }
  }
  MG_RETURN_IF_ERROR(CheckStalls(exact));
  const PathPrices<Int128> prices = PricesAt<Int128>(exact);
  Int128 value = 0;
  Cheapest<Int128> cheapest(paths_, prices);
  Way<Int128> way;
  for (const BufferSteps& buffer : paths_.buffers) {
    cheapest.Find(buffer, -1, 0, way);
    value += way.cost;
  }
  for (Tick tick = 0; tick < program_.ticks(); ++tick) {
    const Cheap<Int128> cheap = CheapestRows<Int128>(tick, -1, prices);
    if (cheap.row[0] >= 0) value += cheap.cost[0];
    if (space_[tick] < 0) continue;
    const int32_t behind = levels_.point(tick) + 1;
    Int128 byte = exact[space_[tick]];
    if (arrival_[behind] >= 0)
      byte += ByteTime(exact[arrival_[behind]] * levels_.level_of(tick).trips);
    value -= byte * Room(tick);
  }
  value -= exact[preload_] * hardware_.max_preloads;
  const Int128 whole = value < 0 ? Int128{0} : (value + kOne - 1) / kOne;  // latencies are integers
  return static_cast<int64_t>(std::min<Int128>(whole, std::numeric_limits<int64_t>::max()));
}

// A stall costs no less than the prices of all that it is good for.
absl::Status Dual::CheckStalls(const std::vector<Int128>& at) const {
  const std::vector<Level>& levels = levels_.levels();
  std::vector<Int128> around(levels.size(), 0);
  for (size_t l = 0; l < levels.size(); ++l) {
    const Level& level = levels[l];
    if (level.parent >= 0) around[l] = around[level.parent] + at[channel_[level.exit]];
    for (int32_t p = level.first; p <= level.last; ++p) {
      Int128 paid = at[channel_[p]] * level.trips;
      if (arrival_[p] >= 0) paid += StallTime(at[arrival_[p]] * level.trips);
      if (paid <= (kShare - around[l]) * level.trips) continue;
      return absl::InvalidArgumentError(absl::StrCat(
          "multipliers[", channel_[p], "]: found ", static_cast<int64_t>(at[channel_[p]]),
          ", which with that of arrivals and those of the loops around is more than ", kShare));
    }
  }
  return absl::OkStatus();
}

void Dual::TickPrices(absl::Span<const double> at, std::vector<double>& space,
                      std::vector<double>& channel) const {
  const PathPrices<double> prices = PricesAt<double>(ByByte(at));
  for (Tick tick = 0; tick < program_.ticks(); ++tick) {
    const int32_t point = levels_.point(tick);
    space.push_back(prices.space[point + 1] - prices.space[point]);
    channel.push_back(prices.evict[point + 1]);
  }
}

std::vector<double> Dual::ByByte(absl::Span<const double> at) const {
  std::vector<double> by_byte(at.begin(), at.end());
  for (const int32_t m : space_) {
    if (m >= 0) by_byte[m] /= static_cast<double>(hardware_.fast_bytes);
  }
  return by_byte;
}

int64_t Dual::Room(Tick tick) const {
  return std::max<int64_t>(0, hardware_.fast_bytes - program_.instruction(tick).reserved_bytes);
}

// The price of a byte where that of a unit of copies is given, rounded up.
Int128 Dual::ByteTime(Int128 price) const {
  const Int128 bandwidth = hardware_.main_bytes_per_second;
  return (price * kCopyUnits * kPsPerSecond + bandwidth - 1) / bandwidth;
}
double Dual::ByteTime(double price) const {
  return price * static_cast<double>(kPsPerSecond) /
         static_cast<double>(hardware_.main_bytes_per_second);
}

// The price of the bytes of a unit of copies, where ByteTime gives that of a byte, rounded up.
Int128 Dual::StallTime(Int128 price) const {
  const Int128 units = Int128{kCopyUnits} * kPsPerSecond;
  return (ByteTime(price) * hardware_.main_bytes_per_second + units - 1) / units;
}

template PathPrices<double> Dual::PricesAt(const std::vector<double>&) const;
template Dual::Cheap<double> Dual::CheapestRows(Tick, int32_t, const PathPrices<double>&) const;

}  // namespace mallocgame::lagrangian
