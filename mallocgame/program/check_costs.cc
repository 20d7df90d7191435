#include "mallocgame/program/check_costs.h"

#include <iterator>
#include <utility>
#include <vector>

#include "mallocgame/base/error.h"

namespace mallocgame {
namespace {

constexpr int64_t kMaxWork = int64_t{1} << 60;  // flops, cycles
constexpr size_t kMaxArrays = 64;

absl::Status CheckArrays(const ProgramData& data, Tick tick, const char* what,
                         const std::vector<CostArray>& arrays) {
  if (arrays.size() > kMaxArrays)
    return BrokenProgram(AtTick(data, tick), arrays.size(), " ", what, ", at most ", kMaxArrays);
  for (const CostArray& a : arrays) {
    if (!InRange(a.size_bytes, 0, kMaxProgramBytes) ||
        !InRange(a.accessed_bytes, 0, kMaxProgramBytes) ||
        !InRange(a.slot, -1, data.instructions[tick].access_count - 1)) {
      return BrokenProgram(AtTick(data, tick), what, " with ", a.size_bytes, " bytes, ",
                           a.accessed_bytes, " accessed, in slot ", a.slot);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckCosts(const ProgramData& data) {
  const CostData& cost = data.cost;
  if (!InRange(static_cast<int64_t>(cost.kind), 0, 2))
    return BrokenProgram("the kind of the cost model is not known");
  if (cost.instructions.size() != data.instructions.size()) {
    return BrokenProgram(cost.instructions.size(), " costs for ", data.instructions.size(),
                         " instructions");
  }
  for (size_t p = 0; p < cost.pools.size(); ++p) {
    const std::vector<CostRow>& rows = cost.pools[p].rows;
    if (rows.empty()) return BrokenProgram("cost pool ", p, " has no rows");
    if (!InRange(static_cast<int64_t>(cost.pools[p].work), 0, 5) ||
        !InRange(cost.pools[p].element_bits, 0, 128)) {
      return BrokenProgram("cost pool ", p, ": its class of work or the bits of its elements");
    }
    for (size_t r = 0; r < rows.size(); ++r) {
      if (!InRange(rows[r].cycles, 0, kMaxWork)) {
        return BrokenProgram("cost pool ", p, " row ", r, ": ", rows[r].cycles, " cycles");
      }
      const auto placement = [&rows](size_t i) {
        return std::pair(rows[i].operands, rows[i].outputs);
      };
      if (r > 0 && placement(r - 1) >= placement(r)) {
        return BrokenProgram("cost pool ", p, " row ", r, ": rows are not sorted and distinct");
      }
    }
  }
  for (Tick tick = 0; tick < std::ssize(data.instructions); ++tick) {
    const InstructionCost& c = cost.instructions[tick];
    if (data.instructions[tick].kind == InstructionKind::kLoopEntry && c != InstructionCost())
      return BrokenProgram(AtTick(data, tick), "a loop's entry has a cost");
    if (data.regions[data.instructions[tick].region].trips == 0 && c != InstructionCost())
      return BrokenProgram(AtTick(data, tick), "a cost, but its loop has no trips");
    if (!InRange(c.pool, -1, static_cast<int64_t>(cost.pools.size()) - 1)) {
      return BrokenProgram(AtTick(data, tick), "cost pool ", c.pool, " of ", cost.pools.size());
    }
    if (!InRange(c.unpriced_bytes, 0, kMaxProgramBytes) || !InRange(c.flops, 0, kMaxWork) ||
        !InRange(c.transcendentals, 0, kMaxWork) || !InRange(c.link_ps, 0, kMaxWork)) {
      return BrokenProgram(AtTick(data, tick),
                           "unpriced bytes, flops, transcendentals or link time out of range");
    }
    if (c.kernel && (c.pool >= 0 || c.unpriced_bytes != 0)) {
      return BrokenProgram(AtTick(data, tick), "a kernel with cost pool ", c.pool, " and ",
                           c.unpriced_bytes, " unpriced bytes");
    }
    MG_RETURN_IF_ERROR(CheckArrays(data, tick, "operands", c.operands));
    MG_RETURN_IF_ERROR(CheckArrays(data, tick, "outputs", c.outputs));
  }
  return absl::OkStatus();
}

}  // namespace mallocgame
