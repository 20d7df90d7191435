#include "agents/egrl/checkpoint.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/base/fnv.h"

namespace mallocgame::egrl {

std::string FingerprintOf(const Problems& problems) {
  return absl::StrJoin(problems, "; ", [](std::string* out, const auto& pointer) {
    const PlacementProblem& problem = *pointer;
    absl::StrAppend(out, problem.program().fingerprint(), " on ",
                    absl::StrJoin(problem.level_names(), "/"), ", 1 is ", problem.baseline_ps(),
                    " ps by map ", absl::Hex(Fnv1aOf(problem.baseline_map())));
  });
}

}  // namespace mallocgame::egrl
