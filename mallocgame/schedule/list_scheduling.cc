// Schedules each region by itself. Units that take no time and depend on nothing, such as
// parameters and storage that is set aside, come right before the first that needs them; others
// that take no time come as soon as they are ready.
#include "mallocgame/schedule/list_scheduling.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace mallocgame {
namespace {

constexpr std::array kNames = {"depth-first", "breadth-first", "least-memory", "latency-hiding"};

class RegionScheduler {
 public:
  RegionScheduler(const ScheduleUnits& units, const CostModel& cost_model, ListRule rule,
                  int32_t region)
      : program_(units.program()), cost_model_(cost_model), units_(units.regions()[region]),
        rule_(rule), waits_for_(units_.size()), born_(units_.size()), touched_(units_.size()),
        is_done_(units_.size()), idle_ps_(units_.size()) {
    for (size_t u = 0; u < units_.size(); ++u) {
      waits_for_[u] = static_cast<int32_t>(units_[u].before.size());
      if (rule == ListRule::kLeastMemory || rule == ListRule::kLatencyHiding)
        Describe(static_cast<int32_t>(u));
    }
  }

  std::vector<int32_t> Run() {
    for (size_t u = 0; u < units_.size(); ++u) {
      const auto unit = static_cast<int32_t>(u);
      if (IsLazy(unit)) Release(unit);
    }
    for (size_t u = 0; u < units_.size(); ++u) {
      if (!IsLazy(static_cast<int32_t>(u)) && units_[u].before.empty())
        ready_.push_back(static_cast<int32_t>(u));
    }
    while (!ready_.empty()) {
      const auto next = std::min_element(ready_.begin(), ready_.end(), [&](int32_t a, int32_t b) {
        return std::pair(KeyOf(a), a) < std::pair(KeyOf(b), b);
      });
      const int32_t unit = *next;
      ready_.erase(next);
      Take(unit);
    }
    for (size_t u = 0; u < units_.size(); ++u) {
      if (!is_done_[u]) Put(static_cast<int32_t>(u));  // what nothing needs
    }
    return std::move(order_);
  }

 private:
  using Key = std::tuple<bool, int64_t, int64_t>;

  bool IsLazy(int32_t u) const { return !units_[u].works && units_[u].before.empty(); }

  void Describe(int32_t u) {
    const Unit& unit = units_[u];
    for (Tick t = unit.begin; t < unit.end; ++t) {
      const Instruction& instruction = program_.instruction(t);
      for (int32_t a = 0; a < instruction.access_count; ++a) {
        const int32_t buffer = program_.accesses()[instruction.first_access + a].buffer.value;
        std::vector<int32_t>& touched = touched_[u];
        if (std::find(touched.begin(), touched.end(), buffer) != touched.end()) continue;
        touched.push_back(buffer);
        ++uses_left_[buffer];
      }
      if (rule_ == ListRule::kLatencyHiding)
        idle_ps_[u] += cost_model_.PriceOf(t, ~uint64_t{0}).idle_ps * program_.trips(t);
    }
  }

  // Smaller is better.
  Key KeyOf(int32_t u) const {
    if (!units_[u].works) return {false, 0, 0};
    switch (rule_) {
      case ListRule::kDepthFirst: return {true, -born_[u], 0};
      case ListRule::kBreadthFirst: return {true, born_[u], 0};
      case ListRule::kLeastMemory: return {true, GrowthOf(u), 0};
      case ListRule::kLatencyHiding: break;
    }
    const int64_t fetch = FetchOf(u);
    if (fetch > 0 && fetch <= hidden_ps_) return {true, -1, -fetch};
    return {true, fetch, -idle_ps_[u]};
  }

  bool IsTemporary(int32_t buffer) const {
    const Buffer& b = program_.buffers()[buffer];
    return !b.is_output &&
           (b.origin == BufferOrigin::kInstruction || b.origin == BufferOrigin::kUndefined);
  }

  // The bytes that begin to live with it, less those that end.
  int64_t GrowthOf(int32_t u) const {
    int64_t growth = 0;
    for (const int32_t buffer : touched_[u]) {
      if (!IsTemporary(buffer)) continue;
      const int64_t size = program_.buffers()[buffer].size_bytes;
      if (!seen_.contains(buffer)) growth += size;
      if (uses_left_.at(buffer) == 1) growth -= size;
    }
    return growth;
  }

  // The time of the transfers of parameters and constants that it is the first to use.
  int64_t FetchOf(int32_t u) const {
    int64_t bytes = 0;
    for (const int32_t buffer : touched_[u]) {
      const Buffer& b = program_.buffers()[buffer];
      const bool given =
          b.origin == BufferOrigin::kParameter || b.origin == BufferOrigin::kConstant;
      if (given && !seen_.contains(buffer)) bytes += b.size_bytes;
    }
    return cost_model_.hardware().TransferPs(bytes);
  }

  void Take(int32_t u) {
    for (const int32_t before : units_[u].before) {
      if (!is_done_[before]) Put(before);
    }
    Put(u);
    if (rule_ == ListRule::kLatencyHiding)
      hidden_ps_ = std::max<int64_t>(0, hidden_ps_ - FetchOf(u)) + idle_ps_[u];
    for (const int32_t buffer : touched_[u]) {
      seen_.emplace(buffer, true);
      --uses_left_[buffer];
    }
    Release(u);
  }

  void Put(int32_t u) {
    is_done_[u] = true;
    order_.push_back(u);
  }

  // It counts as done for those that depend on it.
  void Release(int32_t u) {
    for (const int32_t after : units_[u].after) {
      if (--waits_for_[after] > 0) continue;
      born_[after] = ++now_;
      ready_.push_back(after);
    }
  }

  const Program& program_;
  const CostModel& cost_model_;
  const std::vector<Unit>& units_;
  const ListRule rule_;
  std::vector<int32_t> waits_for_;             // by unit: how many it depends on that aren't done
  std::vector<int64_t> born_;                  // by unit: when it has become ready
  std::vector<std::vector<int32_t>> touched_;  // by unit: buffers, each once
  std::vector<bool> is_done_;
  std::vector<int64_t> idle_ps_;  // by unit: what it leaves to copies
  absl::flat_hash_map<int32_t, int32_t> uses_left_;
  absl::flat_hash_map<int32_t, bool> seen_;
  std::vector<int32_t> ready_, order_;
  int64_t now_ = 0, hidden_ps_ = 0;
};

}  // namespace

const char* ListRuleName(ListRule rule) { return kNames[static_cast<size_t>(rule)]; }

std::optional<ListRule> ListRuleOf(absl::string_view name) {
  for (int rule = 0; rule < kListRules; ++rule) {
    if (name == kNames[rule]) return static_cast<ListRule>(rule);
  }
  return std::nullopt;
}

UnitOrder ListSchedule(const ScheduleUnits& units, const CostModel& cost_model, ListRule rule) {
  if (!units.program().data().has_dependences) return units.ProgramOrder();
  UnitOrder order;
  for (size_t r = 0; r < units.regions().size(); ++r)
    order.push_back(RegionScheduler(units, cost_model, rule, static_cast<int32_t>(r)).Run());
  return order;
}

}  // namespace mallocgame
