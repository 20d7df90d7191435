#include "mallocgame/tree/selection.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/tree/exponential.h"

namespace mallocgame::mcts {
namespace {

// The score of an action that a model all but rules out. It is less than other scores, but more
// than that of an illegal action.
constexpr float kLeastScore = -1e9f;
// Stands for a prior of 0 once the action has been visited.
constexpr float kLeastPrior = std::numeric_limits<float>::min();

absl::Status OutOfRange(const char* name, double found, const char* allowed) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": found ", found, ", allowed: ", allowed));
}

// The action with the greatest score; of equal scores, the first action.
struct Best {
  float score = -kInfinity;
  int action = -1;

  void Consider(float s, int a) {
    if (s > score || (s == score && a < action)) {
      score = s;
      action = a;
    }
  }
};

// Selection::Follow with the Select of Rule in the loop, which the compiler can then inline.
template <class Rule>
Selection::Edge FollowBy(const Rule& rule, Tree& tree, NodeView& view, int& depth) {
  while (true) {
    tree.Rank(view.node);
    const int action = rule.Select(view);
    const int32_t child = tree.Child(view.node, action);
    ++depth;
    if (child == Tree::kNone || !tree.node(child).evaluated || tree.node(child).terminal)
      return {action, child};
    view.node = child;
  }
}

class Puct final : public Selection {
 public:
  explicit Puct(const PuctOptions& options) : options_(options) {
    for (size_t n = 0; n < kTable; ++n) factors_.push_back(Formula(static_cast<int32_t>(n)));
  }

  void Begin(Rng& rng, absl::Span<float> priors, absl::Span<float> noise) const override {
    if (options_.dirichlet_fraction <= 0) return;
    double sum = 0;
    for (size_t a = 0; a < priors.size(); ++a) {
      if (priors[a] < 0) continue;
      noise[a] = static_cast<float>(Gamma(rng, options_.dirichlet_alpha));
      sum += static_cast<double>(noise[a]);
    }
    if (!(sum > 0)) return;  // all too small for a float
    const float fraction = options_.dirichlet_fraction, factor = static_cast<float>(1 / sum);
    for (size_t a = 0; a < priors.size(); ++a) {
      if (priors[a] >= 0) priors[a] = (1 - fraction) * priors[a] + fraction * noise[a] * factor;
    }
  }

  int SelectAtRoot(const RootView& root) const override { return Select(root); }

  int Select(const NodeView& view) const override {
    const Node& node = view.self();
    const Scale scale = view.scaling == ValueScaling::kNode ? ScaleOf(view) : view.scale;
    const float factor =
        static_cast<size_t>(node.total) < kTable ? factors_[node.total] : Formula(node.total);
    const float unvisited_q = options_.unvisited == Unvisited::kWorst ? 0.0f : scale(node.value);
    Best best;
    if (node.best_unvisited != Node::kNone)
      best.Consider(unvisited_q + factor * node.best_prior, node.best_unvisited);
    view.ForEachEdge([&](const Node& edge) {
      const float q = edge.visits > 0 ? scale(edge.q) : unvisited_q;
      best.Consider(q + factor * edge.prior / static_cast<float>(1 + edge.visits + edge.pending),
                    edge.action);
    });
    return best.action;
  }

  Edge Follow(Tree& tree, NodeView& view, int& depth) const override {
    return FollowBy(*this, tree, view, depth);
  }

  int Act(const RootView& root) const override {
    const Node* best = nullptr;
    root.ForEachEdge([&](const Node& edge) {
      if (best == nullptr || Better(edge, *best)) best = &edge;
    });
    return best != nullptr && best->visits > 0 ? best->action : root.self().best_unvisited;
  }

  void WriteTarget(const RootView& root, absl::Span<float> policy) const override {
    double sum = 0;
    root.ForEachEdge([&](const Node& edge) { sum += edge.visits; });
    if (sum == 0) {
      root.tree->GetRootPriors(policy);
      for (float& share : policy) share = std::max(0.0f, share);
      return;
    }
    std::fill(policy.begin(), policy.end(), 0.0f);
    root.ForEachEdge(
        [&](const Node& edge) { policy[edge.action] = static_cast<float>(edge.visits / sum); });
  }

