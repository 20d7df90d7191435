// How the parts of the check of an assigned module refuse one. Private to the folder.
#ifndef MALLOCGAME_HLO_CHECK_PHASE_RULES_H_
#define MALLOCGAME_HLO_CHECK_PHASE_RULES_H_

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/hlo/check/check_phase_module.h"

namespace mallocgame::hlo {

template <class... Parts>
absl::Status Refuse(PhaseRule rule, const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("rule ", PhaseRuleName(rule), ": ", parts...));
}

}  // namespace mallocgame::hlo

#endif  // MALLOCGAME_HLO_CHECK_PHASE_RULES_H_
