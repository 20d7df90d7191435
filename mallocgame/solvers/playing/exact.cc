// Branch and bound over all plays of the game, for small programs. It goes depth first, and takes
// the action with the best lower bound first. The bound of a position is what is settled in it,
// plus every instruction still to come at its least price.
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/solvers/bounds.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/playing/rent.h"

namespace mallocgame {
namespace {

constexpr int kPositionsBetweenClocks = 64;

class BranchAndBound {
 public:
  BranchAndBound(const Game& game, Budget& budget)
      : budget_(budget), least_after_(LeastAfter(game)) {}

  // Returns true if all plays are accounted for; else open() is a lower bound on the others.
  bool Run(State state) {
    Finish(BestRentGame(state.game(), budget_.deadline()));
    open_ = std::numeric_limits<int64_t>::max();
    Visit(state, Bound(state));
    return !stopped_;
  }
  int64_t best() const { return best_; }
  int64_t open() const { return open_; }

 private:
  // For each tick, the least time of the instructions at it and after it in all their trips.
  static std::vector<int64_t> LeastAfter(const Game& game) {
    const Program& program = game.program();
    const auto prices = PricePlacements(game.cost_model(), 0);
    MG_CHECK(prices.ok());  // a Game's hardware is valid
    std::vector<int64_t> least(program.ticks() + 1, std::numeric_limits<int64_t>::max());
    for (const PlacementPrice& row : prices->rows) {
      int64_t& time = least[row.tick];
      time = std::min(time, row.time_ps);
    }
    least.back() = 0;
    // No sum overflows: each term is at most the instruction's time in the plan with everything in
    // main memory, whose latency a Game knows to fit.
    for (Tick t = program.ticks() - 1; t >= 0; --t) {
      const size_t at = t;
      least[at] = least[at] * program.trips(t) + least[at + 1];
    }
    return least;
  }

  int64_t Bound(const State& state) const {
    return state.IsTerminal() ? state.latency_ps()
                              : state.settled_ps() + least_after_[state.tick()];
  }

  void Finish(const State& state) {
    best_ = std::min(best_, state.latency_ps());
    budget_.Finished(state);
  }

  bool Stop() {
    if (!stopped_) {
      stopped_ = budget_.OutOfEvaluations() ||
                 (++positions_ % kPositionsBetweenClocks == 0 && budget_.deadline().Passed());
    }
    return stopped_;
  }

  void Visit(State& state, int64_t bound) {
    if (bound >= best_) return;
    if (state.IsTerminal()) return Finish(state);
    if (Stop()) {
      open_ = std::min(open_, bound);
      return;
    }
    budget_.Looked();
    struct Child {
      int64_t bound, latency;
      Action action;
    };
    std::array<Child, kActions> children;
    size_t count = 0;
    for (const int number : state.legal_actions()) {
      const auto action = static_cast<Action>(number);
      MG_CHECK(state.Apply(action).ok());
      children[count++] = {std::max(bound, Bound(state)), state.latency_ps(), action};
      state.Undo();
    }
    std::stable_sort(children.begin(), children.begin() + count,
                     [](const Child& a, const Child& b) {
                       return a.bound != b.bound ? a.bound < b.bound : a.latency < b.latency;
                     });
    for (size_t i = 0; i < count && children[i].bound < best_; ++i) {
      MG_CHECK(state.Apply(children[i].action).ok());
      Visit(state, children[i].bound);
      state.Undo();
    }
  }

  Budget& budget_;
  const std::vector<int64_t> least_after_;  // one for each tick, and one more
  int64_t best_ = std::numeric_limits<int64_t>::max();
  // the least bound of a position that was left unvisited
  int64_t open_ = std::numeric_limits<int64_t>::max();
  int64_t positions_ = 0;
  bool stopped_ = false;
};

}  // namespace

ExactOutcome PlayExact(const Game& game, Budget& budget) {
  BranchAndBound search(game, budget);
  const bool finished = search.Run(State(game));
  return {.optimal = finished || search.open() >= search.best(),
          .bound_ps = std::min(search.best(), search.open())};
}

}  // namespace mallocgame
