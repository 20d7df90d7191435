// A builder that puts plans for tests together by hand.
#pragma once

#include <cstdint>

#include "mallocgame/game/game.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame::testing {

// The plan starts with everything in main memory. Copies are added in the order in which the
// channel serves them.
class PlanBuilder {
 public:
  PlanBuilder(const Program& program, const Hardware& hardware);

  ResidenceId Reside(BufferId buffer, int64_t offset, Tick begin, Tick end);
  // Serves the access of the residence's buffer at `tick`; there must be one.
  void Serve(ResidenceId residence, Tick tick);
  // Serves all accesses of the residence's buffer that lie inside it.
  void ServeAll(ResidenceId residence);

  Copy& Prefetch(ResidenceId residence, Tick begin, Tick end);
  Copy& Slice(ResidenceId residence, Tick begin, Tick end, int64_t part_begin, int64_t part_end);
  Copy& Eviction(ResidenceId residence, Tick begin, Tick end);
  Copy& Preload(ResidenceId residence, Tick end);

  Plan plan;

 private:
  Copy& Add(CopyKind kind, ResidenceId residence, Tick begin, Tick end);
  const Program& program_;
};

// The latency of a plan, under the prices of the game, that must be one that Simulate takes.
int64_t LatencyOf(const Game& game, const Plan& plan);

// The access of `buffer` at `tick`; there must be one.
AccessId AccessAt(const Program& program, BufferId buffer, Tick tick);

}  // namespace mallocgame::testing
