#include "agents/muzero/baseline.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/priority/priority_tables.h"
#include "mallocgame/game/schedule/schedule_state.h"
#include "mallocgame/game/time/state.h"
#include "mallocgame/search/intent.h"
#include "mallocgame/tree/schedule_policy.h"

namespace mallocgame::muzero {
namespace {

int64_t AccessesOf(const Run& run) { return run.last - run.first + 1; }

// Shares what `run` saves among the runs that it can be split into.
void ShareAmongParts(const PriorityTables& tables, int32_t run, std::vector<int64_t>& saved) {
  for (const int32_t part : tables.runs[run].parts) {
    if (part < 0) continue;
    saved[part] = saved[run] * AccessesOf(tables.runs[part]) / AccessesOf(tables.runs[run]);
    ShareAmongParts(tables, part, saved);
  }
}

constexpr double kNoTurn = std::numeric_limits<double>::infinity();

// Writes what the baseline does with each candidate: turn_of(run) is a mode and its turn, kNoTurn
// for a run that the baseline decides nothing about. `out` is all 0.
template <class TurnOf>
void WriteCandidates(absl::Span<const int32_t> candidates, const TurnOf& turn_of, float* out) {
  int first = -1;
  double first_turn = kNoTurn;
  for (size_t c = 0; c < candidates.size() && candidates[c] >= 0; ++c) {
    const std::pair<Mode, double> choice = turn_of(candidates[c]);
    if (choice.second == kNoTurn) continue;
    const int action = PriorityAction(static_cast<int>(c), choice.first);
    out[action * Baseline::kFeatures] = 1;
    if (choice.second < first_turn) {
      first_turn = choice.second;
      first = action;
    }
  }
  if (first >= 0) out[first * Baseline::kFeatures + 1] = 1;
}

// What the baseline does with an access, or a run, and when; kNever where it decides nothing about
// it.
constexpr int32_t kNever = std::numeric_limits<int32_t>::max();
struct Choice {
  uint8_t action = 0;  // or mode
  int32_t turn = kNever;
};

class TimeBaseline final : public Baseline {
 public:
  explicit TimeBaseline(const Position& end) : choices_(end.game().program().accesses().size()) {
    State state(end.game());
    for (const uint8_t action : end.actions()) {
      const size_t access = state.current_access().index();
      latency_by_access_.resize(access + 1, state.latency_ps());
      choices_[access] = {action, state.num_decisions()};
      MG_CHECK(state.Apply(static_cast<Action>(action)).ok());
    }
    latency_by_access_.resize(choices_.size() + 1, end.latency_ps());
  }

  int64_t LatencyAt(const Position& position) const override {
    return latency_by_access_[AccessOf(position)];
  }

  void Write(const Position& position, float* out) const override {
    const auto& [action, turn] = choices_[AccessOf(position)];
    if (turn != kNever) std::fill_n(out + action * kFeatures, kFeatures, 1.0F);
  }

 private:
  static size_t AccessOf(const Position& position) { return position.current_access().index(); }

  std::vector<Choice> choices_;  // by access
  // For each access: the baseline's latency when it decided about that access or a later one.
  std::vector<int64_t> latency_by_access_;
};

class PriorityBaseline final : public Baseline {
 public:
  // The last decision makes up for stalls that no decision before it knew of. It counts only at the
  // end.
  explicit PriorityBaseline(const PriorityState& end)
      : choices_(end.tables().runs.size()), saved_by_run_(end.tables().runs.size()) {
    const PriorityTables& tables = end.tables();
    const absl::Span<const PriorityState::Decided> decided = end.decided();
    for (size_t i = decided.size(); i-- > 0;) {
      const auto [run, mode, latency_ps, stall_ps] = decided[i];
      choices_[run] = {static_cast<uint8_t>(mode), static_cast<int32_t>(i)};
      if (mode == Mode::kSplit) {
        for (const int32_t part : tables.runs[run].parts)
          if (part >= 0) saved_by_run_[run] += saved_by_run_[part];
        continue;
      }
      if (i + 1 < decided.size()) saved_by_run_[run] = latency_ps - decided[i + 1].latency_ps;
      ShareAmongParts(tables, run, saved_by_run_);
    }
  }

  int64_t LatencyAt(const Position& position) const override {
    int64_t latency_ps = position.game().all_main_ps();
    for (const PriorityState::Decided& decided :
         static_cast<const PriorityState&>(position).decided()) {
      if (decided.mode != Mode::kSplit) latency_ps -= saved_by_run_[decided.run];
    }
    return latency_ps;
  }

  void Write(const Position& position, float* out) const override {
    WriteCandidates(
        static_cast<const PriorityState&>(position).candidates(),
        [this](int32_t run) {
          const auto& [mode, turn] = choices_[run];
          return std::pair(static_cast<Mode>(mode), turn == kNever ? kNoTurn : turn);
        },
        out);
  }

