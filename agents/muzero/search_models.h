// Models for the tree search (mcts/model.h) that ask a network, over the true rules or over learned
// dynamics.
#pragma once

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "agents/muzero/config.h"
#include "agents/muzero/network.h"
#include "agents/muzero/task.h"
#include "mallocgame/game/position.h"
#include "mallocgame/tree/model.h"

namespace mallocgame::muzero {

// A position to search from. If the game is over there, the search leaves the root alone.
struct Root {
  const Task* task = nullptr;
  const Position* position = nullptr;
  // The actions of a whole game, as which rollouts go on. They may part from it before `position`.
  absl::Span<const uint8_t> follow;
};

class SearchModel : public mcts::Model {
 public:
  // Sets the roots of the next search. They must live until it ends.
  virtual void SetRoots(absl::Span<const Root> roots) = 0;
  // Number of positions that the network has evaluated.
  virtual int64_t evaluations() const = 0;
  // The actions of the fastest game that a rollout of root i has ended in since SetRoots; empty if
  // there was no rollout. And whether that is faster than the game that rollouts follow.
  virtual absl::Span<const uint8_t> fastest(int i) const = 0;
  virtual bool faster(int i) const = 0;
};

// Makes the model that `config` asks for. `network` must outlive it.
//
// With the true rules, rewards, legal actions and ends are exact, and the network says policy and
// value of each position. config.rollout_share mixes the value with that of a rollout, which plays
// on as Root::follow did and whose return is exact. What the rollout from the root would play is
// then no less likely than any other action, so the search compares its actions with that. A single
// simulation compares nothing: there are no rollouts then. Where rollouts alone judge, Gumbel
// search asks the network at the roots only, and below them takes all actions alike.
//
// With learned dynamics the rules say what is legal at the roots. Below them nothing is asked of
// positions: each action leads on, also behind the end of a game.
//
// Neither is mcts::GameModel, because the agent plays another game: rewards are leads gained,
// decisions with one legal action are skipped, and the roots may be of several tasks.
std::unique_ptr<SearchModel> MakeSearchModel(const Config& config, Network& network);

}  // namespace mallocgame::muzero
