// What depends on what in programs made for tests, whose accesses are all that they do.
#pragma once

#include <memory>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/program/program.h"

namespace mallocgame::testing {

// The same program, in which two instructions of a region depend on each other if they, or what
// they run, access a buffer that one of them changes, or both have no accesses.
std::shared_ptr<const Program> WithDependences(const Program& program);

// An order that the dependences allow, drawn at random: each unit of a region that is ready is as
// likely as another to be the next.
std::vector<Tick> RandomOrder(const std::shared_ptr<const Program>& program, Rng& rng);

}  // namespace mallocgame::testing
