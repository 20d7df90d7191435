// Reads and writes whole files; records games and plays them again.
#include <pybind11/stl.h>
#include <pybind11/stl/filesystem.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/pybind/handles.h"
#include "bindings/pybind/pickling.h"
#include "bindings/pybind/status.h"
#include "mallocgame/replay/files.h"
#include "mallocgame/replay/game_log.h"

namespace py = pybind11;

namespace mallocgame::python {

template <>
inline constexpr auto kPickled<ReplayVerdict> =
    std::tuple(&ReplayVerdict::same, &ReplayVerdict::step, &ReplayVerdict::message);

namespace {

std::vector<uint8_t> ActionBytes(const Game& game, const std::vector<int64_t>& actions) {
  std::vector<uint8_t> bytes;
  bytes.reserve(actions.size());
  for (size_t i = 0; i < actions.size(); ++i) {
    if (actions[i] < 0 || actions[i] >= game.num_actions()) {
      RaiseInvalid("actions[", i, "]: found ", actions[i], ", allowed: 0 to ",
                   game.num_actions() - 1);
    }
    bytes.push_back(static_cast<uint8_t>(actions[i]));
  }
  return bytes;
}

template <class T>
py::array_t<T> PerDecision(const GameLog& log, const std::vector<T>& numbers) {
  const py::ssize_t actions = log.options->num_actions();
  return ToArray(numbers).reshape({static_cast<py::ssize_t>(numbers.size()) / actions, actions});
}

std::shared_ptr<GameHandle> GameOf(const GameLog& log, std::shared_ptr<ProgramHandle> program) {
  if (log.program_fingerprint != program->program().fingerprint()) {
    RaiseInvalid("log of program ", log.program, " (", log.program_fingerprint,
                 "), but the program given is ", program->program().name(), " (",
                 program->program().fingerprint(), ")");
  }
  auto game =
      WithoutGil([&] { return Game::Create(program->file.program, log.hardware, *log.options); });
  return std::make_shared<GameHandle>(
      GameHandle{std::move(program), ValueOrRaise(std::move(game)), log.seed});
}

void BindGameLog(py::module_& module) {
  py::class_<GameLog>(module, "GameLog",
                      "A finished game: rules, decisions, every reward, the plan and its report.")
      .def_property_readonly(
          "program_name", [](const GameLog& log) { return Text(log.program); },
          "The name of the program.")
      .def_property_readonly(
          "program_fingerprint", [](const GameLog& log) { return Text(log.program_fingerprint); },
          "The fingerprint of the program.")
      .def_readonly("hardware", &GameLog::hardware, "The hardware that was played on.")
      .def_readonly("rules_version", &GameLog::rules_version,
                    "The version of the rules that were played, of their game's own versions.")
      .def_property_readonly(
          "solver", [](const GameLog& log) { return Text(log.solver); },
          "The name of the solver that played; empty if it is not known.")
      .def_readonly("seed", &GameLog::seed, "The seed of the game or of its solver.")
      .def_property_readonly(
          "actions", [](const GameLog& log) { return ToArray(log.actions); }, "uint8, by decision.")
      .def_property_readonly(
          "saved_ps", [](const GameLog& log) { return ToArray(log.saved_ps); },
          "int64, by decision: the picoseconds that it saved.")
      .def_readonly("plan", &GameLog::plan, "The plan that the game comes to.")
      .def_property_readonly(
          "order",
          [](const GameLog& log) {
            return log.order.empty() ? std::nullopt : std::optional(ToArray(log.order));
          },
          "int32 array [ticks]: the order of instructions that the plan is of (Program.reordered), "
          "of a schedule game; None of others.")
      .def_property_readonly(
          "report", [](const GameLog& log) { return log.totals; },
          "The totals; the arrays by tick are empty.")
      .def_property_readonly(
          "search_visits", [](const GameLog& log) { return PerDecision(log, log.search_visits); },
          "int32 [decisions, actions]: how often a search took each action; no rows if the player "
          "did not search.")
      .def_property_readonly(
          "search_values", [](const GameLog& log) { return PerDecision(log, log.search_values); },
          "float32 [decisions, actions]: the return that the search expects from there on.")
      .def("game", &GameOf, py::arg("program"),
           "The Game that was played, with its hardware and options. InvalidInputError if the log "
           "is of another program.")
      .def(
          "to_bytes", [](const GameLog& log) { return py::bytes(SerializeGameLog(log)); },
          "The bytes of a .mgr file. Equal games give equal bytes.")
      .def_static(
          "from_bytes",
          [](const py::bytes& bytes) { return ValueOrRaise(ParseGameLog(ViewOf(bytes))); },
          py::arg("data"),
          "Reads the bytes of a .mgr file. InvalidInputError says what is wrong with them.")
      .def(py::pickle(
          [](const GameLog& log) { return py::bytes(SerializeGameLog(log)); },
          [](const py::bytes& bytes) { return ValueOrRaise(ParseGameLog(ViewOf(bytes))); }))
      .def("__repr__", [](const GameLog& log) {
        return Text("<mallocgame.GameLog of " + log.program + ": " +
                    std::to_string(log.actions.size()) + " decisions>");
      });

  py::class_<ReplayVerdict>(module, "ReplayVerdict",
                            "Whether a log came out the same, and if not, where.")
      .def_readonly("same", &ReplayVerdict::same, "Whether everything came out as logged.")
      .def_property_readonly(
          "step", [](const ReplayVerdict& v) { return v.step.value_or(-1); },
          "Index of the first decision that differs; -1 if no decision does.")
      .def_property_readonly(
          "message", [](const ReplayVerdict& v) { return Text(v.message); },
          "What differs, in words; empty if nothing does.")
      .def(
          "__bool__", [](const ReplayVerdict& v) { return v.same; }, "The same as `same`.")
      .def(Pickled<ReplayVerdict>())
      .def("__repr__", [](const ReplayVerdict& v) {
        return Text(v.same ? std::string("<mallocgame.ReplayVerdict same>")
                           : "<mallocgame.ReplayVerdict step " +
                                 std::to_string(v.step.value_or(-1)) + ": " + v.message + ">");
      });
}

}  // namespace

void BindReplay(py::module_& module) {
  module.def(
      "read_file",
      [](const std::filesystem::path& path) {
        return py::bytes(
            ValueOrRaise(WithoutGil([&] { return ReadFile(path.native()); }), Subject::kFile));
      },
      py::arg("path"),
      "Returns the bytes of a file, unpacked if they are gzip. FileAccessError, MissingFileError.");
  module.def(
      "write_file",
      [](const std::filesystem::path& path, const py::bytes& bytes) {
        const absl::string_view view = ViewOf(bytes);
        RaiseIfError(WithoutGil([&] { return WriteFile(path.native(), view); }), Subject::kFile);
      },
      py::arg("path"), py::arg("data"),
      "Writes all or nothing: a failure leaves what was there. FileAccessError.");

  BindGameLog(module);
  module.def(
      "record_game",
      [](const GameHandle& game, const std::vector<int64_t>& actions, const std::string& solver,
         uint64_t seed, std::vector<int32_t> visits, std::vector<float> values) {
        const std::vector<uint8_t> bytes = ActionBytes(*game.game, actions);
        GameLog log =
            ValueOrRaise(WithoutGil([&] { return RecordGame(*game.game, bytes, solver, seed); }));
        log.search_visits = std::move(visits);
        log.search_values = std::move(values);
        RaiseIfError(CheckSearchStatistics(log));
        return log;
      },
      py::arg("game"), py::arg("actions"), py::arg("solver"), py::arg("seed"), py::arg("visits"),
      py::arg("values"), "See mallocgame.record.");
  module.def(
      "replay_log",
      [](const GameLog& log, const ProgramHandle& program) {
        return ValueOrRaise(WithoutGil([&] { return ReplayLog(log, program.file.program); }));
      },
      py::arg("log"), py::arg("program"), "See mallocgame.replay.");
}

}  // namespace mallocgame::python
