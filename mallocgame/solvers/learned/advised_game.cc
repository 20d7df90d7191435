#include "mallocgame/solvers/learned/advised_game.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/game/order/services.h"
#include "mallocgame/solvers/game_variants.h"

namespace mallocgame {
namespace {

// The most that true savings count, as a multiple of the estimate.
constexpr double kMostSaved = 4;
// More than any logarithm of a run's bytes or time.
constexpr float kFirst = 1000;

// The service of the most important open run that is worth most, of those that are legal.
Service BestService(const OrderState& state, const RunAdvice& advice, const Style& style) {
  const Run& run = state.tables().runs[state.candidates()[0]];
  const double scale = std::pow(advice.saving, style.advice) /
                       static_cast<double>(std::max<int64_t>(1, run.saving_ps));
  // Of services worth the same the first is taken, and of those whose worth is beyond all numbers.
  const std::pair<Service, float> advised[] = {
      {Service::kSplit, style.advice * advice.split + style.split},
      {Service::kSkip, 0.0F},
      {Service::kLate, style.advice * advice.late + style.place},
      {Service::kEarly, style.advice * advice.early + style.place + style.early},
      {Service::kPreload, style.advice * advice.preload + style.place + style.preload}};
  const ActionSet legal = state.legal_actions();
  std::optional<Service> best;
  double most = 0;
  for (const auto& [service, worth] : advised) {
    const int action = OrderAction(0, service);
    if (!legal.Has(action)) continue;
    const double saved = scale * static_cast<double>(state.SavingOf(action));
    const double total = worth + std::clamp(saved, -kMostSaved, kMostSaved);
    if (best && !(total > most)) continue;
    most = total;
    best = service;
  }
  return *best;
}

// As `game`, but an order game of one candidate that asks about small buffers too.
std::shared_ptr<const Game> AdvisedGameOf(const Game& game) {
  GameOptions options = game.options();
  options.kind = GameKind::kOrder;
  options.candidates = 1;
  options.min_buffer_bytes = std::min(options.min_buffer_bytes, kSmallBufferBytes);
  return GameWith(game, options);
}

bool IsPlacing(uint8_t service) {
  return service == static_cast<uint8_t>(Service::kLate) ||
         service == static_cast<uint8_t>(Service::kEarly) ||
         service == static_cast<uint8_t>(Service::kPreload);
}

}  // namespace

AdvisedGame::AdvisedGame(const Game& game)
    : game_(AdvisedGameOf(game)), graph_(game_->order_tables()) {}

AdvisedEnd AdvisedGame::Play(absl::Span<const RunAdvice> advice, const Style& style,
                             AdvisedPlan* best) const {
  std::vector<float> importance(advice.size());
  for (size_t r = 0; r < importance.size(); ++r) {
    importance[r] = graph_.log_importance[r] +
                    style.advice * (advice[r].importance - graph_.log_importance[r]) +
                    style.saving * graph_.log_saving[r] + style.bytes * graph_.log_bytes[r] +
                    style.held * graph_.log_held[r];
  }
  return PlayInOrder(importance, {}, advice, style, best);
}

AdvisedEnd AdvisedGame::Repack(const AdvisedEnd& end, double bytes_weight, double held_weight,
                               absl::Span<const RunAdvice> advice, const Style& style,
                               AdvisedPlan* best) const {
  std::vector<float> importance(end.services.size());
  for (size_t r = 0; r < importance.size(); ++r) {
    const uint8_t service = end.services[r];
    importance[r] =
        static_cast<float>(bytes_weight * graph_.log_bytes[r] + held_weight * graph_.log_held[r]);
    // What is split comes first, so that its parts are open; what is not placed comes last.
    if (service == static_cast<uint8_t>(Service::kSplit)) {
      importance[r] += kFirst;
    } else if (!IsPlacing(service)) {
      importance[r] = graph_.log_importance[r] - kFirst;
    }
  }
  return PlayInOrder(importance, end.services, advice, style, best);
}

AdvisedEnd AdvisedGame::PlayInOrder(absl::Span<const float> importance,
                                    absl::Span<const uint8_t> wanted,
                                    absl::Span<const RunAdvice> advice, const Style& style,
                                    AdvisedPlan* best) const {
  const OrderTables tables(game_->order_tables(), importance);
  OrderState state(game_, tables);
  while (!state.IsTerminal()) {
    const int32_t id = tables.runs[state.candidates()[0]].id;
    const bool wants = !wanted.empty() && (IsPlacing(wanted[id]) ||
                                           wanted[id] == static_cast<uint8_t>(Service::kSplit));
    if (wants && state.TryApply(OrderAction(0, static_cast<Service>(wanted[id])))) continue;
    MG_CHECK(state.TryApply(OrderAction(0, BestService(state, advice[id], style))));
  }
  AdvisedEnd end;
  end.latency_ps = state.latency_ps();
  end.services.assign(tables.runs.size(), AdvisedEnd::kNeverOpen);
  for (const OrderState::Decided& decided : state.decided())
    end.services[tables.runs[decided.run].id] = static_cast<uint8_t>(decided.service);
  if (best != nullptr) {
    ++best->games;
    if (end.latency_ps < best->latency_ps) {
      best->latency_ps = end.latency_ps;
      best->plan = state.ToPlan();
      best->served = ServedRunsOf(state);
    }
  }
  return end;
}

}  // namespace mallocgame
