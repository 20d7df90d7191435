#include "tests/support/dependences.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "mallocgame/schedule/units.h"

namespace mallocgame::testing {

std::shared_ptr<const Program> WithDependences(const Program& program) {
  ProgramData data = program.data();
  data.has_dependences = true;
  data.dependences.clear();
  const ScheduleUnits units(*Program::Create(program.data()));
  // Where a transfer begins or ends, everything before and behind stays there.
  std::vector<bool> fixed(program.ticks(), false);
  for (const Access& access : program.accesses()) {
    if (access.held_until > 0) fixed[access.tick] = fixed[access.held_until - 1] = true;
  }
  for (const std::vector<Unit>& region : units.regions()) {
    std::vector<std::map<int32_t, bool>> touched;  // by unit: buffers, and whether it changes them
    for (const Unit& unit : region) {
      std::map<int32_t, bool>& own = touched.emplace_back();
      for (Tick t = unit.begin; t < unit.end; ++t) {
        const Instruction& instruction = program.instruction(t);
        for (int32_t k = 0; k < instruction.access_count; ++k) {
          const Access& access = program.accesses()[instruction.first_access + k];
          own[access.buffer.value] |= access.kind == AccessKind::kWrite ||
                                      access.kind == AccessKind::kUpdate || access.writes_in_loop;
        }
      }
    }
    for (size_t b = 0; b < region.size(); ++b) {
      for (size_t a = 0; a < b; ++a) {
        bool depends = (touched[a].empty() && touched[b].empty()) || fixed[region[a].end - 1] ||
                       fixed[region[b].end - 1];
        for (const auto& [buffer, changes] : touched[a]) {
          const auto other = touched[b].find(buffer);
          depends |= other != touched[b].end() && (changes || other->second);
        }
        if (depends) data.dependences.push_back({region[a].end - 1, region[b].end - 1});
      }
    }
  }
  std::sort(data.dependences.begin(), data.dependences.end());
  auto made = Program::Create(std::move(data));
  if (!made.ok()) {
    std::fprintf(stderr, "%s\n", std::string(made.status().message()).c_str());
    std::abort();
  }
  return *made;
}

std::vector<Tick> RandomOrder(const std::shared_ptr<const Program>& program, Rng& rng) {
  const ScheduleUnits units(program);
  UnitOrder order;
  for (const std::vector<Unit>& region : units.regions()) {
    std::vector<int32_t>& own = order.emplace_back();
    std::vector<int32_t> ready;
    std::vector<size_t> left;
    for (size_t u = 0; u < region.size(); ++u) {
      left.push_back(region[u].before.size());
      if (left.back() == 0) ready.push_back(static_cast<int32_t>(u));
    }
    while (!ready.empty()) {
      const size_t at = rng.Below(ready.size());
      const int32_t unit = ready[at];
      ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(at));
      own.push_back(unit);
      for (const int32_t after : region[unit].after) {
        if (--left[after] == 0) ready.push_back(after);
      }
    }
  }
  return units.TicksOf(order);
}

}  // namespace mallocgame::testing
