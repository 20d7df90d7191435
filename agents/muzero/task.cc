#include "agents/muzero/task.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "agents/training/bytes.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/play_actions.h"
#include "mallocgame/tree/schedule_policy.h"

namespace mallocgame::muzero {
using training::ReadBytes;
using training::WriteBytes;
namespace {

// sqrt(x + 1) - 1, negative for a negative x.
float Squeeze(float x) { return std::copysign(std::sqrt(std::abs(x) + 1.0F) - 1.0F, x); }

}  // namespace

absl::StatusOr<std::shared_ptr<const Game>> GameOf(const TrainingProblem& problem,
                                                   const Config& config) {
  std::unique_ptr<GameOptions> options = config.game_options();
  if (options->decides_order() && problem.program->both() != nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("muzero: '", problem.name,
                     "': found two sets of prices, allowed in the schedule game: one"));
  }
  if (problem.own_game != nullptr) {
    const std::unique_ptr<GameOptions> own = problem.own_game->Clone();
    // For which the networks are made.
    for (const auto& [name, value] : options->List())
      if (name == "candidates" && own->Has(name)) MG_RETURN_IF_ERROR(own->Set(name, value));
    if (own->game() != absl::string_view(options->game()) ||
        own->num_actions() != options->num_actions()) {
      return absl::InvalidArgumentError(
          absl::StrCat("muzero: '", problem.name, "' is a ", own->game(), " game with ",
                       problem.own_game->num_actions(), " actions, allowed: ", options->game(),
                       " games with ", options->num_actions(), ", by the settings"));
    }
    return Game::Create(problem.program, problem.hardware, *own);
  }
  return Game::Create(problem.program, problem.hardware, *options);
}

absl::StatusOr<Task> Task::Create(std::shared_ptr<const Game> game, const Config& config,
                                  std::vector<uint8_t> baseline) {
  MG_ASSIGN_OR_RETURN(Observer observer, Observer::Create(game, config.observation_options()));
  Task task(std::move(game), std::move(observer), !config.paper());
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
  task.seen_ = MakeBaseline(**end);
  return task;
}

double Task::Lead(const Position& position) const {
  const int64_t baseline_ps = position.IsTerminal() ? baseline_ps_ : seen_->LatencyAt(position);
  return static_cast<double>(baseline_ps - position.latency_ps() - position.penalty_ps()) /
         unit_ps_;
}

int Task::observation_size() const {
  const int beside = game_->num_actions() * Baseline::kFeatures + kLeadFeatures;
  return observer_.size() + (sees_baseline_ ? beside : 0);
}

void Task::Observe(const Position& position, float* out) const {
  observer_.Write(position, out);
  if (!sees_baseline_) return;
  out += observer_.size();
  std::fill_n(out, game_->num_actions() * Baseline::kFeatures, 0.0F);
  if (!position.IsTerminal()) seen_->Write(position, out);
  out += game_->num_actions() * Baseline::kFeatures;
  const auto lead = static_cast<float>(Lead(position));
  out[0] = lead / (std::abs(lead) + 1);
  out[1] = std::clamp(Squeeze(lead) / 32, -1.0F, 1.0F);
}

void WriteOwnGame(const Game& game, std::string& out) {
  const auto options = game.options().List();
  WriteBytes(std::string(game.options().game()), out);
  WriteBytes(static_cast<uint64_t>(options.size()), out);
  for (const auto& [name, value] : options) {
    WriteBytes(name, out);
    WriteBytes(static_cast<uint8_t>(value.index()), out);
    if (const auto* accesses = std::get_if<std::vector<AccessId>>(&value)) {
      std::vector<int64_t> numbers;
      for (const AccessId access : *accesses) numbers.push_back(access.value);
      WriteBytes(numbers, out);
    } else {
      std::visit(
          [&out](const auto& number) {
            if constexpr (std::is_arithmetic_v<std::decay_t<decltype(number)>>)
              WriteBytes(number, out);
          },
          value);
    }
  }
}

absl::StatusOr<std::shared_ptr<const Game>> ReadOwnGame(
    absl::string_view& in, const std::shared_ptr<const Program>& program, const Hardware& hardware,
    const Config& config) {
  std::string name;
  uint64_t count = 0;
  MG_RETURN_IF_ERROR(ReadBytes(in, name));
  MG_RETURN_IF_ERROR(ReadBytes(in, count));
  const std::unique_ptr<GameOptions> options = config.game_options();
  if (name != options->game()) return training::CutShort();
  const int actions = options->num_actions();
  for (uint64_t i = 0; i < count; ++i) {
    uint8_t type = 0;
    MG_RETURN_IF_ERROR(ReadBytes(in, name));
    MG_RETURN_IF_ERROR(ReadBytes(in, type));
    const auto read = [&in](auto value) -> absl::StatusOr<OptionValue> {
      MG_RETURN_IF_ERROR(ReadBytes(in, value));
      return OptionValue(value);
    };
    absl::StatusOr<OptionValue> value;
    switch (type) {
      case 0: value = read(false); break;
      case 1: value = read(int64_t{0}); break;
      case 2: value = read(0.0); break;
      default: {
        std::vector<int64_t> numbers;
        MG_RETURN_IF_ERROR(ReadBytes(in, numbers));
        value = OptionValue(std::vector<AccessId>(numbers.begin(), numbers.end()));
      }
    }
    MG_RETURN_IF_ERROR(value.status());
    MG_RETURN_IF_ERROR(options->Set(name, *value));
  }
  if (options->num_actions() != actions) return training::CutShort();
  return Game::Create(program, hardware, *options);
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
  return Task::Create(std::move(game), config, std::move(baseline));
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

absl::StatusOr<SolveResult> ResultOf(const std::shared_ptr<const Game>& game,
                                     absl::Span<const uint8_t> actions) {
  MG_ASSIGN_OR_RETURN(SolveResult result,
                      JudgePlay({{actions.begin(), actions.end()}, game, {}, {}}));
  result.evaluations = 0;  // Whoever played the game has counted it.
  result.status = SolveStatus::kStopped;
  return result;
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
