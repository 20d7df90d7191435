// Games by other players that the agent learns from, and plans that it is compared with.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "agents/muzero/config.h"
#include "agents/muzero/task.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame::muzero {

// What greedy, rent, styles and xla-heuristic find, in this order; of a schedule game at the
// program's own order, in the priority game. Unless `anneal_decisions` is 0, it adds that of
// annealing over priority games with so many decisions in total, and XLA's plan where
// problem.xla_plan is given. MuZero as published has the all-main plan alone, of which it learns
// nothing: returns are counted from it. The results depend on the seed only, unless `cancel`, which
// may be null, ends it early.
absl::StatusOr<std::vector<SolveResult>> AskDemonstrators(const SolveProblem& problem,
                                                          const Config& config,
                                                          double anneal_decisions, uint64_t seed,
                                                          const std::atomic<bool>* cancel);

// Whether there are other games that differ from `game` in what is important: priority games.
bool WeighsImportance(const Game& game);

// If there are, adds greedy's games in those and in priority games that ask about small buffers
// where `game` does not, or in which the largest buffers stay out of fast memory; and of the games
// in these and in `game` that are played as that of styles was, the best. Of fewer if `deadline`
// passes.
absl::Status AddPriorityStarts(const Game& game, const Deadline& deadline,
                               std::vector<SolveResult>& results);

// The game to play instead of `game`. A priority game has the weights of importance, and leaves out
// small buffers and the largest ones or not, as the one with the fastest of the results. For others
// it is the game itself.
std::shared_ptr<const Game> MostPromising(const std::shared_ptr<const Game>& game,
                                          absl::Span<const SolveResult> results);

struct Demonstration {
  std::vector<uint8_t> actions;  // a whole play of the game
  int64_t latency_ps = 0;        // latency of that play
  SolveResult result;            // the demonstrator's own result, which no play need reach
};

// A play of `game` for each of the results. A game of other options becomes the play that decides
// alike, and a plan that is no play, such as XLA's, the one that prefers the same memory at every
// access. In a schedule game it is the best that does so at the program's own order or at that of a
// list scheduler (mcts::SchedulePolicy).
absl::StatusOr<std::vector<Demonstration>> Demonstrate(const Game& game,
                                                       std::vector<SolveResult> results);

// The baseline by the setting of that name: greedy's, which is the first, or the fastest.
const Demonstration& BaselineAmong(absl::Span<const Demonstration> demonstrations,
                                   const Config& config);

// The baseline of a game that nobody has demonstrated yet. The rest as of AskDemonstrators.
absl::StatusOr<Demonstration> BaselineOf(const std::shared_ptr<const Game>& game,
                                         const Config& config, uint64_t seed,
                                         const std::atomic<bool>* cancel);

// What the training on a program begins with.
struct Demonstrations {
  std::shared_ptr<const Game> game;  // the one to play: MostPromising
  std::vector<Demonstration> all;    // in that game; at least one
};

// Plays them, beginning with `game`, GameOf the problem. `seed` is the trainer's; the results
// depend on it only, unless `cancel`, which may be null, ends it early.
absl::StatusOr<Demonstrations> DemonstrationsFor(const TrainingProblem& problem,
                                                 std::shared_ptr<const Game> game,
                                                 const Config& config, uint64_t seed,
                                                 const std::atomic<bool>* cancel);

// A plan that was found, as bytes and back, of the problem that is played in `game`: with its
// order, report and found_by. InvalidArgument: the bytes are damaged.
void WriteFound(const Game& game, const SolveResult& found, std::string& out);
absl::StatusOr<SolveResult> ReadFound(absl::string_view& in, const Game& game);

// Demonstrations as bytes and back, of a program and with the settings of whoever wrote them.
// InvalidArgument: the bytes are damaged.
void Write(const Demonstrations& demonstrations, std::string& out);
absl::StatusOr<Demonstrations> ReadDemonstrations(absl::string_view in, const Game& game,
                                                  const Config& config);

}  // namespace mallocgame::muzero
