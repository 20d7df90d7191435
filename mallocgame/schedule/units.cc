#include "mallocgame/schedule/units.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <utility>

namespace mallocgame {
namespace {

// A table of which unit leads to which has a bit for each pair. In larger regions all pairs that
// don't depend directly count as free.
constexpr size_t kMostCounted = 1 << 13;

bool TakesTime(const InstructionCost& cost) {
  return cost.pool >= 0 || cost.unpriced_bytes > 0 || cost.kernel || cost.link_ps > 0 ||
         cost.flops > 0 || cost.transcendentals > 0 || !cost.operands.empty() ||
         !cost.outputs.empty();
}

}  // namespace

ScheduleUnits::ScheduleUnits(std::shared_ptr<const Program> program)
    : program_(std::move(program)), regions_(program_->regions().size()),
      unit_of_(program_->ticks(), -1) {
  Split();
  Connect();
  CountFreePairs();
}

// A loop begins with its entry, which stands in the region; what else a unit runs stands in regions
// inside, before the instruction itself.
void ScheduleUnits::Split() {
  const Program& program = *program_;
  for (size_t r = 0; r < regions_.size(); ++r) {
    const Region& region = program.regions()[r];
    Tick begin = region.begin;
    for (Tick t = region.begin; t < region.end; ++t) {
      const Instruction& instruction = program.instruction(t);
      if (instruction.region != static_cast<int32_t>(r) ||
          instruction.kind == InstructionKind::kLoopEntry) {
        continue;
      }
      Unit unit;
      unit.begin = begin;
      unit.end = t + 1;
      for (Tick inside = begin; inside <= t; ++inside) {
        unit.works |= TakesTime(program.cost().instructions[inside]);
        if (program.instruction(inside).region == static_cast<int32_t>(r))
          unit_of_[inside] = static_cast<int32_t>(regions_[r].size());
      }
      regions_[r].push_back(std::move(unit));
      begin = t + 1;
    }
  }
}

void ScheduleUnits::Connect() {
  for (const Dependence& d : program_->data().dependences) {
    std::vector<Unit>& units = regions_[program_->instruction(d.before).region];
    units[unit_of_[d.before]].after.push_back(unit_of_[d.after]);
    units[unit_of_[d.after]].before.push_back(unit_of_[d.before]);
  }
}

void ScheduleUnits::CountFreePairs() {
  if (!program_->data().has_dependences) return;
  for (const std::vector<Unit>& units : regions_) {
    const size_t n = units.size(), words = (n + 63) / 64;
    int64_t working = 0, ordered = 0;
    for (const Unit& unit : units) working += unit.works;
    if (working < 2) continue;
    if (n > kMostCounted) {
      for (const Unit& unit : units) ordered += std::ssize(unit.after);
    } else {
      std::vector<uint64_t> reach(n * words), works(words);
      for (size_t u = 0; u < n; ++u) works[u / 64] |= uint64_t{units[u].works} << (u % 64);
      for (size_t u = n; u-- > 0;) {
        uint64_t* const own = &reach[u * words];
        for (const int32_t after : units[u].after) {
          own[after / 64] |= uint64_t{1} << (after % 64);
          for (size_t w = 0; w < words; ++w) own[w] |= reach[after * words + w];
        }
        if (!units[u].works) continue;
        for (size_t w = 0; w < words; ++w) ordered += std::popcount(own[w] & works[w]);
      }
    }
    free_pairs_ += std::max<int64_t>(0, working * (working - 1) / 2 - ordered);
  }
}

int32_t ScheduleUnits::unit_at(Tick tick, int32_t region) const {
  const std::vector<Unit>& units = regions_[region];
  const auto unit = std::partition_point(units.begin(), units.end(),
                                         [tick](const Unit& u) { return u.end <= tick; });
  return static_cast<int32_t>(unit - units.begin());
}

UnitOrder ScheduleUnits::ProgramOrder() const {
  UnitOrder order;
  for (const std::vector<Unit>& units : regions_) {
    order.emplace_back(units.size());
    std::iota(order.back().begin(), order.back().end(), 0);
  }
  return order;
}

std::vector<Tick> ScheduleUnits::TicksOf(const UnitOrder& order) const {
  std::vector<Tick> ticks;
  ticks.reserve(program_->ticks());
  Emit(order, 0, ticks);
  return ticks;
}

void ScheduleUnits::Emit(const UnitOrder& order, int32_t region, std::vector<Tick>& ticks) const {
  for (const int32_t u : order[region]) {
    const Unit& unit = regions_[region][u];
    for (Tick t = unit.begin; t < unit.end;) {
      int32_t inside = program_->instruction(t).region;
      if (inside == region) {
        ticks.push_back(t++);
        continue;
      }
      while (program_->regions()[inside].parent != region)
        inside = program_->regions()[inside].parent;
      Emit(order, inside, ticks);
      t = program_->regions()[inside].end;
    }
  }
}

}  // namespace mallocgame