 private:
  // The factors of nodes with fewer visits than this, which are nearly all, come from a table.
  static constexpr size_t kTable = 1024;

  float Formula(int32_t total) const {
    const double n = 1.0 + total, base = static_cast<double>(options_.c_base);
    return static_cast<float>(
        std::sqrt(n) * (static_cast<double>(options_.c_init) + std::log((n + base + 1) / base)));
  }

  static Scale ScaleOf(const NodeView& view) {
    float low = view.tree->MeanValue(view.node), high = low;
    view.ForEachEdge([&](const Node& edge) {
      if (edge.visits == 0) return;
      low = std::min(low, edge.q);
      high = std::max(high, edge.q);
    });
    return Scale::Of(low, high, view.min_range, view.max_range);
  }

  // More visits are better, then a greater q, then the lesser action.
  static bool Better(const Node& a, const Node& b) {
    if (a.visits != b.visits) return a.visits > b.visits;
    return a.q != b.q ? a.q > b.q : a.action < b.action;
  }

  // Draws a normal number by Marsaglia's polar method.
  static double Normal(Rng& rng) {
    while (true) {
      const double x = 2 * rng.Uniform() - 1, y = 2 * rng.Uniform() - 1, square = x * x + y * y;
      if (square < 1 && square > 0) return x * std::sqrt(-2 * std::log(square) / square);
    }
  }

  // Draws a gamma number by the method of Marsaglia and Tsang (2000). An alpha below 1 is raised by
  // one, and the result multiplied by a power of a uniform number.
  static double Gamma(Rng& rng, double alpha) {
    if (alpha < 1) {
      const double u = 1 - rng.Uniform();
      return Gamma(rng, alpha + 1) * std::pow(u, 1 / alpha);
    }
    const double d = alpha - 1.0 / 3, c = 1 / std::sqrt(9 * d);
    while (true) {
      const double x = Normal(rng), v = 1 + c * x;
      if (v <= 0) continue;
      const double u = 1 - rng.Uniform(), cube = v * v * v;
      if (u < 1 - 0.0331 * x * x * x * x ||
          std::log(u) < 0.5 * x * x + d - d * cube + d * std::log(cube))
        return d * cube;
    }
  }

  PuctOptions options_;
  std::vector<float> factors_;  // by Node::total
};

class Gumbel final : public Selection {
 public:
  explicit Gumbel(const GumbelOptions& options) : options_(options) {}

  // The noise is the root's score without values, which is Gumbel noise + log prior, and -infinity
  // where the action is illegal.
  void Begin(Rng& rng, absl::Span<float> priors, absl::Span<float> noise) const override {
    float greatest = 0;
    for (const float prior : priors) greatest = std::max(greatest, prior);
    for (size_t a = 0; a < priors.size(); ++a) {
      // The noise is drawn for illegal actions too, so that the noise of an action does not depend
      // on which others are legal.
      const float gumbel =
          options_.noise_scale > 0 ? -static_cast<float>(std::log(-std::log1p(-rng.Uniform()))) : 0;
      noise[a] = priors[a] < 0 ? -kInfinity
                               : options_.noise_scale * gumbel + std::log(priors[a] / greatest);
    }
  }

  int SelectAtRoot(const RootView& root) const override {
    const int considered = std::min(options_.considered, root.legal);
    const Halving now = HalvingAt(considered, root.simulations, root.started);
    // Which actions stay considered is decided when all values are known.
    if (root.pending > 0 &&
        HalvingAt(considered, root.simulations, root.started - root.pending).considered !=
            now.considered) {
      return kWait;
    }
    return BestAtRoot(root, now.visits);
  }

  int Select(const NodeView& view) const override {
    const Node& node = view.self();
    // Without visits all values are the same, so the improved policy is the prior.
    if (node.total == 0) return node.best_unvisited;
    // The score is weight / all weights - visits / (1 + total). It is computed times both divisors.
    const Improved improved(options_, view);
    const float scale = static_cast<float>(1 + node.total), all = improved.all_weights();
    Best best;
    if (node.best_unvisited != Node::kNone)
      best.Consider(improved.WeightOfUnvisited(node.best_prior) * scale, node.best_unvisited);
    size_t i = 0;
    view.ForEachEdge([&](const Node& edge) {
      best.Consider(
          improved.Weight(edge, i++) * scale - static_cast<float>(edge.visits + edge.pending) * all,
          edge.action);
    });
    return best.action;
  }

