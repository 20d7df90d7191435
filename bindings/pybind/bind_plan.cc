// Plan, and the two that judge it: Validate and Simulate.
#include <pybind11/stl.h>

#include <string>
#include <vector>

#include "bindings/pybind/handles.h"
#include "bindings/pybind/pickled_report.h"
#include "bindings/pybind/pickling.h"
#include "bindings/pybind/status.h"
#include "mallocgame/base/error.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/replay/plan_file.h"
#include "mallocgame/simulator/simulate.h"
#include "mallocgame/simulator/timeline.h"

namespace py = pybind11;

namespace mallocgame::python {

template <>
inline constexpr auto kPickled<Verdict> = std::tuple(&Verdict::rule, &Verdict::message);

struct ResidenceRow {
  int64_t offset;
  int32_t buffer, begin, end;
};

struct CopyRow {
  int64_t part_begin, part_end;
  int32_t residence, begin, end, replaces;
  uint8_t kind;
  bool preload;
};

struct TickRow {
  int64_t compute_ps, stall_ps, idle_ps, copied_ps, main_bytes;
  uint8_t source;
};

namespace {

py::array_t<ResidenceRow> ResidenceArray(const Plan& plan) {
  return ToRows<ResidenceRow>(plan.residences, [](const Residence& r) -> ResidenceRow {
    return {r.offset, r.buffer.value, r.begin, r.end};
  });
}

py::array_t<CopyRow> CopyArray(const Plan& plan) {
  return ToRows<CopyRow>(plan.copies, [](const Copy& c) -> CopyRow {
    return {c.part_begin,
            c.part_end,
            c.residence.value,
            c.begin,
            c.end,
            c.replaces,
            static_cast<uint8_t>(c.kind),
            c.preload};
  });
}

py::array_t<int32_t> ServedByArray(const Plan& plan) {
  return ToRows<int32_t>(plan.served_by, [](ResidenceId id) { return id.value; });
}

// The plan that these arrays were made of.
Plan PlanOf(const std::string& fingerprint, const std::string& hardware,
            const py::array_t<ResidenceRow>& residences, const py::array_t<CopyRow>& copies,
            const py::array_t<int32_t>& served_by) {
  Plan plan{fingerprint, hardware, {}, {}, {}};
  for (py::ssize_t i = 0; i < residences.size(); ++i) {
    const ResidenceRow& r = residences.at(i);
    plan.residences.push_back({BufferId(r.buffer), r.offset, r.begin, r.end});
  }
  for (py::ssize_t i = 0; i < copies.size(); ++i) {
    const CopyRow& c = copies.at(i);
    plan.copies.push_back({static_cast<CopyKind>(c.kind), ResidenceId(c.residence), c.begin, c.end,
                           c.part_begin, c.part_end, c.preload, c.replaces});
  }
  for (py::ssize_t i = 0; i < served_by.size(); ++i) plan.served_by.emplace_back(served_by.at(i));
  return plan;
}

Report SimulatePlan(const ProgramHandle& program, const Plan& plan,
                    const std::optional<Hardware>& own_hardware, const std::string& prices) {
  if (prices != "compiler" && prices != "calibrated") {
    RaiseInvalid("prices: found '", prices, "', allowed: 'compiler', 'calibrated'");
  }
  const Hardware hardware = HardwareOr(program, own_hardware);
  const bool calibrates =
      prices == "calibrated" && program.program().cost().kind != CostKind::kCalibrated;
  return ValueOrRaise(WithoutGil([&]() -> absl::StatusOr<Report> {
    MG_RETURN_IF_ERROR(ValidateHardware(hardware));
    if (!calibrates) return Simulate(CostModel(program.file.program, hardware), plan);
    MG_RETURN_IF_ERROR(CheckWellFormed(program.program(), hardware, plan));
    MG_ASSIGN_OR_RETURN(const ProgramFile made, CalibratedFile(program, hardware, std::nullopt));
    Plan rebased = plan;
    rebased.program_fingerprint = made.program->fingerprint();
    return Simulate(CostModel(made.program, made.hardware), rebased);
  }));
}

py::array_t<TickRow> TimelineOf(const ProgramHandle& program, const Plan& plan,
                                const std::optional<Hardware>& own_hardware) {
  const Hardware hardware = HardwareOr(program, own_hardware);
  const std::vector<TickTime> times =
      ValueOrRaise(WithoutGil([&]() -> absl::StatusOr<std::vector<TickTime>> {
        MG_RETURN_IF_ERROR(ValidateHardware(hardware));
        return Timeline(CostModel(program.file.program, hardware), plan);
      }));
  return ToRows<TickRow>(times, [](const TickTime& t) -> TickRow {
    return {t.compute_ps, t.stall_ps,   t.idle_ps,
            t.copied_ps,  t.main_bytes, static_cast<uint8_t>(t.source)};
  });
}

// The names of buffers are looked up by the plan's indices, so it must be a plan of this program.
const Program& ProgramOf(const Plan& plan, const ProgramHandle& handle) {
  const Program& program = handle.program();
  if (plan.program_fingerprint != program.fingerprint()) {
    RaiseInvalid("plan of program ", plan.program_fingerprint, ", but the program given is ",
                 program.name(), " (", program.fingerprint(), ")");
  }
  return program;
}

Plan RebasedOn(const Plan& plan, const ProgramHandle& program) {
  Plan rebased = plan;
  rebased.program_fingerprint = program.program().fingerprint();
  Hardware hardware = program.file.hardware;
  hardware.name = plan.hardware;
  RaiseIfError(CheckWellFormed(program.program(), hardware, rebased));
  return rebased;
}

void BindReport(py::module_& module) {
  py::class_<Report>(module, "Report",
                     "What a plan costs, in picoseconds of one run of the program, loops included.")
      .def_readonly("latency_ps", &Report::latency_ps,
                    "compute_ps + stall_ps; preloads are done before the start.")
      .def_readonly("latency_cold_ps", &Report::latency_cold_ps,
                    "The latency if preloads are copies that are issued at the start.")
      .def_readonly("compute_ps", &Report::compute_ps, "The time in which instructions run.")
      .def_readonly("stall_ps", &Report::stall_ps,
                    "The time in which the program waits for copies.")
      .def_readonly("all_main_ps", &Report::all_main_ps,
                    "The latency with everything in main memory.")
      .def_readonly("prefetched_bytes", &Report::prefetched_bytes,
                    "The bytes copied from main to fast memory, loop trips included, preloads not.")
      .def_readonly("written_back_bytes", &Report::written_back_bytes,
                    "The bytes copied from fast to main memory, loop trips included.")
      .def_readonly("preloaded_bytes", &Report::preloaded_bytes,
                    "The bytes in fast memory before the program starts.")
      .def_readonly("peak_fast_bytes", &Report::peak_fast_bytes,
                    "The most bytes that lie in fast memory at one tick.")
      .def_readonly("exact_ps", &Report::exact_ps,
                    "The part of compute_ps that the compiler itself priced.")
      .def_readonly("predicted_ps", &Report::predicted_ps,
                    "The part of compute_ps predicted from prices of other placements.")
      .def_readonly(
          "unpriced_ps", &Report::unpriced_ps,
          "The part of compute_ps that follows from the bytes moved, for want of a price.")
      .def_readonly("kernel_ps", &Report::kernel_ps,
                    "The part of compute_ps in kernels that the compiler didn't price, by a model.")
      .def_readonly("modelled_ps", &Report::modelled_ps,
                    "The part of compute_ps that waits for links between chips, by a model.")
      .def_property_readonly(
          "stall_at_ps", [](const Report& r) { return ToArray(r.stall_at_ps); },
          "An int64 array: for each tick the stall before it, all trips together.")
      .def_property_readonly(
          "fast_bytes_at", [](const Report& r) { return ToArray(r.fast_bytes_at); },
          "An int64 array: for each tick the bytes resident.")
      .def(
          "__eq__", [](const Report& a, const Report& b) { return a == b; }, py::is_operator())
      .def(Pickled<Report>())
      .def("__repr__", [](const Report& r) {
        return "<mallocgame.Report latency_ps=" + std::to_string(r.latency_ps) +
               " stall_ps=" + std::to_string(r.stall_ps) +
               " all_main_ps=" + std::to_string(r.all_main_ps) + ">";
      });
  module.attr("Report").attr("__hash__") = py::none();
}

void BindVerdict(py::module_& module) {
  py::class_<Verdict>(module, "Verdict",
                      "Whether a plan is valid, and if not, which rule it breaks where.")
      .def_property_readonly("ok", &Verdict::ok, "Whether the plan is valid.")
      .def_property_readonly(
          "rule", [](const Verdict& v) { return std::string(RuleName(v.rule)); },
          "The name of the broken rule; 'none' if the plan is valid.")
      .def_property_readonly(
          "message", [](const Verdict& v) { return Text(v.message); },
          "What is broken, at which tick; empty if the plan is valid.")
      .def("__bool__", &Verdict::ok, "The same as `ok`.")
      .def(Pickled<Verdict>())
      .def("__repr__", [](const Verdict& v) {
        return Text(v.ok() ? std::string("<mallocgame.Verdict ok>")
                           : "<mallocgame.Verdict " + std::string(RuleName(v.rule)) + ": " +
                                 v.message + ">");
      });
}

}  // namespace

void BindPlan(py::module_& module, py::class_<Plan>& plan_class) {
  PYBIND11_NUMPY_DTYPE(ResidenceRow, offset, buffer, begin, end);
  PYBIND11_NUMPY_DTYPE(CopyRow, part_begin, part_end, residence, begin, end, replaces, kind,
                       preload);
  PYBIND11_NUMPY_DTYPE(TickRow, compute_ps, stall_ps, idle_ps, copied_ps, main_bytes, source);
  module.attr("RESIDENCE_ROW") = py::dtype::of<ResidenceRow>();
  module.attr("COPY_ROW") = py::dtype::of<CopyRow>();
  module.attr("TICK_ROW") = py::dtype::of<TickRow>();
  // The numbers in the column `kind` of copies.
  module.attr("PREFETCH") = static_cast<int>(CopyKind::kPrefetch);
  module.attr("EVICTION") = static_cast<int>(CopyKind::kEviction);
  BindReport(module);
  BindVerdict(module);

  plan_class
      .def_property_readonly(
          "program_fingerprint", [](const Plan& p) { return Text(p.program_fingerprint); },
          "The fingerprint of the program that the plan is of.")
      .def_property_readonly(
          "hardware", [](const Plan& p) { return Text(p.hardware); },
          "The name of the hardware that it was made for.")
      .def_property_readonly(
          "residences", &ResidenceArray,
          "A structured array with a row for each stay of a buffer in fast memory.\n\noffset i8 "
          "(bytes), buffer, begin, end i4 (ticks, half-open).")
      .def_property_readonly(
          "copies", &CopyArray,
          "A structured array with a row for each copy, in service order.\n\npart_begin, part_end "
          "i8 (bytes), residence, begin, end, replaces i4, kind u1 (PREFETCH or EVICTION), preload "
          "bool. replaces is the tick of the plain copy that the prefetch takes the place of, or "
          "-1.")
      .def_property_readonly("served_by", &ServedByArray,
                             "An int32 array: for each access the index of the residence that "
                             "serves it, -1 for main memory.")
      .def(
          "to_json",
          [](const Plan& plan, const ProgramHandle& program) {
            return Text(PlanToJson(ProgramOf(plan, program), plan));
          },
          py::arg("program"), "The plan as JSON text, which names buffers and instructions.")
      .def_static(
          "from_json",
          [](const std::string& text, const ProgramHandle& program) {
            return ValueOrRaise(PlanFromJson(program.program(), text));
          },
          py::arg("text"), py::arg("program"),
          "The plan of JSON text. InvalidInputError if it is malformed or of another program.")
      .def(
          "to_ordered_json",
          [](const Plan& plan, const ProgramHandle& program, const std::vector<Tick>& order,
             const ProgramHandle& reordered) {
            return Text(
                OrderedPlanToJson(program.program(), order, ProgramOf(plan, reordered), plan));
          },
          py::arg("program"), py::arg("order"), py::arg("reordered"),
          "Returns the plan of a reordered program as JSON text, with its order.\n\norder: the "
          "order that `reordered` has the instructions of `program` in.")
      .def_static(
          "from_ordered_json",
          [](const std::string& text, const std::shared_ptr<ProgramHandle>& program) {
            OrderedPlan read = ValueOrRaise(OrderedPlanFromJson(program->file.program, text));
            const bool same = read.program == program->file.program;
            return py::make_tuple(
                same ? program : ReorderedHandle(*program, std::move(read.program)),
                std::move(read.plan), ToArray(read.order));
          },
          py::arg("text"), py::arg("program"),
          "(program, plan, order) of JSON text, for a program in its own order: the program that "
          "the plan is of, and its order, which is empty if it is the program's own. "
          "InvalidInputError if it is malformed, or of another program.")
      .def("rebased_on", &RebasedOn, py::arg("program"),
           "The same plan of another program that differs from its own in prices only. "
           "InvalidInputError if it is no plan of that program.")
      .def_static(
          "of",
          [](const ProgramHandle& program, const Hardware& hardware,
             const py::array_t<ResidenceRow>& residences, const py::array_t<CopyRow>& copies,
             const py::array_t<int32_t>& served_by) {
            Plan plan = PlanOf(program.program().fingerprint(), hardware.name, residences, copies,
                               served_by);
            RaiseIfError(CheckWellFormed(program.program(), hardware, plan));
            return plan;
          },
          py::arg("program"), py::arg("hardware"), py::arg("residences"), py::arg("copies"),
          py::arg("served_by"),
          "Makes a plan of arrays with the columns that a plan has; it need not be "
          "valid.\n\nInvalidInputError: an index is out of range, an interval is none, or copies "
          "are out of order (their begins must never fall).")
      .def(
          "to_string",
          [](const Plan& plan, const ProgramHandle& program) {
            return Text(PlanToString(ProgramOf(plan, program), plan));
          },
          py::arg("program"), "A text for people, with a line for each residence and each copy.")
      .def(
          "__eq__", [](const Plan& a, const Plan& b) { return a == b; }, py::is_operator())
      .def(py::pickle(
          [](const Plan& plan) {
            return py::make_tuple(plan.program_fingerprint, plan.hardware, ResidenceArray(plan),
                                  CopyArray(plan), ServedByArray(plan));
          },
          [](const py::tuple& saved) {
            return PlanOf(saved[0].cast<std::string>(), saved[1].cast<std::string>(),
                          saved[2].cast<py::array_t<ResidenceRow>>(),
                          saved[3].cast<py::array_t<CopyRow>>(),
                          saved[4].cast<py::array_t<int32_t>>());
          }))
      .def("__repr__", [](const Plan& p) {
        return Text("<mallocgame.Plan of " + p.program_fingerprint + " on " + p.hardware + ": " +
                    std::to_string(p.residences.size()) + " residences, " +
                    std::to_string(p.copies.size()) + " copies>");
      });
  plan_class.attr("__hash__") = py::none();

  module.def(
      "all_main_plan",
      [](const ProgramHandle& program, const std::optional<Hardware>& hardware) {
        return AllMainPlan(program.program(), HardwareOr(program, hardware));
      },
      py::arg("program"), py::arg("hardware") = py::none(),
      "Returns the plan with everything in main memory.");
  module.def(
      "validate",
      [](const ProgramHandle& program, const Plan& plan,
         const std::optional<Hardware>& own_hardware) {
        const Hardware hardware = HardwareOr(program, own_hardware);
        return WithoutGil([&] { return Validate(program.program(), hardware, plan); });
      },
      py::arg("program"), py::arg("plan"), py::arg("hardware") = py::none(),
      "The Verdict whether the hardware (the program's own if None) can carry out this plan.");
  module.def("simulate", &SimulatePlan, py::arg("program"), py::arg("plan"),
             py::arg("hardware") = py::none(), py::arg("prices") = "compiler",
             "The Report of the plan at the program's own prices ('compiler') or at calibrated "
             "ones ('calibrated'; calibrated() makes a program that keeps them). InvalidInputError "
             "if the plan is not one of this program, or that can't have calibrated prices.");
  module.def("timeline", &TimelineOf, py::arg("program"), py::arg("plan"),
             py::arg("hardware") = py::none(),
             "Where the plan's time goes: a structured array, one row for each tick, all its trips "
             "together: compute_ps, stall_ps (before it), idle_ps (the part of compute_ps left to "
             "copies), copied_ps (the part of idle_ps that copies use), main_bytes (what the "
             "instruction moves of arrays in main memory) i8, source u1 (0 free, 1 exact, 2 "
             "predicted, 3 unpriced, 4 roofline, 5 nothing but a wait for links, 6 kernel).");
}

}  // namespace mallocgame::python
