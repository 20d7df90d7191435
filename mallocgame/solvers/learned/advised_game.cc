#include "mallocgame/solvers/learned/advised_game.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "mallocgame/base/error.h"

namespace mallocgame {
namespace {

// The most that true savings count, as a multiple of the estimate.
constexpr double kMostSaved = 4;
// More than any logarithm of a run's bytes or time.
constexpr float kFirst = 1000;

// Decides about the most important open run.
void PlayTop(OrderState& state, const RunAdvice& advice, const Style& style) {
  const Run& run = state.tables().runs[state.candidates()[0]];
  const double before = static_cast<double>(state.latency_ps());
  const double scale = std::pow(advice.saving, style.advice) /
                       static_cast<double>(std::max<int64_t>(1, run.saving_ps));
  Service best = Service::kSkip;
  double most = 0;
  const float split = style.advice * advice.split + style.split;
  if (run.splits && (split >= 0 || run.required)) {
    best = Service::kSplit;
    most = split;
  }
  const std::pair<Service, float> placing[] = {
      {Service::kLate, style.advice * advice.late + style.place},
      {Service::kEarly, style.advice * advice.early + style.place + style.early},
      {Service::kPreload, style.advice * advice.preload + style.place + style.preload}};
  for (const auto& [service, worth] : placing) {
    const int action = OrderAction(0, service);
    if (!state.TryApply(action)) continue;
    const double saved = before - static_cast<double>(state.latency_ps());
    state.Undo();
    const double total = worth + std::clamp(scale * saved, -kMostSaved, kMostSaved);
    if (total <= most && !(run.required && best == Service::kSkip)) continue;
    most = total;
    best = service;
  }
  if (state.TryApply(OrderAction(0, best))) return;
  // It is required, and so must be served in some way.
  for (const Service other :
       {Service::kSplit, Service::kLate, Service::kEarly, Service::kPreload}) {
    if (state.TryApply(OrderAction(0, other))) return;
  }
  MG_CHECK(false);
}

bool IsPlacing(uint8_t service) {
  return service == static_cast<uint8_t>(Service::kLate) ||
         service == static_cast<uint8_t>(Service::kEarly) ||
         service == static_cast<uint8_t>(Service::kPreload);
}

}  // namespace

AdvisedGame::AdvisedGame(std::shared_ptr<const Game> game)
    : game_(std::move(game)), graph_(game_->order_tables()) {}

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
    PlayTop(state, advice[id], style);
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
    }
  }
  return end;
}

}  // namespace mallocgame
