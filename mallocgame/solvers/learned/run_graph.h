// What the network of the solver `learned` reads of an order game: the runs, what each one is by
// itself, and where in time they meet.
#ifndef MALLOCGAME_SOLVERS_LEARNED_RUN_GRAPH_H_
#define MALLOCGAME_SOLVERS_LEARNED_RUN_GRAPH_H_

#include <cstdint>
#include <vector>

#include "mallocgame/game/order/order_tables.h"

namespace mallocgame {

struct RunGraph {
  // Equal pieces of the all-main time of one run of the program.
  static constexpr int kPieces = 128;
  static constexpr int kFeatures = 30;

  explicit RunGraph(const OrderTables& tables);

  int32_t num_runs() const { return static_cast<int32_t>(bytes.size()); }

  // Everything that follows has an entry for each run, in the order of Run::id.
  std::vector<float> features;  // [num_runs, kFeatures], about 1 large
  // The time that a late residence is held, and that in which its prefetch may run, in pieces from
  // the program's start.
  std::vector<float> begin, end, fetch_begin, need;
  std::vector<float> bytes;  // the share of the bytes that residences may use
  std::vector<float> copy;   // one transfer's share of the all-main time; 0: none is needed
  // Natural logarithms of the shares of the all-main time that it saves, as estimated, and that it
  // is held; of its bytes; and of its importance: what it saves for each byte and time held.
  std::vector<float> log_saving, log_held, log_bytes, log_importance;
  // For the channel: its idle time in each piece with everything in fast memory.
  std::vector<float> idle;  // [kPieces]
};

// The mean of a function that is constant in each piece, from its sums before each piece: of
// kPieces + 1 numbers. They are doubles: most intervals are short.
float MeanOfPieces(const double* before, float begin, float end);

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_LEARNED_RUN_GRAPH_H_
