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

// The mode of the most important open run that is worth most, of those that are legal.
Mode BestMode(const PriorityState& state, const PriorityRule& rule) {
  const Run& run = state.tables().runs[state.candidates()[0]];
  const auto estimate = static_cast<double>(std::max<int64_t>(1, run.saving_ps));
  // Of modes worth the same the first is taken.
  const std::pair<Mode, float> worths[] = {{Mode::kSplit, rule.split},
                                           {Mode::kSkip, 0.0F},
                                           {Mode::kLate, rule.place},
                                           {Mode::kEarly, rule.place + rule.early},
                                           {Mode::kPreload, rule.place + rule.preload}};
  const ActionSet legal = state.legal_actions();
  std::optional<Mode> best;
  double most = 0;
  for (const auto& [mode, worth] : worths) {
    const int action = PriorityAction(0, mode);
    if (!legal.Has(action)) continue;
    const double saved = static_cast<double>(state.SavingOf(action)) / estimate;
    const double total = worth + std::clamp(saved, -kMostSaved, kMostSaved);
    if (best && total <= most) continue;
    most = total;
    best = mode;
  }
  return *best;
}

// As `game`, but a priority game of one candidate that asks about small buffers too.
std::shared_ptr<const PriorityGame> RuleGameOf(const Game& game) {
  PriorityGameOptions options = PriorityOptionsOf(game);
  options.candidates = 1;
  options.exact_stalls = false;  // The rules weigh the lower bound.
  options.min_buffer_bytes = std::min(options.min_buffer_bytes, kSmallBufferBytes);
  return PriorityGameWith(game, options);
}

// As ReadGame, of a state that has the runs in an order of its own.
Intent Decided(const PriorityState& state) {
  const ArrangementTables& tables = state.tables().arrangement;
  Intent decided;
  for (const PriorityState::Decided& one : state.decided()) {
    const Run& run = state.tables().runs[one.run];
    Segment& segment = decided.emplace_back();
    segment.first = tables.decision(run.buffer, run.first).access;
    segment.last = tables.decision(run.buffer, run.last).access;
    segment.mode = one.mode;
    segment.rank = static_cast<double>(decided.size() - 1);
  }
  return decided;
}

bool IsPlacing(Mode mode) {
  return mode == Mode::kLate || mode == Mode::kEarly || mode == Mode::kPreload;
}

}  // namespace

RuleGame::RuleGame(const Game& game) : game_(RuleGameOf(game)), graph_(game_->priority_tables()) {}

RuledEnd RuleGame::Play(const PriorityRule& rule, FoundPlan* best) const {
  std::vector<float> importance(graph_.num_runs());
  for (size_t r = 0; r < importance.size(); ++r) {
    importance[r] = graph_.log_importance[r] + rule.saving * graph_.log_saving[r] +
                    rule.bytes * graph_.log_bytes[r] + rule.held * graph_.log_held[r];
  }
  return PlayInOrder(importance, {}, rule, best);
}

RuledEnd RuleGame::Repack(const RuledEnd& end, double bytes_weight, double held_weight,
                          const PriorityRule& rule, FoundPlan* best) const {
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
                               const PriorityRule& rule, FoundPlan* best) const {
  const PriorityTables tables(game_->priority_tables(), importance);
  PriorityState state(game_, tables);
  while (!state.IsTerminal()) {
    const int32_t id = tables.runs[state.candidates()[0]].id;
    const bool wants = !wanted.empty() && (IsPlacing(wanted[id]) || wanted[id] == Mode::kSplit);
    if (wants && state.TryApply(PriorityAction(0, static_cast<Mode>(wanted[id])))) continue;
    MG_CHECK(state.TryApply(PriorityAction(0, BestMode(state, rule))));
  }
  RuledEnd end;
  end.latency_ps = state.latency_ps();
  end.modes.assign(tables.runs.size(), Mode::kOpen);
  for (int i = 0; i < state.num_decisions(); ++i)
    end.modes[tables.runs[state.DecidedSegment(i)].id] = state.DecidedMode(i);
  if (best != nullptr) {
    ++best->evaluations;
    if (end.latency_ps < best->latency_ps) {
      best->latency_ps = end.latency_ps;
      best->plan = state.ToPlan();
      best->decided = Decided(state);
    }
  }
  return end;
}

}  // namespace mallocgame
