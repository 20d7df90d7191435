// What the Python objects hold, shared by the bind_*.cc files, and the function that each of them
// offers.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/typing.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "bindings/pybind/status.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/position.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/hardware/price_law.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/replay/program_file.h"
#include "mallocgame/search/plan_cost.h"
#include "mallocgame/solvers/schedule/solve_schedule.h"
#include "mallocgame/solvers/solver.h"

namespace mallocgame::python {

// An object of mallocgame.games.
struct GameObject : pybind11::object {
  using object::object;
};

}  // namespace mallocgame::python

// Signatures name a structured array by what it is for NumPy. The members' names are pybind11's.
// NOLINTBEGIN(readability-identifier-naming)
namespace pybind11::detail {
template <>
struct handle_type_name<mallocgame::python::GameObject> {
  static constexpr auto name = const_name("mallocgame.games.GameOptions");
};
template <class Row, int Flags>
  requires std::is_class_v<Row>
struct handle_type_name<array_t<Row, Flags>> {
  static constexpr auto name =
      io_name("numpy.typing.ArrayLike", "numpy.typing.NDArray[numpy.void]");
};
// NOLINTEND(readability-identifier-naming)
}  // namespace pybind11::detail

namespace mallocgame::python {

// Types for signatures.
namespace typing = pybind11::typing;
using NameAndMeaning = typing::Tuple<pybind11::str, pybind11::str>;
using GameOrName = typing::Union<pybind11::str, GameObject>;

// Python's Program: a program together with what its file says about it.
struct ProgramHandle {
  ProgramFile file;

  const Program& program() const { return *file.program; }
  // XLA's plan answers the question asked only on the hardware it was made for, or on the same
  // with more preloads, which a plan needn't use.
  const Plan* XlaPlanFor(Hardware hardware) const {
    if (hardware.max_preloads > file.hardware.max_preloads)
      hardware.max_preloads = file.hardware.max_preloads;
    return file.xla_plan && hardware == file.hardware ? &*file.xla_plan : nullptr;
  }
};

// pybind11 holds no pointer to const; what the next two have never changes.
struct GameHandle {
  std::shared_ptr<ProgramHandle> program;
  std::shared_ptr<const Game> game;
  uint64_t seed = 0;  // the rules have no chance in them; logs of the game name it
};

// Python's State: a position of either game.
struct StateHandle {
  StateHandle(std::shared_ptr<GameHandle> of, std::unique_ptr<Position> there)
      : game(std::move(of)), position(std::move(there)) {}
  StateHandle(const StateHandle& other)
      : game(other.game), position(other.position->Clone()), last_saved_ps(other.last_saved_ps) {}
  StateHandle(StateHandle&&) = default;

  std::shared_ptr<GameHandle> game;
  std::unique_ptr<Position> position;
  int64_t last_saved_ps = 0;
};

struct ResultHandle : SolveResult {
  ResultHandle() = default;
  ResultHandle(std::shared_ptr<GameHandle> in, SolveResult result, std::string by, uint64_t from,
               double took)
      : SolveResult(std::move(result)), game(std::move(in)), solver(std::move(by)), seed(from),
        seconds(took) {}

