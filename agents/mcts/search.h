// Monte Carlo tree search over many roots at a time. It knows a game only through a Model
// (mcts/model.h) and where to look only through a Selection (mcts/selection.h).
//
//     auto search = *Search::Create(options, *MakeGumbel({}), roots, model.num_actions());
//     while (...) {
//       model.SetRoots(...);                      // the model's own business
//       MG_RETURN_IF_ERROR(search->Run(model, seed++));
//       for (int i = 0; i < roots; ++i) Play(i, search->action(i));
//     }
//
// A round of the loop follows each root's tree down to a leaf (or several), hands all leaves to the
// model as one batch, and adds what it says to the trees. A root's tree depends on its model, its
// seed and the options only: not on the other roots, the number of threads, or how a batch was
// split.
#ifndef AGENTS_MCTS_SEARCH_H_
#define AGENTS_MCTS_SEARCH_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "agents/mcts/model.h"
#include "agents/mcts/selection.h"
#include "mallocgame/base/rng.h"

namespace mallocgame::mcts {

class Tree;

struct SearchOptions {
  int simulations = 50;  // a root and Run, >= 0
  // of a root's tree, >= simulations + 1; 0: just that. A subtree that Advance kept takes of them:
  // Run does as many simulations as there is room for
  int max_nodes = 0;
  // of one root that are evaluated together, >= 1. With more than one, a leaf is chosen knowing
  // that the others are pending but not their values
  int leaves = 1;
  int max_batch = 0;  // rows of one call of the model; 0: no limit
  // that work on the trees, in [1, 1024]; the model is always called by the caller's
  int threads = 1;
  float discount = 1;  // in [-1, 1]; see Predictions::discounts
  ValueScaling scaling = ValueScaling::kTree;
  float min_value = 0;  // of a return, for kKnown; min < max
  float max_value = 1;
  // > 0: returns that differ by less are scaled as if they differed so much, lest noise decide; not
  // for kKnown
  float min_range = 1e-2f;
  const std::atomic<bool>* cancel = nullptr;  // set by another thread: Run ends soon
};

// How deep a root's tree was looked into by the last Run. The root's depth is 0.
struct DepthStatistics {
  int greatest = 0;
  double mean = 0;  // of the leaves of all simulations
};

// Belongs to one thread at a time.
class Search {
 public:
  // InvalidArgument: an option out of range, roots or actions < 1, more nodes or numbers than can
  // be indexed.
  static absl::StatusOr<std::unique_ptr<Search>> Create(const SearchOptions& options,
                                                        std::shared_ptr<const Selection> selection,
                                                        int roots, int num_actions);
  ~Search();
  Search(const Search&) = delete;
  Search& operator=(const Search&) = delete;

  // Searches every root: roots that Advance kept go on with their tree, all others are started
  // anew. A root that the model calls terminal is left alone. Noise of root i is drawn from
  // Rng(seed, i); with `seeds`, one a root, from Rng(seeds[i]). InvalidArgument: the model has
  // another number of actions, or says what is not allowed (names root and slot). Cancelled: by
  // options.cancel; what was done until then can be read. Internal: the rule chose an illegal
  // action. The model's own errors as they are. After any error but Cancelled the trees are
  // forgotten.
  absl::Status Run(Model& model, uint64_t seed);
  absl::Status Run(Model& model, absl::Span<const uint64_t> seeds);

  // `action` was played at the root: its subtree, with all its statistics, is what the next Run
  // starts from. False if there is none (or a terminal one): the next Run starts that root anew.
  // InvalidArgument: no such root or action.
  absl::StatusOr<bool> Advance(Model& model, int root, int action);
  // The next Run starts the root, or all, anew.
  void Forget(int root);
  void ForgetAll();

  // Of the last Run; `root` in [0, roots()). One element an action; valid until the next call that
  // changes the search.
  bool terminal(int root) const;  // nothing below is defined then
  int action(int root) const;     // to play
  // improved: what a network should learn; sums to 1
  absl::Span<const float> policy(int root) const;
  absl::Span<const int32_t> visits(int root) const;
  absl::Span<const float> q(int root) const;       // mean return; 0 without visits
  absl::Span<const float> priors(int root) const;  // noise included; -1 where illegal
  // mean return over all visits, the model's own counted as one
  float value(int root) const;
  float model_value(int root) const;
  int simulations(int root) const;  // done by the last Run
  DepthStatistics depth(int root) const;

  // An action drawn with probability proportional to visits^(1 / temperature); temperature 0: the
  // most visited, ties to the first. temperature >= 0, not NaN. -1 if nothing was visited.
  int SampleAction(int root, double temperature, Rng& rng) const;

  int roots() const;
  int num_actions() const;
  int slots() const;                 // that a model is handed: roots * nodes of a tree
  const Tree& tree(int root) const;  // all that is known of a root (mcts/tree.h)

 private:
  class Loop;
  explicit Search(std::unique_ptr<Loop> loop);

  std::unique_ptr<Loop> loop_;
};

}  // namespace mallocgame::mcts

#endif  // AGENTS_MCTS_SEARCH_H_
