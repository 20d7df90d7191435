// Fills a program's cost data from the module and from what the compiler wrote about it. Private to
// the folder.
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/hlo/cost/links.h"
#include "mallocgame/hlo/import/import.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/schedule.h"
#include "mallocgame/program/program.h"

namespace mallocgame::hlo {

struct CostImportContext {
  const Module& module;
  const Schedule& schedule;
  const ImportInput& input;
  const Hardware& hardware;
  std::optional<Links> links;  // none: collectives are priced like other instructions
};

// Sets data.cost (kind, accessed bytes, flops, pools, kernels, and the bytes of what else has no
// price), and returns the counts of prices. InvalidArgument if a priced module or the profile is
// malformed or of another program.
//
// BuildAccesses has filled `data`: data.cost.instructions has one entry for each tick. The operands
// and outputs of an entry hold size_bytes, slot and in_main (memory space 0), and accessed_bytes =
// size_bytes. Instructions for which MovesNothing holds, and kLoopEntry ticks, have no operands and
// outputs. cost_bits.h says which array has which place; several arrays with one place are added
// up, and their slot is -1.
//
// Several rows for one placement that disagree (the compiler's output seen so far has none) become
// one row with their lower median.
absl::StatusOr<ImportSummary> BuildCost(const CostImportContext& context, ProgramData& data);

}  // namespace mallocgame::hlo
