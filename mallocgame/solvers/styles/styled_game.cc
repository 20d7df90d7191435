#include "mallocgame/solvers/styles/styled_game.h"

#include <algorithm>
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
Service BestService(const OrderState& state, const Style& style) {
  const Run& run = state.tables().runs[state.candidates()[0]];
  const auto estimate = static_cast<double>(std::max<int64_t>(1, run.saving_ps));
  // Of services worth the same the first is taken.
  const std::pair<Service, float> worths[] = {{Service::kSplit, style.split},
                                              {Service::kSkip, 0.0F},
                                              {Service::kLate, style.place},
                                              {Service::kEarly, style.place + style.early},
                                              {Service::kPreload, style.place + style.preload}};
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
std::shared_ptr<const Game> StyledGameOf(const Game& game) {
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

StyledGame::StyledGame(const Game& game)
    : game_(StyledGameOf(game)), graph_(game_->order_tables()) {}

StyledEnd StyledGame::Play(const Style& style, StyledPlan* best) const {
  std::vector<float> importance(graph_.num_runs());
  for (size_t r = 0; r < importance.size(); ++r) {
    importance[r] = graph_.log_importance[r] + style.saving * graph_.log_saving[r] +
                    style.bytes * graph_.log_bytes[r] + style.held * graph_.log_held[r];
  }
  return PlayInOrder(importance, {}, style, best);
}

StyledEnd StyledGame::Repack(const StyledEnd& end, double bytes_weight, double held_weight,
                             const Style& style, StyledPlan* best) const {
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
  return PlayInOrder(importance, end.services, style, best);
}

StyledEnd StyledGame::PlayInOrder(absl::Span<const float> importance,
                                  absl::Span<const uint8_t> wanted, const Style& style,
                                  StyledPlan* best) const {
  const OrderTables tables(game_->order_tables(), importance);
  OrderState state(game_, tables);
  while (!state.IsTerminal()) {
    const int32_t id = tables.runs[state.candidates()[0]].id;
    const bool wants = !wanted.empty() && (IsPlacing(wanted[id]) ||
                                           wanted[id] == static_cast<uint8_t>(Service::kSplit));
    if (wants && state.TryApply(OrderAction(0, static_cast<Service>(wanted[id])))) continue;
    MG_CHECK(state.TryApply(OrderAction(0, BestService(state, style))));
  }
  StyledEnd end;
  end.latency_ps = state.latency_ps();
  end.services.assign(tables.runs.size(), StyledEnd::kNeverOpen);
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
