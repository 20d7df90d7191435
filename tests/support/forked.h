// What holds in a forked child of the test's process.
#pragma once

#include <functional>

namespace mallocgame {

// Forks, and says whether `check` returns true in the child. A child that has not ended after 30
// seconds is killed and counts as false, as one that crashes does.
bool HoldsInChild(const std::function<bool()>& check);

}  // namespace mallocgame
