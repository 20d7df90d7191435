// How the parts of the check of an assigned module refuse one. Private to the folder.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/check/check_phase_module.h"

namespace mallocgame::hlo {

// `instructions` are the names of those at fault.
template <class... Parts>
absl::Status Refuse(PhaseRule rule, const std::vector<std::string>& instructions,
                    const Parts&... parts) {
  const absl::string_view name = PhaseRuleName(rule);
  return Refused({.rule = std::string(name), .instructions = instructions},
                 absl::InvalidArgumentError(absl::StrCat("rule ", name, ": ", parts...)));
}

}  // namespace mallocgame::hlo
