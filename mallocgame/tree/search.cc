#include "mallocgame/tree/search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/worker_pool.h"
#include "mallocgame/tree/tree.h"

namespace mallocgame::mcts {
namespace {

constexpr int kMaxActions = 1 << 24;

// What a search keeps for each root beside its tree.
struct Root {
  std::vector<float> noise, policy, priors, q;
  std::vector<int32_t> visits, visits_before;
  std::vector<int32_t> leaves;  // nodes of this round that wait for the model
  size_t first_row = 0;         // row of the first of them in the batch
  bool kept = false;            // Advance has made the tree that of the position
  int legal = 0, planned = 0, started = 0, done = 0;
  int action = -1;
  int greatest_depth = 0;
  int64_t depths = 0;  // sum over the simulations
  absl::Status status;
};

// The rows of a request to the model, and its answers.
class Batch {
 public:
  Batch(size_t num_actions, float discount) : num_actions_(num_actions), discount_(discount) {}

  void Resize(size_t rows) {
    logits_.assign(rows * num_actions_, 0.0f);
    values_.assign(rows, 0.0f);
    rewards_.assign(rows, 0.0f);
    discounts_.assign(rows, discount_);
    legal_.assign(rows * num_actions_, 1);
    terminal_.assign(rows, 0);
  }

  Predictions Rows(size_t begin, size_t count) {
    const size_t first = begin * num_actions_, numbers = count * num_actions_;
    return {absl::MakeSpan(logits_).subspan(first, numbers),
            absl::MakeSpan(values_).subspan(begin, count),
            absl::MakeSpan(rewards_).subspan(begin, count),
            absl::MakeSpan(discounts_).subspan(begin, count),
            absl::MakeSpan(legal_).subspan(first, numbers),
            absl::MakeSpan(terminal_).subspan(begin, count)};
  }

  Prediction Row(size_t row) const {
    return {absl::MakeConstSpan(logits_).subspan(row * num_actions_, num_actions_),
            absl::MakeConstSpan(legal_).subspan(row * num_actions_, num_actions_),
            values_[row],
            rewards_[row],
            discounts_[row],
            terminal_[row] != 0};
  }

 private:
  size_t num_actions_;
  float discount_;
  std::vector<float> logits_, values_, rewards_, discounts_;
  std::vector<uint8_t> legal_, terminal_;
};

absl::Status OutOfRange(const char* name, double found, const std::string& allowed) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": found ", found, ", allowed: ", allowed));
}

absl::Status Check(const SearchOptions& o, int roots, int num_actions) {
  constexpr int kMany = std::numeric_limits<int>::max() - 1;
  if (roots < 1) return OutOfRange("roots", roots, "1 or more");
  if (num_actions < 1 || num_actions > kMaxActions)
    return OutOfRange("num_actions", num_actions, absl::StrCat("1 to ", kMaxActions));
  if (o.simulations < 0 || o.simulations >= kMany)
    return OutOfRange("simulations", o.simulations, absl::StrCat("0 to ", kMany - 1));
  if (o.max_nodes != 0 && o.max_nodes <= o.simulations) {
    return OutOfRange("max_nodes", o.max_nodes,
                      absl::StrCat("0, or simulations + 1 (", o.simulations + 1, ") or more"));
  }
  if (o.leaves < 1) return OutOfRange("leaves", o.leaves, "1 or more");
  if (o.max_batch < 0) return OutOfRange("max_batch", o.max_batch, "0 or more");
  if (o.threads < 1 || o.threads > kMaxThreads)
    return OutOfRange("threads", o.threads, absl::StrCat("1 to ", kMaxThreads));
  if (!(o.discount >= -1 && o.discount <= 1)) return OutOfRange("discount", o.discount, "-1 to 1");
  if (!(o.min_range > 0 && std::isfinite(o.min_range)))
    return OutOfRange("min_range", o.min_range, "more than 0");
  if (!(o.max_range >= o.min_range))
    return OutOfRange("max_range", o.max_range,
                      absl::StrCat("min_range (", o.min_range, ") or more"));
  if (o.scaling == ValueScaling::kKnown &&
      !(o.min_value < o.max_value && std::isfinite(o.max_value - o.min_value))) {
    return absl::InvalidArgumentError(
        absl::StrCat("min_value, max_value: found ", o.min_value, " and ", o.max_value,
                     ", allowed: finite, the first less than the second"));
  }
  const int64_t nodes = std::max(o.max_nodes, o.simulations + 1);
  if (nodes * roots > kMany || nodes * num_actions > kMany) {
    return absl::InvalidArgumentError(
        absl::StrCat("roots, nodes and actions: found ", roots, ", ", nodes, " and ", num_actions,
                     "; allowed: nodes times roots and nodes times actions up to ", kMany));
  }
  return absl::OkStatus();
}