 private:
  std::vector<Choice> choices_;  // by run
  // For each run: what the baseline saves over its accesses. Where the baseline decided about a
  // longer run, the accesses share what that saves evenly.
  std::vector<int64_t> saved_by_run_;
};

constexpr size_t kRememberedOrders = 32;  // of all threads

// Calls visit(access of the program in its own order) for the accesses of a run.
template <class Function>
void VisitAccesses(const OrderedGame& ordered, int32_t index, const Function& visit) {
  const PriorityTables& tables = ordered.game->priority_tables();
  const Run& run = tables.runs[index];
  for (int32_t i = run.first; i <= run.last; ++i)
    visit(ordered.own_access[tables.arrangement.decision(run.buffer, i).access.index()]);
}

// At other orders of instructions than its own too.
class ScheduleBaseline final : public Baseline {
 public:
  explicit ScheduleBaseline(const ScheduleState& end)
      : policy_(end.game()), saved_by_access_(end.game().program().accesses().size()) {
    policy_.Adopt(end.actions());
    const OrderedGame& ordered = end.ordered();
    const absl::Span<const PriorityState::Decided> decided = end.placement()->decided();
    for (size_t i = 0; i + 1 < decided.size(); ++i) {
      if (decided[i].mode == Mode::kSplit) continue;
      const Run& run = ordered.game->priority_tables().runs[decided[i].run];
      int64_t left_ps = decided[i].latency_ps - decided[i + 1].latency_ps;
      int64_t left = run.last - run.first + 1;
      VisitAccesses(ordered, decided[i].run, [&](int32_t access) {
        const int64_t share_ps = left_ps / left--;
        saved_by_access_[access] = share_ps;
        left_ps -= share_ps;
      });
    }
  }

  int64_t LatencyAt(const Position& position) const override {
    return position.game().all_main_ps() - SavedOver(static_cast<const ScheduleState&>(position));
  }

  void Write(const Position& position, float* out) const override {
    const auto& state = static_cast<const ScheduleState&>(position);
    if (state.placement() == nullptr) {
      // The one action that puts next what comes next in its order, of the units that can come.
      std::fill_n(out + policy_.OrderingAction(state) * kFeatures, kFeatures, 1.0F);
      return;
    }
    const std::shared_ptr<const Intent> intent = IntentAt(state.ordered());
    WriteCandidates(
        state.placement()->candidates(),
        [&intent](int32_t run) {
          const Segment& wanted = (*intent)[run];
          return std::pair(wanted.mode, wanted.mode == Mode::kOpen ? kNoTurn : wanted.rank);
        },
        out + kOrderingActions * kFeatures);
  }

 private:
  struct AtOrder {
    std::shared_ptr<const PriorityGame> game;
    std::shared_ptr<const Intent> intent;
  };

  // What it wants of the residences at an order: a mode for each run that it decides about, which
  // is kOpen for others, and ranks in its turn.
  std::shared_ptr<const Intent> IntentAt(const OrderedGame& ordered) const {
    {
      const std::lock_guard lock(mutex_);
      const auto known = std::find_if(remembered_.begin(), remembered_.end(),
                                      [&](const AtOrder& one) { return one.game == ordered.game; });
      if (known != remembered_.end()) {
        std::rotate(remembered_.begin(), known, known + 1);
        return remembered_.front().intent;
      }
    }
    auto intent = std::make_shared<const Intent>(
        IntentLike(*ordered.game, policy_.wanted(), ordered.own_access));
    const std::lock_guard lock(mutex_);
    if (remembered_.size() == kRememberedOrders) remembered_.pop_back();
    remembered_.insert(remembered_.begin(), {ordered.game, intent});
    return intent;
  }

  // What it saves over the accesses that are decided in `state`. A run's accesses share what the
  // run saves evenly. Its last decision makes up for stalls that no decision before it knew of; it
  // counts only at the end.
  int64_t SavedOver(const ScheduleState& state) const {
    if (state.placement() == nullptr) return 0;
    int64_t saved_ps = 0;
    for (const PriorityState::Decided& decided : state.placement()->decided()) {
      if (decided.mode == Mode::kSplit) continue;
      VisitAccesses(state.ordered(), decided.run,
                    [&](int32_t access) { saved_ps += saved_by_access_[access]; });
    }
    return saved_ps;
  }

  mcts::SchedulePolicy policy_;
  std::vector<int64_t> saved_by_access_;  // by access of the program in its own order
  mutable std::mutex mutex_;
  mutable std::vector<AtOrder> remembered_;  // the latest first
};

}  // namespace

std::unique_ptr<const Baseline> MakeBaseline(const Position& end) {
  const absl::string_view game = end.game().options().game();
  if (game == "time") return std::make_unique<const TimeBaseline>(end);
  if (game == "schedule")
    return std::make_unique<const ScheduleBaseline>(static_cast<const ScheduleState&>(end));
  MG_CHECK(game == "priority");
  return std::make_unique<const PriorityBaseline>(static_cast<const PriorityState&>(end));
}

}  // namespace mallocgame::muzero
