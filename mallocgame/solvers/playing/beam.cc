// Beam search over the game. Of all states that wait at the same access only the best few live on.
// The better one has the lower latency with everything undecided in main memory, then fewer
// resident bytes. The width doubles from 1 until the limits end the search, so that the best plan
// is never worse than a narrower beam's. Before all that it plays rent's game.
#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/solvers/playing/order_search.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/playing/rent.h"

namespace mallocgame {
namespace {

constexpr int kMaxWidth = 4096;

// A state that isn't made yet: its parent, and the action that leads to it.
struct Candidate {
  std::shared_ptr<const State> parent;
  Action action;
  int64_t latency_ps;
  int64_t resident_bytes;
};

bool Better(const Candidate& a, const Candidate& b) {
  return a.latency_ps != b.latency_ps ? a.latency_ps < b.latency_ps
                                      : a.resident_bytes < b.resident_bytes;
}
bool Alike(const Candidate& a, const Candidate& b) {
  return a.latency_ps == b.latency_ps && a.resident_bytes == b.resident_bytes;
}

using Waiting = std::map<int32_t, std::vector<Candidate>>;  // by the access they wait at

void Expand(State state, Waiting& waiting, std::vector<Candidate>& ended) {
  const auto parent = std::make_shared<const State>(state);
  for (const int number : parent->legal_actions()) {
    const auto action = static_cast<Action>(number);
    MG_CHECK(state.Apply(action).ok());
    const Candidate child = {parent, action, state.latency_ps(), state.resident_bytes()};
    if (state.IsTerminal()) {
      ended.push_back(child);
    } else {
      waiting[state.current_access().value].push_back(child);
    }
    state.Undo();
  }
}

State Make(const Candidate& candidate) {
  State state = *candidate.parent;
  MG_CHECK(state.Apply(candidate.action).ok());
  return state;
}

// Returns false if the deadline ended it. A beam of width 1 plays to the end, so that there is a
// plan.
bool PlayWidth(const Game& game, size_t width, Budget& budget) {
  Waiting waiting;
  std::vector<Candidate> ended;
  State start = game.InitialState();
  if (start.IsTerminal()) {
    budget.Finished(start);
    return true;
  }
  Expand(std::move(start), waiting, ended);
  while (!waiting.empty()) {
    if (width > 1 && budget.deadline().Passed()) return false;
    std::vector<Candidate> here = std::move(waiting.begin()->second);
    waiting.erase(waiting.begin());
    std::stable_sort(here.begin(), here.end(), Better);
    here.erase(std::unique(here.begin(), here.end(), Alike), here.end());
    if (here.size() > width) here.resize(width);
    for (const Candidate& candidate : here) Expand(Make(candidate), waiting, ended);
  }
  budget.Finished(Make(*std::min_element(ended.begin(), ended.end(), Better)));
  return true;
}

}  // namespace

bool PlayBeam(const Game& game, Budget& budget) {
  if (game.options().kind == GameKind::kOrder) return BeamOrderGame(game, budget);
  budget.Finished(BestRentGame(game, budget.deadline(), /*small_buffers=*/true));
  if (budget.Exhausted()) return false;
  for (size_t width = 1; width <= kMaxWidth; width *= 2) {
    if (!PlayWidth(game, width, budget)) return false;
    if (budget.Exhausted()) return false;
  }
  return true;
}

}  // namespace mallocgame
