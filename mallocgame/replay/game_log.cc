// Recording and replaying apply actions one by one. They differ in what they do when an action is
// refused.
#include "mallocgame/replay/game_log.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/position.h"
#include "mallocgame/replay/container.h"
#include "mallocgame/replay/replay.pb.h"
#include "mallocgame/replay/wire.h"
#include "mallocgame/simulator/simulate.h"

namespace mallocgame {
namespace {

// A step for messages: "step 3 (access 17, buffer param.2 at fusion.5)".
std::string Where(const Position& position, size_t step) {
  if (position.IsTerminal()) return absl::StrCat("step ", step, " (the game is over)");
  const std::vector<AccessRun> asked = position.AskedAbout();
  if (asked.empty()) return absl::StrCat("step ", step, " (the order of instructions)");
  const std::shared_ptr<const Game> planned = position.PlannedGame();
  const Program& program = planned->program();
  const AccessId id = asked[0].first;
  const Access& access = program.access(id);
  return absl::StrCat("step ", step, " (access ", id.value, ", buffer ",
                      program.buffer(access.buffer).name, " at ",
                      program.instruction(access.tick).name, ")");
}

std::string Name(const Game& game, uint8_t action) {
  return action < game.num_actions() ? game.ActionToString(action)
                                     : absl::StrCat("action ", int{action});
}

absl::StatusOr<int64_t> ApplyByte(Position& position, uint8_t action) {
  if (position.IsTerminal()) return absl::FailedPreconditionError("the game is over");
  const int actions = position.game().num_actions();
  if (action >= actions)
    return absl::InvalidArgumentError(absl::StrCat("no such action; allowed: 0 to ", actions - 1));
  return position.Apply(action);
}

absl::StatusOr<Report> Totals(const Position& end, const Plan& plan) {
  MG_ASSIGN_OR_RETURN(Report report, Simulate(end.PlannedGame()->cost_model(), plan));
  report.stall_at_ps.clear();
  report.fast_bytes_at.clear();
  return report;
}

ReplayVerdict Differs(std::optional<int64_t> step, std::string message) {
  return {false, step, std::move(message)};
}

// The first difference between two lists of a plan; "" if there is none.
template <class T>
std::string ListDifference(absl::string_view what, const std::vector<T>& expected,
                           const std::vector<T>& found) {
  const auto [e, f] = std::mismatch(expected.begin(), expected.end(), found.begin(), found.end());
  if (e == expected.end() && f == found.end()) return "";
  return absl::StrCat("plan: ", what, " ", e - expected.begin(), " differs (expected ",
                      expected.size(), " in all, found ", found.size(), ")");
}

std::string PlanDifference(const Plan& expected, const Plan& found) {
  if (expected.program_fingerprint != found.program_fingerprint ||
      expected.hardware != found.hardware) {
    return absl::StrCat("plan: expected program ", absl::CHexEscape(expected.program_fingerprint),
                        " on ", absl::CHexEscape(expected.hardware), ", found ",
                        found.program_fingerprint, " on ", found.hardware);
  }
  const auto [e, f] = std::mismatch(expected.residences.begin(), expected.residences.end(),
                                    found.residences.begin(), found.residences.end());
  if (e != expected.residences.end() && f != found.residences.end()) {
    const auto text = [](const Residence& r) {
      return absl::StrCat("buffer ", r.buffer.value, " at offset ", r.offset, " over ticks [",
                          r.begin, ", ", r.end, ")");
    };
    return absl::StrCat("plan: residence ", e - expected.residences.begin(), ": expected ",
                        text(*e), ", found ", text(*f));
  }
  for (std::string difference :
       {ListDifference("residence", expected.residences, found.residences),
        ListDifference("copy", expected.copies, found.copies),
        ListDifference("the placement of access", expected.served_by, found.served_by)}) {
    if (!difference.empty()) return difference;
  }
  return "";
}

std::string ReportDifference(const Report& expected, const Report& found) {
  struct Figure {
    const char* name;
    int64_t Report::* value;
  };
  constexpr Figure kFigures[] = {{"latency_ps", &Report::latency_ps},
                                 {"latency_cold_ps", &Report::latency_cold_ps},
                                 {"compute_ps", &Report::compute_ps},
                                 {"stall_ps", &Report::stall_ps},
                                 {"all_main_ps", &Report::all_main_ps},
                                 {"prefetched_bytes", &Report::prefetched_bytes},
                                 {"written_back_bytes", &Report::written_back_bytes},
                                 {"preloaded_bytes", &Report::preloaded_bytes},
                                 {"peak_fast_bytes", &Report::peak_fast_bytes},
                                 {"exact_ps", &Report::exact_ps},
                                 {"predicted_ps", &Report::predicted_ps},
                                 {"unpriced_ps", &Report::unpriced_ps},
                                 {"modelled_ps", &Report::modelled_ps},
                                 {"kernel_ps", &Report::kernel_ps}};
  for (const Figure& figure : kFigures) {
    const int64_t e = expected.*figure.value, f = found.*figure.value;
    if (e != f) return absl::StrCat("report: ", figure.name, ": expected ", e, ", found ", f);
  }
  return "";
}

absl::Status CheckReplayable(const GameLog& log, const Program& program) {
  const GameOptions& options = *log.options;
  if (log.rules_version != options.rules_version()) {
    return absl::FailedPreconditionError(
        absl::StrCat("game log: played under version ", log.rules_version, " of the rules of the ",
                     options.game(), " game; this build plays version ", options.rules_version()));
  }
  if (log.program_fingerprint != program.fingerprint()) {
    return absl::InvalidArgumentError(
        absl::StrCat("game log: of program ", absl::CHexEscape(log.program), " with fingerprint \"",
                     absl::CHexEscape(log.program_fingerprint), "\"; this is ", program.name(),
                     " with fingerprint \"", program.fingerprint(), "\""));
  }
  if (log.actions.size() != log.saved_ps.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "game log: ", log.actions.size(), " actions, but ", log.saved_ps.size(), " rewards"));
  }
  return absl::OkStatus();
}

