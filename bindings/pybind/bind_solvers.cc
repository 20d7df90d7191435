// solve: runs a solver on a thread of its own, so that Ctrl-C and progress reach Python while it
// works.
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/pybind/handles.h"
#include "bindings/pybind/pickled_report.h"
#include "bindings/pybind/pickling.h"
#include "bindings/pybind/status.h"
#include "mallocgame/base/deadline.h"
#include "mallocgame/base/home_process.h"
#include "mallocgame/game/prices.h"
#include "mallocgame/schedule/instruction_order.h"
#include "mallocgame/solvers/bounds.h"
#include "mallocgame/solvers/playing/action_returns.h"
#include "mallocgame/solvers/registry.h"
#include "mallocgame/solvers/schedule/solve_schedule.h"
#include "mallocgame/solvers/xla/heuristic.h"

namespace py = pybind11;

namespace mallocgame::python {

template <>
inline constexpr auto kPickled<Prices> =
    std::tuple(&Prices::space_ps_per_byte, &Prices::channel_ps_per_ps);
template <>
inline constexpr auto kPickled<SearchStatistics> =
    std::tuple(&SearchStatistics::visits, &SearchStatistics::values);
// Python doesn't see what solvers hand to each other (Play::decided).
template <>
inline constexpr auto kPickled<Play> = std::tuple(&Play::actions, &Play::search);
template <>
inline constexpr auto kPickled<Improvement> =
    std::tuple(&Improvement::seconds, &Improvement::latency_ps, &Improvement::solver);
using Chain = ScheduleResult::Chain;
template <>
inline constexpr auto kPickled<Chain> = std::tuple(&Chain::start, &Chain::latency_ps);
template <>
inline constexpr auto kPickled<ScheduleResult> =
    std::tuple(&ScheduleResult::has_freedom, &ScheduleResult::own_order_ps, &ScheduleResult::orders,
               &ScheduleResult::chains, &ScheduleResult::order);
template <>
inline constexpr auto kPickled<ResultHandle> = std::tuple(
    &ResultHandle::game, &ResultHandle::plan, &ResultHandle::report, &ResultHandle::status,
    &ResultHandle::bound_ps, &ResultHandle::play, &ResultHandle::evaluations,
    &ResultHandle::found_by, &ResultHandle::curve, &ResultHandle::solver, &ResultHandle::seed,
    &ResultHandle::seconds, &ResultHandle::schedule, &ResultHandle::order, &ResultHandle::failures);

struct PlacementRow {
  int64_t time_ps, idle_ps;
  uint64_t fast;
  int32_t tick;
  bool replaced;
};

namespace {

CostModel CostModelOf(const ProgramHandle& program, const Hardware& hardware) {
  RaiseIfError(ValidateHardware(hardware));
  return CostModel(program.file.program, hardware);
}

int64_t NoContention(const ProgramHandle& program, const std::optional<Hardware>& own_hardware) {
  const Hardware hardware = HardwareOr(program, own_hardware);
  const CostModel cost_model = CostModelOf(program, hardware);
  return ValueOrRaise(WithoutGil([&] { return NoContentionPs(cost_model); }));
}

std::pair<py::array_t<PlacementRow>, py::array_t<uint64_t>> Placements(
    const ProgramHandle& program, const std::optional<Hardware>& own_hardware, int max_slots) {
  const Hardware hardware = HardwareOr(program, own_hardware);
  const CostModel cost_model = CostModelOf(program, hardware);
  const PlacementPrices prices =
      ValueOrRaise(WithoutGil([&] { return PricePlacements(cost_model, max_slots); }));
  const auto row = [](const PlacementPrice& p) -> PlacementRow {
    return {p.time_ps, p.idle_ps, p.fast, p.tick, p.replaced};
  };
  return {ToRows<PlacementRow>(prices.rows, row), ToArray(prices.decided)};
}

std::pair<Plan, std::vector<int32_t>> PlanAsXlaDoes(const GameHandle& game) {
  XlaOutcome outcome = WithoutGil([&] { return PlanLikeXla(*game.game, Deadline()); });
  std::vector<int32_t> order;
  order.reserve(outcome.order.size());
  for (const BufferId buffer : outcome.order) order.push_back(buffer.value);
  return {std::move(outcome.plan), std::move(order)};
}

// Another thread may use the state meanwhile, so that it is a copy that is played.
py::array_t<double> ReturnsOfActions(const StateHandle& state,
                                     const std::optional<Prices>& prices) {
  const std::unique_ptr<Position> copy = state.position->Clone();
  return ToArray(
      ValueOrRaise(WithoutGil([&] { return ActionReturns(*copy, prices ? &*prices : nullptr); })));
}

// What a solver's thread does.
using Work = std::function<absl::StatusOr<ScheduleResult>(const SolveLimits&)>;

// A solver at work. The solver's thread fills it, the caller's thread looks in now and then.
class Solving {
 public:
  Solving(Work work, SolveLimits limits) {
    limits.cancel = &cancel_;
    limits.progress = [this](double seconds, int64_t latency_ps) {
      const std::lock_guard lock(mutex_);
      better_.emplace_back(seconds, latency_ps);
    };
    thread_ = std::thread([this, work = std::move(work), limits = std::move(limits)] {
      auto result = work(limits);
      const std::lock_guard lock(mutex_);
      result_ = std::move(result);
      done_ = true;
      finished_.notify_all();
    });
  }