  Edge Follow(Tree& tree, NodeView& view, int& depth) const override {
    return FollowBy(*this, tree, view, depth);
  }

  int Act(const RootView& root) const override {
    int32_t most = 0;
    root.ForEachEdge(
        [&](const Node& edge) { most = std::max(most, edge.visits - Before(root, edge)); });
    return BestAtRoot(root, most);
  }

  void WriteTarget(const RootView& root, absl::Span<float> policy) const override {
    const Improved improved(options_, root);
    const float share = 1 / improved.all_weights();
    const absl::Span<const float> unvisited = root.tree->unvisited(root.node);
    for (size_t a = 0; a < policy.size(); ++a)
      policy[a] = unvisited[a] < 0 ? 0 : improved.WeightOfUnvisited(unvisited[a]) * share;
    size_t i = 0;
    root.ForEachEdge(
        [&](const Node& edge) { policy[edge.action] = improved.Weight(edge, i++) * share; });
    // Where all that was visited is much worse than what wasn't, what rounding leaves of the priors
    // outweighs it.
    const float sum = std::accumulate(policy.begin(), policy.end(), 0.0f);
    if (sum > 0 && std::abs(sum - 1) > 1e-4f) {
      for (float& part : policy) part /= sum;
    }
  }

 private:
  // sigma of the completed values, minus the greatest of them so that no power of e overflows.
  class Completed {
   public:
    Completed(const GumbelOptions& options, const NodeView& view) {
      const Node& node = view.self();
      float prior_sum = 0, sum = 0, low = kInfinity, high = -kInfinity;
      least_ = LeastCounted(view);
      int32_t most = 0, visits = 0;
      bool some_unknown = node.best_unvisited != Node::kNone;
      view.ForEachEdge([&](const Node& edge) {
        if (edge.visits == 0) {
          some_unknown = true;
          return;
        }
        const float prior = std::max(edge.prior, kLeastPrior);
        prior_sum += prior;
        sum += prior * Counted(edge.q);
        low = std::min(low, edge.q);
        high = std::max(high, edge.q);
        most = std::max(most, edge.visits);
        visits += edge.visits;
      });
      // The completed value of an action without visits (appendix D).
      const float weight = 1 / static_cast<float>(1 + visits);
      const float mixed = visits == 0 ? node.value
                                      : node.value * weight +
                                            sum / prior_sum * (static_cast<float>(visits) * weight);
      if (some_unknown) {
        low = std::min(low, mixed);
        high = std::max(high, mixed);
      }
      const Scale scale = view.scaling == ValueScaling::kNode
                              ? Scale::Of(low, high, view.min_range, view.max_range)
                              : view.scale;
      sigma_.factor = (options.c_visit + static_cast<float>(most)) * options.c_scale * scale.factor;
      sigma_.low = high;
      unvisited_ = sigma_(Counted(mixed));
    }

    float operator()(const Node& edge) const {
      return edge.visits == 0 ? unvisited_ : sigma_(Counted(edge.q));
    }
    float unvisited() const { return unvisited_; }

   private:
    float Counted(float q) const { return std::max(q, least_); }

    // Where max_range ends below the greatest value: no value counts as less.
    static float LeastCounted(const NodeView& view) {
      if (view.max_range == kInfinity) return -kInfinity;
      float high = -kInfinity;
      view.ForEachEdge([&](const Node& edge) {
        if (edge.visits > 0) high = std::max(high, edge.q);
      });
      return high - view.max_range;
    }

    Scale sigma_;
    float least_, unvisited_;
  };

  // The improved policy softmax(log prior + sigma(completed value)). The probability of an action
  // is its weight divided by the sum of all weights.
  class Improved {
   public:
    Improved(const GumbelOptions& options, const NodeView& view)
        : sigma_(options, view), unvisited_weight_(Exp(sigma_.unvisited())) {
      float followed = 0;
      size_t i = 0;
      all_weights_ = 0;
      view.ForEachEdge([&](const Node& edge) {
        const float weight = FindWeight(edge);
        if (i < kRemembered) weights_[i++] = weight;
        all_weights_ += weight;
        followed += edge.prior;
      });
      all_weights_ += std::max(0.0f, 1 - followed) * unvisited_weight_;
    }

