// Reads intents (intent.h) from plans. Private to the core.
#pragma once

#include <vector>

#include "mallocgame/base/ids.h"
#include "mallocgame/game/intent.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame {

// Answers what a plan does with one segment after the other. Both must outlive it.
class PlanReader {
 public:
  PlanReader(const Program& program, const Plan& plan);

  ResidenceId residence(AccessId access) const { return plan_.served_by[access.index()]; }
  Tick begin(AccessId access) const { return plan_.residences[residence(access).index()].begin; }
  bool preloaded(ResidenceId r) const { return preloaded_[r.index()]; }
  bool written_back(ResidenceId r) const { return written_back_[r.index()]; }

  // A segment that residence `r` serves; none: main memory. Its prefetch is late if the bytes are
  // reserved from tick `late_from` on or later.
  Segment Read(AccessId first, AccessId last, ResidenceId r, Tick late_from) const;
  // The same for one access, which the residence of the buffer's previous access may serve too.
  Segment Read(AccessId access, Tick late_from) const;

 private:
  const Program& program_;
  const Plan& plan_;
  std::vector<bool> preloaded_, written_back_;
};

}  // namespace mallocgame
