// When the values of a module live, on its flattened time axis. Private to the folder.
#pragma once

#include <vector>

#include "mallocgame/hlo/check/phase_reading.h"

namespace mallocgame::hlo {

// A value lives from the tick at which it is made to that of its last reader, both included.
struct Lifetime {
  Tick begin = 0, end = 0;
  std::vector<Tick> reads;  // in no order
};

// By position, of those at which values are made. The rules are those of CheckPhaseModule.
std::vector<Lifetime> FindLifetimes(const PhaseReading& written);

}  // namespace mallocgame::hlo
