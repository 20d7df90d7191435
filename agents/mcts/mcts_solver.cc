// Plays one game after another. In each game a tree is searched before every decision. The value of
// a leaf comes from playing on to the end in the way of the current game, or greedily where that is
// not possible, so every leaf is a complete game. A better game replaces the current one at once,
// and its action is played, so no game ends worse than it started.
//
// Every second game starts from a few random changes to the best one, so that the search does not
// stay where it is. The others start from the best game itself, with 1, 2, 1, 4, 1, 2, 1, 8 ...
// times the simulations of the first for each decision. In the end the same is done in the game in
// which small buffers have decisions too.
#include "agents/mcts/mcts_solver.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "agents/mcts/game_model.h"
#include "agents/mcts/search.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/play_actions.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/playing/preference_search.h"

namespace mallocgame::mcts {
namespace {

constexpr int kSimulations = 16;  // for each decision, in every second game
constexpr int kMostDoublings = 14;
constexpr uint32_t kMostChanged = 8;  // greatest number of successive decisions that are changed
// Room in the tree, which is kept from one decision to the next.
constexpr int kNodesPerSimulation = 8;
// The logit of the current game's action; other actions have 0.
constexpr float kPreferredLogit = 1;
constexpr int kPositionsBetweenClocks = 16;

PuctOptions Puct() {
  PuctOptions options;
  options.unvisited = Unvisited::kNode;
  options.dirichlet_alpha = 1;
  options.dirichlet_fraction = 0.5f;
  return options;
}

// Values positions by games that follow the current game. Knows the current and the best game.
class Rollouts final : public Evaluator {
 public:
  // Ends the search when the share `until` of the limits is used up.
  Rollouts(const Game& game, Preferences start, double until, Budget& budget)
      : game_(game), budget_(budget), until_(until), preferences_(std::move(start)) {
    PlayFromStart();
    best_ = line_;
  }

  // The actions of the current game.
  const std::vector<uint8_t>& actions() const { return line_.actions; }

  // Makes the best game the current one, and returns what it prefers.
  const Preferences& ReturnToBest() {
    if (line_.latency_ps <= best_.latency_ps) {
      best_ = line_;
    } else {
      line_ = best_;
      Adopt();
    }
    return preferences_;
  }

  // This looks at the clock, which takes time.
  bool Exhausted() const { return budget_.Exhausted() || budget_.Progress() >= until_; }

  // Changes a few successive decisions, or also those about one buffer from some moment on, at
  // random.
  void Change(Rng& rng) {
    const auto decisions = static_cast<uint32_t>(asked_.size());
    const uint32_t begin = rng.Below(decisions),
                   end = std::min(decisions, begin + 1 + rng.Below(kMostChanged));
    for (uint32_t i = begin; i < end; ++i) {
      if (rng.Below(2) == 0) Prefer(asked_[i], AnyAction(rng));
    }
    if (rng.Below(2) == 0) {
      const AccessId first = asked_[rng.Below(decisions)];
      const uint8_t action = AnyAction(rng);
      for (const AccessId id : game_.program().accesses_of(game_.program().access(first).buffer)) {
        if (id >= first && rng.Below(4) != 0) Prefer(id, action);
      }
    }
    PlayFromStart();
  }

  void Begin(int rows) override { rows_.assign(rows, {}); }

  void Look(int row, int /*root*/, State& state) override {
    Row& out = rows_[row];
    const int decisions = state.num_decisions();
    const int64_t latency_ps = state.latency_ps();
    if (!state.IsTerminal()) out.preferred = static_cast<int>(Preferred(state));
    PlayOn(state);
    out.saved_ps = latency_ps - state.latency_ps();
    // A game of the same latency is taken too: the search drifts over what makes no difference.
    if (state.latency_ps() <= line_.latency_ps &&
        state.actions() != absl::MakeConstSpan(line_.actions))
      Keep(state);
    while (state.num_decisions() > decisions) state.Undo();
  }

  absl::Status Finish(absl::Span<float> logits, absl::Span<float> values) override {
    if (changed_) Adopt();
    const auto all_main_ps = static_cast<double>(game_.all_main_ps());
    const size_t actions = logits.size() / values.size();
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<float>(static_cast<double>(rows_[i].saved_ps) / all_main_ps);
      if (rows_[i].preferred >= 0) logits[i * actions + rows_[i].preferred] = kPreferredLogit;
    }
    const bool look_at_clock = ++positions_ % kPositionsBetweenClocks == 0;
    if (budget_.OutOfEvaluations() || (look_at_clock && Exhausted()))
      return absl::CancelledError("out of limits");
    return absl::OkStatus();
  }

 private:
  struct Row {
    int64_t saved_ps = 0;
    int preferred = -1;
  };
  struct Line {
    std::vector<uint8_t> actions;
    int64_t latency_ps = 0;
  };

  uint8_t AnyAction(Rng& rng) const { return static_cast<uint8_t>(rng.Below(game_.num_actions())); }
  void Prefer(AccessId access, uint8_t action) { preferences_[access.index()] = action; }
  Action Preferred(State& state) const {
    return PreferredAction(state, preferences_[state.current_access().index()]);
  }

  void PlayOn(State& state) {
    while (!state.IsTerminal()) MG_CHECK(state.Apply(Preferred(state)).ok());
    budget_.Finished(state);
  }

  void PlayFromStart() {
    State state = game_.InitialState();
    PlayOn(state);
    Keep(state);
    Adopt();
  }

