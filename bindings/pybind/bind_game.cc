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
#include "mallocgame/game/games.h"
#include "mallocgame/game/mode.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/schedule/schedule_game.h"
#include "mallocgame/game/time/state.h"
#include "mallocgame/search/game_variants.h"

namespace py = pybind11;

namespace mallocgame::python {
namespace {

OptionValue ValueOf(py::handle value) {
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>();
  if (py::isinstance<py::int_>(value)) return value.cast<int64_t>();
  if (py::isinstance<py::float_>(value)) return value.cast<double>();
  std::vector<AccessId> ids;
  for (const py::handle index : value) ids.emplace_back(index.cast<int64_t>());
  return ids;
}

py::object ObjectOf(const OptionValue& value) {
  if (const auto* ids = std::get_if<std::vector<AccessId>>(&value)) {
    py::list numbers;
    for (const AccessId id : *ids) numbers.append(id.value);
    return numbers;
  }
  if (const bool* flag = std::get_if<bool>(&value)) return py::bool_(*flag);
  if (const int64_t* whole = std::get_if<int64_t>(&value)) return py::int_(*whole);
  return py::float_(std::get<double>(value));
}

std::shared_ptr<GameHandle> MakeGame(std::shared_ptr<ProgramHandle> program,
                                     const std::optional<Hardware>& own_hardware,
                                     const GameOrName& game, uint64_t seed,
                                     const py::kwargs& options) {
  const GameObject chosen = ChosenGame(game, options);
  const std::unique_ptr<GameOptions> made = OptionsOf(chosen);
  const bool any_buffers = chosen.attr("min_buffer_bytes").is_none();
  const Hardware hardware = HardwareOr(*program, own_hardware);
  auto created = WithoutGil([&]() -> absl::StatusOr<std::shared_ptr<const Game>> {
    auto one = Game::Create(program->file.program, hardware, *made);
    if (one.ok() && any_buffers) return GameByDefault(**one);
    return one;
  });
  return std::make_shared<GameHandle>(
      GameHandle{std::move(program), ValueOrRaise(std::move(created)), seed});
}

// The object of mallocgame.games with a game's options.
GameObject OptionsObject(const GameOptions& options) {
  py::dict values;
  for (const auto& [name, value] : options.List()) values[name.c_str()] = ObjectOf(value);
  const py::object games = py::module_::import("mallocgame.games").attr("GAMES");
  return py::reinterpret_borrow<GameObject>(games[options.game()](**values));
}

}  // namespace

GameObject ChosenGame(const GameOrName& game, const py::kwargs& options) {
  const py::object of = py::module_::import("mallocgame.games").attr("of");
  return py::reinterpret_borrow<GameObject>(of(game, **options));
}

std::unique_ptr<GameOptions> OptionsOf(const GameObject& game) {
  auto options = ValueOrRaise(OptionsOfGame(game.attr("name").cast<std::string>()));
  for (const auto& [name, value] : game.attr("options")().cast<py::dict>()) {
    RaiseIfError(options->Set(name.cast<std::string>(), ValueOf(value)));
  }
  return options;
}

namespace {

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

std::vector<std::string> ActionNames(const GameHandle& handle) {
  std::vector<std::string> names;
  for (int action = 0; action < handle.game->num_actions(); ++action)
    names.push_back(handle.game->ActionToString(action));
  return names;
}

std::optional<int32_t> CurrentAccess(const StateHandle& handle) {
  if (handle.position->IsTerminal()) return std::nullopt;
  const AccessId access = handle.position->current_access();
  return access.valid() ? std::optional(access.value) : std::nullopt;
}

std::vector<std::pair<int32_t, int32_t>> AskedAboutOf(const StateHandle& handle) {
  std::vector<std::pair<int32_t, int32_t>> runs;
  for (const AccessRun& run : handle.position->AskedAbout())
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
  if (!handle.game->game->options().decides_order()) return std::nullopt;
  return ToArray(handle.position->InstructionOrder());
}

std::shared_ptr<ProgramHandle> PlannedProgram(const StateHandle& handle) {
  const std::shared_ptr<const Game> planned = handle.position->PlannedGame();
  if (planned->shared_program() == handle.game->game->shared_program()) return handle.game->program;
  return ReorderedHandle(*handle.game->program, planned->shared_program());
}

void BindState(py::class_<StateHandle>& state_class) {
  state_class.def_readonly("game", &StateHandle::game, "The game that is played.")
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
           "runs of accesses of one buffer each, and the schedule game's, in State.program. Empty "
           "when the game is over, and while the order is decided.")
      .def("apply", &Apply, py::arg("action"),
           "Carries out an action and returns the reward, saved picoseconds / all-main "
           "picoseconds. InvalidActionError (a ValueError) if the action is illegal, GameOverError "
           "(a RuntimeError) after the end; neither changes the state.")
      .def_readonly(
          "last_saved_ps", &StateHandle::last_saved_ps,
          "The picoseconds that the last apply() saved, negative if it lost some; 0 after undo().")
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
                s.game, py::bytes(reinterpret_cast<const char*>(actions.data()), actions.size()));
          },
          [](const py::tuple& saved) {
            const auto game = saved[0].cast<std::shared_ptr<GameHandle>>();
            auto state = std::make_unique<StateHandle>(game, game->game->NewInitialPosition());
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
      .def(py::init(&MakeGame), py::arg("program").none(false), py::arg("hardware") = py::none(),
           py::arg("game") = "time", py::arg("seed") = uint64_t{0},
           "game: a TimeGame, PriorityGame or ScheduleGame with its options, or the name 'time', "
           "'priority' or 'schedule', and then options as keyword arguments. hardware: the "
           "program's own if None. seed: is only named in logs, as the rules have no chance in "
           "them. InvalidInputError if an option is out of range.")
      .def(
          "initial_state",
          [](const std::shared_ptr<GameHandle>& game) {
            return StateHandle(game, game->game->NewInitialPosition());
          },
          "The State before the first decision.")
      .def_readonly("program", &GameHandle::program, "The program that is played.")
      .def_property_readonly(
          "hardware", [](const GameHandle& g) { return g.game->hardware(); },
          "The hardware that is played on.")
      .def_property_readonly(
          "num_actions", [](const GameHandle& g) { return g.game->num_actions(); },
          "4, or 3 with paper_actions; in the priority game 5 for each candidate, and in the "
          "schedule game 17 more.")
      .def_property_readonly(
          "action_names", &ActionNames,
          "What each action is called: 'Drop', 'Copy', 'NoCopy' and 'CopyEarly'; in the priority "
          "game the mode and the candidate, as in 'Late 2'; in the schedule game 'Take 0', 'Next' "
          "and so on before these.")
      .def_property_readonly(
          "kind", [](const GameHandle& g) { return g.game->options().game(); },
          "'time', 'priority' or 'schedule'.")
      .def_property_readonly(
          "options", [](const GameHandle& g) { return OptionsObject(g.game->options()); },
          "The TimeGame, PriorityGame or ScheduleGame that it is.")
      .def_property_readonly(
          "min_buffer_bytes",
          [](const GameHandle& g) { return g.game->options().min_buffer_bytes; },
          "Smaller buffers stay in main memory, and the game does not decide about them.")
      .def_property_readonly(
          "max_decisions", [](const GameHandle& g) { return g.game->max_decisions(); },
          "An upper limit of the length of a game.")
      .def_property_readonly(
          "all_main_ps", [](const GameHandle& g) { return g.game->all_main_ps(); },
          "The latency in picoseconds with everything in main memory.")
      .def_readonly("seed", &GameHandle::seed, "The seed that logs name.")
      .def(py::pickle(
          [](const GameHandle& g) {
            return py::make_tuple(g.program, g.game->hardware(), OptionsObject(g.game->options()),
                                  g.seed);
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
