// How the import of a program went. Files of programs keep it.
#pragma once

#include <cstdint>

// What files keep of an ImportSummary, in the order in which programs list it. The fields of the
// message in replay/replay.proto have the same names.
// clang-format off
#define MALLOCGAME_KEPT_COUNTS(V) \
  V(priced_instructions) V(unpriced_instructions) V(modelled_instructions) V(kernels) \
  V(kernels_without_estimate) V(pools) V(rows) V(unknown_trip_counts) V(host_transfers) \
  V(host_computations) V(async_computations) V(opaque_calls) V(linkless_collectives) \
  V(unassigned_arrays) V(unassigned_copies) V(kept_copies) V(unscheduled_computations) \
  V(profile_names_unmatched)
// clang-format on

namespace mallocgame {

struct ImportSummary {
  int64_t priced_instructions = 0;    // instructions with a pool of prices from the compiler
  int64_t unpriced_instructions = 0;  // instructions that cost 2 x the bytes they move instead
  int64_t modelled_instructions = 0;  // instructions that transfer between chips, over Links
  int64_t host_transfers = 0;         // transfers between the host and the chip
  int64_t host_computations = 0;      // what the host computes, at no time but its transfers'
  // computations, and copies within main memory, that run beside the program
  int64_t async_computations = 0;
  // custom calls of which nothing is known but their arrays, which the roofline prices
  int64_t opaque_calls = 0;
  // collectives that move no more than their arrays, as nothing is known of the links
  int64_t linkless_collectives = 0;
  // of a module from after memory space assignment (hlo/import/unassigned_module.h): results that
  // were brought back to main memory, copies between the memories that were taken out, and those
  // that stay within main memory
  int64_t unassigned_arrays = 0;
  int64_t unassigned_copies = 0;
  int64_t kept_copies = 0;
  int64_t kernels = 0;                   // kernels without a price, which the roofline prices
  int64_t kernels_without_estimate = 0;  // those of them whose authors gave no cost_estimate
  int64_t pools = 0;
  int64_t rows = 0;              // prices in all pools
  int64_t conflicting_rows = 0;  // prices dropped for another of the same placement and pool
  int64_t too_low_rows = 0;  // prices dropped as below the time of the bytes in main memory alone
  // loops of which Loop::trips_known is false
  int64_t unknown_trip_counts = 0;
  // computations that run, and whose order is that in which their instructions stand in the module
  int64_t unscheduled_computations = 0;
  // instructions of the profile or of a priced module that the module does not have
  int64_t profile_names_unmatched = 0;

  bool operator==(const ImportSummary&) const = default;
};

}  // namespace mallocgame
