#include "mallocgame/game/game.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/incumbent_trace.h"
#include "mallocgame/game/tables.h"
#include "mallocgame/plan/pinned.h"

namespace mallocgame {
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

absl::Status CheckTime(const CostModel& cost_model) {
  if (RunFits(cost_model)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("program '", cost_model.program().name(), "' on hardware '",
                   cost_model.hardware().name, "': found a run of more than ", kMaxRunPs,
                   " ps, copies included, allowed: that long at most"));
}

}  // namespace

absl::Status Game::Check(const std::shared_ptr<const Program>& program, const Hardware& hardware,
                         const GameOptions& options) {
  MG_RETURN_IF_ERROR(ValidateHardware(hardware));
  MG_RETURN_IF_ERROR(options.Check());
  MG_RETURN_IF_ERROR(CheckAccesses(*program, options.forbidden, "forbidden"));
  MG_RETURN_IF_ERROR(CheckPinsFit(*program, hardware));
  return CheckTime(CostModel(program, hardware));
}

Game::Game(std::shared_ptr<const Program> program, const Hardware& hardware,
           const GameOptions& options, const Game* known, absl::Span<const Tick> order)
    : program_(std::move(program)), hardware_(hardware), options_(options.Clone()),
      cost_model_(program_, hardware_), num_actions_(options.num_actions()) {
  const int64_t kept_free =
      static_cast<int64_t>(options.keep_free * static_cast<double>(hardware_.fast_bytes));
  usable_bytes_ =
      (hardware_.fast_bytes - kept_free) / hardware_.alignment_bytes * hardware_.alignment_bytes;
  in_main_.resize(program_->accesses().size());
  for (size_t a = 0; a < in_main_.size(); ++a) in_main_[a] = program_->in_main_only(AccessId(a));
  for (const AccessId id : options.forbidden) in_main_[id.index()] = true;
  tables_ = std::make_unique<const GameTables>(
      *this, known != nullptr ? known->tables_.get() : nullptr, order);
  max_decisions_ = static_cast<int>(tables_->decisions.size());
  all_main_ps_ = tables_->all_main_before.back();
}

Game::~Game() = default;

std::unique_ptr<IncumbentTrace> Game::MakeTrace() const {
  return std::make_unique<IncumbentTrace>(program_->accesses().size());
}

bool Game::forbidden(AccessId id) const {
  const std::vector<AccessId>& forbidden = options_->forbidden;
  return std::find(forbidden.begin(), forbidden.end(), id) != forbidden.end();
}

}  // namespace mallocgame
