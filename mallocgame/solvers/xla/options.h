// The settings of XLA's allocator that decide its plans.
#ifndef MALLOCGAME_SOLVERS_XLA_OPTIONS_H_
#define MALLOCGAME_SOLVERS_XLA_OPTIONS_H_

#include <cstdint>

namespace mallocgame {

// The defaults are those of XLA:TPU.
struct XlaOptions {
  double min_overlap = 1;        // a prefetch window hides the copy's time at least this often,
  double preferred_overlap = 2;  // and at best this often
  // times the time to copy all fast memory: the longest window, and the longest pause
  double max_overlap = 8;
  int max_retries = 2;  // of a buffer
  int max_repacks = 4;  // of the program, one a buffer
  // a buffer that uses fewer bytes in fast memory, for each that it copies, stays out
  double inefficient_use_to_copy = 0.5;
  int64_t min_sliced_bytes = 1 << 20;  // a prefetch of so many bytes goes in slices where that fits
  // a slice is taken to be so much more work than its bytes, when asked whether it is in time
  double slice_work = 1.8;
  double loop_weight = 5;  // what an instruction in a loop counts, for each loop around it
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_XLA_OPTIONS_H_
