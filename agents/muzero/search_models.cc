#include "agents/muzero/search_models.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/tree/schedule_policy.h"

namespace mallocgame::muzero {
namespace {

using mcts::Predictions;
using mcts::RootRow;
using mcts::StepRow;

// Writes whether the game is over in row `row`, and what is legal there.
void WriteRules(const Position& position, size_t actions, size_t row, const Predictions& out) {
  const ActionSet legal = position.legal_actions();
  out.terminal[row] = position.IsTerminal();
  for (size_t a = 0; a < actions; ++a)
    out.legal[row * actions + a] = legal.Has(static_cast<int>(a)) ? 1 : 0;
}

// The positions of a search's trees. Each is kept as its path from the root. Each root has one
// Position, which moves along such paths by Undo and Apply.
class Walks {
 public:
  void Reserve(int slots) {
    if (nodes_.size() < static_cast<size_t>(slots)) nodes_.resize(slots);
  }
  void SetRoots(absl::Span<const Root> roots) {
    walks_.resize(roots.size());
    for (size_t i = 0; i < roots.size(); ++i) {
      Walk& walk = walks_[i];
      if (walk.task == roots[i].task)
        walk.position->CopyFrom(*roots[i].position);
      else
        walk.position = roots[i].position->Clone();
      walk.task = roots[i].task;
    }
  }
  const Task* task(size_t root) const { return root < walks_.size() ? walks_[root].task : nullptr; }
  Position& position(size_t root) { return *walks_[root].position; }

  // Keeps where the root's position is now under the root's slot.
  void Start(const RootRow& row) {
    walks_[row.root].at = row.slot;
    Keep(row.root, -1, -1, 0);
  }
  // Moves the root's position to that of a slot.
  void GoTo(size_t root, int32_t slot) {
    Walk& walk = walks_[root];
    const auto node = [this](int32_t s) -> const Node& { return nodes_[s]; };
    int32_t here = walk.at, there = slot;
    walk.way.clear();
    while (here != there) {
      if (node(there).depth >= node(here).depth) {
        walk.way.push_back(there);
        there = node(there).parent;
      } else {
        here = node(here).parent;
      }
    }
    while (walk.position->num_decisions() > node(here).decisions) walk.position->Undo();
    for (size_t i = walk.way.size(); i-- > 0;)
      MG_CHECK(Play(*walk.position, node(walk.way[i]).action).ok());
    walk.at = slot;
  }
  // Takes the action in the parent's position, at which the root's position must be, and what is
  // forced behind it unless this is the `last` step; keeps where that leads.
  absl::Status Step(const StepRow& row, bool last) {
    Walk& walk = walks_[row.root];
    MG_RETURN_IF_ERROR(walk.position->Apply(row.action).status());
    if (!last) PlayForced(*walk.position);
    walk.at = row.slot;
    Keep(row.root, row.parent_slot, row.action, nodes_[row.parent_slot].depth + 1);
    return absl::OkStatus();
  }

 private:
  struct Node {
    int32_t parent = -1;
    int32_t action = -1;
    int32_t depth = 0;
    int32_t decisions = 0;  // number of decisions of the position
  };
  struct Walk {
    const Task* task = nullptr;
    std::unique_ptr<Position> position;
    int32_t at = -1;           // the slot of `position`
    std::vector<int32_t> way;  // used by GoTo alone; kept so that it need not be allocated
  };

  static absl::Status Play(Position& position, int32_t action) {
    MG_RETURN_IF_ERROR(position.Apply(action).status());
    PlayForced(position);
    return absl::OkStatus();
  }
  void Keep(size_t root, int32_t parent, int32_t action, int32_t depth) {
    const Walk& walk = walks_[root];
    nodes_[walk.at] = {parent, action, depth, walk.position->num_decisions()};
  }

  std::vector<Walk> walks_;  // by root
  std::vector<Node> nodes_;  // by slot
};

class RulesModel final : public SearchModel {
 public:
  RulesModel(Network& network, const Config& config)
      : network_(network), uniform_(config.prior == "uniform"),
        rollout_share_(config.simulations == 1 ? 0 : static_cast<float>(config.rollout_share)),
        asks_(!uniform_ || rollout_share_ < 1), asks_below_(asks_ && !config.exact()),
        one_step_from_(OneStepFrom(config)) {}

  void SetRoots(absl::Span<const Root> roots) override {
    rollouts_.resize(roots.size());
    for (size_t i = 0; i < roots.size(); ++i) {
      Rollouts& rollouts = rollouts_[i];
      rollouts.fastest.clear();
      if (rollout_share_ > 0) Follow(rollouts, roots[i], walks_.task(i) == roots[i].task);
    }
    walks_.SetRoots(roots);
  }
  int64_t evaluations() const override { return evaluations_; }
  absl::Span<const uint8_t> fastest(int i) const override { return rollouts_[i].fastest; }
  bool faster(int i) const override {
    const Rollouts& rollouts = rollouts_[i];
    return !rollouts.fastest.empty() && rollouts.fastest_ps < rollouts.follow_ps;
  }

