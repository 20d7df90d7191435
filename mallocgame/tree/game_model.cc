#include "mallocgame/tree/game_model.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/game.h"

namespace mallocgame::mcts {
absl::StatusOr<std::unique_ptr<GameModel>> GameModel::Create(
    std::vector<std::unique_ptr<Position>> starts, Evaluator* evaluator, int threads) {
  if (starts.empty()) return absl::InvalidArgumentError("starts: found none, allowed: one or more");
  for (size_t i = 0; i < starts.size(); ++i) {
    const int actions = starts[i]->game().num_actions();
    if (actions == starts[0]->game().num_actions()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "starts: the game of position ", i, " has ", actions, " actions, that of position 0 has ",
        starts[0]->game().num_actions(), "; allowed: the same number"));
  }
  if (threads < 1 || threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads: found ", threads, ", allowed: 1 to ", kMaxThreads));
  }
  return std::unique_ptr<GameModel>(new GameModel(std::move(starts), evaluator, threads));
}

GameModel::GameModel(std::vector<std::unique_ptr<Position>> starts, Evaluator* evaluator,
                     int threads)
    : evaluator_(evaluator), num_actions_(starts[0]->game().num_actions()) {
  for (std::unique_ptr<Position>& start : starts) {
    const int base = start->num_decisions();
    walkers_.push_back({std::move(start), base, {}});
  }
  pool_ = std::make_unique<WorkerPool>(std::min(threads, static_cast<int>(walkers_.size())));
}

const Position& GameModel::position(int root) {
  Walker& walker = walkers_[root];
  while (walker.position->num_decisions() > walker.base) walker.position->Undo();
  return *walker.position;
}

void GameModel::SetPosition(int root, std::unique_ptr<Position> position) {
  const int base = position->num_decisions();
  walkers_[root] = {std::move(position), base, {}};
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
  // The rows of a root stand together, so one thread moves its position.
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
      const auto saved = walker.position->Apply(row.action);
      MG_CHECK(saved.ok());  // the search follows legal actions only
      const int64_t all_main_ps = walker.position->game().all_main_ps();
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
  walker.base = walker.position->num_decisions();
  slots_[slot] = {-1, 0};
  return absl::OkStatus();
}

// Moves to another position of the root: back to where the two paths part, and on from
// there.
void GameModel::WalkTo(Walker& walker, int32_t slot) {
  walker.path.clear();
  for (int32_t at = slot; slots_[at].parent >= 0; at = slots_[at].parent)
    walker.path.push_back(slots_[at].action);
  std::reverse(walker.path.begin(), walker.path.end());
  Position& position = *walker.position;
  const absl::Span<const uint8_t> played = position.actions().subspan(walker.base);
  const auto [from, to] =
      std::mismatch(played.begin(), played.end(), walker.path.begin(), walker.path.end());
  const auto common = static_cast<int>(from - played.begin());
  while (position.num_decisions() > walker.base + common) position.Undo();
  for (auto action = walker.path.begin() + common; action != walker.path.end(); ++action) {
    MG_CHECK(position.Apply(*action).ok());
  }
}

void GameModel::Describe(Walker& walker, int root, size_t row, const Predictions& out) {
  const ActionSet legal = walker.position->legal_actions();
  out.terminal[row] = walker.position->IsTerminal() ? 1 : 0;
  const size_t first = row * num_actions_;
  for (int a = 0; a < num_actions_; ++a) out.legal[first + a] = legal.Has(a) ? 1 : 0;
  evaluator_->Look(static_cast<int>(row), root, *walker.position);
}

}  // namespace mallocgame::mcts
