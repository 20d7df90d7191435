// What a plan costs, as Simulate found out. Times are integer picoseconds of one run of the
// program, loops included.
#pragma once

#include <cstdint>
#include <vector>

namespace mallocgame {

struct Report {
  int64_t latency_ps = 0;  // compute_ps + stall_ps, with preloads done before the start
  // The latency if preloads are copies that are issued at tick 0 and waited for like others.
  int64_t latency_cold_ps = 0;
  int64_t compute_ps = 0;
  int64_t stall_ps = 0;
  int64_t all_main_ps = 0;  // latency of the plan with everything in main memory

  // Bytes that copies move from main to fast memory and back, loop trips included, preloads not.
  int64_t prefetched_bytes = 0;
  int64_t written_back_bytes = 0;
  int64_t preloaded_bytes = 0;
  int64_t peak_fast_bytes = 0;  // the most bytes resident at one tick

  // The parts of compute_ps by PriceSource. What is left of it has the source kRoofline
  // or is modelled.
  int64_t exact_ps = 0;
  int64_t predicted_ps = 0;
  int64_t unpriced_ps = 0;
  int64_t kernel_ps = 0;
  // The part of compute_ps in which the program waits for links between chips, by a model of them.
  // No plan changes it.
  int64_t modelled_ps = 0;

  std::vector<int64_t> stall_at_ps;    // for each tick: the stall before it, all trips together
  std::vector<int64_t> fast_bytes_at;  // for each tick: the bytes resident
  friend bool operator==(const Report&, const Report&) = default;
};

}  // namespace mallocgame
