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
// A round of the loop follows each root's tree down to one leaf or several, hands all leaves to the
// model as one batch, and adds the model's answers to the trees. The tree of a root depends only on
// its model, its seed and the options. It does not depend on the other roots, on the number of
// threads, or on how a batch was split.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/tree/model.h"
#include "mallocgame/tree/selection.h"
#include "mallocgame/tree/tree.h"

namespace mallocgame::mcts {

struct SearchOptions {
  int simulations = 50;  // of each root in one Run; 0 or more
  // Greatest number of nodes of a root's tree, at least simulations + 1; 0 stands for that number.
  // A subtree that Advance kept counts too: Run does as many simulations as there is room for.
  int max_nodes = 0;
  // Number of leaves of one root that are evaluated together; 1 or more. Where there are several,
  // a leaf is chosen knowing which others are pending, but not their values.
  int leaves = 1;
  int max_batch = 0;  // greatest number of rows in one call of the model; 0 for no limit
  // Number of threads that work on the trees, in [1, 1024]. The caller's thread calls the model.
  int threads = 1;
  float discount = 1;  // in [-1, 1]; see Predictions::discounts
  ValueScaling scaling = ValueScaling::kTree;
  float min_value = 0;  // least return, for ValueScaling::kKnown; less than max_value
  float max_value = 1;  // greatest return, likewise
  // Returns that differ by less are scaled as if they differed by this much, so that noise does not
  // decide; more than 0. Not used for ValueScaling::kKnown.
  float min_range = 1e-2f;
  // Returns further below the greatest one count as this far below it, so that one very bad action
  // does not make all others alike; min_range or more. Not used for ValueScaling::kKnown.
  float max_range = std::numeric_limits<float>::infinity();
  // Another thread may set it to make Run end soon; null if nobody will.
  const std::atomic<bool>* cancel = nullptr;
};

// How deep the last Run looked into a root's tree. The root has depth 0.
struct DepthStatistics {
  int greatest = 0;
  double mean = 0;  // over the leaves of all simulations
};

// One thread at a time may use a search.
class Search {
 public:
  // InvalidArgument: an option is out of range, there is no root or no action, or there are more
  // nodes or numbers than can be indexed.
  static absl::StatusOr<std::unique_ptr<Search>> Create(const SearchOptions& options,
                                                        std::shared_ptr<const Selection> selection,
                                                        int roots, int num_actions);
  virtual ~Search() = default;

  // Searches every root. Roots that Advance kept continue with their tree, all others start anew. A
  // root that the model calls terminal is left alone. The noise of root i is drawn from
  // Rng(seed, i), or, with one seed for each root, from Rng(seeds[i]).
  //
  // InvalidArgument: the model has another number of actions, or gives a prediction that is not
  // allowed; the message names root and slot. Cancelled: options.cancel was set; what was done
  // until then can be read. Internal: the rule chose an illegal action. Errors of the model are
  // passed on unchanged. After any error but Cancelled the trees are forgotten.
  virtual absl::Status Run(Model& model, uint64_t seed) = 0;
  virtual absl::Status Run(Model& model, absl::Span<const uint64_t> seeds) = 0;

  // Tells that `action` was played at the root: the next Run starts from its subtree, with all
  // statistics. False if there is no such subtree, or it is terminal; the next Run then starts the
  // root anew. InvalidArgument: there is no such root or action.
  virtual absl::StatusOr<bool> Advance(Model& model, int root, int action) = 0;
  // Makes the next Run start one root, or all roots, anew.
  virtual void Forget(int root) = 0;
  virtual void ForgetAll() = 0;

  // Results of the last Run, with `root` in [0, roots()). Spans have one element for each action,
  // and are valid until the next call that changes the search.
  bool terminal(int root) const { return tree(root).node(0).terminal; }  // then nothing else is set
  virtual int action(int root) const = 0;                                // the action to play
  // The improved policy, which a network should learn; it sums to 1.
  virtual absl::Span<const float> policy(int root) const = 0;
  virtual absl::Span<const int32_t> visits(int root) const = 0;
  virtual absl::Span<const float> q(int root) const = 0;  // mean returns; 0 without visits
  // The model's policy with the noise; -1 where illegal.
  virtual absl::Span<const float> priors(int root) const = 0;
  // The mean return over all visits, where the model's value counts as one visit.
  float value(int root) const { return tree(root).MeanValue(0); }
  float model_value(int root) const { return tree(root).node(0).value; }
  virtual int simulations(int root) const = 0;  // number done by the last Run
  virtual DepthStatistics depth(int root) const = 0;

  // An action drawn with probability proportional to visits^(1 / temperature). With temperature 0
  // it is the most visited one, of several the first. Nothing if no action was visited.
  // `temperature` must not be negative or NaN.
  std::optional<int> SampleAction(int root, double temperature, Rng& rng) const;

  virtual int roots() const = 0;
  virtual int num_actions() const = 0;
  virtual int slots() const = 0;  // number of slots that a model needs: roots * nodes of a tree
  virtual const Tree& tree(int root) const = 0;  // all that is known of a root
};

}  // namespace mallocgame::mcts