    // `edge` must be the i-th edge that ForEachEdge visits.
    float Weight(const Node& edge, size_t i) const {
      return i < kRemembered ? weights_[i] : FindWeight(edge);
    }
    float WeightOfUnvisited(float prior) const { return prior * unvisited_weight_; }
    float all_weights() const { return all_weights_; }

   private:
    static constexpr size_t kRemembered = 16;

    float FindWeight(const Node& edge) const {
      return std::max(edge.prior, kLeastPrior) *
             (edge.visits == 0 ? unvisited_weight_ : Exp(sigma_(edge)));
    }

    Completed sigma_;
    float unvisited_weight_, all_weights_;
    float weights_[kRemembered];
  };

  static int32_t Before(const RootView& root, const Node& edge) {
    return root.visits_before[edge.action];
  }

  // The action with the greatest score among those with `visits` visits in this search, pending
  // ones included.
  int BestAtRoot(const RootView& root, int visits) const {
    const Completed sigma(options_, root);
    Best best;
    const auto consider = [&](int action, float value) {
      best.Consider(std::max(kLeastScore, root.noise[action] + value), action);
    };
    root.ForEachEdge([&](const Node& edge) {
      if (edge.visits + edge.pending - Before(root, edge) == visits)
        consider(edge.action, sigma(edge));
    });
    if (visits == 0) {
      const absl::Span<const float> unvisited = root.tree->unvisited(root.node);
      for (size_t a = 0; a < unvisited.size(); ++a) {
        if (unvisited[a] >= 0) consider(static_cast<int>(a), sigma.unvisited());
      }
    }
    return best.action;
  }

  GumbelOptions options_;
};

}  // namespace

Selection::Edge Selection::Follow(Tree& tree, NodeView& view, int& depth) const {
  return FollowBy(*this, tree, view, depth);
}

Halving HalvingAt(int considered, int simulations, int index) {
  if (considered <= 1) return {index, considered};
  const int phases = std::bit_width(static_cast<uint32_t>(considered - 1));
  int visits = 0;
  while (true) {
    const int extra = std::max(1, simulations / (phases * considered));
    if (index < extra * considered) return {visits + index / considered, considered};
    index -= extra * considered;
    visits += extra;
    considered = std::max(2, considered / 2);
  }
}

absl::StatusOr<std::shared_ptr<const Selection>> MakePuct(const PuctOptions& options) {
  if (!(options.c_init >= 0 && options.c_init < kInfinity))
    return OutOfRange("c_init", options.c_init, "0 or more");
  if (!(options.c_base > 0 && options.c_base < kInfinity))
    return OutOfRange("c_base", options.c_base, "more than 0");
  if (!(options.dirichlet_fraction >= 0 && options.dirichlet_fraction <= 1)) {
    return OutOfRange("dirichlet_fraction", options.dirichlet_fraction, "0 to 1");
  }
  if (!(options.dirichlet_alpha > 0 && options.dirichlet_alpha < kInfinity)) {
    return OutOfRange("dirichlet_alpha", options.dirichlet_alpha, "more than 0");
  }
  return std::make_shared<const Puct>(options);
}

absl::StatusOr<std::shared_ptr<const Selection>> MakeGumbel(const GumbelOptions& options) {
  if (options.considered < 1) return OutOfRange("considered", options.considered, "1 or more");
  if (!(options.c_visit >= 0 && options.c_visit < kInfinity))
    return OutOfRange("c_visit", options.c_visit, "0 or more");
  if (!(options.c_scale >= 0 && options.c_scale < kInfinity))
    return OutOfRange("c_scale", options.c_scale, "0 or more");
  if (!(options.noise_scale >= 0 && options.noise_scale < kInfinity))
    return OutOfRange("noise_scale", options.noise_scale, "0 or more");
  return std::make_shared<const Gumbel>(options);
}

}  // namespace mallocgame::mcts
