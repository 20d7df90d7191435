// What ways of buffers pay, and what they use.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "mallocgame/solvers/lagrangian/paths.h"

namespace mallocgame::lagrangian {

// Prices as ways pay them. None but `served` and `replaced` is negative.
template <class T>
struct PathPrices {
  std::vector<T> served, replaced;  // by access
  std::vector<T> space;             // by position: of a byte at all points before it
  // By position, of the channel in the bucket, for the unit that copies are measured in (a
  // picosecond for floating-point prices): for an eviction, for a prefetch, and
  // for an eviction of the value that the instruction in front of the bucket writes.
  std::vector<T> evict, prefetch, written;
  T preload = 0;
};

// What ways use.
struct Usage {
  Usage(size_t accesses, int32_t positions)
      : served(accesses), replaced(accesses), bytes(positions + 1), evict_ps(positions),
        prefetch_ps(positions), written_ps(positions) {}

  std::vector<double> served, replaced;  // by access
  std::vector<double> bytes;  // by position: of content there less that of the one before
  std::vector<double> evict_ps, prefetch_ps, written_ps;  // by position
  double preloads = 0;
  std::vector<std::pair<int32_t, Serves>> served_by;  // accesses that main memory doesn't serve
};

}  // namespace mallocgame::lagrangian
