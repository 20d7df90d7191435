// Offset allocation: tables of intervals, their solver, their judge and their CSV.
#include <pybind11/stl.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/pybind/handles.h"
#include "bindings/pybind/interruptibly.h"
#include "bindings/pybind/pickling.h"
#include "bindings/pybind/status.h"
#include "mallocgame/base/error.h"
#include "mallocgame/plan/offset_check.h"
#include "mallocgame/plan/offsets.h"
#include "mallocgame/plan/offsets_csv.h"

namespace py = pybind11;

namespace mallocgame::python {

struct OffsetResultHandle : OffsetResult {
  double seconds = 0;
};

template <>
inline constexpr auto kPickled<OffsetResultHandle> = std::tuple(
    &OffsetResultHandle::status, &OffsetResultHandle::offsets, &OffsetResultHandle::height,
    &OffsetResultHandle::bound, &OffsetResultHandle::nodes, &OffsetResultHandle::seconds);
template <>
inline constexpr auto kPickled<OffsetVerdict> =
    std::tuple(&OffsetVerdict::rule, &OffsetVerdict::message, &OffsetVerdict::first,
               &OffsetVerdict::second, &OffsetVerdict::begin, &OffsetVerdict::end,
               &OffsetVerdict::low, &OffsetVerdict::high, &OffsetVerdict::height);

namespace {

using Integers = py::array_t<int64_t, py::array::c_style>;

constexpr int64_t kMostCapacity = int64_t{1} << 44;

// The number of rows of an array that has to have so many columns.
py::ssize_t RowsOf(const Integers& array, py::ssize_t columns, const char* what) {
  if (array.ndim() != 2 || array.shape(1) != columns) RaiseInvalid(what);
  return array.shape(0);
}

std::vector<OffsetInterval> IntervalsOf(const Integers& array) {
  const py::ssize_t count =
      RowsOf(array, 3, "intervals: allowed shape: (n, 3), rows (begin, end, size)");
  std::vector<OffsetInterval> intervals;
  const auto rows = array.unchecked<2>();
  for (py::ssize_t i = 0; i < count; ++i) intervals.push_back({rows(i, 0), rows(i, 1), rows(i, 2)});
  return intervals;
}

void CheckCount(const char* what, size_t found, size_t allowed) {
  if (found == allowed) return;
  RaiseInvalid(what, ": found ", found, ", allowed: ", allowed, ", one for each interval");
}

std::vector<int64_t> VectorOf(const Integers& array, const char* what, size_t count) {
  if (array.ndim() != 1) RaiseInvalid(what, ": allowed: one dimension");
  CheckCount(what, static_cast<size_t>(array.size()), count);
  return {array.data(), array.data() + array.size()};
}

OffsetTable MakeTable(const Integers& array, std::optional<std::vector<std::string>> ids,
                      const std::optional<Integers>& alignments,
                      const std::optional<Integers>& given, const std::optional<Integers>& gaps) {
  OffsetTable table;
  table.intervals = IntervalsOf(array);
  std::vector<OffsetInterval>& intervals = table.intervals;
  if (ids) {
    CheckCount("ids", ids->size(), intervals.size());
    RaiseIfError(CheckIds(*ids));
    table.ids = *std::move(ids);
  } else {
    for (size_t i = 0; i < intervals.size(); ++i) table.ids.push_back(std::to_string(i));
  }
  if (alignments) {
    const auto each = VectorOf(*alignments, "alignments", intervals.size());
    for (size_t i = 0; i < each.size(); ++i) intervals[i].alignment = each[i];
  }
  if (given) {
    const auto each = VectorOf(*given, "given", intervals.size());
    for (size_t i = 0; i < each.size(); ++i) {
      if (each[i] != -1) intervals[i].given = each[i];
    }
  }
  if (gaps) {
    const py::ssize_t count =
        RowsOf(*gaps, 5, "gaps: allowed shape: (n, 5), rows (interval, begin, end, low, high)");
    const auto rows = gaps->unchecked<2>();
    for (py::ssize_t i = 0; i < count; ++i) {
      if (rows(i, 0) < 0 || rows(i, 0) >= static_cast<int64_t>(intervals.size())) {
        RaiseInvalid("gaps: found interval ", rows(i, 0), ", allowed: 0 and above, below ",
                     intervals.size());
      }
      intervals[static_cast<size_t>(rows(i, 0))].gaps.push_back(
          {rows(i, 1), rows(i, 2), rows(i, 3), rows(i, 4)});
    }
  }
  return table;
}

// A problem is a table, or an array of its intervals.
OffsetProblem ProblemOf(const OffsetTable& table, std::optional<int64_t> capacity,
                        int64_t alignment) {
  return {table.intervals, capacity.value_or(kMostCapacity), alignment, RowNames(table)};
}

OffsetProblem ProblemOf(const Integers& array, std::optional<int64_t> capacity, int64_t alignment) {
  return {IntervalsOf(array), capacity.value_or(kMostCapacity), alignment};
}

// In one function, so that what can't be used is refused in words.
OffsetProblem ProblemOf(const py::object& intervals, std::optional<int64_t> capacity,
                        int64_t alignment) {
  if (py::isinstance<OffsetTable>(intervals))
    return ProblemOf(intervals.cast<const OffsetTable&>(), capacity, alignment);
  const Integers array = Integers::ensure(intervals);
  if (!array) {
    PyErr_Clear();
    RaiseInvalid("intervals: found ", py::repr(intervals).cast<std::string>(),
                 ", allowed: an OffsetTable, or int64 of shape (n, 3)");
  }
  return ProblemOf(array, capacity, alignment);
}

OffsetResultHandle RunSearch(const py::object& intervals, std::optional<int64_t> capacity,
                             int64_t alignment, double seconds, int64_t nodes) {
  if (!(seconds >= 0) || nodes < 0) {
    RaiseInvalid("solve_offsets: seconds and nodes must be >= 0, found ", std::to_string(seconds),
                 " and ", nodes);
  }
  const OffsetProblem problem = ProblemOf(intervals, capacity, alignment);
  return Interruptibly([&](const std::atomic<bool>* cancel) -> absl::StatusOr<OffsetResultHandle> {
    const OffsetLimits limits = {seconds, nodes, cancel};
    const auto begin = std::chrono::steady_clock::now();
    MG_ASSIGN_OR_RETURN(OffsetResult result,
                        capacity ? SolveOffsets(problem, limits) : MinimizeHeight(problem, limits));
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    return OffsetResultHandle{std::move(result), elapsed.count()};
  });
}

OffsetVerdict Check(const py::object& intervals, const Integers& offsets,
                    std::optional<int64_t> capacity, int64_t alignment) {
  const OffsetProblem problem = ProblemOf(intervals, capacity, alignment);
  return ValueOrRaise(
      CheckOffsets(problem, VectorOf(offsets, "offsets", problem.intervals.size())));
}

// A NumPy array of a number of each interval.
template <class Number>
py::array_t<int64_t> ArrayOf(const OffsetTable& table, Number number) {
  return ToRows<int64_t>(table.intervals, number);
}

py::array_t<int64_t> IntervalArray(const OffsetTable& table) {
  std::vector<int64_t> rows;
  for (const OffsetInterval& i : table.intervals) rows.insert(rows.end(), {i.begin, i.end, i.size});
  return ToMatrix<int64_t>(rows, 3);
}

py::array_t<int64_t> GapArray(const OffsetTable& table) {
  std::vector<int64_t> rows;
  for (size_t i = 0; i < table.intervals.size(); ++i) {
    for (const OffsetGap& gap : table.intervals[i].gaps)
      rows.insert(rows.end(), {static_cast<int64_t>(i), gap.begin, gap.end, gap.low, gap.high});
  }
  return ToMatrix<int64_t>(rows, 5);
}

py::bytes ToCsv(const OffsetTable& table, const std::optional<Integers>& offsets) {
  if (!offsets) return OffsetsToCsv(table);
  return OffsetsToCsv(table, VectorOf(*offsets, "offsets", table.intervals.size()));
}

std::optional<std::pair<int64_t, int64_t>> IfOverlap(const OffsetVerdict& verdict, int64_t first,
                                                     int64_t second) {
  if (verdict.rule != OffsetRule::kOverlap) return std::nullopt;
  return std::pair(first, second);
}

// An id is any bytes.
py::tuple PickledTable(const OffsetTable& table) {
  return py::make_tuple(py::bytes(OffsetsToCsv(table)), table.lines);
}

OffsetTable TableOf(const py::tuple& saved) {
  OffsetTable table = ValueOrRaise(OffsetsFromCsv(saved[0].cast<std::string>()));
  table.lines = saved[1].cast<std::vector<size_t>>();
  return table;
}

void BindTable(py::module_& module) {
  py::class_<OffsetTable>(
      module, "OffsetTable",
      "Intervals of known time and size that are to get offsets, as MiniMalloc's CSV has them.")
      .def(py::init(&MakeTable), py::arg("intervals"), py::kw_only(), py::arg("ids") = py::none(),
           py::arg("alignments") = py::none(), py::arg("given") = py::none(),
           py::arg("gaps") = py::none(),
           "Makes a table of int64 rows (begin, end, size).\n\nids: distinct texts, the numbers of "
           "the rows unless set. The other arrays are as in the attributes of these names.")
      .def_static(
          "from_csv",
          [](const py::bytes& text) { return ValueOrRaise(OffsetsFromCsv(std::string(text))); },
          py::arg("text"), "Reads MiniMalloc's CSV. InvalidInputError names the line.")
      .def("to_csv", &ToCsv, py::arg("offsets") = py::none(),
           "Returns the CSV, with the columns that are needed.\n\noffsets: int64 [intervals], for "
           "the column `offset`.")
      .def(
          "__len__", [](const OffsetTable& table) { return table.intervals.size(); },
          "The number of intervals.")
      .def(py::pickle(&PickledTable, &TableOf))
      .def_property_readonly(
          "ids",
          [](const OffsetTable& table) {
            typing::List<py::str> ids;
            for (const std::string& id : table.ids) ids.append(Text(id));
            return ids;
          },
          "What the intervals are called.")
      .def_property_readonly("intervals", &IntervalArray, "int64 [intervals, 3]: begin, end, size.")
      .def_property_readonly(
          "alignments",
          [](const OffsetTable& table) {
            return ArrayOf(table, [](const auto& i) { return i.alignment; });
          },
          "int64 [intervals]: what an interval's offset is a multiple of.")
      .def_property_readonly(
          "given",
          [](const OffsetTable& table) {
            return ArrayOf(table, [](const auto& i) { return i.given.value_or(-1); });
          },
          "int64 [intervals]: the offset that an interval keeps, or -1.")
      .def_property_readonly(
          "gaps", &GapArray,
          "int64 [gaps, 5]: interval, begin, end, low, high.\n\nOver the time [begin, end) the "
          "interval takes only its bytes [low, high), none if they are equal.")
      .def_property_readonly(
          "lines", [](const OffsetTable& table) { return table.lines; },
          "The line of each interval in the text, from 1; empty if it was not read.");
}

void BindVerdict(py::module_& module) {
  py::class_<OffsetVerdict>(
      module, "OffsetVerdict",
      "Whether offsets are a solution, and if not, which rule is broken where.")
      .def_property_readonly("ok", &OffsetVerdict::ok, "Whether no rule is broken.")
      .def("__bool__", &OffsetVerdict::ok, "The same as `ok`.")
      .def("__repr__",
           [](const OffsetVerdict& v) {
             return Text(v.ok() ? std::string("<mallocgame.offsets.OffsetVerdict ok>")
                                : "<mallocgame.offsets.OffsetVerdict " +
                                      std::string(OffsetRuleName(v.rule)) + ": " + v.message + ">");
           })
      .def(Pickled<OffsetVerdict>())
      .def_property_readonly(
          "rule", [](const OffsetVerdict& v) { return std::string(OffsetRuleName(v.rule)); },
          "'none', 'given', 'bounds', 'alignment' or 'overlap'.")
      .def_property_readonly(
          "message", [](const OffsetVerdict& v) { return Text(v.message); },
          "What is broken; empty if nothing is.")
      .def_property_readonly(
          "intervals",
          [](const OffsetVerdict& v) -> typing::Tuple<py::int_, py::ellipsis> {
            if (v.ok()) return py::tuple();
            if (v.rule != OffsetRule::kOverlap) return py::tuple(py::make_tuple(v.first));
            return py::tuple(py::make_tuple(v.first, v.second));
          },
          "The intervals that break the rule: two that overlap, else one.")
      .def_property_readonly(
          "time", [](const OffsetVerdict& v) { return IfOverlap(v, v.begin, v.end); },
          "The time [begin, end) over which two overlap.")
      .def_property_readonly(
          "bytes", [](const OffsetVerdict& v) { return IfOverlap(v, v.low, v.high); },
          "The bytes [low, high) that these share.")
      .def_readonly("height", &OffsetVerdict::height, "The highest end of an interval.");
}

void BindFunctions(py::module_& module) {
  module.def("solve_offsets", &RunSearch, py::arg("intervals"), py::arg("capacity") = py::none(),
             py::arg("alignment") = 1, py::arg("seconds") = 10.0, py::arg("nodes") = 0,
             "Finds offsets for intervals such that none conflict and all end within the "
             "capacity.\n\nintervals: a table, or int64 [intervals, 3], rows of (begin, end, "
             "size). capacity: bytes; None: the offsets are as low as possible. alignment: every "
             "offset is a multiple of it. seconds: wall time, nodes: of the search; 0 means no "
             "limit.\n\nInvalidInputError: they are malformed, or given offsets conflict, are not "
             "aligned, or end above the capacity.");
  module.def("check_offsets", &Check, py::arg("intervals"), py::arg("offsets"),
             py::arg("capacity") = py::none(), py::arg("alignment") = 1,
             "Says whether offsets that anyone has found are a solution.\n\nIt shares no code with "
             "the solver. InvalidInputError: the intervals are malformed, or there is not one "
             "offset for each.");
}

}  // namespace

void BindOffsets(py::module_& module) {
  py::class_<OffsetResultHandle>(module, "OffsetResult",
                                 "Offsets of intervals, and what is known about them.")
      .def_property_readonly(
          "status",
          [](const OffsetResultHandle& r) { return std::string(OffsetStatusName(r.status)); },
          "'feasible', 'infeasible' (proven) or 'stopped'.")
      .def_property_readonly(
          "offsets", [](const OffsetResultHandle& r) { return ToArray(r.offsets); },
          "int64 array, one an interval; above the capacity unless feasible.")
      .def_readonly("height", &OffsetResultHandle::height, "The bytes that the offsets need.")
      .def_readonly("bound", &OffsetResultHandle::bound,
                    "No offsets need fewer bytes than this; if it is `height`, that is the least.")
      .def_readonly("nodes", &OffsetResultHandle::nodes, "The number of nodes of the search.")
      .def_readonly("seconds", &OffsetResultHandle::seconds, "The wall time that it took.")
      .def(Pickled<OffsetResultHandle>());
  BindTable(module);
  BindVerdict(module);
  BindFunctions(module);
}

}  // namespace mallocgame::python
