// The search tree of one root: an array of nodes, node 0 is the root. A node also holds what is
// known of the edge that leads to it; an edge that was never followed is only its prior, in the row
// of the node it leaves.
#ifndef AGENTS_MCTS_TREE_H_
#define AGENTS_MCTS_TREE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace mallocgame::mcts {

// The model's word on one position: a row of Predictions (mcts/model.h).
struct Prediction {
  absl::Span<const float> logits;
  absl::Span<const uint8_t> legal;
  float value = 0;
  float reward = 0;
  float discount = 1;
  bool terminal = false;
};

struct alignas(64) Node {
  static constexpr int32_t kNone = -1;

  int32_t parent = kNone;       // kNone at the root
  int32_t first_child = kNone;  // newest first
  int32_t next_sibling = kNone;
  int32_t total = 0;  // visits of all its edges, pending ones included

  // The edge that leads here; of no meaning at the root.
  int32_t action = kNone;
  int32_t visits = 0;   // finished
  int32_t pending = 0;  // begun, not finished
  // mean return of the finished visits, the edge's reward included; 0 without visits
  float q = 0;
  float prior = 0;
  float reward = 0;
  float discount = 1;  // of what follows the edge

  float value = 0;  // the model's, of the position; 0 if terminal
  // the action that was never followed with the greatest prior; kNone if there is none
  int32_t best_unvisited = kNone;
  float best_prior = -1;  // its prior
  bool terminal = false;
  // the model has answered; until then value and what follows are unknown
  bool evaluated = false;
  // its row of priors is made of the model's logits; most nodes are never left and need none
  bool normalised = false;
  bool ranked = false;  // best_unvisited is known
};

class Tree {
 public:
  static constexpr int32_t kNone = Node::kNone;

  Tree(int max_nodes, int num_actions);

  int size() const { return size_; }
  int max_nodes() const { return max_nodes_; }
  int num_actions() const { return num_actions_; }
  const Node& node(int i) const { return nodes_[At(i)]; }  // i in [0, size())
  int32_t slot(int i) const { return slots_[At(i)]; }      // in [0, max_nodes())
  // kNone if there is none.
  int32_t Child(int i, int action) const {
    int32_t child = nodes_[At(i)].first_child;
    while (child != kNone && nodes_[At(child)].action != action)
      child = nodes_[At(child)].next_sibling;
    return child;
  }
  // Priors of the edges of a ranked node that were never followed, one element an action; -1 where
  // illegal or followed.
  absl::Span<const float> unvisited(int i) const {
    return absl::MakeConstSpan(Row(i), At(num_actions_));
  }
  float MeanValue(int i) const;  // over all visits of its edges; the model's value counts as one

  // Returns seen: the root's value and the q of all edges.
  float least() const { return least_; }
  float greatest() const { return greatest_; }

  // What follows changes the tree.
  void Clear() { size_ = 0; }
  // Adds a node under an edge that has none (the root with kNone), to be evaluated; returns it.
  // There must be room.
  int32_t Add(int32_t parent, int32_t action);
  // InvalidArgument for a prediction that breaks what Predictions asks for.
  absl::Status Evaluate(int32_t node, const Prediction& prediction);
  // The root's priors, replaced by `priors`: one element an action, -1 where illegal, only before
  // it has visits or where each node of the root's keeps a legal action.
  void SetRootPriors(absl::Span<const float> priors);
  // The root's priors, followed edges included; -1 where illegal.
  void GetRootPriors(absl::Span<float> priors) const;
  // Finds best_unvisited; does nothing if it is known.
  void Rank(int32_t node) {
    if (!nodes_[At(node)].ranked) FindBestUnvisited(node);
  }
  // Marks the edges from the root to `node` as pending once more.
  void Pend(int32_t node);
  // One visit of `node`, which returned its value: adds it to all edges above. `was_pending`: they
  // were marked.
  void Backup(int32_t node, bool was_pending);
  // `child` of the root becomes the root; all that does not follow from it goes. Nothing may be
  // pending.
  void Reroot(int32_t child);

 private:
  static size_t At(int32_t i) { return static_cast<size_t>(i); }
  const float* Row(int32_t i) const { return &priors_[At(i) * row_]; }
  float* Row(int32_t i) { return &priors_[At(i) * row_]; }
  void NeedPriors(int32_t node);
  void FindBestUnvisited(int32_t node);

  int max_nodes_, num_actions_, size_ = 0;
  // numbers of a row: the actions, and -1 up to a whole number of vectors
  size_t row_;
  float least_ = 0, greatest_ = 0;
  std::vector<Node> nodes_;
  std::vector<int32_t> slots_;  // a permutation: those at size() and after are free
  std::vector<float> priors_;   // a row a node; logits until they are needed
};

}  // namespace mallocgame::mcts

#endif  // AGENTS_MCTS_TREE_H_
