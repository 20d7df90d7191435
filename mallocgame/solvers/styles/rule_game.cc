#include "mallocgame/solvers/styles/rule_game.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/search/game_variants.h"

namespace mallocgame {
namespace {

// The most that true savings count, as a multiple of the estimate.
constexpr double kMostSaved = 4;
// More than any logarithm of a run's bytes or time.
constexpr float kFirst = 1000;

// The service of the most important open run that is worth most, of those that are legal.
Service BestService(const OrderState& state, const PriorityRule& rule) {
  const Run& run = state.tables().runs[state.candidates()[0]];
  const auto estimate = static_cast<double>(std::max<int64_t>(1, run.saving_ps));
  // Of services worth the same the first is taken.
  const std::pair<Service, float> worths[] = {{Service::kSplit, rule.split},
                                              {Service::kSkip, 0.0F},
                                              {Service::kLate, rule.place},
                                              {Service::kEarly, rule.place + rule.early},
                                              {Service::kPreload, rule.place + rule.preload}};
  const ActionSet legal = state.legal_actions();
  std::optional<Service> best;
  double most = 0;
  for (const auto& [service, worth] : worths) {
    const int action = OrderAction(0, service);
    if (!legal.Has(action)) continue;
    const double saved = static_cast<double>(state.SavingOf(action)) / estimate;
    const double total = worth + std::clamp(saved, -kMostSaved, kMostSaved);
    if (best && total <= most) continue;
    most = total;
    best = service;
  }
  return *best;
}

// As `game`, but an order game of one candidate that asks about small buffers too.
std::shared_ptr<const Game> RuleGameOf(const Game& game) {
  GameOptions options = game.options();
  options.kind = GameKind::kOrder;
  options.candidates = 1;
  options.min_buffer_bytes = std::min(options.min_buffer_bytes, kSmallBufferBytes);
  return GameWith(game, options);
}

bool IsPlacing(Mode mode) {
  return mode == Mode::kLate || mode == Mode::kEarly || mode == Mode::kPreload;
}

}  // namespace

RuleGame::RuleGame(const Game& game) : game_(RuleGameOf(game)), graph_(game_->order_tables()) {}

RuledEnd RuleGame::Play(const PriorityRule& rule, RuledPlan* best) const {
  std::vector<float> importance(graph_.num_runs());
  for (size_t r = 0; r < importance.size(); ++r) {
    importance[r] = graph_.log_importance[r] + rule.saving * graph_.log_saving[r] +
                    rule.bytes * graph_.log_bytes[r] + rule.held * graph_.log_held[r];
  }
  return PlayInOrder(importance, {}, rule, best);
}

RuledEnd RuleGame::Repack(const RuledEnd& end, double bytes_weight, double held_weight,
                          const PriorityRule& rule, RuledPlan* best) const {
  std::vector<float> importance(end.modes.size());
  for (size_t r = 0; r < importance.size(); ++r) {
    const Mode mode = end.modes[r];
    importance[r] =
        static_cast<float>(bytes_weight * graph_.log_bytes[r] + held_weight * graph_.log_held[r]);
    // What is split comes first, so that its parts are open; what is not placed comes last.
    if (mode == Mode::kSplit) {
      importance[r] += kFirst;
    } else if (!IsPlacing(mode)) {
      importance[r] = graph_.log_importance[r] - kFirst;
    }
  }
  return PlayInOrder(importance, end.modes, rule, best);
}

RuledEnd RuleGame::PlayInOrder(absl::Span<const float> importance, absl::Span<const Mode> wanted,
                               const PriorityRule& rule, RuledPlan* best) const {
  const OrderTables tables(game_->order_tables(), importance);
  OrderState state(game_, tables);
  while (!state.IsTerminal()) {
    const int32_t id = tables.runs[state.candidates()[0]].id;
    const bool wants = !wanted.empty() && (IsPlacing(wanted[id]) || wanted[id] == Mode::kSplit);
    if (wants && state.TryApply(OrderAction(0, static_cast<Service>(wanted[id])))) continue;
    MG_CHECK(state.TryApply(OrderAction(0, BestService(state, rule))));
  }
  RuledEnd end;
  end.latency_ps = state.latency_ps();
  end.modes.assign(tables.runs.size(), Mode::kOpen);
  for (int i = 0; i < state.num_decisions(); ++i)
    end.modes[tables.runs[DecidedSegment(state, i)].id] = DecidedMode(state, i);
  if (best != nullptr) {
    ++best->games;
    if (end.latency_ps < best->latency_ps) {
      best->latency_ps = end.latency_ps;
      best->plan = state.ToPlan();
      best->decided = ReadGame(state);
    }
  }
  return end;
}

}  // namespace mallocgame