class TreeSearch final : public Search {
 public:
  TreeSearch(const SearchOptions& options, std::shared_ptr<const Selection> selection, int roots,
             int num_actions)
      : options_(options), selection_(std::move(selection)), num_actions_(num_actions),
        batch_(num_actions, options.discount), pool_(std::min(options.threads, roots)) {
    if (options_.max_nodes == 0) options_.max_nodes = options_.simulations + 1;
    roots_.resize(roots);
    for (Root& root : roots_) {
      trees_.emplace_back(options_.max_nodes, num_actions);
      for (auto* numbers : {&root.noise, &root.policy, &root.priors, &root.q})
        numbers->resize(num_actions);
      for (auto* numbers : {&root.visits, &root.visits_before}) numbers->resize(num_actions);
    }
  }

  absl::Status Run(Model& model, uint64_t seed) override {
    return RunWith(model, [seed](int i) { return Rng(seed, static_cast<uint64_t>(i)); });
  }
  absl::Status Run(Model& model, absl::Span<const uint64_t> seeds) override {
    if (seeds.size() != roots_.size()) {
      return OutOfRange("seeds", static_cast<double>(seeds.size()),
                        absl::StrCat("one for each root: ", roots()));
    }
    return RunWith(model, [seeds](int i) { return Rng(seeds[i]); });
  }

  absl::StatusOr<bool> Advance(Model& model, int i, int action) override {
    if (i < 0 || i >= roots()) return OutOfRange("root", i, absl::StrCat("0 to ", roots() - 1));
    if (action < 0 || action >= num_actions_)
      return OutOfRange("action", action, absl::StrCat("0 to ", num_actions_ - 1));
    Tree& tree = trees_[i];
    const int32_t child = tree.size() == 0 ? Tree::kNone : tree.Child(0, action);
    if (child == Tree::kNone || tree.node(child).terminal) {
      Forget(i);
      return false;
    }
    MG_RETURN_IF_ERROR(model.Advance(i, SlotOf(i, tree.slot(child))));
    tree.Reroot(child);
    roots_[i].kept = true;
    return true;
  }

  void Forget(int i) override {
    trees_[i].Clear();
    roots_[i].kept = false;
  }
  void ForgetAll() override {
    for (int i = 0; i < roots(); ++i) Forget(i);
  }

  int action(int i) const override { return roots_[i].action; }
  absl::Span<const float> policy(int i) const override { return roots_[i].policy; }
  absl::Span<const int32_t> visits(int i) const override { return roots_[i].visits; }
  absl::Span<const float> q(int i) const override { return roots_[i].q; }
  absl::Span<const float> priors(int i) const override { return roots_[i].priors; }
  int simulations(int i) const override { return roots_[i].done; }
  DepthStatistics depth(int i) const override {
    const Root& root = roots_[i];
    return {root.greatest_depth,
            root.started == 0 ? 0 : static_cast<double>(root.depths) / root.started};
  }

  int roots() const override { return static_cast<int>(roots_.size()); }
  int num_actions() const override { return num_actions_; }
  int slots() const override { return roots() * options_.max_nodes; }
  const Tree& tree(int i) const override { return trees_[i]; }

