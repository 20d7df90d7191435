#include "agents/mcts/game_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"

namespace mallocgame::mcts {
namespace {

constexpr int kMaxThreads = 1024;

}  // namespace

absl::StatusOr<std::unique_ptr<GameModel>> GameModel::Create(std::vector<State> starts,
                                                             Evaluator* evaluator, int threads) {
  if (starts.empty()) return absl::InvalidArgumentError("starts: found none, allowed: one or more");
  for (size_t i = 0; i < starts.size(); ++i) {
    if (starts[i].game().num_actions() == starts[0].game().num_actions()) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("starts: the game of state ", i, " has ", starts[i].game().num_actions(),
                     " actions, that of state 0 has ", starts[0].game().num_actions(),
                     "; allowed: the same number"));
  }
  if (threads < 1 || threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads: found ", threads, ", allowed: 1 to ", kMaxThreads));
  }
  return std::unique_ptr<GameModel>(new GameModel(std::move(starts), evaluator, threads));
}

GameModel::GameModel(std::vector<State> starts, Evaluator* evaluator, int threads)
    : evaluator_(evaluator), num_actions_(starts[0].game().num_actions()) {
  for (State& start : starts) {
    const int base = start.num_decisions();
    walkers_.push_back({std::move(start), base, {}});
  }
  pool_ = std::make_unique<WorkerPool>(std::min(threads, static_cast<int>(walkers_.size())));
}

const State& GameModel::state(int root) {
  Walker& walker = walkers_[root];
  while (walker.state.num_decisions() > walker.base) walker.state.Undo();
  return walker.state;
}

void GameModel::SetState(int root, State state) {
  const int base = state.num_decisions();
  walkers_[root] = {std::move(state), base, {}};
}

absl::Status GameModel::Reserve(int slots) {
  if (slots_.size() < static_cast<size_t>(slots)) slots_.resize(slots);
  return absl::OkStatus();
}

absl::Status GameModel::Start(absl::Span<const RootRow> rows, const Predictions& out) {
  evaluator_->Begin(static_cast<int>(rows.size()));
  pool_->Run(static_cast<int>(rows.size()), 1, [&](int begin, int end) {
    for (int i = begin; i < end; ++i) {
      const RootRow& row = rows[i];
      slots_[row.slot] = {-1, 0};
      Walker& walker = walkers_[row.root];
      WalkTo(walker, row.slot);
      Describe(walker, row.root, i, out);
    }
  });
  return evaluator_->Finish(out.logits, out.values);
}

absl::Status GameModel::Step(absl::Span<const StepRow> rows, const Predictions& out) {
  evaluator_->Begin(static_cast<int>(rows.size()));
  // The rows of a root stand together, so one thread moves its state.
  std::vector<int32_t> first;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (i == 0 || rows[i].root != rows[i - 1].root) first.push_back(static_cast<int32_t>(i));
  }
  first.push_back(static_cast<int32_t>(rows.size()));
  pool_->Run(static_cast<int>(first.size()) - 1, 1, [&](int begin, int end) {
    for (int32_t i = first[begin]; i < first[end]; ++i) {
      const StepRow& row = rows[i];
      slots_[row.slot] = {row.parent_slot, static_cast<uint8_t>(row.action)};
      Walker& walker = walkers_[row.root];
      WalkTo(walker, row.parent_slot);
      const auto saved = walker.state.Apply(static_cast<Action>(row.action));
      MG_CHECK(saved.ok());  // the search follows legal actions only
      const int64_t all_main_ps = walker.state.game().all_main_ps();
      out.rewards[i] =
          all_main_ps == 0
              ? 0
              : static_cast<float>(static_cast<double>(*saved) / static_cast<double>(all_main_ps));
      Describe(walker, row.root, i, out);
    }
  });
  return evaluator_->Finish(out.logits, out.values);
}

absl::Status GameModel::Advance(int root, int slot) {
  Walker& walker = walkers_[root];
  WalkTo(walker, slot);
  walker.base = walker.state.num_decisions();
  slots_[slot] = {-1, 0};
  return absl::OkStatus();
}

// Moves a state to another position of its root: back to where the two paths part, and on from
// there.
void GameModel::WalkTo(Walker& walker, int32_t slot) {
  walker.path.clear();
  for (int32_t at = slot; slots_[at].parent >= 0; at = slots_[at].parent)
    walker.path.push_back(slots_[at].action);
  std::reverse(walker.path.begin(), walker.path.end());
  State& state = walker.state;
  const absl::Span<const uint8_t> played = state.actions().subspan(walker.base);
  const auto [from, to] =
      std::mismatch(played.begin(), played.end(), walker.path.begin(), walker.path.end());
  const auto common = static_cast<int>(from - played.begin());
  while (state.num_decisions() > walker.base + common) state.Undo();
  for (auto action = walker.path.begin() + common; action != walker.path.end(); ++action) {
    MG_CHECK(state.Apply(static_cast<Action>(*action)).ok());
  }
}

void GameModel::Describe(Walker& walker, int root, size_t row, const Predictions& out) {
  const uint32_t legal = walker.state.legal_mask();
  out.terminal[row] = walker.state.IsTerminal() ? 1 : 0;
  const size_t first = row * num_actions_;
  for (int a = 0; a < num_actions_; ++a)
    out.legal[first + a] = static_cast<uint8_t>(legal >> a & 1u);
  evaluator_->Look(static_cast<int>(row), root, walker.state);
}

}  // namespace mallocgame::mcts
