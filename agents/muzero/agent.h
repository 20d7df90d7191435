// A trained agent: plays any program, also one that it has not seen.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/muzero/config.h"
#include "mallocgame/game/position.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame::muzero {

// What a search says of a position.
struct Advice {
  int action = 0;
  std::vector<float> policy;  // one number for each action; 0 where it is illegal
  // The expected return of the whole game, which is 1 - latency / all-main latency.
  double value = 0;
  SearchStatistics search;  // of this decision
};

// Several threads may use an agent; each call works by itself. A priority or schedule game that it
// is given is played with as many candidates as the agent was trained with; SolveResult::game is
// that game.
class Agent {
 public:
  // Makes an agent of what Trainer::Save returned. InvalidArgument: the checkpoint is damaged or of
  // another version.
  static absl::StatusOr<std::shared_ptr<const Agent>> Load(absl::string_view bytes);
  virtual ~Agent() = default;

  // Solves a problem: starts from the games of greedy, rent, styles and xla-heuristic, and plays
  // with the trained networks, without learning, until the limits end it. A priority game may be
  // played with other weights of importance, or without the largest buffers. With
  // limits.evaluations and without seconds the result depends on the seed only. InvalidArgument:
  // the agent was trained in another game, or with the time game's other actions.
  virtual absl::StatusOr<SolveResult> Solve(const SolveProblem& problem,
                                            const SolveLimits& limits) const = 0;

  // The game that promises most for the program and hardware of `game`: one in which greedy's or
  // styles' game is fastest, of priority games with other weights of importance, with small
  // buffers, or without the largest. Other games are themselves. It depends on the agent's seed
  // only. Cancelled: `cancel` was set (it may be null).
  virtual absl::StatusOr<std::shared_ptr<const Game>> GameToPlay(
      const std::shared_ptr<const Game>& game, const std::atomic<bool>* cancel) const = 0;

  // The best game of greedy, rent, styles and xla-heuristic, as far as `game` lets them be played:
  // what the agent sees beside a position, what it counts returns over, and what rollouts follow at
  // first. Cancelled: `cancel` was set (it may be null).
  virtual absl::StatusOr<SolveResult> Baseline(const std::shared_ptr<const Game>& game,
                                               const std::atomic<bool>* cancel) const = 0;

  // Plays one game, with a search without noise for each decision, which takes its settings from
  // `search`: simulations, prior and rollout_share. With rollouts it plays
  // on as the fastest game that one has ended in so far. With one simulation the policy decides
  // alone. With a uniform prior Gumbel search needs noise: it draws the actions that are tried.
  // InvalidArgument: `search` has another preset than the agent. Cancelled:
  // `cancel` was set (it may be null).
  virtual absl::StatusOr<SolveResult> Play(const std::shared_ptr<const Game>& game,
                                           const Config& search,
                                           const std::atomic<bool>* cancel) const = 0;

  // Searches one position, with its own settings. The first position of a game takes longest, for
  // its baseline. FailedPrecondition: the game is over. InvalidArgument: its game has another
  // number of actions than the agent was trained with. Cancelled: `cancel` was set (it may be
  // null).
  virtual absl::StatusOr<Advice> Act(const Position& position,
                                     const std::atomic<bool>* cancel) const = 0;

  virtual const Config& config() const = 0;
  std::string game() const { return config().game; }             // that Solve plays
  virtual int64_t iterations() const = 0;                        // number of training steps
  virtual const std::vector<std::string>& programs() const = 0;  // names of those trained on
};

}  // namespace mallocgame::muzero