  // The solver's thread may wait for the GIL, if a solver is Python's.
  ~Solving() {
    if (!home_.IsThisOne()) {
      // Never joined: it runs in the parent.
      [[maybe_unused]] const std::thread* const left =
          std::make_unique<std::thread>(std::move(thread_)).release();
      return;
    }
    cancel_ = true;
    const py::gil_scoped_release release;
    if (thread_.joinable()) thread_.join();
  }

  // Waits a moment for the end; true when it has come.
  bool Wait() {
    std::unique_lock lock(mutex_);
    return finished_.wait_for(lock, std::chrono::milliseconds(50), [this] { return done_; });
  }

  // The better plans found since the last call: seconds since the start, latency.
  std::vector<std::pair<double, int64_t>> TakeBetter() {
    const std::lock_guard lock(mutex_);
    return std::exchange(better_, {});
  }

  // False in a child that was forked since: the solver doesn't work there.
  bool works() const { return home_.IsThisOne(); }

  // Has the solver return the best so far.
  void Stop() { cancel_ = true; }

  // After Wait() said true.
  absl::StatusOr<ScheduleResult> TakeResult() {
    thread_.join();
    return std::move(result_);
  }

 private:
  HomeProcess home_;
  std::atomic<bool> cancel_{false};
  std::mutex mutex_;
  std::condition_variable finished_;
  bool done_ = false;
  std::vector<std::pair<double, int64_t>> better_;
  absl::StatusOr<ScheduleResult> result_ = absl::InternalError("the solver has not finished");
  std::thread thread_;
};

// Called with the seconds since the start and the latency of a better plan.
using Progress = typing::Callable<py::object(double, int64_t)>;
using Stop = typing::Callable<bool()>;

ResultHandle RunSolver(std::shared_ptr<GameHandle> game, const std::string& solver, double seconds,
                       uint64_t seed, int64_t evaluations, const std::optional<Progress>& progress,
                       const std::vector<NamedSolver>& extra_solvers,
                       const std::optional<Stop>& stop,
                       const std::optional<ScheduleOptions>& schedule) {
  if (!(seconds >= 0) || evaluations < 0) {
    RaiseInvalid("solve: seconds and evaluations must be >= 0, found ", std::to_string(seconds),
                 " and ", evaluations);
  }
  SolveLimits limits;
  limits.seconds = seconds;
  limits.evaluations = evaluations;
  limits.seed = seed;
  const auto begin = std::chrono::steady_clock::now();
  const SolveProblem problem{game->game, game->program->XlaPlanFor(game->game->hardware()),
                             extra_solvers};
  Solving solving(
      [solver, problem, schedule](const SolveLimits& own) -> absl::StatusOr<ScheduleResult> {
        if (schedule) return SolveSchedule(problem, own, *schedule);
        absl::StatusOr<SolveResult> placed = Solve(solver, problem, own);
        if (!placed.ok()) return placed.status();
        ScheduleResult result;
        result.placed = *std::move(placed);
        return result;
      },
      limits);
  // An exception in here (Ctrl-C, or the caller's own) cancels the solver: ~Solving. It waits for
  // the solver's thread.
  const auto report = [&] {
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    for (const auto& [elapsed, latency_ps] : solving.TakeBetter()) {
      if (progress) (*progress)(elapsed, latency_ps);
    }
    if (stop && (*stop)().cast<bool>()) solving.Stop();
    if (!solving.works()) {
      RaiseInvalid(
          "solve: this process was forked while the solver worked, which goes on in the parent "
          "alone; end the child where it forks (os._exit), or call solve() in it");
    }
  };
  while (!WithoutGil([&] { return solving.Wait(); })) report();
  report();
  ScheduleResult result = ValueOrRaise(WithoutGil([&] { return solving.TakeResult(); }));
  ResultHandle handle{std::move(game), std::move(result.placed), solver, seed, 0};
  handle.game = PlayedGame(std::move(handle.game), handle, result.game);
  if (schedule) handle.schedule = std::move(result);
  handle.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return handle;
}

using Numbers = py::array_t<double, py::array::c_style | py::array::forcecast>;

std::vector<std::tuple<double, int64_t, std::string>> CurveOf(const ResultHandle& r) {
  std::vector<std::tuple<double, int64_t, std::string>> curve;
  for (const Improvement& better : r.curve)
    curve.emplace_back(better.seconds, better.latency_ps, better.solver);
  return curve;
}

// How the order of instructions was found; None if it was not asked for.
std::optional<py::dict> ScheduleDict(const ResultHandle& r) {
  if (!r.schedule) return std::nullopt;
  py::list chains;
  for (const Chain& chain : r.schedule->chains)
    chains.append(py::make_tuple(chain.start, chain.latency_ps));
  py::dict dict;
  dict["has_freedom"] = r.schedule->has_freedom;
  dict["own_order_ps"] = r.schedule->own_order_ps;
  dict["orders"] = r.schedule->orders;
  dict["chains"] = chains;
  return dict;
}

// Of a schedule game the game's program is in its own order; else the result's game is of the
// program that the plan is of.
std::shared_ptr<ProgramHandle> ProgramOfPlan(const ResultHandle& r) {
  const std::shared_ptr<ProgramHandle>& program = r.game->program;
  if (r.order.empty() || std::is_sorted(r.order.begin(), r.order.end())) return program;
  return ReorderedHandle(*program, ReorderedLegally(program->program(), r.order).program);
}

// An empty one if the plan wasn't made by playing.
const Play& PlayOf(const ResultHandle& r) {
  static const Play none;
  return r.play ? *r.play : none;
}

}  // namespace

void BindSolvers(py::module_& module) {
  PYBIND11_NUMPY_DTYPE(PlacementRow, time_ps, idle_ps, fast, tick, replaced);
  py::class_<Prices>(
      module, "Prices",
      "What fast memory and the copy channel are worth, for solvers that play at prices.")
      .def(py::init([](const Numbers& space, const Numbers& channel) {
             return Prices{{space.data(), space.data() + space.size()},
                           {channel.data(), channel.data() + channel.size()}};
           }),
           py::arg("space_ps_per_byte"), py::arg("channel_ps_per_ps") = std::vector<double>(),
           "Takes one number for each tick; of the channel also none, which makes it free.")
      .def_property_readonly(
          "space_ps_per_byte", [](const Prices& p) { return ToArray(p.space_ps_per_byte); },
          "float64 array [ticks]: the picoseconds of latency that a byte of fast memory is worth "
          "while it is held over the tick, all trips of a loop together.")
      .def_property_readonly(
          "channel_ps_per_ps", [](const Prices& p) { return ToArray(p.channel_ps_per_ps); },
          "float64 array [ticks]: the picoseconds of latency that a picosecond of the channel is "
          "worth in the tick's time, in each trip of a loop. Empty: the channel is free.")
      .def(Pickled<Prices>());
  py::class_<NamedSolver>(module, "NamedSolver",
                          "A solver beside the library's own, such as a trained agent.")
      .def("__reduce_ex__",
           RefusePickling("pickle the agent or the path of its checkpoint, and make the solver "
                          "where it works: agent.solver(), or solve(checkpoint=path)"))
      .def_readonly("name", &NamedSolver::name, "The name that solve() takes.")
      .def_property_readonly(
          "game", [](const NamedSolver& solver) { return solver.games[0]; },
          "The game that it plays where nobody says which one.");
  py::class_<ResultHandle>(module, "SolveResult", "A solver's plan and what is known about it.")
      .def_readonly("plan", &ResultHandle::plan, "The best plan found.")
      .def_readonly("report", &ResultHandle::report, "What the plan costs.")
      .def_property_readonly(
          "status", [](const ResultHandle& r) { return std::string(SolveStatusName(r.status)); },
          "'heuristic', 'optimal' or 'stopped'.")
      .def_readonly("bound_ps", &ResultHandle::bound_ps,
                    "Proven: no play of the game is faster. None if nothing is proven; "
                    "mallocgame.bounds.bound() knows more.")
      .def_property_readonly(
          "actions", [](const ResultHandle& r) { return ToArray(PlayOf(r).actions); },
          "uint8 array: the game that made the plan; empty if it wasn't made by playing.")
      .def_readonly("evaluations", &ResultHandle::evaluations,
                    "The number of complete games or plans that were looked at.")
      .def_readonly("game", &ResultHandle::game,
                    "The Game that `actions` were played in: the one given, or one that asks about "
                    "smaller buffers too.")
      .def_property_readonly(
          "search",
          [](const ResultHandle& r)
              -> std::optional<std::pair<py::array_t<int32_t>, py::array_t<float>>> {
            const SearchStatistics& search = PlayOf(r).search;
            if (search.visits.empty()) return std::nullopt;
            const py::ssize_t actions = r.game->game->num_actions();
            return std::pair(ToMatrix<int32_t>(search.visits, actions),
                             ToMatrix<float>(search.values, actions));
          },
          "(visits, values) of the searches that chose `actions`, each [decisions, actions], as "
          "record() takes them; None if none did.")
      .def_readonly(
          "found_by", &ResultHandle::found_by,
          "The solver whose plan this is: of a portfolio a member, else the solver itself.")
      .def_property_readonly("curve", &CurveOf,
                             "[(seconds, latency_ps, solver)] of each better plan, in time order.")
      .def_readonly(
          "failures", &ResultHandle::failures,
          "'SOLVER: message' of each part of the search that ended in an error.\n\nParts are the "
          "members of a portfolio, and the last placement of a search for an order.")
      .def_property_readonly(
          "order",
          [](const ResultHandle& r) -> std::optional<py::array_t<Tick>> {
            if (r.schedule) return ToArray(r.schedule->order);
            return r.order.empty() ? std::nullopt : std::optional(ToArray(r.order));
          },
          "int32 array [ticks]: the order of instructions that was found (Program.reordered); None "
          "if it was not asked for.")
      .def_property_readonly("program", &ProgramOfPlan,
                             "The Program that the plan is of: with its instructions in `order` if "
                             "that was asked for.")
      .def_property_readonly(
          "schedule", &ScheduleDict,
          "How the order of instructions was found; None if it was not asked for.\n\nhas_freedom: "
          "whether there is another order. own_order_ps: the latency of the best plan found at the "
          "program's own. orders: how many were played. chains: (start, latency_ps) of each chain "
          "of annealing.")
      .def_readonly("solver", &ResultHandle::solver, "The name of the solver.")
      .def_readonly("seed", &ResultHandle::seed, "The seed of the solver.")
      .def_readonly("seconds", &ResultHandle::seconds, "The wall time that it took.")
      .def(py::pickle([](const ResultHandle& r) { return py::tuple(Saved(r)); },
                      [](const py::tuple& saved) {
                        ResultHandle r;
                        Restore(saved, r);
                        if (r.play) r.play->game = r.game->game;
                        return r;
                      }))
      .def("__repr__", [](const ResultHandle& r) {
        return "<mallocgame.SolveResult " + r.solver + ": " + SolveStatusName(r.status) +
               ", latency_ps=" + std::to_string(r.report.latency_ps) + ">";
      });

  module.def("solver_names", [] { return SolverNames(); }, "Names that solve() takes.");
  module.def(
      "solver_game",
      [](const std::string& solver, const std::vector<NamedSolver>& extra_solvers) {
        return ValueOrRaise(GamePlayedBy(solver, extra_solvers));
      },
      py::arg("solver"), py::arg("extra_solvers") = std::vector<NamedSolver>{},
      "The game that a solver plays where nobody says which one: 'time', 'priority' or 'schedule'. "
      "InvalidInputError: there is no such solver.");
  module.def(
      "solve_game",
      [](const std::shared_ptr<GameHandle>& game, const std::string& solver, double seconds,
         uint64_t seed, int64_t evaluations, const std::optional<Progress>& progress,
         const std::vector<NamedSolver>& extra_solvers, const std::optional<Stop>& stop, bool order,
         std::optional<int64_t> main_bytes) {
        std::optional<ScheduleOptions> schedule;
        if (order) schedule = ScheduleOptions{main_bytes, solver};
        return RunSolver(game, solver, seconds, seed, evaluations, progress, extra_solvers, stop,
                         schedule);
      },
      py::arg("game").none(false), py::arg("solver"), py::arg("seconds") = 0.0,
      py::arg("seed") = uint64_t{0}, py::arg("evaluations") = 0, py::arg("progress") = py::none(),
      py::arg("extra_solvers") = std::vector<NamedSolver>(), py::arg("stop") = py::none(),
      py::arg("order") = false, py::arg("main_bytes") = py::none(),
      "See mallocgame.solve, of which this is the part that needs no agent.");
  module.def("plan_like_xla", &PlanAsXlaDoes, py::arg("game").none(false),
             "What XLA's allocator decides: (plan, the order in which all buffers were decided).");
  module.def("action_returns", &ReturnsOfActions, py::arg("state").none(false),
             py::arg("prices") = py::none(),
             "Returns what each action leads to: float64 [actions of the game], read-only.\n\nIt "
             "is 1 - latency / all-main latency of the game that takes the action and plays on, "
             "and NaN for an illegal action. prices: rent at these prices plays on; None lets "
             "greedy play on. The state stays as it is. It takes as long as playing a game for "
             "each legal action.\n\nInvalidInputError: the prices are not of the program's ticks, "
             "or the state is of the priority game, where only greedy plays.");
  module.def("no_contention_ps", &NoContention, py::arg("program"),
             py::arg("hardware") = py::none(),
             "Each instruction at its least price, no copies: no valid plan has a latency below. "
             "Picoseconds.");
  module.def(
      "placement_prices", &Placements, py::arg("program"), py::arg("hardware") = py::none(),
      py::arg("max_slots") = 6,
      "What lower bounds are made of. (rows, decided): rows, a structured array: time_ps, idle_ps "
      "i8, fast u8 (bit i: the access in slot i in fast memory), tick i4, replaced bool; decided, "
      "u8, one a tick: the slots that its rows tell apart. A plan that agrees with a row takes t "
      ">= time_ps there and leaves the channel at most idle_ps + (t - time_ps).");
}

}  // namespace mallocgame::python
