// The check of both lists of readers.
#ifndef MALLOCGAME_TESTS_FUZZ_BEAR_SEEDS_H_
#define MALLOCGAME_TESTS_FUZZ_BEAR_SEEDS_H_

#include "tests/fuzz/readers.h"

namespace mallocgame::fuzz {

// Gives the reader nothing, its seeds, and so many mutations of each; it must accept a seed.
void CheckBearsSeeds(const Reader& reader, int mutations);

}  // namespace mallocgame::fuzz

#endif  // MALLOCGAME_TESTS_FUZZ_BEAR_SEEDS_H_
