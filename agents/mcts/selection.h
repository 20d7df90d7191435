// Rules of selection: which action to follow at the root and below it, which one to play in the
// end, and what a policy should learn. The search is one loop; PUCT and Gumbel are two rules handed
// to it, and a caller may hand in a third.
#ifndef AGENTS_MCTS_SELECTION_H_
#define AGENTS_MCTS_SELECTION_H_

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "agents/mcts/tree.h"
#include "mallocgame/base/rng.h"

namespace mallocgame::mcts {

// How returns are mapped to [0, 1] before a rule compares them.
enum class ValueScaling : uint8_t {
  kTree,   // by the least and greatest return seen in the root's tree
  kNode,   // by the least and greatest of the values that the rule compares at the node
  kKnown,  // by SearchOptions::min_value and max_value
};

// Maps returns to about [0, 1]: (q - low) * factor.
struct Scale {
  float low = 0;
  float factor = 1;
  float operator()(float q) const { return (q - low) * factor; }
  // Returns that differ by less than min_range are scaled as if they differed by that.
  static Scale Of(float low, float high, float min_range) {
    return {low, 1 / std::max(high - low, min_range)};
  }
};

// A node as a rule sees it.
struct NodeView {
  const Tree* tree = nullptr;
  int32_t node = 0;
  Scale scale;  // of returns; with kNode the rule makes its own
  ValueScaling scaling = ValueScaling::kTree;
  float min_range = 0;  // SearchOptions::min_range

  // The node itself, ranked: total visits, the model's value, the best action that was never
  // followed.
  const Node& self() const { return tree->node(node); }
  // Calls visit(edge) for each edge that was followed: action, prior, visits, pending, q.
  template <class Visit>
  void ForEachEdge(const Visit& visit) const {
    for (int32_t child = self().first_child; child != Node::kNone;) {
      const Node& edge = tree->node(child);
      visit(edge);
      child = edge.next_sibling;
    }
  }
};

// The root, with what belongs to this search alone. All spans have one element an action.
struct RootView : NodeView {
  absl::Span<const float> noise;  // as the rule's Begin filled it
  // from earlier searches, where the tree was kept; part of the edges' visits
  absl::Span<const int32_t> visits_before;
  int32_t legal = 0;        // number of legal actions
  int32_t simulations = 0;  // planned for this search
  int32_t started = 0;      // of those, pending ones included
  int32_t pending = 0;      // of those, begun and not finished
};

// Immutable; used by several threads at a time.
class Selection {
 public:
  // Instead of an action at the root: evaluate what is pending first. Never if nothing is.
  static constexpr int kWait = -1;

  virtual ~Selection() = default;

  // Before the first simulation of a search: draws the root's noise (one number an action), and may
  // change its priors, which come as the model's policy, -1 where illegal.
  virtual void Begin(Rng& rng, absl::Span<float> priors, absl::Span<float> noise) const = 0;
  // The action to follow: a legal one (or kWait at the root).
  virtual int SelectAtRoot(const RootView& root) const = 0;
  virtual int Select(const NodeView& node) const = 0;

  // Where Select leads from view.node, which is evaluated and not terminal: view.node becomes the
  // last such node on the way, the edge is what follows there, and depth grows by the edges
  // followed. Rules need not override it: it is there to be quick.
  struct Edge {
    int action;
    int32_t child;  // kNone: never followed; else not evaluated yet, or terminal
  };
  virtual Edge Follow(Tree& tree, NodeView& view, int& depth) const;

  // After the last simulation: the action to play, and the policy that the search recommends:
  // [actions], sums to 1, 0 where illegal.
  virtual int Act(const RootView& root) const = 0;
  virtual void WriteTarget(const RootView& root, absl::Span<float> policy) const = 0;
};

// Value of an action without visits, in PUCT.
enum class Unvisited : uint8_t {
  kWorst,  // 0 after scaling, as in MuZero
  kNode,   // the model's value of the node
};

// PUCT (MuZero, appendix B): q + prior * sqrt(n) / (1 + visits) * (c_init + log((n + c_base + 1) /
// c_base)), n = total + 1.
struct PuctOptions {
  float c_init = 1.25f;
  float c_base = 19652;
  Unvisited unvisited = Unvisited::kWorst;
  // Root priors become (1 - f) * prior + f * Dirichlet(alpha).
  float dirichlet_fraction = 0.25f;  // in [0, 1]; 0: none
  float dirichlet_alpha = 0.3f;      // > 0
};

// Plays the most visited action (of these the one with the greatest q); the target is the share of
// visits. InvalidArgument: an option out of range.
absl::StatusOr<std::shared_ptr<const Selection>> MakePuct(const PuctOptions& options);

// Gumbel MuZero (Danihelka et al. 2022): at the root sequential halving over actions drawn without
// replacement, below it the action that brings the visits nearest to the improved policy
// softmax(log prior + sigma(completed q)), where sigma(q) = (c_visit + greatest number of visits) *
// c_scale * q, and an action without visits counts with the mix of value and visited q (appendix
// D).
struct GumbelOptions {
  int considered = 16;  // root actions at most, >= 1
  float c_visit = 50;
  float c_scale = 0.1f;
  float noise_scale = 1;  // of the Gumbel noise; 0: deterministic, for play without exploration
};

// Plays the action with the greatest score of those visited most; the target is the improved
// policy.
absl::StatusOr<std::shared_ptr<const Selection>> MakeGumbel(const GumbelOptions& options);

// The schedule of sequential halving: the number of visits that the action of simulation `index`
// has had before, with `considered` actions (1 to 2^24) and `simulations` in all; and how many are
// still considered then.
struct Halving {
  int visits;
  int considered;
};
Halving HalvingAt(int considered, int simulations, int index);

}  // namespace mallocgame::mcts

#endif  // AGENTS_MCTS_SELECTION_H_
