// The entries of readers.h for what solvers are given.
#ifndef MALLOCGAME_TESTS_FUZZ_SOLVER_READERS_H_
#define MALLOCGAME_TESTS_FUZZ_SOLVER_READERS_H_

#include "absl/strings/string_view.h"

namespace mallocgame::fuzz {

bool ReadOffsets(absl::string_view bytes);

}  // namespace mallocgame::fuzz

#endif  // MALLOCGAME_TESTS_FUZZ_SOLVER_READERS_H_
