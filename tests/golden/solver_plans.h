// The plans of the solvers whose answer depends on nothing but the problem, the seed and a limit of
// evaluations, told by fingerprints: a change that is to leave every plan as it was shows here if
// it does not.
#pragma once

#include <string>

namespace mallocgame::golden {

// One line for each problem and solver: the plan's latency in picoseconds, and the 64-bit FNV-1a of
// its JSON text. Ten bundled programs, and for the exact solver some of the examples.
std::string RecordSolverPlans();

}  // namespace mallocgame::golden
