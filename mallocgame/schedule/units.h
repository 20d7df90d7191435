// A program as a scheduler sees it: in each region units that depend on each other, and that any
// order may have which keeps these dependences. A unit is an instruction with all that it runs: a
// loop with its condition and body, a conditional with its branches, a call with its callee. The
// units of a body are ordered like those of the entry, once for all trips.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "mallocgame/program/program.h"

namespace mallocgame {

struct Unit {
  Tick begin = 0, end = 0;  // ticks [begin, end); the last is the instruction itself
  // Units of the region, by index. Direct dependences only.
  std::vector<int32_t> before, after;
  // Something in it takes time on some hardware. The others are placed beside those they serve.
  bool works = false;
};

// By region: its units, in any order. Orders list them by their places in ScheduleUnits.
using UnitOrder = std::vector<std::vector<int32_t>>;

class ScheduleUnits {
 public:
  explicit ScheduleUnits(std::shared_ptr<const Program> program);

  const Program& program() const { return *program_; }
  const std::shared_ptr<const Program>& shared_program() const { return program_; }
  // By region: its units in the program's order.
  const std::vector<std::vector<Unit>>& regions() const { return regions_; }
  // The unit of the tick's own region in which it stands.
  int32_t unit_of(Tick tick) const { return unit_of_[tick]; }
  // The unit of `region` in which the tick stands, which must be inside it.
  int32_t unit_at(Tick tick, int32_t region) const;

  // How many pairs of working units of a region may stand in either order, all regions together. 0:
  // there is no freedom, or nobody knows the dependences.
  int64_t free_pairs() const { return free_pairs_; }
  bool has_freedom() const { return free_pairs_ > 0; }

  UnitOrder ProgramOrder() const;
  // The ticks of the program in the order of the units.
  std::vector<Tick> TicksOf(const UnitOrder& order) const;

 private:
  void Split();
  void Connect();
  void CountFreePairs();
  void Emit(const UnitOrder& order, int32_t region, std::vector<Tick>& ticks) const;

  std::shared_ptr<const Program> program_;
  std::vector<std::vector<Unit>> regions_;
  std::vector<int32_t> unit_of_;
  int64_t free_pairs_ = 0;
};

}  // namespace mallocgame
