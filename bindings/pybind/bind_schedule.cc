// What a Program says of other orders of its instructions.
#include <pybind11/stl.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/pybind/handles.h"
#include "bindings/pybind/status.h"
#include "mallocgame/schedule/instruction_order.h"
#include "mallocgame/schedule/list_scheduling.h"
#include "mallocgame/schedule/main_memory.h"
#include "mallocgame/schedule/units.h"

namespace py = pybind11;

namespace mallocgame::python {
namespace {

using TickArray = py::array_t<int32_t, py::array::c_style | py::array::forcecast>;

std::vector<Tick> TicksOf(const TickArray& array) {
  if (array.ndim() != 1) {
    RaiseInvalid("order of instructions: found an array of ", array.ndim(),
                 " dimensions, allowed: a list of ticks");
  }
  return {array.data(), array.data() + array.size()};
}

py::array_t<int32_t> DependenceArray(const ProgramHandle& handle) {
  std::vector<int32_t> ticks;
  for (const Dependence& d : handle.program().data().dependences)
    ticks.insert(ticks.end(), {d.before, d.after});
  auto array = ToMatrix<int32_t>(ticks, 2);
  array.attr("setflags")(py::arg("write") = false);
  return array;
}

typing::Dict<py::str, py::int_> MainMemoryDict(const ProgramHandle& handle) {
  const MainMemory memory = WithoutGil([&] { return MainMemoryOf(handle.program()); });
  typing::Dict<py::str, py::int_> dict;
  dict["fixed_bytes"] = memory.fixed_bytes;
  dict["live_bytes"] = memory.live_bytes;
  dict["packed_bytes"] = memory.packed_bytes;
  dict["total_bytes"] = memory.total_bytes();
  return dict;
}

std::shared_ptr<ProgramHandle> ReorderedBy(const ProgramHandle& handle, const TickArray& order) {
  const std::vector<Tick> ticks = TicksOf(order);
  ReorderedProgram made =
      ValueOrRaise(WithoutGil([&] { return Reordered(handle.program(), ticks); }));
  return ReorderedHandle(handle, std::move(made.program));
}

py::array_t<int32_t> ListOrder(const ProgramHandle& handle, const std::string& rule) {
  const std::optional<ListRule> found = ListRuleOf(rule);
  if (!found) {
    std::string allowed;
    for (int r = 0; r < kListRules; ++r)
      allowed += (r > 0 ? ", " : "") + std::string(ListRuleName(static_cast<ListRule>(r)));
    RaiseInvalid("list_order: found '", rule, "', allowed: ", allowed);
  }
  return ToArray(WithoutGil([&] {
    const ScheduleUnits units(handle.file.program);
    const CostModel cost_model(handle.file.program, handle.file.hardware);
    return units.TicksOf(ListSchedule(units, cost_model, *found));
  }));
}

}  // namespace

void BindSchedule(py::class_<ProgramHandle, std::shared_ptr<ProgramHandle>>& program) {
  program
      .def_property_readonly(
          "dependences", &DependenceArray,
          "int32 array [dependences, 2]: ticks of which the first must stand before the second in "
          "every order of instructions. A loop, conditional or call is named by its last tick.")
      .def_property_readonly(
          "has_dependences",
          [](const ProgramHandle& p) { return p.program().data().has_dependences; },
          "Whether it is known what depends on what; else the program's own order is the only one.")
      .def_property_readonly(
          "free_pairs",
          [](const ProgramHandle& p) {
            return WithoutGil([&] { return ScheduleUnits(p.file.program).free_pairs(); });
          },
          "How many pairs of instructions may stand in either order; 0: there is no other order.")
      .def_property_readonly(
          "main_memory", &MainMemoryDict,
          "A dict of the bytes of main memory that the order of instructions needs: fixed_bytes, "
          "which no order changes, live_bytes, the most that lives at one time besides, "
          "packed_bytes, what that needs at offsets, and total_bytes, fixed and packed.")
      .def("reordered", &ReorderedBy, py::arg("order"),
           "The program with its instructions in another order: for each tick of the new one its "
           "tick now. InvalidInputError names what the order parts, or what stands before "
           "something that it depends on.")
      .def("list_order", &ListOrder, py::arg("rule"),
           "int32 array [ticks]: the order of a list scheduler. rule: 'depth-first', "
           "'breadth-first', 'least-memory' or 'latency-hiding'. InvalidInputError.");
}

}  // namespace mallocgame::python
