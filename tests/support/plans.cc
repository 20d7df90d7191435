// PlanBuilder, the access of a buffer at a tick, and the latency of a plan.
#include "tests/support/plans.h"

#include "mallocgame/base/error.h"
#include "mallocgame/simulator/simulate.h"

namespace mallocgame::testing {

int64_t LatencyOf(const Game& game, const Plan& plan) {
  const auto report = Simulate(game.cost_model(), plan);
  MG_CHECK(report.ok());
  return report->latency_ps;
}

AccessId AccessAt(const Program& program, BufferId buffer, Tick tick) {
  for (const AccessId id : program.accesses_of(buffer)) {
    if (program.access(id).tick == tick) return id;
  }
  MG_CHECK(false && "no such access");
}

PlanBuilder::PlanBuilder(const Program& program, const Hardware& hardware)
    : plan(AllMainPlan(program, hardware)), program_(program) {}

ResidenceId PlanBuilder::Reside(BufferId buffer, int64_t offset, Tick begin, Tick end) {
  plan.residences.push_back({buffer, offset, begin, end});
  return ResidenceId(static_cast<int64_t>(plan.residences.size()) - 1);
}

void PlanBuilder::Serve(ResidenceId residence, Tick tick) {
  plan.served_by[AccessAt(program_, plan.residences[residence.index()].buffer, tick).index()] =
      residence;
}

void PlanBuilder::ServeAll(ResidenceId residence) {
  const Residence& r = plan.residences[residence.index()];
  for (const AccessId id : program_.accesses_of(r.buffer)) {
    const Tick tick = program_.access(id).tick;
    if (tick >= r.begin && tick < r.end) plan.served_by[id.index()] = residence;
  }
}

Copy& PlanBuilder::Add(CopyKind kind, ResidenceId residence, Tick begin, Tick end) {
  Copy copy;
  copy.kind = kind;
  copy.residence = residence;
  copy.begin = begin;
  copy.end = end;
  copy.part_end = program_.buffer(plan.residences[residence.index()].buffer).size_bytes;
  plan.copies.push_back(copy);
  return plan.copies.back();
}

Copy& PlanBuilder::Prefetch(ResidenceId residence, Tick begin, Tick end) {
  return Add(CopyKind::kPrefetch, residence, begin, end);
}

Copy& PlanBuilder::Slice(ResidenceId residence, Tick begin, Tick end, int64_t part_begin,
                         int64_t part_end) {
  Copy& copy = Add(CopyKind::kPrefetch, residence, begin, end);
  copy.part_begin = part_begin;
  copy.part_end = part_end;
  return copy;
}

Copy& PlanBuilder::Eviction(ResidenceId residence, Tick begin, Tick end) {
  return Add(CopyKind::kEviction, residence, begin, end);
}

Copy& PlanBuilder::Preload(ResidenceId residence, Tick end) {
  Copy& copy = Add(CopyKind::kPrefetch, residence, 0, end);
  copy.preload = true;
  return copy;
}

}  // namespace mallocgame::testing
