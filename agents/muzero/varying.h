// A whole game that is changed by trials, each accepted or rejected.
#ifndef AGENTS_MUZERO_VARYING_H_
#define AGENTS_MUZERO_VARYING_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "agents/muzero/task.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/game/position.h"

namespace mallocgame::muzero {

// A whole game, and the decisions at which other games may leave it: those with several legal
// actions.
struct Start {
  int64_t id = 0;    // that the replay gave it
  int32_t task = 0;  // index of its task
  std::vector<uint8_t> actions;
  std::vector<int32_t> decisions;  // indices of actions, at least one: those of its steps
};

// Another action at a decision of the game that is varied.
struct Proposal {
  int32_t decision;
  int32_t action;
  float until = 0;  // sum of the weights of the proposals up to this one
};

// What a variation changes: several proposals, by their decisions, and whether the first of them
// also counts for later decisions about the same buffer.
struct Changes {
  std::vector<Proposal> proposals;
  bool whole_buffer = false;
};

// Begins as the game to be varied; proposals go on naming that game's decisions. Try, Accept,
// Reject and latency_ps are as of a Neighbourhood (search/neighbourhood.h).
class Varying {
 public:
  virtual ~Varying() = default;

  // Sets up a trial, and returns the decision at which it leaves the accepted game. Nothing if the
  // first of the changes is none in that game.
  virtual std::optional<int32_t> Change(const Changes& changes, Rng& rng) = 0;
  // The same for a move of the kind that annealing tries.
  virtual std::optional<int32_t> Move(Rng& rng) = 0;
  virtual bool Try(int64_t most) = 0;
  virtual void Accept() = 0;
  virtual void Reject() = 0;
  virtual int64_t latency_ps() const = 0;
  // Where the trial ended. An accepted one has played its game to the end.
  virtual const Position& end() const = 0;
};

// Of a game of placement, and of a schedule game. Both begin with `start`.
std::unique_ptr<Varying> VaryPlacement(const Task& task, const Start& start);
std::unique_ptr<Varying> VarySchedule(const Task& task, const Start& start);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_VARYING_H_
