// The search tree of one root: an array of nodes, of which node 0 is the root. A node also holds
// what is known of the edge that leads to it. An edge that was never followed has no node; only its
// prior is kept, in the row of priors of the node that it leaves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace mallocgame::mcts {

// What the model says of one position: a row of Predictions (mcts/model.h).
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
  int32_t first_child = kNone;  // the newest child; siblings follow from newer to older
  int32_t next_sibling = kNone;
  int32_t total = 0;  // number of visits of all its edges, pending ones included

  // The edge that leads here. These fields mean nothing at the root.
  int32_t action = kNone;
  int32_t visits = 0;   // number of finished visits
  int32_t pending = 0;  // number of visits that have started and not finished
  float q = 0;  // mean return of the finished visits with the edge's reward; 0 without visits
  float prior = 0;
  float reward = 0;
  float discount = 1;  // factor of the return after the edge

  float value = 0;  // the model's value of the position; 0 if it is terminal
  // The action with the greatest prior among those that were never followed, and that prior.
  int32_t best_unvisited = kNone;
  float best_prior = -1;
  bool terminal = false;
  // Whether the model has answered. Until then the value and the flags are unknown.
  bool evaluated = false;
  // Whether the row of priors holds the policy instead of the model's logits. Most nodes are leaves
  // and never need it.
  bool normalised = false;
  bool ranked = false;  // whether best_unvisited is known
};

class Tree {
 public:
  static constexpr int32_t kNone = Node::kNone;

  Tree(int max_nodes, int num_actions);

  int size() const { return size_; }
  int max_nodes() const { return max_nodes_; }
  int num_actions() const { return num_actions_; }
  const Node& node(int i) const { return nodes_[i]; }  // i in [0, size())
  int32_t slot(int i) const { return slots_[i]; }      // in [0, max_nodes())
  // The node behind the edge of an action; kNone if the edge was never followed.
  int32_t Child(int i, int action) const {
    int32_t child = nodes_[i].first_child;
    while (child != kNone && nodes_[child].action != action) child = nodes_[child].next_sibling;
    return child;
  }
  // The priors of the edges of a ranked node that were never followed, one element for each action;
  // -1 where the action is illegal or was followed.
  absl::Span<const float> unvisited(int i) const {
    return absl::MakeConstSpan(Row(i), num_actions_);
  }
  // The mean return over all visits of a node's edges, where the model's value counts as one visit.
  float MeanValue(int i) const;

  // The least and greatest return seen, among the root's value and the q of all edges so far.
  float least() const { return least_; }
  float greatest() const { return greatest_; }

  void Clear() { size_ = 0; }
  // Adds a node under an edge that has none, or the root if the parent is kNone, and returns it.
  // The node must then be evaluated. There must be room.
  int32_t Add(int32_t parent, int32_t action);
  // Takes what the model says of node `i`. InvalidArgument: it breaks what Predictions asks for.
  absl::Status Evaluate(int32_t i, const Prediction& prediction);
  // Replaces the root's priors by `priors`: one element for each action, -1 where it is illegal. An
  // action that was followed must stay legal.
  void SetRootPriors(absl::Span<const float> priors);
  // Writes the root's priors, those of followed edges included; -1 where illegal.
  void GetRootPriors(absl::Span<float> priors) const;
  // Finds best_unvisited unless it is known.
  void Rank(int32_t node) {
    if (!nodes_[node].ranked) FindBestUnvisited(node);
  }
  // Adds a pending visit to each edge from the root to `node`.
  void Pend(int32_t node);
  // Adds a visit of node `i`, which returned the value of the node, to all edges above it.
  // `was_pending` says whether Pend announced the visit.
  void Backup(int32_t i, bool was_pending);
  // Makes a child of the root the new root, and removes all nodes that do not follow from it. No
  // visit may be pending.
  void Reroot(int32_t child);

 private:
  const float* Row(int32_t i) const { return &priors_[i * row_]; }
  float* Row(int32_t i) { return &priors_[i * row_]; }
  void NeedPriors(int32_t i);
  void FindBestUnvisited(int32_t i);

  int max_nodes_, num_actions_, size_ = 0;
  size_t row_;  // length of a row of priors, which is padded with -1 to whole vectors
  float least_ = 0, greatest_ = 0;
  std::vector<Node> nodes_;
  std::vector<int32_t> slots_;  // a permutation; the slots from size() on are free
  std::vector<float> priors_;   // one row for each node; logits until priors are needed
};

}  // namespace mallocgame::mcts
