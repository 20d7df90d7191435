#include "agents/muzero/task.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "agents/mcts/schedule_policy.h"
#include "agents/muzero/value_scale.h"
#include "agents/training/bytes.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/play_actions.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/schedule/schedule_state.h"
#include "mallocgame/game/state.h"

namespace mallocgame::muzero {
namespace {

using training::ReadBytes;
using training::WriteBytes;

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
    out[action * kBaselineFeatures] = 1;
    if (choice.second < first_turn) {
      first_turn = choice.second;
      first = action;
    }
  }
  if (first >= 0) out[first * kBaselineFeatures + 1] = 1;
}

}  // namespace

absl::StatusOr<Task> Task::Create(std::shared_ptr<const Game> game,
                                  const ObservationOptions& options,
                                  std::vector<uint8_t> baseline) {
  MG_ASSIGN_OR_RETURN(Observer observer, Observer::Create(game, options));
  Task task(std::move(game), std::move(observer));
  const auto end = PlayActions(*task.game_, baseline);
  if (!end.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("muzero: the baseline's game: ", end.status().message()));
  }
  if (!(*end)->IsTerminal()) {
    return absl::InvalidArgumentError(absl::StrCat("muzero: the baseline's game isn't over after ",
                                                   baseline.size(), " decisions"));
  }
  task.baseline_ = std::move(baseline);
  task.baseline_ps_ = (*end)->latency_ps();
  task.unit_ps_ = 1e-3 * static_cast<double>(std::max<int64_t>(1, task.baseline_ps_));
  switch (task.game_->options().kind) {
    case GameKind::kTime: task.ReadTimeGame(); break;
    case GameKind::kPriority:
      task.ReadPriorityGame(static_cast<const PriorityState&>(**end));
      break;
    case GameKind::kSchedule:
      task.schedule_ =
          std::make_shared<const ScheduleBaseline>(static_cast<const ScheduleState&>(**end));
      break;
  }
  return task;
}

void Task::ReadTimeGame() {
  State state = game_->InitialState();
  choices_.resize(game_->program().accesses().size());
  for (const uint8_t action : baseline_) {
    latency_by_access_.resize(state.current_access().index() + 1, state.latency_ps());
    choices_[state.current_access().index()] = {action, state.num_decisions()};
    MG_CHECK(state.Apply(static_cast<Action>(action)).ok());
  }
  latency_by_access_.resize(game_->program().accesses().size() + 1, baseline_ps_);
}