  void Keep(const State& state) {
    line_.latency_ps = state.latency_ps();
    line_.actions.assign(state.actions().begin(), state.actions().end());
    changed_ = true;
  }

  // Makes the actions of the current game what is preferred.
  void Adopt() {
    State state = game_.InitialState();
    asked_.clear();
    for (const uint8_t action : line_.actions) {
      asked_.push_back(state.current_access());
      Prefer(asked_.back(), action);
      MG_CHECK(state.Apply(static_cast<Action>(action)).ok());
    }
    changed_ = false;
  }

  const Game& game_;
  Budget& budget_;
  const double until_;
  Preferences preferences_;
  Line line_, best_;             // the current game, and the best
  std::vector<AccessId> asked_;  // the accesses that the current game decided about
  bool changed_ = false;         // whether line_ differs from what preferences_ say
  int64_t positions_ = 0;
  std::vector<Row> rows_;
};

void Note(const Search& search, SearchStatistics& statistics) {
  const size_t begin = statistics.visits.size();
  statistics.visits.resize(begin + search.num_actions());
  statistics.values.resize(begin + search.num_actions());
  std::copy(search.visits(0).begin(), search.visits(0).end(), &statistics.visits[begin]);
  std::copy(search.q(0).begin(), search.q(0).end(), &statistics.values[begin]);
}

// Searches and plays all decisions of one game. False if the limits ended it.
bool SearchDecisions(const Game& game, int simulations, uint64_t seed, Budget& budget,
                     Rollouts& rollouts, GameModel& model, SearchStatistics& statistics) {
  SearchOptions options;
  options.simulations = simulations;
  options.max_nodes = kNodesPerSimulation * simulations;
  options.min_range = 1e-7f;  // a share of the all-main latency
  const auto search = Search::Create(options, *MakePuct(Puct()), 1, game.num_actions());
  MG_CHECK(search.ok());
  Rng seeds(seed);
  model.SetState(0, game.InitialState());
  for (size_t i = 0; i < rollouts.actions().size(); ++i) {
    const int64_t before = budget.evaluations();
    const absl::Status status = (*search)->Run(model, seeds.Next());
    if (status.code() == absl::StatusCode::kCancelled) return false;
    MG_CHECK(status.ok());
    // Games that end in the tree are not shown to the evaluator again.
    for (int64_t seen = budget.evaluations() - before; seen < (*search)->simulations(0); ++seen)
      budget.Looked();
    if (rollouts.Exhausted()) return false;
    Note(**search, statistics);
    const uint8_t action = rollouts.actions()[i];
    const absl::StatusOr<bool> kept = (*search)->Advance(model, 0, action);
    MG_CHECK(kept.ok());
    if (*kept) continue;
    State next = model.state(0);
    MG_CHECK(next.Apply(static_cast<Action>(action)).ok());
    model.SetState(0, std::move(next));
  }
  return true;
}

// Plays one game and offers it, with what its searches said, as the best one. If the limits ended
// it, its searches are incomplete, so it is offered only where no game with searches is known.
// False if the limits ended it.
bool PlayOneGame(const Game& game, int simulations, uint64_t seed, Budget& budget,
                 Rollouts& rollouts, GameModel& model) {
  SearchStatistics statistics;
  const bool whole = SearchDecisions(game, simulations, seed, budget, rollouts, model, statistics);
  if (!whole && !budget.best_search().visits.empty()) return false;
  const std::unique_ptr<Position> end = *PlayActions(game, rollouts.actions());
  statistics.visits.resize(rollouts.actions().size() * game.num_actions());
  statistics.values.resize(statistics.visits.size());
  budget.Searched(*end, std::move(statistics));
  return whole;
}

// Plays games until the share `until` of the limits is used up. Returns what the best one prefers.
Preferences PlayGames(const Game& game, Preferences start, double until, Rng& rng, Budget& budget) {
  Rollouts rollouts(game, std::move(start), until, budget);
  if (rollouts.actions().empty()) return rollouts.ReturnToBest();
  const auto model = GameModel::Create({game.InitialState()}, &rollouts);
  MG_CHECK(model.ok());
  for (uint64_t number = 1; !rollouts.Exhausted(); ++number) {
    const int doublings = std::min(std::countr_zero(number), kMostDoublings);
    rollouts.ReturnToBest();
    if (doublings == 0 && number > 1) rollouts.Change(rng);
    if (!PlayOneGame(game, kSimulations << doublings, rng.Next(), budget, rollouts, **model)) break;
  }
  return rollouts.ReturnToBest();
}

bool PlayMcts(const Game& game, Budget& budget) {
  Rng rng(budget.seed(), 4);
  Preferences start = GoodStart(game, budget.deadline());
  const std::shared_ptr<const Game> fine = budget.limited() ? GameOfSmallBuffers(game) : nullptr;
  Preferences best =
      PlayGames(game, std::move(start), fine != nullptr ? kCoarseShare : 1.0, rng, budget);
  if (fine != nullptr && !budget.Exhausted()) PlayGames(*fine, std::move(best), 1.0, rng, budget);
  return false;
}

}  // namespace

NamedSolver MctsSolver() {
  return {"mcts",
          [](const SolveProblem& problem, const SolveLimits& limits) {
            return SolveByPlaying(problem, limits, PlayMcts);
          },
          0};
}

}  // namespace mallocgame::mcts
