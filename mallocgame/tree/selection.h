// Rules of selection. A rule says which action to follow at the root and below it, which one to
// play in the end, and what a policy should learn. The search is one loop, and takes a rule as an
// argument: PUCT, Gumbel, or another one that a caller writes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/tree/tree.h"

namespace mallocgame::mcts {

// How returns are mapped to [0, 1] before a rule compares them.
enum class ValueScaling : uint8_t {
  kTree,   // from the least and greatest return seen in the root's tree
  kNode,   // from the least and greatest of the values that the rule compares at the node
  kKnown,  // from SearchOptions::min_value and max_value
};

// Maps returns to about [0, 1], by (q - low) * factor, but to no less than `floor`.
struct Scale {
  float low = 0;
  float factor = 1;
  float floor = -std::numeric_limits<float>::infinity();
  float operator()(float q) const { return std::max(floor, (q - low) * factor); }
  // Returns that differ by less than min_range are scaled as if they differed by min_range. Those
  // further below `high` than max_range are scaled as if they were max_range below it.
  static Scale Of(float low, float high, float min_range, float max_range) {
    if (high - low > max_range) return {high - max_range, 1 / max_range, 0};
    return {low, 1 / std::max(high - low, min_range)};
  }
};

// A node as a rule sees it.
struct NodeView {
  const Tree* tree = nullptr;
  int32_t node = 0;
  Scale scale;  // the scale of returns; with kNode the rule makes its own
  ValueScaling scaling = ValueScaling::kTree;
  float min_range = 0, max_range = 0;  // of SearchOptions

  // The node itself. It is ranked: its best action that was never followed is known.
  const Node& self() const { return tree->node(node); }
  // Calls visit(edge) for each edge that was followed. An edge has an action, a prior, visits,
  // pending visits and q.
  template <class Visit>
  void ForEachEdge(const Visit& visit) const {
    for (int32_t child = self().first_child; child != Node::kNone;) {
      const Node& edge = tree->node(child);
      visit(edge);
      child = edge.next_sibling;
    }
  }
};

// The root, with what belongs to this search alone. Spans have one element for each action.
struct RootView : NodeView {
  absl::Span<const float> noise;  // what the rule's Begin wrote
  // Those of the edges' visits that come from earlier searches, where the tree was kept.
  absl::Span<const int32_t> visits_before;
  int32_t legal = 0;        // number of legal actions
  int32_t simulations = 0;  // number of simulations planned for this search
  int32_t started = 0;      // number of those that have started, pending ones included
  int32_t pending = 0;      // number of those that have started and not finished
};

// A rule. It is immutable, and several threads use it at a time.
class Selection {
 public:
  // What SelectAtRoot returns instead of an action to have the pending simulations finished first.
  // It must not return this when none is pending.
  static constexpr int kWait = -1;

  virtual ~Selection() = default;

  // Called before the first simulation of a search. Writes the root's noise, one number for each
  // action, and may change the root's priors, which are the model's policy (-1 where illegal).
  virtual void Begin(Rng& rng, absl::Span<float> priors, absl::Span<float> noise) const = 0;
  // Each returns the legal action to follow; SelectAtRoot may return kWait.
  virtual int SelectAtRoot(const RootView& root) const = 0;
  virtual int Select(const NodeView& node) const = 0;

  // Follows Select from view.node, which is evaluated and not terminal. view.node becomes the last
  // such node on the way, depth grows by the number of edges followed, and the result is the edge
  // that Select chose there. Rules need not override this; they do so for speed.
  struct Edge {
    int action;
    int32_t child;  // kNone if never followed; else a node that is not evaluated yet, or terminal
  };
  virtual Edge Follow(Tree& tree, NodeView& view, int& depth) const;

  // Called after the last simulation. Act returns the action to play. WriteTarget writes the policy
  // that the search recommends: one number for each action, 0 where illegal, with sum 1.
  virtual int Act(const RootView& root) const = 0;
  virtual void WriteTarget(const RootView& root, absl::Span<float> policy) const = 0;
};

// The value that PUCT gives an action without visits.
enum class Unvisited : uint8_t {
  kWorst,  // 0 after scaling, as in MuZero
  kNode,   // the model's value of the node
};

// PUCT (MuZero, appendix B) follows the action with the greatest
//
//     q + prior * sqrt(n) / (1 + visits) * (c_init + log((n + c_base + 1) / c_base)),
//
// where n is total + 1.
struct PuctOptions {
  float c_init = 1.25f;
  float c_base = 19652;
  Unvisited unvisited = Unvisited::kWorst;
  // Root priors become (1 - f) * prior + f * Dirichlet(alpha).
  float dirichlet_fraction = 0.25f;  // f, in [0, 1]; 0 for no noise
  float dirichlet_alpha = 0.3f;      // more than 0
};

// The rule plays the most visited action, of several the one with the greatest q. Its target is the
// share of visits. InvalidArgument: an option is out of range.
absl::StatusOr<std::shared_ptr<const Selection>> MakePuct(const PuctOptions& options);

// Gumbel MuZero (Danihelka et al. 2022). At the root it does sequential halving over actions drawn
// without replacement. Below the root it follows the action that brings the visits nearest to the
// improved policy softmax(log prior + sigma(completed q)), where sigma(q) = (c_visit + greatest
// number of visits) * c_scale * q. The completed q of an action without visits is a mix of the
// node's value and the q of visited actions (appendix D).
struct GumbelOptions {
  int considered = 16;  // greatest number of root actions considered; 1 or more
  float c_visit = 50;
  float c_scale = 0.1f;
  float noise_scale = 1;  // factor of the Gumbel noise; 0 for play without exploration
};

// The rule plays the action with the greatest score among the most visited ones. Its target is the
// improved policy. InvalidArgument: an option is out of range.
absl::StatusOr<std::shared_ptr<const Selection>> MakeGumbel(const GumbelOptions& options);

// The schedule of sequential halving with `considered` actions (1 to 2^24) and a number of
// simulations, at simulation `index`.
struct Halving {
  int visits;      // number of visits that the action to be followed has had before
  int considered;  // number of actions that are still considered
};
Halving HalvingAt(int considered, int simulations, int index);

}  // namespace mallocgame::mcts
