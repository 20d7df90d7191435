// Records as a Plan what a State does while a game is played. Private to the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mallocgame/base/ids.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

class PlanRecorder {
 public:
  PlanRecorder(const Program& program, const Hardware& hardware);

  // Begins a new residence of `buffer`. From now on SetEnd, Prefetch, Preload, Eviction and Serve
  // of that buffer mean this residence.
  void Open(BufferId buffer, int64_t offset, Tick begin, Tick end);
  void SetEnd(BufferId buffer, Tick end);
  // `start_ps`, on the service axis of the game's channel, orders the copies; `replaces` is that of
  // Copy.
  void Prefetch(BufferId buffer, Tick begin, Tick end, int64_t start_ps, Tick replaces);
  void Preload(BufferId buffer, Tick end);
  void Eviction(BufferId buffer, Tick begin, Tick end);
  void EvictionStarts(BufferId buffer, int64_t start_ps);
  void SetEvictionEnd(BufferId buffer, Tick end);
  void Serve(AccessId access, BufferId buffer);
  // Of copy `k` of AllMainPlan.
  void PinStarts(size_t k, int64_t start_ps) { start_ps_[k] = start_ps; }

  Plan Finish();

 private:
  int64_t PartEnd(BufferId buffer) const { return program_.buffer(buffer).size_bytes; }

  const Program& program_;
  Plan plan_;
  std::vector<int64_t> start_ps_;  // one for each copy
  // One for each buffer: its latest residence, and the index of its latest eviction in
  // plan_.copies, -1 if there is none.
  std::vector<ResidenceId> open_;
  std::vector<int32_t> eviction_;
};

}  // namespace mallocgame
