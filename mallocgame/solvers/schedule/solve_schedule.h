// Finds an order of instructions and a plan of it together.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/game/game.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame {

struct ScheduleOptions {
  // The most main memory that an order may need: MainMemoryOf(program).total_bytes()
  // (schedule/main_memory.h). None: what the program's own order needs.
  std::optional<int64_t> main_bytes;
  // The solver that places at one order: at the program's own, where the search begins, and at the
  // best one, where it ends.
  std::string solver = "portfolio";
};

struct ScheduleResult {
  SolveResult placed;                // of the program with its instructions in `order`
  std::shared_ptr<const Game> game;  // of that program, in which `placed` was found
  // schedule/instruction_order.h. The program's own if no better one was found.
  std::vector<Tick> order;
  bool has_freedom = true;   // false: there is no other order, or nobody knows what depends on what
  int64_t own_order_ps = 0;  // the latency of the best plan found at the program's own order
  int64_t orders = 0;        // orders that were played
  // By chain of annealing: where it began ("own", or a rule of ListRule), and where it ended.
  struct Chain {
    std::string start;
    int64_t latency_ps = 0;
  };
  std::vector<Chain> chains;
};

// Places at the program's own order first. Where there is freedom, it then anneals over orders and
// placements together, in chains that begin at the program's own order and at those of list
// schedulers (schedule/list_scheduling.h), and places at the best order again. The result is never
// slower than the best plan found at the program's own order. No order that is looked at needs more
// main memory than allowed.
//
// With a limit of evaluations and none of time, results depend on the seed only. InvalidArgument:
// the program's own order needs more main memory than allowed; the solver refuses the problem.
absl::StatusOr<ScheduleResult> SolveSchedule(const SolveProblem& problem, const SolveLimits& limits,
                                             const ScheduleOptions& options = {});

}  // namespace mallocgame
