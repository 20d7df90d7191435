// Tree search in the true game as a solver, without a network: `mcts`.
#ifndef AGENTS_MCTS_MCTS_SOLVER_H_
#define AGENTS_MCTS_MCTS_SOLVER_H_

#include "mallocgame/solvers/solver.h"

namespace mallocgame::mcts {

// For SolveProblem::extra_solvers.
NamedSolver MctsSolver();

}  // namespace mallocgame::mcts

#endif  // AGENTS_MCTS_MCTS_SOLVER_H_
