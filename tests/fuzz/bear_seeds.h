// The check of both lists of readers.
#pragma once

#include "tests/fuzz/readers.h"

namespace mallocgame::fuzz {

// Gives the reader nothing, its seeds, and so many mutations of each; it must accept a seed.
void CheckBearsSeeds(const Reader& reader, int mutations);

}  // namespace mallocgame::fuzz
