#include "mallocgame/game/time/plan_recorder.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace mallocgame {

PlanRecorder::PlanRecorder(const Program& program, const Hardware& hardware)
    : program_(program), plan_(AllMainPlan(program, hardware)), start_ps_(plan_.copies.size()),
      open_(program.buffers().size()), eviction_(program.buffers().size(), -1) {}

void PlanRecorder::Open(BufferId buffer, int64_t offset, Tick begin, Tick end) {
  open_[buffer.index()] = ResidenceId(plan_.residences.size());
  plan_.residences.push_back({buffer, offset, begin, end});
}

void PlanRecorder::SetEnd(BufferId buffer, Tick end) {
  plan_.residences[open_[buffer.index()].index()].end = end;
}

void PlanRecorder::Prefetch(BufferId buffer, Tick begin, Tick end, int64_t start_ps,
                            Tick replaces) {
  plan_.copies.push_back({CopyKind::kPrefetch, open_[buffer.index()], begin, end, 0,
                          PartEnd(buffer), false, replaces});
  start_ps_.push_back(start_ps);
}

void PlanRecorder::Preload(BufferId buffer, Tick end) {
  plan_.copies.push_back(
      {CopyKind::kPrefetch, open_[buffer.index()], 0, end, 0, PartEnd(buffer), true, -1});
  start_ps_.push_back(-1);
}

void PlanRecorder::Eviction(BufferId buffer, Tick begin, Tick end) {
  eviction_[buffer.index()] = static_cast<int32_t>(plan_.copies.size());
  plan_.copies.push_back(
      {CopyKind::kEviction, open_[buffer.index()], begin, end, 0, PartEnd(buffer), false, -1});
  start_ps_.push_back(std::numeric_limits<int64_t>::max());
}

void PlanRecorder::EvictionStarts(BufferId buffer, int64_t start_ps) {
  start_ps_[eviction_[buffer.index()]] = start_ps;
}

void PlanRecorder::SetEvictionEnd(BufferId buffer, Tick end) {
  plan_.copies[eviction_[buffer.index()]].end = end;
}

void PlanRecorder::Serve(AccessId access, BufferId buffer) {
  plan_.served_by[access.index()] = open_[buffer.index()];
}

Plan PlanRecorder::Finish() {
  std::vector<size_t> order(plan_.copies.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return start_ps_[a] < start_ps_[b]; });
  std::vector<Copy> copies;
  copies.reserve(order.size());
  for (size_t i : order) copies.push_back(plan_.copies[i]);
  plan_.copies = std::move(copies);
  return std::move(plan_);
}

}  // namespace mallocgame