absl::StatusOr<GameLog> FromWire(const replay::GameLog& wire) {
  GameLog log;
  MG_ASSIGN_OR_RETURN(log.program, replay::ReadText("program", wire.program()));
  MG_ASSIGN_OR_RETURN(log.program_fingerprint,
                      replay::ReadText("program_fingerprint", wire.program_fingerprint()));
  MG_ASSIGN_OR_RETURN(log.hardware, replay::HardwareFromWire(wire.hardware()));
  MG_ASSIGN_OR_RETURN(log.options, replay::OptionsFromWire(wire.options()));
  log.rules_version = wire.rules_version();
  MG_ASSIGN_OR_RETURN(log.solver, replay::ReadText("solver", wire.solver()));
  log.seed = wire.seed();
  log.actions.assign(wire.actions().begin(), wire.actions().end());
  log.saved_ps.assign(wire.saved_ps().begin(), wire.saved_ps().end());
  if (log.actions.size() != log.saved_ps.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(log.actions.size(), " actions, but ", log.saved_ps.size(), " rewards"));
  }
  log.search_visits.assign(wire.search_visits().begin(), wire.search_visits().end());
  log.search_values.assign(wire.search_values().begin(), wire.search_values().end());
  MG_RETURN_IF_ERROR(CheckSearchStatistics(log));
  log.order.assign(wire.order().begin(), wire.order().end());
  MG_ASSIGN_OR_RETURN(log.plan, replay::PlanFromWire(wire.plan()));
  log.totals = replay::ReportFromWire(wire.totals());
  return log;
}

}  // namespace

absl::StatusOr<GameLog> RecordGame(const Game& game, absl::Span<const uint8_t> actions,
                                   absl::string_view solver, uint64_t seed) {
  GameLog log;
  log.program = game.program().name();
  log.program_fingerprint = game.program().fingerprint();
  log.hardware = game.hardware();
  log.options = std::shared_ptr<const GameOptions>(game.options().Clone());
  log.rules_version = game.options().rules_version();
  log.solver = std::string(solver);
  log.seed = seed;
  log.actions.assign(actions.begin(), actions.end());

  const std::unique_ptr<Position> position = game.NewInitialPosition();
  for (size_t step = 0; step < actions.size(); ++step) {
    const absl::StatusOr<int64_t> saved = ApplyByte(*position, actions[step]);
    if (!saved.ok()) {
      return absl::InvalidArgumentError(absl::StrCat(
          Where(*position, step), ": ", Name(game, actions[step]), ": ", saved.status().message()));
    }
    log.saved_ps.push_back(*saved);
  }
  if (!position->IsTerminal()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the actions end at ", Where(*position, actions.size()), ", but the game goes on"));
  }
  log.order = position->InstructionOrder();
  log.plan = position->ToPlan();
  MG_ASSIGN_OR_RETURN(log.totals, Totals(*position, log.plan));
  return log;
}

