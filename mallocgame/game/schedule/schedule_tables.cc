#include "mallocgame/game/schedule/schedule_tables.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/game/priority/priority_observation.h"
#include "mallocgame/game/schedule/schedule_state.h"
#include "mallocgame/game/tables.h"
#include "mallocgame/schedule/instruction_order.h"
#include "mallocgame/schedule/main_memory.h"

namespace mallocgame {
namespace {

std::vector<int32_t> Numbers(size_t count) {
  std::vector<int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

std::vector<int32_t> Inverse(const std::vector<int32_t>& of) {
  std::vector<int32_t> inverse(of.size());
  for (size_t i = 0; i < of.size(); ++i) inverse[of[i]] = static_cast<int32_t>(i);
  return inverse;
}

bool IsOwn(absl::Span<const Tick> order) { return std::is_sorted(order.begin(), order.end()); }

}  // namespace

OrderedGame::OrderedGame(std::vector<Tick> own_order, std::shared_ptr<const PriorityGame> own_game)
    : order(std::move(own_order)), game(std::move(own_game)), own(true),
      own_access(Numbers(game->program().accesses().size())) {}

OrderedGame::OrderedGame(std::vector<Tick> in_order, std::shared_ptr<const PriorityGame> at_order,
                         const ReorderedProgram& made)
    : order(std::move(in_order)), game(std::move(at_order)), own(false),
      own_access(Inverse(made.access_of)) {}

OrderedGame::~OrderedGame() = default;

const PriorityObserver& OrderedGame::ObserverOf(const ObservationOptions& options) const {
  const std::lock_guard lock(mutex_);
  for (const Observing& known : observers_) {
    if (known.options == options) return *known.observer;
  }
  observers_.push_back(
      {options, std::make_unique<const PriorityObserver>(*game, options, nullptr)});
  return *observers_.back().observer;
}

ScheduleTables::ScheduleTables(const Game& game, std::shared_ptr<const PriorityGame> placement_game,
                               int64_t main_bytes)
    : units(game.shared_program()), placement(std::move(placement_game)) {
  const Program& program = game.program();
  own = std::make_shared<const OrderedGame>(units.TicksOf(units.ProgramOrder()), placement);
  NumberUnits();
  FindChoices();
  DivideUnits();
  FindUses(program);
  DescribeUnits(game);
  const MainMemory needed = MainMemoryOf(program);
  limit_bytes = main_bytes > 0 ? main_bytes - needed.fixed_bytes : needed.packed_bytes;
  sure_bytes = limit_bytes - (needed.packed_bytes - needed.live_bytes);
}

void ScheduleTables::NumberUnits() {
  for (size_t r = 0; r < units.regions().size(); ++r) {
    const auto first = static_cast<int32_t>(all.size());
    first_unit.push_back(first);
    for (const Unit& unit : units.regions()[r]) {
      GameUnit& numbered = all.emplace_back();
      numbered.region = static_cast<int32_t>(r);
      numbered.begin = unit.begin;
      numbered.end = unit.end;
      numbered.works = unit.works;
      for (const int32_t u : unit.before) numbered.before.push_back(first + u);
      for (const int32_t u : unit.after) numbered.after.push_back(first + u);
    }
  }
  first_unit.push_back(static_cast<int32_t>(all.size()));
}

// Whether two working units are ready at the same time anywhere in the program's own order. If not,
// that is the only one: each unit depends on the one before.
bool ScheduleTables::HasChoice(int32_t region) const {
  const int32_t first = first_unit[region], end = first_unit[region + 1];
  std::vector<int32_t> waits(end - first), released;
  int32_t ready = 0;
  const auto count = [&](int32_t unit) {
    if (all[unit].works) {
      ++ready;
    } else {
      released.push_back(unit);
    }
  };
  const auto release = [&](int32_t unit) {
    released.push_back(unit);
    while (!released.empty()) {
      const int32_t before = released.back();
      released.pop_back();
      for (const int32_t after : all[before].after) {
        if (--waits[after - first] == 0) count(after);
      }
    }
  };
  for (int32_t u = first; u < end; ++u)
    waits[u - first] = static_cast<int32_t>(all[u].before.size());
  for (int32_t u = first; u < end; ++u) {
    if (!all[u].before.empty()) continue;
    if (all[u].works) {
      ++ready;
    } else {
      release(u);
    }
  }
  for (int32_t u = first; u < end; ++u) {
    if (!all[u].works) continue;
    if (ready > 1) return true;
    --ready;
    release(u);
  }
  return false;
}

void ScheduleTables::FindChoices() {
  const Program& program = units.program();
  decided.assign(program.regions().size(), 0);
  if (program.data().has_dependences) {
    // What is inside comes behind what is around it.
    for (size_t r = decided.size(); r-- > 0;) {
      decided[r] |= static_cast<uint8_t>(HasChoice(static_cast<int32_t>(r)));
      if (decided[r] != 0 && r > 0) decided[program.regions()[r].parent] = 1;
    }
  }
  for (size_t r = 0; r < decided.size(); ++r) {
    if (decided[r] == 0) continue;
    int64_t in_region = 0;
    for (int32_t u = first_unit[r]; u < first_unit[r + 1]; ++u) in_region += all[u].works;
    working += static_cast<int32_t>(in_region);
    // Pages of ready units are turned before one is taken; there are two kinds of pages.
    for (int64_t left = in_region; left > 1; --left)
      max_order_decisions += static_cast<int>(2 + (left - 1) / kReadyShown);
  }
}

void ScheduleTables::DivideUnits() {
  const Program& program = units.program();
  for (GameUnit& unit : all) {
    bool choice = false;
    std::vector<UnitPart> parts;
    for (Tick t = unit.begin; t < unit.end;) {
      int32_t inside = program.instruction(t).region;
      Tick end = t + 1;
      if (inside != unit.region) {
        while (program.regions()[inside].parent != unit.region)
          inside = program.regions()[inside].parent;
        end = program.regions()[inside].end;
      }
      if (inside != unit.region && decided[inside] != 0) {
        parts.push_back({t, end, inside});
        choice = true;
      } else if (!parts.empty() && parts.back().region < 0) {
        parts.back().end = end;
      } else {
        parts.push_back({t, end, -1});
      }
      t = end;
    }
    if (choice) unit.parts = std::move(parts);
  }
}

void ScheduleTables::FindUses(const Program& program) {
  const std::vector<BufferUse> found = TemporaryUses(program);
  begin_first_.assign(program.ticks() + 1, 0);
  end_first_.assign(program.ticks() + 1, 0);
  std::vector<std::pair<Tick, int32_t>> begins, ends;
  for (size_t i = 0; i < found.size(); ++i) {
    const BufferUse& use = found[i];
    if (i == 0 || found[i - 1].buffer != use.buffer) {
      bytes.push_back(program.buffers()[use.buffer].size_bytes);
      uses.push_back(0);
    }
    ++uses.back();
    const auto buffer = static_cast<int32_t>(bytes.size()) - 1;
    begins.emplace_back(use.begin, buffer);
    ends.emplace_back(use.end - 1, buffer);
    ++begin_first_[use.begin + 1];
    ++end_first_[use.end];
  }
  for (size_t t = 1; t < begin_first_.size(); ++t) {
    begin_first_[t] += begin_first_[t - 1];
    end_first_[t] += end_first_[t - 1];
  }
  std::sort(begins.begin(), begins.end());
  std::sort(ends.begin(), ends.end());
  for (const auto& [tick, buffer] : begins) begins_.push_back(buffer);
  for (const auto& [tick, buffer] : ends) ends_.push_back(buffer);
}

void ScheduleTables::DescribeUnits(const Game& game) {
  const GameTables& tables = game.tables();
  const Program& program = game.program();
  for (size_t u = all.size(); u-- > 0;) {
    GameUnit& unit = all[u];
    for (Tick t = unit.begin; t < unit.end; ++t) {
      const int64_t trips = tables.instructions[t].trips;
      const TimeAndIdle slow = tables.PriceAt(game.cost_model(), t, 0),
                        fast = tables.PriceAt(game.cost_model(), t, tables.AllFast(t));
      unit.time_ps += slow.time_ps * trips;
      unit.saving_ps += (slow.time_ps - fast.time_ps) * trips;
      unit.idle_ps += fast.idle_ps * trips;
      for (const int32_t buffer : Begin(t)) unit.grows_at_most += bytes[buffer];
      const Instruction& instruction = program.instruction(t);
      for (int32_t a = 0; a < instruction.access_count; ++a)
        unit.buffers.push_back(program.accesses()[instruction.first_access + a].buffer.value);
    }
    std::sort(unit.buffers.begin(), unit.buffers.end());
    unit.buffers.erase(std::unique(unit.buffers.begin(), unit.buffers.end()), unit.buffers.end());
    for (const int32_t buffer : unit.buffers) {
      const Buffer& used = program.buffers()[buffer];
      if (used.origin == BufferOrigin::kParameter || used.origin == BufferOrigin::kConstant)
        unit.fetch_ps += game.hardware().CopyPs(used.size_bytes);
    }
    for (const int32_t after : unit.after)
      unit.critical_ps = std::max(unit.critical_ps, all[after].critical_ps);
    unit.critical_ps += unit.time_ps;
  }
}

std::shared_ptr<const OrderedGame> ScheduleTables::GameAt(std::vector<Tick> order) const {
  if (IsOwn(order)) return own;
  {
    const std::lock_guard lock(mutex_);
    for (const std::shared_ptr<const OrderedGame>& known : remembered_) {
      if (known != nullptr && known->order == order) return known;
    }
  }
  const ReorderedProgram made = ReorderedLegally(units.program(), order);
  std::shared_ptr<const PriorityGame> game =
      placement->InOrder(made.program, order, made.access_of);
  auto ordered = std::make_shared<const OrderedGame>(std::move(order), std::move(game), made);
  const std::lock_guard lock(mutex_);
  remembered_[next_++ % kRememberedOrders] = ordered;
  return ordered;
}

int64_t ScheduleTables::PackedBytes(absl::Span<const Tick> order) const {
  std::vector<BufferLife> lives(bytes.size());
  for (size_t place = 0; place < order.size(); ++place) {
    const auto now = static_cast<Tick>(place);
    for (const int32_t buffer : Begin(order[place]))
      lives[buffer].begin = std::min(lives[buffer].begin, now);
    for (const int32_t buffer : End(order[place])) lives[buffer].end = now + 1;
  }
  for (size_t b = 0; b < lives.size(); ++b) lives[b].bytes = bytes[b];
  return PackedMainBytes(std::move(lives));
}

}  // namespace mallocgame
