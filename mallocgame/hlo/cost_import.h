// Fills a program's cost data from the module and from what the compiler wrote about it. Private to
// the folder.
#ifndef MALLOCGAME_HLO_COST_IMPORT_H_
#define MALLOCGAME_HLO_COST_IMPORT_H_

#include "absl/status/status.h"
#include "mallocgame/hlo/import.h"
#include "mallocgame/hlo/module.h"
#include "mallocgame/program/program.h"

namespace mallocgame::hlo {

// Sets data.cost (kind, accessed bytes, flops, pools and what has no price) and the summary's
// counts of prices. Expects data as CostImportContext says. InvalidArgument if a priced module or
// the profile is not what it should be, or is of another program.
//
// Rows of one placement that disagree (none in the compiler's output seen so far) become one with
// their lower median.
absl::Status BuildCost(const CostImportContext& context, ProgramData& data, ImportSummary& summary);

}  // namespace mallocgame::hlo

#endif  // MALLOCGAME_HLO_COST_IMPORT_H_
