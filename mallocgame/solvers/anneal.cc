// Simulated annealing over the preferred action of every decision, played through the game, so that every candidate is a
// valid plan and costs what Simulate says. A move changes a few preferences and plays on from the first changed decision; a
// preference that is illegal when its turn comes gives way to the next best in a fixed order.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/solvers/budget.h"

namespace mallocgame {
namespace {

// What to play instead of an illegal preference.
constexpr std::array<std::array<Action, 3>, kActions> kInstead = {{
    {Action::kNoCopy, Action::kCopy, Action::kCopyEarly},   // Drop (only if another placement is required)
    {Action::kCopyEarly, Action::kNoCopy, Action::kDrop},   // Copy
    {Action::kCopy, Action::kCopyEarly, Action::kDrop},     // NoCopy
    {Action::kCopy, Action::kNoCopy, Action::kDrop},        // CopyEarly
}};

constexpr double kFirstTemperature = 3e-3;  // as a share of the starting latency
constexpr double kLastTemperature = 2e-6;

class Annealing {
 public:
  Annealing(const Game& game, Budget& budget)
      : budget_(budget), rng_(budget.seed(), 1), state_(game.InitialState()), program_(game.program()),
        preferred_(program_.accesses().size(), static_cast<uint8_t>(Action::kDrop)) {}

  bool Run() {
    StartFromGreedy();
    if (asked_.empty()) return true;
    int64_t current = state_.latency_ps();
    const auto scale = static_cast<double>(current);
    double temperature = kFirstTemperature * scale;
    for (int64_t move = 0; !Done(move); ++move) {
      if (move % 64 == 0) {
        temperature = kFirstTemperature * scale * std::pow(kLastTemperature / kFirstTemperature, budget_.Progress());
      }
      Propose();
      PlayOn();
      const auto worse = static_cast<double>(state_.latency_ps() - current);
      budget_.Finished(state_);
      if (worse <= 0 || rng_.Uniform() < std::exp(-worse / temperature)) {
        current = state_.latency_ps();
        RememberGame();
      } else {
        for (size_t i = changed_.size(); i-- > 0;) preferred_[changed_[i].first] = changed_[i].second;
      }
    }
    return false;
  }

 private:
  bool Done(int64_t move) const { return move % 64 == 0 ? budget_.Exhausted() : budget_.OutOfEvaluations(); }

  void StartFromGreedy() {
    PlayGreedyFrom(state_);
    budget_.Finished(state_);
    const std::vector<uint8_t> actions(state_.actions().begin(), state_.actions().end());
    while (state_.num_decisions() > 0) state_.Undo();
    for (uint8_t action : actions) {
      asked_.push_back(state_.current_access());
      preferred_[asked_.back().index()] = action;
      MG_CHECK(state_.Apply(static_cast<Action>(action)).ok());
    }
  }

  // The decisions of the game just played, and what it really chose: preferences that gave way are forgotten.
  void RememberGame() {
    asked_.resize(static_cast<size_t>(first_));
    asked_.insert(asked_.end(), trial_.begin(), trial_.end());
    for (size_t i = static_cast<size_t>(first_); i < asked_.size(); ++i) preferred_[asked_[i].index()] = state_.actions()[i];
  }

  void Set(AccessId access, Action action) {
    changed_.emplace_back(access.index(), preferred_[access.index()]);
    preferred_[access.index()] = static_cast<uint8_t>(action);
  }

  Action AnyAction() { return static_cast<Action>(rng_.Below(static_cast<uint32_t>(state_.game().num_actions()))); }

  // Changes preferences and leaves the state at the first decision they concern.
  void Propose() {
    changed_.clear();
    const auto at = static_cast<int32_t>(rng_.Below(static_cast<uint32_t>(asked_.size())));
    GoTo(at);
    const AccessId access = asked_[static_cast<size_t>(at)];
    const auto kind = rng_.Below(8);
    if (kind < 5) {
      uint32_t others = state_.legal_mask() & ~(1u << preferred_[access.index()]);
      if (others == 0) others = state_.legal_mask();
      for (uint32_t skip = rng_.Below(static_cast<uint32_t>(std::popcount(others))); skip > 0; --skip) others &= others - 1;
      Set(access, static_cast<Action>(std::countr_zero(others)));
    } else if (kind < 7) {
      // This buffer, from here on.
      const Action action = AnyAction();
      for (AccessId id : program_.accesses_of(program_.access(access).buffer)) {
        if (id >= access && rng_.Below(4) != 0) Set(id, action);
      }
    } else {
      // A few decisions in a row.
      const size_t end = std::min(asked_.size(), static_cast<size_t>(at) + 2 + rng_.Below(6));
      for (size_t i = static_cast<size_t>(at); i < end; ++i) {
        if (rng_.Below(2) == 0) Set(asked_[i], AnyAction());
      }
    }
  }

  // Brings the state to decision `at` of the remembered game. It stands somewhere in a game that agrees with that one in its
  // first first_ decisions.
  void GoTo(int32_t at) {
    while (state_.num_decisions() > std::min(first_, at)) state_.Undo();
    while (state_.num_decisions() < at) {
      MG_CHECK(state_.Apply(static_cast<Action>(preferred_[state_.current_access().index()])).ok());
    }
    first_ = at;
  }

  void PlayOn() {
    trial_.clear();
    while (!state_.IsTerminal()) {
      const AccessId access = state_.current_access();
      trial_.push_back(access);
      auto action = static_cast<Action>(preferred_[access.index()]);
      if (!state_.IsLegal(action)) {
        for (Action other : kInstead[static_cast<size_t>(action)]) {
          if (state_.IsLegal(other)) {
            action = other;
            break;
          }
        }
      }
      MG_CHECK(state_.Apply(action).ok());
    }
  }

  Budget& budget_;
  Rng rng_;
  State state_;
  const Program& program_;
  std::vector<uint8_t> preferred_;                     // one an access
  std::vector<AccessId> asked_;                        // decisions of the remembered game
  std::vector<AccessId> trial_;                        // decisions of the game tried, from first_ on
  std::vector<std::pair<size_t, uint8_t>> changed_;    // access and its preference before
  int32_t first_ = 0;
};

}  // namespace

bool PlayAnneal(const Game& game, Budget& budget) { return Annealing(game, budget).Run(); }

}  // namespace mallocgame
