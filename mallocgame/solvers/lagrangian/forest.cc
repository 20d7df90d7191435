// The forest of a dual, and its ascent.
//
// Instructions and buffers are the nodes of a graph whose edges are accesses. At fixed prices of
// space and channel a forest of it is solved by dynamic programming from the leaves: each node sets
// the multiplier that it shares with its parent so that either choice of its parent costs it the
// same. Most accesses are in the forest, so that few multipliers are left to a supergradient.
#include <algorithm>
#include <utility>

#include "mallocgame/solvers/lagrangian/dual.h"

namespace mallocgame::lagrangian {

void Dual::MakeForest() {
  const auto buffers = static_cast<int32_t>(paths_.buffers.size());
  const int32_t ticks = program_.ticks();
  std::vector<int32_t> node_of(program_.buffers().size(), -1);
  for (int32_t i = 0; i < buffers; ++i) node_of[paths_.buffers[i].buffer.index()] = i;
  std::vector<int32_t> edges;
  for (size_t i = 0; i < served_.size(); ++i) {
    if (served_[i] >= 0 || replaced_[i] >= 0) edges.push_back(static_cast<int32_t>(i));
  }
  const auto scale = [&](int32_t a) {
    return multipliers_[served_[a] >= 0 ? served_[a] : replaced_[a]].scale_ps;
  };
  std::stable_sort(edges.begin(), edges.end(),
                   [&](int32_t a, int32_t b) { return scale(a) > scale(b); });
  std::vector<int32_t> root(buffers + ticks);
  for (int32_t i = 0; i < buffers + ticks; ++i) root[i] = i;
  const auto find = [&](int32_t i) {
    while (root[i] != i) i = root[i] = root[root[i]];
    return i;
  };
  in_forest_.assign(served_.size(), false);
  std::vector<std::vector<std::pair<int32_t, int32_t>>> neighbours(buffers + ticks);
  for (const int32_t a : edges) {
    const Access& access = program_.accesses()[a];
    const int32_t buffer = node_of[access.buffer.index()], tick = buffers + access.tick;
    if (buffer < 0) continue;
    const int32_t one = find(buffer), other = find(tick);
    if (one == other) continue;
    root[one] = other;
    in_forest_[a] = true;
    neighbours[buffer].emplace_back(tick, a);
    neighbours[tick].emplace_back(buffer, a);
  }
  std::vector<bool> seen(buffers + ticks);
  for (int32_t start = 0; start < buffers + ticks; ++start) {
    if (seen[start]) continue;
    size_t next = nodes_.size();
    seen[start] = true;
    nodes_.push_back({start < buffers, start < buffers ? start : start - buffers, -1});
    for (; next < nodes_.size(); ++next) {
      const int32_t own = nodes_[next].index + (nodes_[next].is_buffer ? 0 : buffers);
      for (const auto& [other, access] : neighbours[own]) {
        if (seen[other]) continue;
        seen[other] = true;
        nodes_.push_back({other < buffers, other < buffers ? other : other - buffers, access});
      }
    }
  }
  ways_.resize(buffers);
}

void Dual::Settle(const Node& node, const double (&cost)[3], absl::Span<double> at,
                  PathPrices<double>& prices) const {
  const double sign = node.is_buffer ? 1 : -1;
  for (int by = 1; by < 3; ++by) {
    const int32_t m = (by == 1 ? served_ : replaced_)[node.access];
    if (m < 0) continue;
    // More than any choice is worth, where the node has none.
    double price = 1e3 * multipliers_[m].scale_ps + 1e9;
    if (cost[by] > Infinite<double>() / 2) {
      price *= sign;
    } else if (cost[0] > Infinite<double>() / 2) {
      price *= -sign;
    } else {
      price = sign * (cost[by] - cost[0]);
    }
    if (!multipliers_[m].is_signed) price = std::max(price, 0.0);
    at[m] = price;
    (by == 1 ? prices.served : prices.replaced)[node.access] = price;
  }
}

double Dual::Ascend(absl::Span<double> at, absl::Span<double> gradient) {
  const size_t accesses = program_.accesses().size();
  for (size_t i = 0; i < accesses; ++i) {
    if (!in_forest_[i]) continue;
    if (served_[i] >= 0) at[served_[i]] = 0;
    if (replaced_[i] >= 0) at[replaced_[i]] = 0;
  }
  PathPrices<double> prices = PricesAt<double>(ByByte(at));
  Cheapest<double> cheapest(paths_, prices);
  std::vector<Cheap<double>> rows(program_.ticks());
  for (size_t n = nodes_.size(); n-- > 0;) {
    const Node& node = nodes_[n];
    double cost[3] = {};
    if (node.is_buffer) {
      const int ways = node.access < 0 ? 1 : replaced_[node.access] < 0 ? 2 : 3;
      for (int by = 0; by < ways; ++by) {
        Way<double>& way = ways_[node.index][by];
        cheapest.Find(paths_.buffers[node.index], node.access, static_cast<uint8_t>(1 << by), way);
        cost[by] = way.cost;
      }
    } else {
      rows[node.index] = CheapestRows<double>(node.index, node.access, prices);
      std::copy(rows[node.index].cost, rows[node.index].cost + 3, cost);
    }
    if (node.access >= 0) Settle(node, cost, at, prices);
  }
  // Now parents choose first. All choices agree but on accesses that aren't in the forest.
  Usage usage(accesses, levels_.positions());
  double value = 0;
  std::vector<uint8_t> choice(accesses, 0);
  for (const Node& node : nodes_) {
    int own = node.access < 0 ? 0 : choice[node.access];
    const auto paid = [&] {
      return own == 0 ? 0.0 : (own == 1 ? prices.served : prices.replaced)[node.access];
    };
    if (node.is_buffer) {
      Way<double>& way = ways_[node.index][own];
      value += way.cost - paid();
      usage.served_by.clear();
      cheapest.Use(paths_.buffers[node.index], way, usage);
      for (const auto& [access, by] : usage.served_by) choice[access] = by == kByFast ? 1 : 2;
      continue;
    }
    const Cheap<double>& cheap = rows[node.index];
    if (cheap.row[own] < 0) own = cheap.row[0] >= 0 ? 0 : 1;  // by rounding only
    value += cheap.cost[own] + paid();
    const Row& row = rows_[cheap.row[own]];
    UseRow(node.index, cheap.row[own], usage);
    const Rows& placements = rows_of_[node.index];
    for (size_t s = 0; s < placements.accesses.size(); ++s)
      choice[placements.accesses[s]] = row.fast >> s & 1;
    for (const int32_t a : placements.replaced) {
      if (row.replaced) choice[a] = 2;
    }
  }
  return value + Limits(at, usage, gradient);
}

void Dual::UseRow(Tick tick, int32_t i, Usage& usage) const {
  const Rows& own = rows_of_[tick];
  const Row& row = rows_[i];
  usage.evict_ps[levels_.point(tick) + 1] -= static_cast<double>(row.idle_ps);
  if (row.replaced) {
    for (const int32_t a : own.replaced) usage.replaced[a] -= 1;
    return;
  }
  for (size_t s = 0; s < own.accesses.size(); ++s)
    usage.served[own.accesses[s]] -= row.fast >> s & 1;
}

double Dual::Limits(absl::Span<const double> at, const Usage& usage,
                    absl::Span<double> gradient) const {
  double value = 0;
  std::fill(gradient.begin(), gradient.end(), 0.0);
  for (size_t i = 0; i < served_.size(); ++i) {
    if (served_[i] >= 0) gradient[served_[i]] = -usage.served[i];
    if (replaced_[i] >= 0) gradient[replaced_[i]] = -usage.replaced[i];
  }
  const std::vector<Level>& levels = levels_.levels();
  std::vector<double> occupied(levels_.positions());
  double sum = 0;
  for (int32_t p = 0; p < levels_.positions(); ++p) occupied[p] = sum += usage.bytes[p];
  for (const Level& level : levels) {
    if (level.parent < 0) continue;
    for (int32_t p = level.first; p < level.last; ++p) occupied[p] += occupied[level.exit];
  }
  for (Tick tick = 0; tick < program_.ticks(); ++tick) {
    if (space_[tick] < 0) continue;
    const auto room = static_cast<double>(Room(tick));
    const auto all = static_cast<double>(hardware_.fast_bytes);
    const double over = occupied[levels_.point(tick)] - room;
    gradient[space_[tick]] = over / all;
    value -= at[space_[tick]] * room / all;
    const int32_t behind = levels_.point(tick) + 1, m = arrival_[behind];
    if (m < 0) continue;
    const auto trips = static_cast<double>(levels_.level_of(tick).trips);
    gradient[m] =
        ByteTime(trips) * over + trips * (usage.prefetch_ps[behind] - usage.written_ps[behind]);
    value -= at[m] * ByteTime(trips) * room;
  }
  // By level: the copies that a loop around it could lend time to, and what stalls alone serve.
  std::vector<double> copies(levels.size(), 0), stalls(levels.size(), 0);
  for (size_t l = levels.size(); l-- > 0;) {
    const Level& level = levels[l];
    const auto trips = static_cast<double>(level.trips);
    for (int32_t p = level.first; p <= level.last; ++p) {
      const double own = usage.evict_ps[p] + usage.prefetch_ps[p];
      copies[l] += own + usage.written_ps[p];
      stalls[l] += usage.written_ps[p] * trips;
      gradient[channel_[p]] += trips * own;
    }
    if (level.parent < 0) continue;
    copies[level.parent] += copies[l] * level.passes;
    stalls[level.parent] += stalls[l];
    gradient[channel_[level.exit]] +=
        copies[l] * level.passes * static_cast<double>(level.parent_trips) - stalls[l];
  }
  const auto preloads = static_cast<double>(hardware_.max_preloads);
  gradient[preload_] = usage.preloads - preloads;
  return value - at[preload_] * preloads;
}

}  // namespace mallocgame::lagrangian
