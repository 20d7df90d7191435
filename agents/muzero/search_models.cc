#include "agents/muzero/search_models.h"

#include <algorithm>
#include <utility>

#include "agents/mcts/follower.h"
#include "mallocgame/base/error.h"

namespace mallocgame::muzero {
namespace {

using mcts::Predictions;
using mcts::RootRow;
using mcts::StepRow;

void WriteLegal(uint32_t mask, size_t actions, uint8_t* legal) {
  for (size_t a = 0; a < actions; ++a) legal[a] = mask >> a & 1;
}

// A position is kept as its path from the root. Each root has one Position, which moves along such
// paths by Undo and Apply.
class RulesModel final : public SearchModel {
 public:
  RulesModel(Network& network, const Config& config)
      : network_(network), uniform_(config.prior == "uniform"),
        rollout_share_(config.simulations == 1 ? 0 : static_cast<float>(config.rollout_share)) {}

  void SetRoots(absl::Span<const Root> roots) override {
    walkers_.resize(roots.size());
    for (size_t i = 0; i < roots.size(); ++i) {
      Walker& walker = walkers_[i];
      const bool same_task = walker.task == roots[i].task;
      if (same_task)
        walker.position->CopyFrom(*roots[i].position);
      else
        walker.position = roots[i].position->Clone();
      walker.task = roots[i].task;
      walker.fastest.clear();
      if (rollout_share_ > 0) Follow(walker, roots[i].follow, same_task);
    }
  }
  int64_t evaluations() const override { return evaluations_; }
  absl::Span<const uint8_t> fastest(int i) const override { return walkers_[i].fastest; }
  bool faster(int i) const override {
    const Walker& walker = walkers_[i];
    return !walker.fastest.empty() && walker.fastest_ps < walker.follow_ps;
  }

  int num_actions() const override { return network_.num_actions(); }

  absl::Status Reserve(int slots) override {
    if (nodes_.size() < static_cast<size_t>(slots)) nodes_.resize(slots);
    return absl::OkStatus();
  }

  absl::Status Start(absl::Span<const RootRow> rows, const Predictions& out) override {
    BeginBatch(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      Walker& walker = walkers_[rows[i].root];
      walker.at = rows[i].slot;
      Keep(walker, -1, -1, 0);
      Look(walker, i, out);
    }
    MG_RETURN_IF_ERROR(Evaluate(out));
    if (rollout_share_ > 0) {
      for (size_t i = 0; i < rows.size(); ++i) Prefer(walkers_[rows[i].root].followed, i, out);
    }
    return absl::OkStatus();
  }

  absl::Status Step(absl::Span<const StepRow> rows, const Predictions& out) override {
    BeginBatch(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      Walker& walker = walkers_[rows[i].root];
      WalkTo(walker, rows[i].parent_slot);
      const double before = walker.task->Lead(*walker.position);
      MG_RETURN_IF_ERROR(Play(walker, rows[i].action));
      walker.at = rows[i].slot;
      Keep(walker, rows[i].parent_slot, rows[i].action, nodes_[rows[i].parent_slot].depth + 1);
      out.rewards[i] = static_cast<float>(walker.task->Lead(*walker.position) - before);
      Look(walker, i, out);
    }
    return Evaluate(out);
  }

 private:
  struct Node {
    int32_t parent = -1;
    int32_t action = -1;
    int32_t depth = 0;
    int32_t decisions = 0;  // number of decisions of the position
  };
  struct Walker {
    const Task* task = nullptr;
    std::unique_ptr<Position> position;
    int32_t at = -1;           // the slot of `position`
    std::vector<int32_t> way;  // used by WalkTo alone; kept so that it need not be allocated
    // How rollouts go on, and the game that they follow.
    std::unique_ptr<mcts::Follower> follower;
    std::vector<uint8_t> follow;
    int64_t follow_ps = 0;
    int32_t followed = -1;         // what the last rollout played first
    std::vector<uint8_t> fastest;  // the fastest game of a rollout, and its latency
    int64_t fastest_ps = 0;
  };
  struct Looked {
    size_t row = 0;
    float rollout = 0;  // what it returns
  };

  static void Follow(Walker& walker, absl::Span<const uint8_t> follow, bool same_task) {
    if (same_task && walker.follow == follow) return;
    if (!same_task) walker.follower = mcts::Follower::Create(walker.task->game());
    walker.follow.assign(follow.begin(), follow.end());
    walker.follower->Adopt(walker.follow);
    walker.follow_ps = PositionAfter(walker.task->game(), follow)->latency_ps();
  }

