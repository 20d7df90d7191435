// Offset allocation: SolveOffsets and its CSV. The search runs on a thread of its own, so that
// Ctrl-C ends it.
#include <pybind11/stl.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "bindings/pybind/handles.h"
#include "bindings/pybind/status.h"
#include "mallocgame/plan/offsets.h"
#include "mallocgame/plan/offsets_csv.h"

namespace py = pybind11;

namespace mallocgame::python {
namespace {

using IntervalArray = py::array_t<int64_t, py::array::c_style>;

struct OffsetResultHandle {
  OffsetResult result;
  double seconds = 0;
};

std::vector<OffsetInterval> IntervalsOf(const IntervalArray& array) {
  if (array.ndim() != 2 || array.shape(1) != 3) {
    Raise(absl::InvalidArgumentError("intervals: allowed shape: (n, 3), rows (begin, end, size)"));
  }
  std::vector<OffsetInterval> intervals;
  const auto rows = array.unchecked<2>();
  for (py::ssize_t i = 0; i < rows.shape(0); ++i)
    intervals.push_back({rows(i, 0), rows(i, 1), rows(i, 2)});
  return intervals;
}

OffsetResultHandle RunSearch(const IntervalArray& intervals, int64_t capacity, int64_t alignment,
                             double seconds, int64_t nodes) {
  if (!(seconds >= 0) || nodes < 0) {
    Raise(absl::InvalidArgumentError("solve_offsets: seconds and nodes must be >= 0, found " +
                                     std::to_string(seconds) + " and " + std::to_string(nodes)));
  }
  const OffsetProblem problem = {IntervalsOf(intervals), capacity, alignment};
  std::atomic<bool> cancel = false;
  const OffsetLimits limits = {seconds, nodes, &cancel};
  const auto begin = std::chrono::steady_clock::now();
  auto solved = std::async(std::launch::async, [&] {
    auto result = SolveOffsets(problem, limits);
    return std::pair(
        std::move(result),
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  });
  while (!WithoutGil([&] {
    return solved.wait_for(std::chrono::milliseconds(50)) == std::future_status::ready;
  })) {
    if (PyErr_CheckSignals() == 0) continue;
    cancel = true;
    throw py::error_already_set();  // the future waits for the thread
  }
  auto [result, elapsed] = solved.get();
  return {ValueOrRaise(std::move(result)), elapsed};
}

py::tuple FromCsv(const py::bytes& text) {
  const OffsetTable table = ValueOrRaise(OffsetsFromCsv(std::string(text)));
  py::array_t<int64_t> intervals(
      {static_cast<py::ssize_t>(table.intervals.size()), py::ssize_t{3}});
  auto rows = intervals.mutable_unchecked<2>();
  for (size_t i = 0; i < table.intervals.size(); ++i) {
    const auto row = static_cast<py::ssize_t>(i);
    rows(row, 0) = table.intervals[i].begin;
    rows(row, 1) = table.intervals[i].end;
    rows(row, 2) = table.intervals[i].size;
  }
  py::list ids;
  for (const std::string& id : table.ids) ids.append(Text(id));
  return py::make_tuple(std::move(ids), std::move(intervals));
}

// The same intervals as in `text`, with these offsets.
py::bytes WithOffsets(const py::bytes& text, std::vector<int64_t> offsets) {
  OffsetTable table = ValueOrRaise(OffsetsFromCsv(std::string(text)));
  if (offsets.size() != table.intervals.size()) {
    Raise(absl::InvalidArgumentError("offsets: found " + std::to_string(offsets.size()) +
                                     ", allowed: " + std::to_string(table.intervals.size())));
  }
  table.offsets = std::move(offsets);
  return OffsetsToCsv(table);
}

}  // namespace

void BindOffsets(py::module_& module) {
  py::class_<OffsetResultHandle>(module, "OffsetResult",
                                 "Offsets of intervals, and what is known about them.")
      .def_property_readonly(
          "status",
          [](const OffsetResultHandle& r) {
            return std::string(OffsetStatusName(r.result.status));
          },
          "'feasible', 'infeasible' (proven) or 'stopped'.")
      .def_property_readonly(
          "offsets", [](const OffsetResultHandle& r) { return ToArray(r.result.offsets); },
          "int64 array, one an interval; above the capacity unless feasible.")
      .def_property_readonly(
          "height", [](const OffsetResultHandle& r) { return r.result.height; }, "Bytes they need.")
      .def_property_readonly("nodes", [](const OffsetResultHandle& r) { return r.result.nodes; })
      .def_readonly("seconds", &OffsetResultHandle::seconds, "Wall time that it took.");
  module.def("solve_offsets", &RunSearch, py::arg("intervals"), py::arg("capacity"),
             py::arg("alignment") = 1, py::arg("seconds") = 10.0, py::arg("nodes") = 0,
             "Offsets for int64 rows (begin, end, size) such that none conflict and all end within "
             "the capacity. seconds: wall "
             "time, nodes: of the search; 0 means no limit.");
  module.def("offsets_from_csv", &FromCsv, py::arg("text"),
             "(ids, intervals) of MiniMalloc's CSV.");
  module.def("offsets_to_csv", &WithOffsets, py::arg("text"), py::arg("offsets"),
             "The CSV with a column `offset`.");
}

}  // namespace mallocgame::python
