// The JSON text that tells the compiler what is particular about one instruction (`backend_config`
// in hlo.proto). Modules hold megabytes of these texts, those of kernels with their code, so only
// the part that is asked for is parsed. Private to the folder.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "nlohmann/json_fwd.hpp"

namespace mallocgame::hlo {

// Moves `text` to the next value of this name, at whatever depth. False: there is none.
bool SkipToValue(absl::string_view name, absl::string_view* text);

// The list or object of this name, at whatever depth; the first one if there are several. It is
// neither if the text has none, or not a whole one.
nlohmann::json PartOf(absl::string_view backend_config, absl::string_view name);

// An integer of 0 or more. JAX writes numbers, XLA writes those of 64 bits as strings.
std::optional<int64_t> NumberOf(const nlohmann::json& written);

}  // namespace mallocgame::hlo
