// The entries of readers.h for what solvers are given.
#pragma once

#include "absl/strings/string_view.h"

namespace mallocgame::fuzz {

bool ReadOffsets(absl::string_view bytes);

}  // namespace mallocgame::fuzz
