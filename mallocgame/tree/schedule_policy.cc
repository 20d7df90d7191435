#include "mallocgame/tree/schedule_policy.h"

#include <algorithm>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/game/play_actions.h"
#include "mallocgame/schedule/list_scheduling.h"

namespace mallocgame::mcts {
namespace {

constexpr int kMostServices = 4;       // that Change changes
constexpr double kBetween = 0.5;       // two ranks
constexpr double kOrderChanges = 0.5;  // the share of changes that are of the order

}  // namespace

SchedulePolicy::SchedulePolicy(const ScheduleGame& game) : game_(&game) {
  const ScheduleTables& tables = game.schedule_tables();
  for (size_t u = 0; u < tables.all.size(); ++u) {
    const GameUnit& unit = tables.all[u];
    if (unit.works && tables.decided[unit.region] != 0) movable_.push_back(static_cast<int32_t>(u));
  }
  RankByOrder(tables.units.ProgramOrder());
}

SchedulePolicy::SchedulePolicy(const ScheduleGame& game, const Plan& plan) : SchedulePolicy(game) {
  const ScheduleTables& tables = game.schedule_tables();
  std::vector<double> best;
  Intent best_wanted;
  int64_t least = 0;
  const auto consider = [&](const UnitOrder& order) {
    RankByOrder(order);
    const std::unique_ptr<Position> position = game.NewInitialPosition();
    PlayOn(*position);
    if (!best.empty() && position->latency_ps() >= least) return;
    least = position->latency_ps();
    best = rank_;
    best_wanted = wanted_;
  };
  consider(tables.units.ProgramOrder());
  const OrderedGame& own = *tables.own;
  const Intent like = own.game->ReadPlan(plan);
  for (size_t run = 0; run < like.size(); ++run) {
    wanted_.push_back(
        own.game->OwnSegment(static_cast<int32_t>(run), like[run].mode, own.own_access));
  }
  consider(tables.units.ProgramOrder());
  wanted_ = best_wanted;
  for (int rule = 0; rule < kListRules && !movable_.empty(); ++rule)
    consider(ListSchedule(tables.units, game.cost_model(), static_cast<ListRule>(rule)));
  rank_ = std::move(best);
  intent_game_ = nullptr;
}

void SchedulePolicy::RankByOrder(const UnitOrder& order) {
  const ScheduleTables& tables = game_->schedule_tables();
  intent_game_ = nullptr;
  rank_.assign(tables.all.size(), 0);
  for (size_t r = 0; r < order.size(); ++r) {
    for (size_t place = 0; place < order[r].size(); ++place)
      rank_[tables.first_unit[r] + order[r][place]] = static_cast<double>(place);
  }
}

// Takes the unit of the least rank, on its page.
int SchedulePolicy::OrderingAction(const ScheduleState& state) const {
  int best = -1;
  for (int i = 0; i < std::ssize(state.fitting()); ++i) {
    // Pages that were turned are gone.
    if (state.PlaceOf(i).page < state.page()) continue;
    if (best < 0 || rank_[state.fitting()[i]] < rank_[state.fitting()[best]]) best = i;
  }
  const auto [page, place] = state.PlaceOf(best);
  return state.page() < page ? kNextUnits : place;
}

void SchedulePolicy::Order(ScheduleState& state) const {
  while (state.placement() == nullptr) MG_CHECK(state.Apply(OrderingAction(state)).ok());
}

const Intent& SchedulePolicy::IntentAt(const ScheduleState& state) {
  const OrderedGame& ordered = state.ordered();
  if (intent_game_ != ordered.game) {
    intent_game_ = ordered.game;
    intent_ = IntentLike(*ordered.game, wanted_, ordered.own_access);
  }
  return intent_;
}

void SchedulePolicy::PlayOn(Position& position) {
  auto& state = static_cast<ScheduleState&>(position);
  Order(state);
  const Intent& intent = IntentAt(state);
  state.Place([&](PriorityState& placement) { placement.PlayOn(intent); });
}

void SchedulePolicy::Adopt(absl::Span<const uint8_t> actions) {
  const auto end = PlayActions(*game_, actions);
  MG_CHECK(end.ok());
  const auto& state = static_cast<const ScheduleState&>(**end);
  // The order that the game came to: what main memory cuts short is not tried again.
  const ScheduleTables& tables = state.tables();
  const OrderedGame& ordered = state.ordered();
  for (size_t place = 0; place < ordered.order.size(); ++place) {
    const Tick tick = ordered.order[place];
    const int32_t region = game_->program().region_at(tick);
    const int32_t unit = tables.first_unit[region] + tables.units.unit_of(tick);
    rank_[unit] = static_cast<double>(place);
  }
  wanted_.clear();
  for (const PriorityState::Decided& decided : state.placement()->decided()) {
    wanted_.push_back(ordered.game->OwnSegment(decided.run, decided.mode, ordered.own_access));
  }
  intent_game_ = nullptr;
}

void SchedulePolicy::PutBefore(int32_t unit, int32_t other) {
  rank_[unit] = rank_[other] - kBetween;
  intent_game_ = nullptr;
}

void SchedulePolicy::Serve(const Segment& one, const Segment& other) {
  const auto find = [this](const Segment& run) {
    return std::find_if(wanted_.begin(), wanted_.end(), [&run](const Segment& known) {
      return known.first == run.first && known.last == run.last;
    });
  };
  const auto known = find(one), before = find(other);
  if (known == wanted_.end()) {
    wanted_.insert(before, one);
  } else {
    known->mode = one.mode;
    if (before < known) std::rotate(before, known, known + 1);
  }
  intent_game_ = nullptr;
}

void SchedulePolicy::Change(Rng& rng) {
  if (!movable_.empty() && (wanted_.empty() || rng.Uniform() < kOrderChanges)) {
    const int32_t unit = rng.Pick(movable_), other = rng.Pick(movable_);
    rank_[unit] = rank_[other] + (rng.Below(2) == 0 ? -kBetween : kBetween);
  } else if (!wanted_.empty()) {
    constexpr Mode kModes[] = {Mode::kSkip, Mode::kLate, Mode::kEarly, Mode::kSplit, Mode::kOpen};
    for (uint32_t n = 1 + rng.Below(kMostServices); n > 0; --n) {
      Segment& one = wanted_[rng.Below(wanted_.size())];
      one.mode = kModes[rng.Below(std::size(kModes))];
      if (rng.Below(2) == 0) std::swap(one, wanted_[rng.Below(wanted_.size())]);
    }
  }
  intent_game_ = nullptr;
}

std::unique_ptr<BasePolicy> MakePolicy(const Game& game, const Plan* plan) {
  if (!game.options().decides_order()) {
    return std::make_unique<RolloutPolicy>(
        game, plan == nullptr ? game.OpenIntent() : game.ReadPlan(*plan));
  }
  const auto& schedule = static_cast<const ScheduleGame&>(game);
  if (plan == nullptr) return std::make_unique<SchedulePolicy>(schedule);
  return std::make_unique<SchedulePolicy>(schedule, *plan);
}

}  // namespace mallocgame::mcts