 private:
  // rng_of(i) is the generator of root i.
  template <class RngOf>
  absl::Status RunWith(Model& model, const RngOf& rng_of) {
    if (model.num_actions() != num_actions_) {
      return absl::InvalidArgumentError(absl::StrCat(
          "model: found ", model.num_actions(), " actions, allowed: the search's ", num_actions_));
    }
    const absl::Status status = RunUnchecked(model, rng_of);
    if (!status.ok() && status.code() != absl::StatusCode::kCancelled) ForgetAll();
    return status;
  }

  template <class RngOf>
  absl::Status RunUnchecked(Model& model, const RngOf& rng_of) {
    MG_RETURN_IF_ERROR(model.Reserve(roots() * options_.max_nodes));
    MG_RETURN_IF_ERROR(StartRoots(model));
    ForEachRoot([&](int i) { Begin(i, rng_of(i)); });
    absl::Status status;
    while (status.ok()) {
      if (options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed)) {
        status = absl::CancelledError("the search was cancelled");
        break;
      }
      ForEachRoot([&](int i) { Gather(i); });
      MG_RETURN_IF_ERROR(FirstError());
      const size_t rows = ListSteps();
      if (rows == 0) break;
      MG_RETURN_IF_ERROR(Ask(rows, [&](size_t begin, size_t count, const Predictions& out) {
        return model.Step(absl::MakeConstSpan(steps_).subspan(begin, count), out);
      }));
      ForEachRoot([&](int i) { Absorb(i); });
      status = FirstError();
    }
    if (status.ok() || status.code() == absl::StatusCode::kCancelled)
      ForEachRoot([&](int i) { Finish(i); });
    return status;
  }

  RootView ViewOf(int i) const {
    const Root& root = roots_[i];
    const Tree& tree = trees_[i];
    RootView view;
    view.tree = &tree;
    view.scaling = options_.scaling;
    view.min_range = options_.min_range;
    view.max_range = options_.max_range;
    if (options_.scaling == ValueScaling::kTree) {
      view.scale = Scale::Of(tree.least(), tree.greatest(), options_.min_range, options_.max_range);
    } else if (options_.scaling == ValueScaling::kKnown) {
      view.scale = {options_.min_value, 1 / (options_.max_value - options_.min_value)};
    }
    view.noise = root.noise;
    view.visits_before = root.visits_before;
    view.legal = root.legal;
    view.simulations = root.planned;
    view.started = root.started;
    view.pending = static_cast<int32_t>(root.leaves.size());
    return view;
  }

  int32_t SlotOf(int i, int32_t local) const { return i * options_.max_nodes + local; }

  absl::Status StartRoots(Model& model) {
    starts_.clear();
    for (int i = 0; i < roots(); ++i) {
      Root& root = roots_[i];
      if (root.kept) continue;
      trees_[i].Clear();
      root.first_row = starts_.size();
      starts_.push_back({i, SlotOf(i, trees_[i].slot(trees_[i].Add(Tree::kNone, Tree::kNone)))});
    }
    MG_RETURN_IF_ERROR(Ask(starts_.size(), [&](size_t begin, size_t count, const Predictions& out) {
      return model.Start(absl::MakeConstSpan(starts_).subspan(begin, count), out);
    }));
    ForEachRoot([&](int i) {
      Root& root = roots_[i];
      root.status = root.kept ? absl::OkStatus() : Evaluate(i, 0, root.first_row);
      root.kept = false;
    });
    return FirstError();
  }

  // Calls `ask` on ranges [begin, begin + count) of the rows until all are answered.
  template <class Call>
  absl::Status Ask(size_t rows, const Call& ask) {
    batch_.Resize(rows);
    const size_t step = options_.max_batch == 0 ? std::max<size_t>(rows, 1) : options_.max_batch;
    for (size_t begin = 0; begin < rows; begin += step) {
      const size_t count = std::min(step, rows - begin);
      MG_RETURN_IF_ERROR(ask(begin, count, batch_.Rows(begin, count)));
    }
    return absl::OkStatus();
  }

  void Begin(int i, Rng rng) {
    Root& root = roots_[i];
    Tree& tree = trees_[i];
    root.started = root.done = root.greatest_depth = 0;
    root.depths = 0;
    root.leaves.clear();
    root.legal = 0;
    root.planned =
        tree.node(0).terminal ? 0 : std::min(options_.simulations, tree.max_nodes() - tree.size());
    CopyVisits(i, root.visits_before);
    if (tree.node(0).terminal) return;
    std::fill(root.noise.begin(), root.noise.end(), 0.0f);
    tree.GetRootPriors(absl::MakeSpan(root.priors));
    for (const float prior : root.priors) root.legal += static_cast<int>(prior >= 0);
    selection_->Begin(rng, absl::MakeSpan(root.priors), absl::MakeSpan(root.noise));
    tree.SetRootPriors(root.priors);
  }

  void CopyVisits(int i, std::vector<int32_t>& visits) const {
    std::fill(visits.begin(), visits.end(), 0);
    const Tree& tree = trees_[i];
    for (int32_t child = tree.node(0).first_child; child != Tree::kNone;
         child = tree.node(child).next_sibling) {
      visits[tree.node(child).action] = tree.node(child).visits;
    }
  }

  // Follows the tree of a root to leaves for the model. A simulation that ends in a terminal
  // position is finished at once.
  void Gather(int i) {
    Root& root = roots_[i];
    while (root.started < root.planned &&
           root.leaves.size() < static_cast<size_t>(options_.leaves)) {
      if (!Descend(i)) return;
    }
  }

  // Takes one simulation down the tree. False if the round is over for this root.
  bool Descend(int i) {
    Root& root = roots_[i];
    Tree& tree = trees_[i];
    RootView view = ViewOf(i);
    int depth = 1;
    tree.Rank(0);
    const int first = selection_->SelectAtRoot(view);
    if (first == Selection::kWait && !root.leaves.empty()) return false;
    Selection::Edge edge = {first, tree.Child(0, first)};
    if (edge.child != Tree::kNone && tree.node(edge.child).evaluated &&
        !tree.node(edge.child).terminal) {
      view.node = edge.child;
      edge = selection_->Follow(tree, view, depth);
    }
    if (edge.child == Tree::kNone) return Take(i, view.node, edge.action, depth);
    if (!tree.node(edge.child).evaluated) return false;  // it is a leaf of this round
    Count(root, depth);
    tree.Backup(edge.child, /*was_pending=*/false);
    ++root.done;
    return true;
  }

  // Adds the node under an edge that was never followed, as a leaf of this round.
  bool Take(int i, int32_t node, int action, int depth) {
    Root& root = roots_[i];
    Tree& tree = trees_[i];
    if (action < 0 || action >= num_actions_ || tree.unvisited(node)[action] < 0) {
      root.status =
          absl::InternalError(absl::StrCat("root ", i, ": the selection rule chose action ", action,
                                           " at depth ", depth - 1, ", where it is not legal"));
      return false;
    }
    root.leaves.push_back(tree.Add(node, action));
    if (options_.leaves > 1) tree.Pend(root.leaves.back());
    Count(root, depth);
    return true;
  }

  static void Count(Root& root, int depth) {
    ++root.started;
    root.greatest_depth = std::max(root.greatest_depth, depth);
    root.depths += depth;
  }

  // Makes the rows of the round's leaves, root by root, and counts them.
  size_t ListSteps() {
    steps_.clear();
    for (int i = 0; i < roots(); ++i) {
      Root& root = roots_[i];
      const Tree& tree = trees_[i];
      root.first_row = steps_.size();
      for (const int32_t leaf : root.leaves) {
        const Node& node = tree.node(leaf);
        steps_.push_back(
            {i, SlotOf(i, tree.slot(node.parent)), node.action, SlotOf(i, tree.slot(leaf))});
      }
    }
    return steps_.size();
  }

  void Absorb(int i) {
    Root& root = roots_[i];
    Tree& tree = trees_[i];
    size_t row = root.first_row;
    for (const int32_t leaf : root.leaves) {
      root.status = Evaluate(i, leaf, row++);
      if (!root.status.ok()) return;
      tree.Backup(leaf, /*was_pending=*/options_.leaves > 1);
      ++root.done;
    }
    root.leaves.clear();
  }

  absl::Status Evaluate(int i, int32_t node, size_t row) {
    Tree& tree = trees_[i];
    absl::Status status = tree.Evaluate(node, batch_.Row(row));
    if (status.ok()) return status;
    return absl::InvalidArgumentError(absl::StrCat(
        "model: root ", i, ", slot ", SlotOf(i, tree.slot(node)), ": ", status.message()));
  }

  void Finish(int i) {
    Root& root = roots_[i];
    Tree& tree = trees_[i];
    CopyVisits(i, root.visits);
    std::fill(root.q.begin(), root.q.end(), 0.0f);
    if (tree.node(0).terminal) {
      root.action = -1;
      std::fill(root.policy.begin(), root.policy.end(), 0.0f);
      std::fill(root.priors.begin(), root.priors.end(), -1.0f);
      return;
    }
    tree.Rank(0);
    tree.GetRootPriors(absl::MakeSpan(root.priors));
    const RootView view = ViewOf(i);
    view.ForEachEdge([&root](const Node& edge) { root.q[edge.action] = edge.q; });
    root.action = selection_->Act(view);
    selection_->WriteTarget(view, absl::MakeSpan(root.policy));
  }

  void ForEachRoot(const std::function<void(int)>& body) {
    if (pool_.threads() == 1) {
      for (int i = 0; i < roots(); ++i) body(i);
      return;
    }
    const int chunk = std::max(1, roots() / (4 * pool_.threads()));
    pool_.Run(roots(), chunk, [&body](int begin, int end) {
      for (int i = begin; i < end; ++i) body(i);
    });
  }

  absl::Status FirstError() const {
    for (const Root& root : roots_) MG_RETURN_IF_ERROR(root.status);
    return absl::OkStatus();
  }

  SearchOptions options_;
  std::shared_ptr<const Selection> selection_;
  int num_actions_;
  std::vector<Root> roots_;
  std::vector<Tree> trees_;  // one for each root
  std::vector<RootRow> starts_;
  std::vector<StepRow> steps_;
  Batch batch_;
  WorkerPool pool_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Search>> Search::Create(const SearchOptions& options,
                                                       std::shared_ptr<const Selection> selection,
                                                       int roots, int num_actions) {
  MG_RETURN_IF_ERROR(Check(options, roots, num_actions));
  if (selection == nullptr)
    return absl::InvalidArgumentError(
        "selection: found none, allowed: a rule, as of MakePuct or MakeGumbel");
  return std::make_unique<TreeSearch>(options, std::move(selection), roots, num_actions);
}

std::optional<int> Search::SampleAction(int root, double temperature, Rng& rng) const {
  const absl::Span<const int32_t> n = visits(root);
  const int32_t most = *std::max_element(n.begin(), n.end());
  if (most == 0) return std::nullopt;
  if (!(temperature > 0)) return static_cast<int>(std::max_element(n.begin(), n.end()) - n.begin());
  std::vector<double> weights;
  double sum = 0;
  for (const int32_t count : n) {
    weights.push_back(count == 0 ? 0
                                 : std::pow(static_cast<double>(count) / most, 1 / temperature));
    sum += weights.back();
  }
  double left = rng.Uniform() * sum;
  int last = 0;
  for (size_t a = 0; a < weights.size(); ++a) {
    if (weights[a] <= 0) continue;
    last = static_cast<int>(a);
    if (left < weights[a]) break;
    left -= weights[a];
  }
  return last;
}

}  // namespace mallocgame::mcts
