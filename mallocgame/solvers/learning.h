// What the training of the solver `learned` needs: what its network reads of a program, and games
// by the advice of any weights. docs/learned.md.
#ifndef MALLOCGAME_SOLVERS_LEARNING_H_
#define MALLOCGAME_SOLVERS_LEARNING_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/plan/plan.h"

namespace mallocgame {

// By name the sizes of the network and of a style: "pieces", into which the program's time is
// divided; "features" of a run, "hidden" numbers of a layer, "state" of a run, "space_wants" and
// "channel_wants", "outputs", the number of all "weights", and the numbers of a "style".
std::map<std::string, int> LearnedSizes();

// The order game of any game, as `learned` plays it: it asks about small buffers too. Rows are
// runs, in one order for all functions, a whole before its parts. Immutable: shared by threads.
class LearningGame {
 public:
  explicit LearningGame(const Game& game);
  ~LearningGame();

  int64_t runs() const;
  // The latency of the game in each style, in picoseconds. `network` has LearnedSizes()["weights"]
  // numbers, `styles` a multiple of "style".
  std::vector<int64_t> Play(absl::Span<const float> network, absl::Span<const float> styles) const;
  // [runs, outputs]: the importance, what Late, Early, Preload and Split are worth, and the saving.
  std::vector<float> Advice(absl::Span<const float> network) const;
  // For each run what a plan does with it, as a value of Service (game/order/order_state.h).
  std::vector<uint8_t> ServicesOf(const Plan& plan) const;
  // The run that each is a part of; -1: it is a buffer's whole life.
  std::vector<int32_t> Parents() const;
  // [runs, 5]: 1 if the service can be legal.
  std::vector<uint8_t> Services() const;
  // [runs, features]
  std::vector<float> Features() const;
  // What else the network reads of each run: "begin", "end", "fetch_begin" and "need" in pieces of
  // time; "bytes" and "copy" as shares of memory and of the program's time; and natural logarithms,
  // "log_saving", "log_held", "log_bytes", "log_importance".
  std::map<std::string, std::vector<float>> Columns() const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_LEARNING_H_