// The last decision makes up for stalls that no decision before it knew of. It counts only at the
// end.
void Task::ReadPriorityGame(const PriorityState& end) {
  const PriorityTables& tables = end.tables();
  const absl::Span<const PriorityState::Decided> decided = end.decided();
  saved_by_run_.assign(tables.runs.size(), 0);
  choices_.resize(tables.runs.size());
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

int64_t Task::BaselineAt(const Position& position) const {
  if (position.IsTerminal()) return baseline_ps_;
  if (game_->options().kind == GameKind::kTime)
    return latency_by_access_[static_cast<const State&>(position).current_access().index()];
  int64_t latency_ps = game_->all_main_ps();
  if (schedule_ != nullptr)
    return latency_ps - schedule_->SavedOver(static_cast<const ScheduleState&>(position));
  for (const PriorityState::Decided& decided :
       static_cast<const PriorityState&>(position).decided()) {
    if (decided.mode != Mode::kSplit) latency_ps -= saved_by_run_[decided.run];
  }
  return latency_ps;
}

double Task::Lead(const Position& position) const {
  return static_cast<double>(BaselineAt(position) - position.latency_ps()) / unit_ps_;
}

int Task::observation_size() const {
  return observer_.size() + game_->num_actions() * kBaselineFeatures + kLeadFeatures;
}

void Task::Observe(const Position& position, float* out) const {
  observer_.Write(position, out);
  out += observer_.size();
  std::fill_n(out, game_->num_actions() * kBaselineFeatures, 0.0F);
  if (!position.IsTerminal()) WriteBaseline(position, out);
  out += game_->num_actions() * kBaselineFeatures;
  const auto lead = static_cast<float>(Lead(position));
  out[0] = lead / (std::abs(lead) + 1);
  out[1] = std::clamp(Squeeze(lead) / kGreatest, -1.0F, 1.0F);
}

void Task::WriteBaseline(const Position& position, float* out) const {
  if (game_->options().kind == GameKind::kTime) {
    const auto& [action, turn] =
        choices_[static_cast<const State&>(position).current_access().index()];
    if (turn != kNever) std::fill_n(out + action * kBaselineFeatures, kBaselineFeatures, 1.0F);
    return;
  }
  if (schedule_ == nullptr) {
    WriteCandidates(
        static_cast<const PriorityState&>(position).candidates(),
        [this](int32_t run) {
          const auto& [mode, turn] = choices_[run];
          return std::pair(static_cast<Mode>(mode), turn == kNever ? kNoTurn : turn);
        },
        out);
    return;
  }
  const auto& state = static_cast<const ScheduleState&>(position);
  if (state.placement() == nullptr) {
    std::fill_n(out + schedule_->OrderingAction(state) * kBaselineFeatures, kBaselineFeatures,
                1.0F);
    return;
  }
  const std::shared_ptr<const Intent> intent = schedule_->IntentAt(state.ordered());
  WriteCandidates(
      state.placement()->candidates(),
      [&intent](int32_t run) {
        const Segment& wanted = (*intent)[run];
        return std::pair(wanted.mode, wanted.mode == Mode::kOpen ? kNoTurn : wanted.rank);
      },
      out + kOrderingActions * kBaselineFeatures);
}

void WriteOwnGame(const Game& game, std::string& out) {
  const GameOptions& options = game.options();
  WriteBytes(options.bytes_weight, out);
  WriteBytes(options.time_weight, out);
  WriteBytes(options.exact_stalls, out);
  WriteBytes(options.main_bytes, out);
  WriteBytes(options.min_buffer_bytes, out);
  WriteBytes(options.keep_free, out);
  std::vector<int64_t> forbidden;
  for (const AccessId access : options.forbidden)
    forbidden.push_back(static_cast<int64_t>(access.index()));
  WriteBytes(forbidden, out);
}

absl::StatusOr<std::shared_ptr<const Game>> ReadOwnGame(
    absl::string_view& in, const std::shared_ptr<const Program>& program, const Hardware& hardware,
    const Config& config) {
  GameOptions options = config.game_options();
  MG_RETURN_IF_ERROR(ReadBytes(in, options.bytes_weight));
  MG_RETURN_IF_ERROR(ReadBytes(in, options.time_weight));
  MG_RETURN_IF_ERROR(ReadBytes(in, options.exact_stalls));
  MG_RETURN_IF_ERROR(ReadBytes(in, options.main_bytes));
  MG_RETURN_IF_ERROR(ReadBytes(in, options.min_buffer_bytes));
  MG_RETURN_IF_ERROR(ReadBytes(in, options.keep_free));
  std::vector<int64_t> forbidden;
  MG_RETURN_IF_ERROR(ReadBytes(in, forbidden));
  for (const int64_t access : forbidden) options.forbidden.emplace_back(access);
  return Game::Create(program, hardware, options);
}

void WriteTask(const Task& task, std::string& out) {
  WriteOwnGame(task.game(), out);
  WriteBytes(task.baseline(), out);
}

absl::StatusOr<Task> ReadTask(absl::string_view& in, const std::shared_ptr<const Program>& program,
                              const Hardware& hardware, const Config& config) {
  MG_ASSIGN_OR_RETURN(auto game, ReadOwnGame(in, program, hardware, config));
  std::vector<uint8_t> baseline;
  MG_RETURN_IF_ERROR(ReadBytes(in, baseline));
  return Task::Create(std::move(game), config.observation_options(), std::move(baseline));
}

void PlayForced(Position& position) {
  for (;;) {
    const ActionSet legal = position.legal_actions();
    if (legal.size() != 1) return;
    MG_CHECK(position.Apply(legal[0]).ok());
  }
}

std::unique_ptr<Position> PositionAfter(const Game& game, absl::Span<const uint8_t> actions) {
  absl::StatusOr<std::unique_ptr<Position>> position = PlayActions(game, actions);
  MG_CHECK(position.ok());
  return *std::move(position);
}

std::unique_ptr<Position> FollowGame(const Game& game, absl::Span<const uint8_t> prefix,
                                     absl::Span<const uint8_t> follow) {
  const std::unique_ptr<mcts::BasePolicy> policy = mcts::MakePolicy(game);
  policy->Adopt(follow);
  std::unique_ptr<Position> position = PositionAfter(game, prefix);
  policy->PlayOn(*position);
  return position;
}

}  // namespace mallocgame::muzero