  int num_actions() const override { return network_.num_actions(); }

  absl::Status Reserve(int slots) override {
    walks_.Reserve(slots);
    return absl::OkStatus();
  }

  absl::Status Start(absl::Span<const RootRow> rows, const Predictions& out) override {
    BeginBatch(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      walks_.Start(rows[i]);
      Look(rows[i].root, i, out);
      Ask(rows[i].root, i, out);
      rollouts_[rows[i].root].one_step =
          walks_.position(rows[i].root).legal_actions().size() >= one_step_from_;
    }
    MG_RETURN_IF_ERROR(Evaluate(out));
    if (rollout_share_ > 0) {
      for (size_t i = 0; i < rows.size(); ++i) Prefer(rollouts_[rows[i].root].followed, i, out);
    }
    return absl::OkStatus();
  }

  absl::Status Step(absl::Span<const StepRow> rows, const Predictions& out) override {
    BeginBatch(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const size_t root = rows[i].root;
      const Task& task = *walks_.task(root);
      walks_.GoTo(root, rows[i].parent_slot);
      const double before = task.Lead(walks_.position(root));
      const bool last = rollouts_[root].one_step;
      MG_RETURN_IF_ERROR(walks_.Step(rows[i], last));
      out.rewards[i] = static_cast<float>(task.Lead(walks_.position(root)) - before);
      if (last) {
        out.terminal[i] = walks_.position(root).IsTerminal();
        Judge(root, i, out);
        continue;
      }
      Look(root, i, out);
      if (asks_below_) Ask(root, i, out);
    }
    return Evaluate(out);
  }

 private:
  // How rollouts from a root go on, and the game that they follow.
  struct Rollouts {
    std::unique_ptr<mcts::BasePolicy> policy;
    std::vector<uint8_t> follow;
    int64_t follow_ps = 0;
    int32_t followed = -1;         // what the last rollout played first
    std::vector<uint8_t> fastest;  // the fastest game of a rollout, and its latency
    int64_t fastest_ps = 0;
    bool one_step = false;  // the search goes no further than one step from this root
  };

  // The number of legal actions from which on Gumbel search tries another one with each simulation.
  // So it never goes on from where an action led, and where rollouts alone judge that, nothing else
  // is to be known there.
  static int OneStepFrom(const Config& config) {
    const bool one_step = config.exact() && config.simulations <= Config::kMostConsidered;
    return one_step ? config.simulations : std::numeric_limits<int>::max();
  }

  static void Follow(Rollouts& rollouts, const Root& root, bool same_task) {
    if (same_task && rollouts.follow == root.follow) return;
    if (!same_task) rollouts.policy = mcts::MakePolicy(root.task->game());
    rollouts.follow.assign(root.follow.begin(), root.follow.end());
    rollouts.policy->Adopt(rollouts.follow);
    rollouts.follow_ps = PositionAfter(root.task->game(), root.follow)->latency_ps();
  }

  // The lead that a rollout gains. The position is as before.
  float Rollout(size_t root) {
    Position& position = walks_.position(root);
    const Task& task = *walks_.task(root);
    Rollouts& rollouts = rollouts_[root];
    const int decisions = position.num_decisions();
    const double lead = task.Lead(position);
    rollouts.policy->PlayOn(position);
    const absl::Span<const uint8_t> actions = position.actions();
    rollouts.followed = actions[decisions];
    if (rollouts.fastest.empty() || position.latency_ps() < rollouts.fastest_ps) {
      rollouts.fastest.assign(actions.begin(), actions.end());
      rollouts.fastest_ps = position.latency_ps();
    }
    const double end = task.Lead(position);
    while (position.num_decisions() > decisions) position.Undo();
    return static_cast<float>(end - lead);
  }

  // Makes a legal action no less likely than any other one.
  void Prefer(int32_t action, size_t row, const Predictions& out) const {
    if (out.terminal[row] != 0) return;
    const size_t first = row * num_actions();
    float greatest = out.logits[first + action];
    for (int a = 0; a < num_actions(); ++a) {
      if (out.legal[first + a] != 0) greatest = std::max(greatest, out.logits[first + a]);
    }
    out.logits[first + action] = greatest;
  }

  void BeginBatch(size_t rows) {
    observations_.resize(rows * network_.observation_size());
    asked_.clear();
  }

