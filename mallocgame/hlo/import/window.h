// The size by which XLA:TPU measures how long before its use a copy begins. Private to the folder.
#pragma once

#include <cstdint>

namespace mallocgame::hlo {

class Module;

// The upper median of the sizes of all arrays above 1 MiB that instructions make, those inside of
// fusions too; bitcasts make none, and tuples are left out. 0: no array is so large. It is what the
// compiler's log of its interval picker shows (libtpu 0.0.51, docs/xla-heuristic.md).
int64_t WindowBytes(const Module& module);

}  // namespace mallocgame::hlo
