// The chips, each in one row: all that tells one from another. Beside it a chip has a price law
// (price_law.h), and a row of its own for the compiler's options
// (bindings/python/mallocgame/xla/targets.py).
#pragma once

#include <cstdint>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mallocgame {

// What XLA's allocator reckons with (libtpu 0.0.51), as its log and its cost analysis show it:
// docs/hardware.md, docs/xla-heuristic.md.
struct AllocatorRates {
  double main = 0;                   // bytes a second of main memory; 0: nobody knows any of these
  double fast = 0;                   // fast memory is so many times as fast
  double transcendentals = 0;        // a second
  double flops = 1;                  // share of the preset's
  double clock_hz = 0;               // 0: the preset's
  int64_t slice_bytes = 0;           // copies are cut into slices of this size; 0: into equal ones
  bool kernels_move_arrays = false;  // as of XlaOptions
};

struct Chip {
  absl::string_view name;
  // As of Hardware. docs/hardware.md has the sources. A device with one of a chip's two cores has
  // half of the chip's bandwidth and flops.
  int64_t fast_bytes = 0, main_bytes_per_second = 0, flops_per_second = 0, clock_hz = 0;
  int32_t fast_memory_space = 1;
  // Of one link to another chip, in one direction; 0: it is not known (hlo/cost/links.h).
  int64_t link_bytes_per_second = 0;
  AllocatorRates allocator = {};
};

absl::Span<const Chip> Chips();
// The chip whose name `hardware` is, or begins with before an underscore: the longest such, as the
// names of some chips begin with those of others. Null if there is none.
const Chip* FindChip(absl::string_view hardware);

}  // namespace mallocgame