  std::shared_ptr<GameHandle> game;
  std::string solver;
  uint64_t seed = 0;
  double seconds = 0;
  // How the order of instructions was found; `placed` is moved from. None: it was not asked for.
  std::optional<ScheduleResult> schedule = std::nullopt;
};

// The program with its instructions in another order: `made` is ReorderedProgram::program.
inline std::shared_ptr<ProgramHandle> ReorderedHandle(const ProgramHandle& program,
                                                      std::shared_ptr<const Program> made) {
  ProgramFile file = program.file;
  file.program = std::move(made);
  file.xla_plan.reset();  // It is for the order that XLA chose.
  if (file.origin.find("reordered") == std::string::npos)
    file.origin += file.origin.empty() ? "reordered" : ", reordered";
  return std::make_shared<ProgramHandle>(ProgramHandle{std::move(file)});
}

// The game that a result's actions are of: its play's; if that has none, `otherwise`, or if this is
// null the one that was asked for.
inline std::shared_ptr<GameHandle> PlayedGame(
    std::shared_ptr<GameHandle> asked, const SolveResult& result,
    const std::shared_ptr<const Game>& otherwise = nullptr) {
  const bool has_game = result.play && result.play->game != nullptr;
  const std::shared_ptr<const Game>& played = has_game ? result.play->game : otherwise;
  if (played == nullptr || played == asked->game) return asked;
  std::shared_ptr<ProgramHandle> program = asked->program;
  if (played->shared_program() != asked->game->shared_program())
    program = ReorderedHandle(*asked->program, played->shared_program());
  return std::make_shared<GameHandle>(GameHandle{std::move(program), played, asked->seed});
}

// The object of mallocgame.games that `game` is, or that the name `game` and options mean.
GameObject ChosenGame(const GameOrName& game, const pybind11::kwargs& options = {});
// Its options. InvalidInputError: one is out of range.
std::unique_ptr<GameOptions> OptionsOf(const GameObject& game);

// `hardware` None: the program's own.
inline Hardware HardwareOr(const ProgramHandle& program, const std::optional<Hardware>& hardware) {
  return hardware ? *hardware : program.file.hardware;
}

// The program with calibrated prices, on calibrated hardware. `hardware` is that of the compiler's
// prices; without a law the chip's own is taken. The errors are those of CalibratePrices.
absl::StatusOr<ProgramFile> CalibratedFile(const ProgramHandle& handle, const Hardware& hardware,
                                           std::optional<PriceLaw> law);

// The program, whose searches go by both sets of prices together. `hardware`, `lean` and errors are
// those of AtBothPrices; NotFound: its chip has no law of prices.
inline absl::StatusOr<std::shared_ptr<const Program>> BothPricesOf(const ProgramHandle& handle,
                                                                   const Hardware& hardware,
                                                                   double lean = 0) {
  const pybind11::gil_scoped_release release;
  MG_ASSIGN_OR_RETURN(const PriceLaw law, PriceLawOf(handle.file.hardware.name));
  return AtBothPrices(handle.file.program, hardware, law, handle.XlaPlanFor(hardware), lean);
}

// A NumPy array [values / columns, columns] with a copy of `values`.
template <class T>
pybind11::array_t<T> ToMatrix(absl::Span<const T> values, pybind11::ssize_t columns) {
  pybind11::array_t<T> matrix({static_cast<pybind11::ssize_t>(values.size()) / columns, columns});
  std::copy(values.begin(), values.end(), matrix.mutable_data());
  return matrix;
}

// A read-only NumPy array with a copy of `rows`.
template <class Row>
pybind11::array_t<Row> ToArray(const std::vector<Row>& rows) {
  pybind11::array_t<Row> array(static_cast<pybind11::ssize_t>(rows.size()));
  std::copy(rows.begin(), rows.end(), array.mutable_data());
  array.attr("setflags")(pybind11::arg("write") = false);
  return array;
}

// The same of what `make` gives for each item.
template <class Row, class Items, class Make>
pybind11::array_t<Row> ToRows(const Items& items, Make make) {
  std::vector<Row> rows;
  rows.reserve(items.size());
  for (const auto& item : items) rows.push_back(make(item));
  return ToArray(rows);
}

inline absl::string_view ViewOf(const pybind11::bytes& bytes) {
  const std::string_view view = bytes;
  return absl::string_view(view.data(), view.size());
}

void BindProgram(pybind11::module_& module);
void BindHlo(pybind11::module_& module);
void BindPhases(pybind11::module_& module);
void BindIsolated(pybind11::module_& module);
void BindPhaseCheck(pybind11::module_& module);
void BindPlan(pybind11::module_& module, pybind11::class_<Plan>& plan_class);
void BindGame(pybind11::module_& module);
void BindSolvers(pybind11::module_& module);
void BindReplay(pybind11::module_& module);
void BindPjrt(pybind11::module_& module);
void BindObservation(pybind11::module_& module);
void BindVector(pybind11::module_& module);
void BindPlacement(pybind11::module_& module);
void BindOffsets(pybind11::module_& module);
void BindBounds(pybind11::module_& module);
void BindSchedule(pybind11::class_<ProgramHandle, std::shared_ptr<ProgramHandle>>& program);
void BindSearch(pybind11::module_& module);
void BindXla(pybind11::module_& module);

}  // namespace mallocgame::python