  // Writes what the rules say of row `row`, and what the rollout from there does.
  void Look(size_t root, size_t row, const Predictions& out) {
    WriteRules(walks_.position(root), num_actions(), row, out);
    Judge(root, row, out);
  }
  void Judge(size_t root, size_t row, const Predictions& out) {
    if (out.terminal[row] == 0 && rollout_share_ > 0)
      out.values[row] = rollout_share_ * Rollout(root);
  }

  // The row's observation joins the batch for the network unless the game is over, or nothing that
  // the network says counts.
  void Ask(size_t root, size_t row, const Predictions& out) {
    if (!asks_ || out.terminal[row] != 0) return;
    const size_t at = asked_.size() * network_.observation_size();
    walks_.task(root)->Observe(walks_.position(root), observations_.data() + at);
    asked_.push_back(row);
  }

  absl::Status Evaluate(const Predictions& out) {
    if (asked_.empty()) return absl::OkStatus();
    const size_t size = network_.observation_size(), actions = num_actions();
    const size_t rows = asked_.size();
    logits_.resize(rows * actions);
    values_.resize(rows);
    evaluations_ += static_cast<int64_t>(rows);
    MG_RETURN_IF_ERROR(network_.Predict(absl::MakeConstSpan(observations_).subspan(0, rows * size),
                                        absl::MakeSpan(logits_), absl::MakeSpan(values_)));
    for (size_t i = 0; i < rows; ++i) {
      out.values[asked_[i]] += (1 - rollout_share_) * values_[i];
      if (uniform_) continue;
      std::copy_n(logits_.begin() + static_cast<ptrdiff_t>(i * actions), actions,
                  out.logits.begin() + asked_[i] * actions);
    }
    return absl::OkStatus();
  }

  Network& network_;
  bool uniform_;  // the prior
  float rollout_share_;
  // Whether the network is asked at roots, and below. Gumbel search with rollouts does without it
  // below: its policy there is worth less than the simulations that can be played instead.
  bool asks_, asks_below_;
  int one_step_from_;
  Walks walks_;
  std::vector<Rollouts> rollouts_;  // by root
  std::vector<float> observations_, logits_, values_;
  std::vector<size_t> asked_;  // the rows that the network is asked about
  int64_t evaluations_ = 0;
};

// MuZero's: the network alone says what follows from an action.
class LearnedModel final : public SearchModel {
 public:
  LearnedModel(Network& network, bool uniform) : network_(network), uniform_(uniform) {}

  void SetRoots(absl::Span<const Root> roots) override {
    roots_.assign(roots.begin(), roots.end());
  }
  int64_t evaluations() const override { return evaluations_; }
  absl::Span<const uint8_t> fastest(int) const override { return {}; }
  bool faster(int) const override { return false; }

  int num_actions() const override { return network_.num_actions(); }
  absl::Status Reserve(int slots) override { return network_.Reserve(slots); }

  absl::Status Start(absl::Span<const RootRow> rows, const Predictions& out) override {
    slots_.clear();
    observations_.assign(rows.size() * network_.observation_size(), 0.0F);
    for (size_t i = 0; i < rows.size(); ++i) {
      const Root& root = roots_[rows[i].root];
      WriteRules(*root.position, num_actions(), i, out);
      if (!root.position->IsTerminal())
        root.task->Observe(*root.position, observations_.data() + i * network_.observation_size());
      slots_.push_back(rows[i].slot);
    }
    return WithPrior(network_.Start(observations_, slots_, out.logits, out.values), out);
  }

  absl::Status Step(absl::Span<const StepRow> rows, const Predictions& out) override {
    parents_.clear(), actions_.clear(), slots_.clear();
    for (const StepRow& row : rows) {
      parents_.push_back(row.parent_slot);
      actions_.push_back(row.action);
      slots_.push_back(row.slot);
    }
    return WithPrior(network_.Step(parents_, actions_, slots_, out.logits, out.values, out.rewards),
                     out);
  }

 private:
  absl::Status WithPrior(absl::Status status, const Predictions& out) {
    evaluations_ += static_cast<int64_t>(slots_.size());
    if (uniform_) std::fill(out.logits.begin(), out.logits.end(), 0.0F);
    return status;
  }

  Network& network_;
  bool uniform_;  // the prior
  std::vector<Root> roots_;
  std::vector<float> observations_;
  std::vector<int32_t> slots_, parents_, actions_;
  int64_t evaluations_ = 0;
};

}  // namespace

std::unique_ptr<SearchModel> MakeSearchModel(const Config& config, Network& network) {
  if (config.paper()) return std::make_unique<LearnedModel>(network, config.prior == "uniform");
  return std::make_unique<RulesModel>(network, config);
}

}  // namespace mallocgame::muzero