absl::Status CheckSearchStatistics(const GameLog& log) {
  const size_t actions = log.options->num_actions(), whole = log.actions.size() * actions;
  const size_t visits = log.search_visits.size(), values = log.search_values.size();
  if (visits != values || (visits != 0 && visits != whole)) {
    return absl::InvalidArgumentError(
        absl::StrCat("search statistics: found ", visits, " visits and ", values,
                     " values; allowed: none, or ", whole, " each (", actions, " a decision)"));
  }
  for (size_t i = 0; i < visits; ++i) {
    if (log.search_visits[i] >= 0 && std::isfinite(log.search_values[i])) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("search statistics: step ", i / actions, ", action ", i % actions, ": found ",
                     log.search_visits[i], " visits, value ", log.search_values[i],
                     "; allowed: visits of 0 and above, finite values"));
  }
  return absl::OkStatus();
}

std::string SerializeGameLog(const GameLog& log) {
  replay::GameLog wire;
  wire.set_program(log.program);
  wire.set_program_fingerprint(log.program_fingerprint);
  replay::ToWire(log.hardware, wire.mutable_hardware());
  replay::ToWire(*log.options, wire.mutable_options());
  wire.set_rules_version(log.rules_version);
  wire.set_solver(log.solver);
  wire.set_seed(log.seed);
  wire.set_actions(std::string(log.actions.begin(), log.actions.end()));
  wire.mutable_saved_ps()->Add(log.saved_ps.begin(), log.saved_ps.end());
  wire.mutable_search_visits()->Add(log.search_visits.begin(), log.search_visits.end());
  wire.mutable_search_values()->Add(log.search_values.begin(), log.search_values.end());
  wire.mutable_order()->Add(log.order.begin(), log.order.end());
  replay::ToWire(log.plan, wire.mutable_plan());
  replay::ToWire(log.totals, wire.mutable_totals());
  return PackFile(FileKind::kGameLog, replay::SerializeMessage(wire));
}

absl::StatusOr<GameLog> ParseGameLog(absl::string_view bytes) {
  MG_ASSIGN_OR_RETURN(const std::string payload, UnpackFile(FileKind::kGameLog, bytes));
  replay::GameLog wire;
  absl::Status status = replay::ParseMessage(payload, wire);
  if (status.ok()) {
    absl::StatusOr<GameLog> log = FromWire(wire);
    if (log.ok()) return log;
    status = log.status();
  }
  return absl::Status(status.code(), absl::StrCat("game log: ", status.message()));
}

absl::StatusOr<ReplayVerdict> ReplayLog(const GameLog& log,
                                        std::shared_ptr<const Program> program) {
  MG_RETURN_IF_ERROR(CheckReplayable(log, *program));
  MG_ASSIGN_OR_RETURN(const std::shared_ptr<const Game> game,
                      Game::Create(std::move(program), log.hardware, *log.options));
  const std::unique_ptr<Position> position = game->NewInitialPosition();
  for (size_t step = 0; step < log.actions.size(); ++step) {
    const std::string where = Where(*position, step);
    const absl::StatusOr<int64_t> saved = ApplyByte(*position, log.actions[step]);
    if (!saved.ok()) {
      return Differs(step, absl::StrCat(where, ": expected ", Name(*game, log.actions[step]),
                                        ", found ", saved.status().message()));
    }
    if (*saved != log.saved_ps[step]) {
      return Differs(
          step, absl::StrCat(where, ", ", Name(*game, log.actions[step]), ": expected to save ",
                             log.saved_ps[step], " ps, found ", *saved, " ps"));
    }
  }
  if (!position->IsTerminal()) {
    return Differs(log.actions.size(), absl::StrCat(Where(*position, log.actions.size()),
                                                    ": expected the end, found a decision"));
  }
  const Plan plan = position->ToPlan();
  MG_ASSIGN_OR_RETURN(const Report totals, Totals(*position, plan));
  std::string difference =
      ListDifference("tick of the order", log.order, position->InstructionOrder());
  if (difference.empty()) difference = PlanDifference(log.plan, plan);
  if (difference.empty()) difference = ReportDifference(log.totals, totals);
  if (!difference.empty()) return Differs(std::nullopt, std::move(difference));
  return ReplayVerdict{};
}

}  // namespace mallocgame
