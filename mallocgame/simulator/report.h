// What Simulate found out about a plan. Times are integer picoseconds of one run of the program,
// loops included.
#ifndef MALLOCGAME_SIMULATOR_REPORT_H_
#define MALLOCGAME_SIMULATOR_REPORT_H_

#include <cstdint>
#include <vector>

namespace mallocgame {

struct Report {
  int64_t latency_ps = 0;  // compute_ps + stall_ps; preloads are done before the start
  // the same with preloads as copies issued at tick 0 that wait like others
  int64_t latency_cold_ps = 0;
  int64_t compute_ps = 0;
  int64_t stall_ps = 0;
  int64_t all_main_ps = 0;  // latency of the plan with everything in main memory

  int64_t prefetched_bytes = 0;    // main to fast by copies, loop trips included, preloads not
  int64_t written_back_bytes = 0;  // fast to main, likewise
  int64_t preloaded_bytes = 0;
  int64_t peak_fast_bytes = 0;  // most bytes resident at one tick

  int64_t exact_ps = 0;      // share of compute_ps that the compiler itself priced,
  int64_t predicted_ps = 0;  // that was predicted from other placements,
  int64_t unpriced_ps = 0;   // that has no price but bytes moved (the rest is roofline)

  std::vector<int64_t> stall_at_ps;    // one a tick: waited before it, all trips together
  std::vector<int64_t> fast_bytes_at;  // one a tick: bytes resident
  friend bool operator==(const Report&, const Report&) = default;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SIMULATOR_REPORT_H_
