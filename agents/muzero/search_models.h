// What the tree search asks (mcts/model.h), answered by a network: over the true rules or over
// learned dynamics.
#ifndef AGENTS_MUZERO_SEARCH_MODELS_H_
#define AGENTS_MUZERO_SEARCH_MODELS_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "agents/mcts/model.h"
#include "agents/muzero/config.h"
#include "agents/muzero/network.h"
#include "agents/muzero/task.h"

namespace mallocgame::muzero {

// A position to search from. Where the game is over the search leaves the root alone.
struct Root {
  const Task* task = nullptr;
  const State* state = nullptr;
};

class SearchModel : public mcts::Model {
 public:
  // Of the next search; they must live until it ends.
  virtual void SetRoots(absl::Span<const Root> roots) = 0;
  // Positions that the network has looked at.
  virtual int64_t evaluations() const = 0;
};

// Not mcts::GameModel, because the agent's game is another one: rewards are leads gained, decisions
// with one legal action are skipped, and roots may be of several tasks.
//
// True rules: rewards, legal actions and ends are exact, the network says policy and value of each
// position. Learned dynamics: only the roots are real, below them every action is thought legal and
// no game ends. `network` must live as long.
std::unique_ptr<SearchModel> MakeSearchModel(const Config& config, Network& network);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_SEARCH_MODELS_H_
