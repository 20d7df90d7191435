#include "mallocgame/game/priority/priority_game.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/plan_reader.h"
#include "mallocgame/game/priority/priority_observation.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/priority/priority_tables.h"
#include "mallocgame/game/tables.h"

namespace mallocgame {
namespace {

Segment ReadRun(const PriorityTables& tables, const PlanReader& reader, const Run& run) {
  const auto access = [&](int32_t i) { return tables.arrangement.decision(run.buffer, i).access; };
  const ResidenceId r = reader.residence(access(run.first));
  bool same = true, any = false;
  for (int32_t i = run.first; i <= run.last; ++i) {
    same &= reader.residence(access(i)) == r;
    any |= reader.residence(access(i)).valid();
  }
  if (any && !same) return {access(run.first), access(run.last), Mode::kSplit};
  return reader.Read(access(run.first), access(run.last), r, run.planned.latest_fetch);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Game>> PriorityGameOptions::MakeGame(
    std::shared_ptr<const Program> program, const Hardware& hardware) const {
  return PriorityGame::Create(std::move(program), hardware, *this);
}

absl::StatusOr<std::shared_ptr<const PriorityGame>> PriorityGame::Create(
    std::shared_ptr<const Program> program, const Hardware& hardware,
    const PriorityGameOptions& options) {
  MG_RETURN_IF_ERROR(Check(program, hardware, options));
  return std::shared_ptr<const PriorityGame>(
      new PriorityGame(std::move(program), hardware, options));
}

std::shared_ptr<const PriorityGame> PriorityGame::InOrder(
    std::shared_ptr<const Program> program, absl::Span<const Tick> order,
    absl::Span<const int32_t> access_of) const {
  PriorityGameOptions same = options();
  for (AccessId& id : same.forbidden) id = AccessId(access_of[id.index()]);
  return std::shared_ptr<const PriorityGame>(
      new PriorityGame(std::move(program), hardware(), same, this, order));
}

PriorityGame::PriorityGame(std::shared_ptr<const Program> program, const Hardware& hardware,
                           const PriorityGameOptions& options, const Game* known,
                           absl::Span<const Tick> order)
    : Game(std::move(program), hardware, options, known, order),
      priority_tables_(std::make_unique<const PriorityTables>(*this)) {
  // A run is decided or split, and there are as many splits as cuts.
  max_decisions_ = static_cast<int>(priority_tables_->runs.size());
}

PriorityGame::~PriorityGame() = default;

std::unique_ptr<Position> PriorityGame::NewInitialPosition() const {
  return std::make_unique<PriorityState>(shared());
}

std::string PriorityGame::ActionToString(int action) const {
  if (action < 0 || action >= num_actions()) return "unknown";
  return absl::StrCat(ModeName(static_cast<Mode>(action % kActionModes)), " ",
                      action / kActionModes);
}

Intent PriorityGame::OpenIntent() const {
  Intent intent;
  for (const Run& run : priority_tables_->runs) {
    intent.push_back({priority_tables_->arrangement.decision(run.buffer, run.first).access,
                      priority_tables_->arrangement.decision(run.buffer, run.last).access});
    intent.back().rank = static_cast<double>(intent.size() - 1);
  }
  return intent;
}

Intent PriorityGame::ReadPlan(const Plan& plan) const {
  const PlanReader reader(program(), plan);
  Intent intent = OpenIntent();
  for (size_t i = 0; i < intent.size(); ++i) {
    const double rank = intent[i].rank;
    intent[i] = ReadRun(*priority_tables_, reader, priority_tables_->runs[i]);
    intent[i].rank = rank;
  }
  return intent;
}

Segment PriorityGame::OwnSegment(int32_t run, Mode mode,
                                 absl::Span<const int32_t> own_access) const {
  const Run& one = priority_tables_->runs[run];
  const auto own = [&](AccessId id) { return AccessId(own_access[id.index()]); };
  const auto access = [&](int32_t i) {
    return own(priority_tables_->arrangement.decision(one.buffer, i).access);
  };
  if (one.parent >= 0) return {access(one.first), access(one.last), mode};
  AccessId first = access(one.first);
  for (const AccessId id : program().accesses_of(tables().buffers[one.buffer].id))
    first = std::min(first, own(id));
  return {first, AccessId(), mode};
}

std::unique_ptr<const PositionObserver> PriorityGame::MakeObserver(
    const ObservationOptions& options, std::shared_ptr<const PriceSums> prices) const {
  return std::make_unique<const PriorityObserver>(*this, options, std::move(prices));
}

}  // namespace mallocgame
