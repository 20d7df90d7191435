#include "mallocgame/game/game.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/position.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/priority/priority_tables.h"
#include "mallocgame/game/schedule/schedule_state.h"
#include "mallocgame/game/schedule/schedule_tables.h"
#include "mallocgame/game/state.h"
#include "mallocgame/game/tables.h"
#include "mallocgame/plan/pinned.h"
#include "mallocgame/schedule/main_memory.h"

namespace mallocgame {

const char* ActionName(Action action) {
  constexpr const char* kNames[] = {"Drop", "Copy", "NoCopy", "CopyEarly"};
  const size_t index = static_cast<size_t>(action);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

const char* GameKindName(GameKind kind) {
  constexpr const char* kNames[] = {"time", "priority", "schedule"};
  return kNames[static_cast<size_t>(kind)];
}

int RulesVersionOf(GameKind kind) {
  constexpr int kVersions[] = {kRulesVersion, kPriorityRulesVersion, kScheduleRulesVersion};
  return kVersions[static_cast<size_t>(kind)];
}

int NumActions(const GameOptions& options) {
  if (options.kind == GameKind::kPriority) return options.candidates * kActionModes;
  if (options.kind == GameKind::kSchedule)
    return kOrderingActions + options.candidates * kActionModes;
  return options.paper_actions ? kPaperActions : kActions;
}

namespace {

absl::Status CheckAccesses(const Program& program, absl::Span<const AccessId> ids,
                           absl::string_view option) {
  for (AccessId id : ids) {
    if (!id.valid() || id.index() >= program.accesses().size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(option, ": access ", id.value, " does not exist; program '", program.name(),
                       "' has accesses 0 to ", program.accesses().size(), " (exclusive)"));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckMainMemory(const Program& program, const GameOptions& options) {
  if (options.main_bytes == 0) return absl::OkStatus();
  if (options.kind != GameKind::kSchedule) {
    return absl::InvalidArgumentError(absl::StrCat("main_bytes: found ", options.main_bytes,
                                                   " for the ", GameKindName(options.kind),
                                                   " game, allowed: 0; the schedule game has it"));
  }
  const int64_t needed = MainMemoryOf(program).total_bytes();
  if (options.main_bytes >= needed) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("main_bytes: found ", options.main_bytes, ", program '", program.name(),
                   "' needs ", needed, " in its own order; allowed: that or more, or 0 for that"));
}

absl::Status CheckTime(const CostModel& cost_model) {
  if (RunFits(cost_model)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("program '", cost_model.program().name(), "' on hardware '",
                   cost_model.hardware().name, "': found a run of more than ", kMaxRunPs,
                   " ps, copies included, allowed: that long at most"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Game>> Game::Create(std::shared_ptr<const Program> program,
                                                         const Hardware& hardware,
                                                         const GameOptions& options) {
  MG_RETURN_IF_ERROR(ValidateHardware(hardware));
  if (options.min_buffer_bytes < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("min_buffer_bytes: found ", options.min_buffer_bytes, ", allowed: 0 or more"));
  }
  if (!(options.keep_free >= 0.0 && options.keep_free < 1.0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("keep_free: found ", options.keep_free, ", allowed: 0 or more, less than 1"));
  }
  const int most = options.kind == GameKind::kSchedule ? kMaxScheduleCandidates : kMaxCandidates;
  if (options.candidates < 1 || options.candidates > most) {
    return absl::InvalidArgumentError(
        absl::StrCat("candidates: found ", options.candidates, ", allowed: 1 to ", most));
  }
  for (const auto& [name, weight] : {std::pair("bytes_weight", options.bytes_weight),
                                     std::pair("time_weight", options.time_weight)}) {
    if (!(weight >= 0.0 && weight <= 2.0)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": found ", weight, ", allowed: 0 to 2"));
    }
  }
  MG_RETURN_IF_ERROR(CheckAccesses(*program, options.forbidden, "forbidden"));
  MG_RETURN_IF_ERROR(CheckPinsFit(*program, hardware));
  MG_RETURN_IF_ERROR(CheckTime(CostModel(program, hardware)));
  MG_RETURN_IF_ERROR(CheckMainMemory(*program, options));
  return std::shared_ptr<const Game>(new Game(std::move(program), hardware, options));
}

std::shared_ptr<const Game> Game::Reordered(std::shared_ptr<const Program> program,
                                            absl::Span<const Tick> order,
                                            absl::Span<const int32_t> access_of) const {
  MG_CHECK(options_.kind != GameKind::kSchedule);
  GameOptions options = options_;
  for (AccessId& id : options.forbidden) id = AccessId(access_of[id.index()]);
  return std::shared_ptr<const Game>(new Game(std::move(program), hardware_, options, this, order));
}

Game::Game(std::shared_ptr<const Program> program, const Hardware& hardware,
           const GameOptions& options, const Game* known, absl::Span<const Tick> order)
    : program_(std::move(program)), hardware_(hardware), options_(options),
      cost_model_(program_, hardware_) {
  const int64_t kept_free =
      static_cast<int64_t>(options_.keep_free * static_cast<double>(hardware_.fast_bytes));
  usable_bytes_ =
      (hardware_.fast_bytes - kept_free) / hardware_.alignment_bytes * hardware_.alignment_bytes;
  in_main_.resize(program_->accesses().size());
  for (size_t a = 0; a < in_main_.size(); ++a) in_main_[a] = program_->in_main_only(AccessId(a));
  for (const AccessId id : options_.forbidden) in_main_[id.index()] = true;
  tables_ = std::make_unique<const GameTables>(
      *this, known != nullptr ? known->tables_.get() : nullptr, order);
  max_decisions_ = static_cast<int>(tables_->decisions.size());
  all_main_ps_ = tables_->all_main_before.back();
  num_actions_ = NumActions(options_);
  if (options_.kind == GameKind::kTime) return;
  if (options_.kind == GameKind::kSchedule) {
    GameOptions placing = options_;
    placing.kind = GameKind::kPriority;
    placing.main_bytes = 0;
    std::shared_ptr<const Game> placement(new Game(program_, hardware_, placing));
    max_decisions_ = placement->max_decisions();  // as many runs in every order
    schedule_tables_ = std::make_unique<const ScheduleTables>(*this, std::move(placement));
    max_decisions_ += schedule_tables_->max_order_decisions;
    return;
  }
  priority_tables_ = std::make_unique<const PriorityTables>(*this);
  // A run is decided or split, and there are as many splits as cuts.
  max_decisions_ = static_cast<int>(priority_tables_->runs.size());
}

Game::~Game() = default;

bool Game::forbidden(AccessId id) const {
  return std::find(options_.forbidden.begin(), options_.forbidden.end(), id) !=
         options_.forbidden.end();
}

State Game::InitialState() const {
  MG_CHECK(options_.kind == GameKind::kTime);
  return State(shared_from_this());
}

std::unique_ptr<Position> Game::Start() const {
  if (options_.kind == GameKind::kPriority)
    return std::make_unique<PriorityState>(shared_from_this());
  if (options_.kind == GameKind::kSchedule)
    return std::make_unique<ScheduleState>(shared_from_this());
  return std::make_unique<State>(shared_from_this());
}

std::string Game::ActionText(int action) const {
  if (action < 0 || action >= num_actions_) return "unknown";
  if (options_.kind == GameKind::kTime) return ActionName(static_cast<Action>(action));
  if (options_.kind == GameKind::kSchedule) {
    if (action == kNextUnits) return "Next";
    if (action < kOrderingActions) return absl::StrCat("Take ", action);
    action -= kOrderingActions;
  }
  return absl::StrCat(ModeName(static_cast<Mode>(action % kActionModes)), " ",
                      action / kActionModes);
}

}  // namespace mallocgame
