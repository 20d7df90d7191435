// What other orders of a module's instructions have to keep. Private to the folder.
#pragma once

#include <cstdint>
#include <vector>

#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/schedule.h"
#include "mallocgame/program/program.h"

namespace mallocgame::hlo {

// Fills data.dependences and data.main_uses; the other tables are there, prices included.
// `of_array` is BufferTable's. An instruction depends on
// - its operands and its control predecessors;
// - what stands before it and touches storage that it writes, and on the writer before it of
//   storage that it reads. Storage is a buffer: all arrays that share bytes in every assignment,
//   such as updates in place, donated parameters, and what asynchronous pairs hold;
// - the one before it that has effects: random numbers, custom calls, infeed and outfeed;
// - where transfers between chips or with the host begin or end, on all before; and all behind
//   depend on it. So what stands between their start and their end hides as much of them as before.
// What follows from others is left out, but in computations of more than 2^13 instructions.
void BuildDependences(const Module& module, const Schedule& schedule,
                      const std::vector<int32_t>& of_array, ProgramData& data);

}  // namespace mallocgame::hlo
