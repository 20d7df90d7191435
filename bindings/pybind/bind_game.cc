// Game and State. A State belongs to one thread at a time; threads share Games and Programs freely.
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "bindings/pybind/arguments.h"
#include "bindings/pybind/handles.h"
#include "bindings/pybind/pickling.h"
#include "bindings/pybind/status.h"
#include "mallocgame/game/asked.h"
#include "mallocgame/game/mode.h"
#include "mallocgame/game/state.h"
#include "mallocgame/search/game_variants.h"

namespace py = pybind11;

namespace mallocgame::python {
namespace {

std::vector<AccessId> AccessIds(const std::vector<int32_t>& indices) {
  std::vector<AccessId> ids;
  ids.reserve(indices.size());
  for (const int32_t index : indices) ids.emplace_back(index);
  return ids;
}

std::shared_ptr<GameHandle> MakeGame(
    std::shared_ptr<const ProgramHandle> program, const std::optional<Hardware>& own_hardware,
    const std::string& actions, std::optional<int64_t> min_buffer_bytes, double keep_free,
    const std::vector<int32_t>& forbidden, uint64_t seed, const std::string& kind, int candidates, double bytes_weight, double time_weight,
    std::optional<int64_t> main_bytes, bool exact_stalls) {
  GameOptions options;
  if (main_bytes) {
    if (*main_bytes < 1) {
      Raise(absl::InvalidArgumentError("main_bytes: found " + std::to_string(*main_bytes) +
                                       ", allowed: 1 or more, or None"));
    }
    options.main_bytes = *main_bytes;
  }
  options.kind = KindOf(kind);
  options.candidates = candidates;
  options.bytes_weight = bytes_weight;
  options.time_weight = time_weight;
  options.exact_stalls = exact_stalls;
  if (actions != "full" && actions != "paper") {
    Raise(absl::InvalidArgumentError("actions: found '" + actions + "', allowed: 'full', 'paper'"));
  }
  if (actions == "paper" && options.kind != GameKind::kTime) {
    Raise(absl::InvalidArgumentError("actions: found 'paper' for the " + kind +
                                     " game, allowed: 'full'"));
  }
  options.paper_actions = actions == "paper";
  options.min_buffer_bytes = min_buffer_bytes.value_or(options.min_buffer_bytes);
  options.keep_free = keep_free;
  options.forbidden = AccessIds(forbidden);
  const Hardware hardware = HardwareOr(*program, own_hardware);
  auto game = WithoutGil([&]() -> absl::StatusOr<std::shared_ptr<const Game>> {
    auto made = Game::Create(program->file.program, hardware, options);
    if (made.ok() && !min_buffer_bytes) return GameByDefault(**made);
    return made;
  });
  return std::make_shared<GameHandle>(
      GameHandle{std::move(program), ValueOrRaise(std::move(game)), seed});
}

std::vector<int> LegalActions(const StateHandle& handle) {
  std::vector<int> actions;
  for (const int action : handle.position->legal_actions()) actions.push_back(action);
  return actions;
}

py::array_t<bool> LegalMask(const StateHandle& handle) {
  const size_t count = handle.game->game->num_actions();
  py::array_t<bool> mask(static_cast<py::ssize_t>(count));
  const ActionSet legal = handle.position->legal_actions();
  for (size_t action = 0; action < count; ++action)
    mask.mutable_data()[action] = legal.Has(static_cast<int>(action));
  return mask;
}

std::vector<int32_t> NumbersOf(const std::vector<AccessId>& ids) {
  std::vector<int32_t> numbers;
  numbers.reserve(ids.size());
  for (const AccessId id : ids) numbers.push_back(id.value);
  return numbers;
}

std::vector<std::string> ActionNames(const GameHandle& handle) {
  std::vector<std::string> names;
  for (int action = 0; action < handle.game->num_actions(); ++action)
    names.push_back(handle.game->ActionText(action));
  return names;
}

std::optional<int32_t> CurrentAccess(const StateHandle& handle) {
  const auto* state = dynamic_cast<const State*>(handle.position.get());
  if (state == nullptr || state->IsTerminal()) return std::nullopt;
  return state->current_access().value;
}

std::vector<std::pair<int32_t, int32_t>> AskedAboutOf(const StateHandle& handle) {
  std::vector<std::pair<int32_t, int32_t>> runs;
  for (const AccessRun& run : AskedAbout(*handle.position))
    runs.emplace_back(run.first.value, run.last.value);
  return runs;
}

// The reward is the picoseconds saved as a share of the all-main latency, so that the rewards of an
// episode add up to 1 - latency / all-main latency.
double Apply(StateHandle& handle, py::handle given) {
  if (handle.position->IsTerminal()) {
    Raise(absl::FailedPreconditionError(
              "apply: the game is over, no decision is left; start with initial_state()"),
          Subject::kEnded);
  }
  const int action = ActionOf(given, handle.game->game->num_actions());
  handle.last_saved_ps = ValueOrRaise(handle.position->Apply(action), Subject::kAction);
  const int64_t all_main_ps = handle.game->game->all_main_ps();
  return all_main_ps == 0
             ? 0.0
             : static_cast<double>(handle.last_saved_ps) / static_cast<double>(all_main_ps);
}

void Undo(StateHandle& handle) {
  if (handle.position->num_decisions() == 0) {
    Raise(absl::FailedPreconditionError("undo: no decision has been made yet"), Subject::kAction);
  }
  handle.position->Undo();
  handle.last_saved_ps = 0;
}

py::array_t<uint8_t> Actions(const StateHandle& handle) {
  const absl::Span<const uint8_t> actions = handle.position->actions();
  return ToArray(std::vector<uint8_t>(actions.begin(), actions.end()));
}

std::optional<py::array_t<int32_t>> OrderOf(const StateHandle& handle) {
  if (handle.game->game->options().kind != GameKind::kSchedule) return std::nullopt;
  return ToArray(handle.position->InstructionOrder());
}

std::shared_ptr<ProgramHandle> PlannedProgram(const StateHandle& handle) {
  const std::shared_ptr<const Game> planned = handle.position->PlannedGame();
  if (planned->shared_program() == handle.game->game->shared_program())
    return std::const_pointer_cast<ProgramHandle>(handle.game->program);
  return ReorderedHandle(*handle.game->program, planned->shared_program());
}

void BindState(py::class_<StateHandle>& state_class) {
  state_class
      .def_property_readonly(
          "game", [](const StateHandle& s) { return std::const_pointer_cast<GameHandle>(s.game); },
          "The game that is played.")
      .def(
          "is_terminal", [](const StateHandle& s) { return s.position->IsTerminal(); },
          "Whether the game is over.")
      .def("legal_actions", &LegalActions,
           "The legal actions as ints in increasing order; empty when the game is over.")
      .def("legal_mask", &LegalMask, "A bool array: for each action, whether it is legal.")
      .def("current_access", &CurrentAccess,
           "The index into program.accesses of the access that is decided now; None when the game "
           "is over, and in the other games.")
      .def("asked_about", &AskedAboutOf,
           "The accesses that are decided about now, as [(first, last)], indices into "
           "program.accesses: the time game's one access, twice; the priority game's candidates, "
           "runs "
           "of accesses of one buffer each, and the schedule game's, in State.program. Empty when "
           "the "
           "game is over, and while the order is decided.")
      .def(
          "apply", &Apply, py::arg("action"),
          "Carries out an action and returns the reward, saved picoseconds / all-main picoseconds. "
          "InvalidActionError (a ValueError) if the action is illegal, GameOverError (a "
          "RuntimeError) after the end; neither changes the state.")
      .def_readonly(
          "last_saved_ps", &StateHandle::last_saved_ps,
          "The picoseconds that the last apply() saved, negative if it lost some; 0 after "
          "undo().")
      .def("undo", &Undo, "Takes back the last decision. InvalidActionError if there is none.")
      // These return a pointer: a value would be moved once more, which takes half as long as the
      // copy.
      .def(
          "clone", [](const StateHandle& s) { return std::make_unique<StateHandle>(s); },
          "An independent copy.")
      .def("__copy__", [](const StateHandle& s) { return std::make_unique<StateHandle>(s); })
      .def(
          "__deepcopy__",
          [](const StateHandle& s, const py::dict&) { return std::make_unique<StateHandle>(s); },
          py::arg("memo"))
      .def_property_readonly(
          "num_decisions", [](const StateHandle& s) { return s.position->num_decisions(); },
          "The number of decisions made so far.")
      .def_property_readonly(
          "latency_ps", [](const StateHandle& s) { return s.position->latency_ps(); },
          "The latency in picoseconds with everything undecided in main memory.")
      .def_property_readonly("actions", &Actions, "The actions decided so far, as a uint8 array.")
      .def(
          "plan", [](const StateHandle& s) { return s.position->ToPlan(); },
          "The Plan of the decisions so far, with everything undecided in main memory: a plan of "
          "State.program.")
      .def_property_readonly("order", &OrderOf,
                             "int32 array [ticks]: the order of instructions that plan() is of "
                             "(Program.reordered), in the schedule game; None in others.")
      .def_property_readonly("program", &PlannedProgram,
                             "The Program that plan() is of: game.program, in the schedule game "
                             "with its instructions in `order`.")
      .def(py::pickle(
          [](const StateHandle& s) {
            const absl::Span<const uint8_t> actions = s.position->actions();
            return py::make_tuple(
                std::const_pointer_cast<GameHandle>(s.game),
                py::bytes(reinterpret_cast<const char*>(actions.data()), actions.size()));
          },
          [](const py::tuple& saved) {
            const auto game = saved[0].cast<std::shared_ptr<GameHandle>>();
            auto state = std::make_unique<StateHandle>(game, game->game->Start());
            for (const char action : ViewOf(saved[1].cast<py::bytes>()))
              Apply(*state, py::int_(static_cast<uint8_t>(action)));
            return state;
          }))
      .def(
          "to_string", [](const StateHandle& s) { return Text(s.position->ToString()); },
          "A few lines for people: where the game stands, and which actions are legal.")
      .def("__str__", [](const StateHandle& s) { return Text(s.position->ToString()); })
      .def("__repr__", [](const StateHandle& s) {
        return Text("<mallocgame.State of " + s.game->program->program().name() + " after " +
                    std::to_string(s.position->num_decisions()) + " decisions>");
      });
}

}  // namespace

void BindGame(py::module_& module) {
  module.attr("MAX_CANDIDATES") = kMaxCandidates;
  module.attr("DROP") = static_cast<int>(Action::kDrop);
  module.attr("COPY") = static_cast<int>(Action::kCopy);
  module.attr("NOCOPY") = static_cast<int>(Action::kNoCopy);
  module.attr("COPY_EARLY") = static_cast<int>(Action::kCopyEarly);
  for (const Mode mode : {Mode::kSkip, Mode::kLate, Mode::kEarly, Mode::kPreload, Mode::kSplit})
    module.attr(absl::AsciiStrToUpper(ModeName(mode)).c_str()) = static_cast<int>(mode);
  module.attr("RULES_VERSION") = kRulesVersion;
  module.attr("PRIORITY_RULES_VERSION") = kPriorityRulesVersion;
  module.attr("SCHEDULE_RULES_VERSION") = kScheduleRulesVersion;
  module.attr("MAX_SCHEDULE_CANDIDATES") = kMaxScheduleCandidates;

  // It comes before the function whose signature names it.
  py::class_<StateHandle> state_class(
      module, "State",
      "A position of a game. clone() gives an independent copy, undo() takes back a decision.");
  ShareCopies(py::class_<GameHandle, std::shared_ptr<GameHandle>>(
                  module, "Game",
                  "A program, a hardware and options. Immutable: threads and copies share it."))
      .def(
          py::init([](const std::shared_ptr<ProgramHandle>& program,
                      const std::optional<Hardware>& hardware, const std::string& actions,
                      std::optional<int64_t> min_buffer_bytes, double keep_free,
                      const std::vector<int32_t>& forbidden, uint64_t seed, const std::string& game, int candidates, double bytes_weight,
                      double time_weight, std::optional<int64_t> main_bytes, bool exact_stalls) {
            return MakeGame(program, hardware, actions, min_buffer_bytes, keep_free, forbidden,
                            seed, game, candidates, bytes_weight, time_weight, main_bytes,
                            exact_stalls);
          }),
          py::arg("program").none(false), py::arg("hardware") = py::none(),
          py::arg("actions") = "full", py::arg("min_buffer_bytes") = py::none(),
          py::arg("keep_free") = 0.0, py::arg("forbidden") = std::vector<int32_t>{},
          py::arg("seed") = uint64_t{0},
          py::arg("game") = "time", py::arg("candidates") = 4, py::arg("bytes_weight") = 1.0,
          py::arg("time_weight") = 1.0, py::arg("main_bytes") = py::none(),
          py::arg("exact_stalls") = false,
          "game: 'time' asks about each access in the order of time; 'priority' shows the most "
          "important open runs of accesses, `candidates` of them (1 to 51), and an action takes "
          "one and says how it is served; a run's importance is what it saves / "
          "(bytes^bytes_weight * time held^time_weight), each weight in [0, 2]. 'schedule' decides "
          "the order of instructions first, and then is the priority game (`candidates` up to 47). "
          "main_bytes: the most main memory that an order may need, as "
          "Program.main_memory['total_bytes'] counts it; the program's own order's if None. "
          "exact_stalls: in the priority game, schedules the copies at each decision, so that its "
          "saving has all stalls; else it has a lower bound, and the last decision the rest. "
          "hardware: the program's own if None. actions: 'full', or 'paper' without COPY_EARLY. "
          "min_buffer_bytes: smaller buffers stay in main memory; None is 16384, or 512 where "
          "smaller buffers can save 1 % of the all-main latency. keep_free: the share of the "
          "capacity that is left free. forbidden: indices of accesses that must be served from "
          "main memory. seed: is only named in logs, as the rules have no chance in "
          "them. InvalidInputError if an option is out of range.")
      .def(
          "initial_state",
          [](const std::shared_ptr<GameHandle>& game) {
            return StateHandle(game, game->game->Start());
          },
          "The State before the first decision.")
      .def_property_readonly(
          "program",
          [](const GameHandle& g) { return std::const_pointer_cast<ProgramHandle>(g.program); },
          "The program that is played.")
      .def_property_readonly(
          "hardware", [](const GameHandle& g) { return g.game->hardware(); },
          "The hardware that is played on.")
      .def_property_readonly(
          "num_actions", [](const GameHandle& g) { return g.game->num_actions(); },
          "4, or 3 with actions='paper'; in the priority game 5 for each candidate, and in the "
          "schedule game 17 more.")
      .def_property_readonly(
          "action_names", &ActionNames,
          "What each action is called: 'Drop', 'Copy', 'NoCopy' and 'CopyEarly'; "
          "in the priority game the mode and the candidate, as in 'Late 2'; in the schedule game "
          "'Take 0', 'Next' and so on before these.")
      .def_property_readonly(
          "kind", [](const GameHandle& g) { return GameKindName(g.game->options().kind); },
          "'time', 'priority' or 'schedule'.")
      .def_property_readonly(
          "candidates", [](const GameHandle& g) { return g.game->options().candidates; },
          "How many runs the priority game shows at a time.")
      .def_property_readonly(
          "main_bytes",
          [](const GameHandle& g) -> std::optional<int64_t> {
            const int64_t bytes = g.game->options().main_bytes;
            return bytes > 0 ? std::optional(bytes) : std::nullopt;
          },
          "The most main memory that an order of the schedule game may need; None: what the "
          "program's own order needs.")
      .def_property_readonly(
          "min_buffer_bytes",
          [](const GameHandle& g) { return g.game->options().min_buffer_bytes; },
          "Smaller buffers stay in main memory, and the game does not ask about them.")
      .def_property_readonly(
          "exact_stalls", [](const GameHandle& g) { return g.game->options().exact_stalls; },
          "Whether each decision of the priority game has all stalls in its saving.")
      .def_property_readonly(
          "max_decisions", [](const GameHandle& g) { return g.game->max_decisions(); },
          "An upper limit of the length of a game.")
      .def_property_readonly(
          "all_main_ps", [](const GameHandle& g) { return g.game->all_main_ps(); },
          "The latency in picoseconds with everything in main memory.")
      .def_readonly("seed", &GameHandle::seed, "The seed that logs name.")
      .def(py::pickle(
          [](const GameHandle& g) {
            const GameOptions& options = g.game->options();
            return py::make_tuple(
                std::const_pointer_cast<ProgramHandle>(g.program), g.game->hardware(),
                options.paper_actions ? "paper" : "full", options.min_buffer_bytes,
                options.keep_free, NumbersOf(options.forbidden),
                g.seed, GameKindName(options.kind), options.candidates, options.bytes_weight,
                options.time_weight,
                options.main_bytes > 0 ? std::optional(options.main_bytes) : std::nullopt,
                options.exact_stalls);
          },
          [](const py::tuple& state) {
            const py::object make = py::type::of<GameHandle>();
            return make(*state).cast<std::shared_ptr<GameHandle>>();
          }))
      .def("__repr__", [](const GameHandle& g) {
        return Text("<mallocgame.Game " + g.program->program().name() + " on " +
                    g.game->hardware().name + ">");
      });
  BindState(state_class);
}

}  // namespace mallocgame::python
