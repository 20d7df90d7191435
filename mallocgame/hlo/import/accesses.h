// What each instruction accesses, and when. Private to the folder.
#pragma once

#include <cstdint>

#include "mallocgame/hlo/import/buffers.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/schedule.h"
#include "mallocgame/program/program.h"

namespace mallocgame::hlo {

// Fills data.instructions, .regions, .loops, .buffers and .accesses, and the part of .cost that
// BuildCost (cost_import.h) expects. An instruction or loop can have 64 accesses; where it would
// have more, the smallest buffers become not eligible.
void BuildAccesses(const Module& module, const Schedule& schedule, BufferTable table,
                   ProgramData& data);

// Whether the instruction is a copy in the same layout, or a slice, dynamic or not, that XLA's
// memory space assignment can have a transfer do. Its buffers needn't be eligible.
bool IsPlainCopy(const Module& module, int32_t i);

}  // namespace mallocgame::hlo