  // The lead that a rollout gains. The position is as before.
  float Rollout(Walker& walker) const {
    Position& position = *walker.position;
    const int decisions = position.num_decisions();
    const double lead = walker.task->Lead(position);
    walker.follower->PlayOn(position);
    const absl::Span<const uint8_t> actions = position.actions();
    walker.followed = actions[decisions];
    if (walker.fastest.empty() || position.latency_ps() < walker.fastest_ps) {
      walker.fastest.assign(actions.begin(), actions.end());
      walker.fastest_ps = position.latency_ps();
    }
    const double end = walker.task->LeadOf(position.latency_ps());
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

  static absl::Status Play(Walker& walker, int32_t action) {
    MG_RETURN_IF_ERROR(walker.position->Apply(action).status());
    PlayForced(*walker.position);
    return absl::OkStatus();
  }

  void Keep(const Walker& walker, int32_t parent, int32_t action, int32_t depth) {
    nodes_[walker.at] = {parent, action, depth, walker.position->num_decisions()};
  }

  // Moves the position back to the last position that both paths share, and on from there.
  void WalkTo(Walker& walker, int32_t slot) {
    const auto node = [this](int32_t s) -> const Node& { return nodes_[s]; };
    int32_t here = walker.at, there = slot;
    walker.way.clear();
    while (here != there) {
      if (node(there).depth >= node(here).depth) {
        walker.way.push_back(there);
        there = node(there).parent;
      } else {
        here = node(here).parent;
      }
    }
    while (walker.position->num_decisions() > node(here).decisions) walker.position->Undo();
    for (size_t i = walker.way.size(); i-- > 0;)
      MG_CHECK(Play(walker, node(walker.way[i]).action).ok());
    walker.at = slot;
  }

  void BeginBatch(size_t rows) {
    const size_t size = network_.observation_size();
    observations_.resize(rows * size);
    looked_.clear();
  }

  // Writes what the rules say of row `row`. Its observation joins the batch unless the game is
  // over.
  void Look(Walker& walker, size_t row, const Predictions& out) {
    const size_t actions = num_actions();
    out.terminal[row] = walker.position->IsTerminal();
    WriteLegal(walker.position->legal_mask(), actions, out.legal.data() + row * actions);
    if (walker.position->IsTerminal()) return;
    const size_t size = network_.observation_size();
    walker.task->Observe(*walker.position, observations_.data() + looked_.size() * size);
    looked_.push_back({row, rollout_share_ > 0 ? Rollout(walker) : 0});
  }

  absl::Status Evaluate(const Predictions& out) {
    if (looked_.empty()) return absl::OkStatus();
    const size_t size = network_.observation_size(), actions = num_actions();
    const size_t rows = looked_.size();
    logits_.resize(rows * actions);
    values_.resize(rows);
    evaluations_ += static_cast<int64_t>(rows);
    MG_RETURN_IF_ERROR(network_.Predict(absl::MakeConstSpan(observations_).subspan(0, rows * size),
                                        absl::MakeSpan(logits_), absl::MakeSpan(values_)));
    for (size_t i = 0; i < rows; ++i) {
      const auto [row, rollout] = looked_[i];
      out.values[row] = values_[i] + rollout_share_ * (rollout - values_[i]);
      if (uniform_) continue;
      std::copy_n(logits_.begin() + static_cast<ptrdiff_t>(i * actions), actions,
                  out.logits.begin() + row * actions);
    }
    return absl::OkStatus();
  }

  Network& network_;
  bool uniform_;  // the prior
  float rollout_share_;
  std::vector<Walker> walkers_;
  std::vector<Node> nodes_;  // by slot
  std::vector<float> observations_, logits_, values_;
  std::vector<Looked> looked_;  // the rows of the batch that are not terminal
  int64_t evaluations_ = 0;
};

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
    const size_t size = network_.observation_size(), actions = num_actions();
    observations_.resize(rows.size() * size);
    slots_.clear();
    for (size_t i = 0; i < rows.size(); ++i) {
      const Root& root = roots_[rows[i].root];
      out.terminal[i] = root.position->IsTerminal();
      WriteLegal(root.position->legal_mask(), actions, out.legal.data() + i * actions);
      root.task->Observe(*root.position, observations_.data() + i * size);
      slots_.push_back(rows[i].slot);
    }
    evaluations_ += static_cast<int64_t>(rows.size());
    return WithPrior(network_.Start(observations_, slots_, out.logits, out.values), out);
  }

  absl::Status Step(absl::Span<const StepRow> rows, const Predictions& out) override {
    parents_.clear(), actions_.clear(), slots_.clear();
    for (const StepRow& row : rows) {
      parents_.push_back(row.parent_slot);
      actions_.push_back(row.action);
      slots_.push_back(row.slot);
    }
    evaluations_ += static_cast<int64_t>(rows.size());
    return WithPrior(network_.Step(parents_, actions_, slots_, out.logits, out.values, out.rewards),
                     out);
  }

 private:
  absl::Status WithPrior(absl::Status status, const Predictions& out) const {
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
  if (config.learned()) return std::make_unique<LearnedModel>(network, config.prior == "uniform");
  return std::make_unique<RulesModel>(network, config);
}

}  // namespace mallocgame::muzero
