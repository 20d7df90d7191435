// The settings of XLA's allocator that decide its plans.
#pragma once

#include <cstdint>

namespace mallocgame {

// The defaults are those of XLA:TPU.
struct XlaOptions {
  double min_overlap = 1;        // a prefetch window hides the copy's time at least this often,
  double preferred_overlap = 2;  // and at best this often
  // this times the time to copy all of fast memory is the longest window, and the longest pause
  double max_overlap = 8;
  int max_retries = 2;  // for each buffer
  int max_repacks = 4;  // for the program, at most one for each buffer
  // a buffer that uses fewer bytes in fast memory than this, for each byte copied, stays out
  double inefficient_use_to_copy = 0.5;
  // A prefetch of so many bytes or more goes in slices where they fit,
  int64_t min_sliced_bytes = 1 << 20;
  int max_slices = 4;       // in so many of equal size; 1: in none,
  int64_t slice_bytes = 0;  // or in slices of so many bytes if that is not 0
  // to decide whether a slice is in time, its work is taken to be so much larger than it is
  double slice_work = 1.8;
  double loop_weight = 5;  // an instruction counts so much more for each loop around it
  // A kernel takes as long as its arrays need, whatever its author estimated.
  bool kernels_move_arrays = false;
};

}  // namespace mallocgame
