// Hardware and Program: read-only, with tables as structured NumPy arrays.
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/pybind/handles.h"
#include "bindings/pybind/pickling.h"
#include "bindings/pybind/status.h"
#include "mallocgame/base/error.h"
#include "mallocgame/program/calibrate.h"
#include "mallocgame/program/program.h"

namespace py = pybind11;

namespace mallocgame::python {

template <>
inline constexpr auto kPickled<PriceLaw> = std::tuple(
    &PriceLaw::main_share, &PriceLaw::copy_latency_ps, &PriceLaw::speed, &PriceLaw::kernel);

struct InstructionRow {
  uint8_t kind;
  bool plain_copy, results_in_main;
  int32_t region, logical_time, first_access, access_count;
  int64_t reserved_bytes, trips;
};

struct BufferRow {
  int64_t size_bytes;
  uint8_t origin;
  bool is_output, eligible;
};

struct AccessRow {
  int32_t tick, buffer;
  uint8_t kind;
  bool writes_in_loop;
  int32_t held_until;
  uint8_t pin;
};

struct LoopRow {
  int32_t entry, exit;
  int64_t trips;
  bool trips_known;
};

namespace {

py::array_t<InstructionRow> InstructionArray(const ProgramHandle& handle) {
  const Program& program = handle.program();
  std::vector<InstructionRow> rows;
  rows.reserve(program.instructions().size());
  for (Tick tick = 0; tick < program.ticks(); ++tick) {
    const Instruction& i = program.instruction(tick);
    rows.push_back({static_cast<uint8_t>(i.kind), i.plain_copy, i.results_in_main, i.region,
                    i.logical_time, i.first_access, i.access_count, i.reserved_bytes,
                    program.trips(tick)});
  }
  return ToArray(rows);
}

py::array_t<BufferRow> BufferArray(const ProgramHandle& handle) {
  return ToRows<BufferRow>(handle.program().buffers(), [](const Buffer& b) -> BufferRow {
    return {b.size_bytes, static_cast<uint8_t>(b.origin), b.is_output, b.eligible};
  });
}

py::array_t<AccessRow> AccessArray(const ProgramHandle& handle) {
  return ToRows<AccessRow>(handle.program().accesses(), [](const Access& a) -> AccessRow {
    return {a.tick,           a.buffer.value, static_cast<uint8_t>(a.kind),
            a.writes_in_loop, a.held_until,   static_cast<uint8_t>(a.pin)};
  });
}

py::array_t<LoopRow> LoopArray(const ProgramHandle& handle) {
  return ToRows<LoopRow>(handle.program().loops(), [](const Loop& l) -> LoopRow {
    return {l.entry, l.exit, l.trips, l.trips_known};
  });
}

// A list of the texts that `member` of each item holds.
template <class Items, class Element>
typing::List<py::str> Names(const Items& items, std::string Element::* member) {
  typing::List<py::str> names;
  for (const Element& item : items) names.append(Text(item.*member));
  return names;
}

typing::Dict<py::str, py::int_> Counts(const ProgramHandle& handle) {
  const Program& program = handle.program();
  typing::Dict<py::str, py::int_> counts;
  counts["instructions"] = program.instruction_count();
  counts["buffers"] = program.buffers().size();
  counts["eligible_buffers"] = program.eligible_count();
  counts["accesses"] = program.accesses().size();
  counts["loops"] = program.loops().size();
#define MALLOCGAME_COUNT(name) counts[#name] = handle.file.summary.name;
  MALLOCGAME_KEPT_COUNTS(MALLOCGAME_COUNT)
#undef MALLOCGAME_COUNT
  return counts;
}

Hardware ValidHardware(const std::string& json) {
  Hardware hardware = ValueOrRaise(HardwareFromJson(json));
  RaiseIfError(ValidateHardware(hardware));
  return hardware;
}

Hardware Replaced(const Hardware& hardware, const py::kwargs& fields) {
  const py::module_ json = py::module_::import("json");
  const py::object values = json.attr("loads")(Text(HardwareToJson(hardware)));
  values.attr("update")(fields);
  return ValidHardware(py::cast<std::string>(json.attr("dumps")(values)));
}

void BindHardware(py::module_& module) {
  ShareCopies(
      py::class_<Hardware>(module, "Hardware",
                           "The machine: two memories and the rates that turn work into time."))
      .def_property_readonly(
          "name", [](const Hardware& h) { return Text(h.name); },
          "The name of the preset, or that of the JSON file.")
      .def_readonly("fast_bytes", &Hardware::fast_bytes, "The capacity of fast memory in bytes.")
      .def_readonly("alignment_bytes", &Hardware::alignment_bytes,
                    "Every offset is a multiple of this, in bytes.")
      .def_readonly("main_bytes_per_second", &Hardware::main_bytes_per_second,
                    "The bandwidth of main memory, shared by instructions and copies.")
      .def_readonly("fast_read_bytes_per_second", &Hardware::fast_read_bytes_per_second,
                    "Used by the roofline cost model only, as are the next three.")
      .def_readonly("fast_write_bytes_per_second", &Hardware::fast_write_bytes_per_second,
                    "The rate of writes to fast memory.")
      .def_readonly("flops_per_second", &Hardware::flops_per_second,
                    "The rate of floating-point operations.")
      .def_readonly("transcendentals_per_second", &Hardware::transcendentals_per_second,
                    "The rate of transcendental functions such as exp.")
      .def_readonly("clock_hz", &Hardware::clock_hz,
                    "Turns the compiler's cycles into picoseconds.")
      .def_readonly("max_outstanding_prefetches", &Hardware::max_outstanding_prefetches,
                    "The most copies from main to fast memory whose windows may share a tick.")
      .def_readonly("max_outstanding_evictions", &Hardware::max_outstanding_evictions,
                    "The most copies from fast to main memory whose windows may share a tick.")
      .def_readonly("max_preloads", &Hardware::max_preloads,
                    "The most entry parameters that may be in fast memory before the start.")
      .def_readonly("fast_memory_space", &Hardware::fast_memory_space,
                    "The n of the mark S(n) that fast memory has in layouts.")
      .def_readonly(
          "copy_latency_ps", &Hardware::copy_latency_ps,
          "What a copy takes beside the transfer of its bytes; 0 but for calibrated hardware.")
      .def("copy_ps", &Hardware::CopyPs, py::arg("bytes"),
           "The picoseconds that a copy holds the main-memory channel.")
      .def("transfer_ps", &Hardware::TransferPs, py::arg("bytes"),
           "The picoseconds that a transfer takes on the main-memory channel.")
      .def("cycles_to_ps", &Hardware::CyclesToPs, py::arg("cycles"),
           "The picoseconds of this many clock cycles.")
      .def("replace", &Replaced,
           "The same hardware with other values of the fields named. InvalidInputError names a "
           "field that there is not, or a value that is not allowed.")
      .def(
          "to_json", [](const Hardware& h) { return Text(HardwareToJson(h)); },
          "A JSON object with the fields above.")
      .def_static("from_json", &ValidHardware, py::arg("text"),
                  "The hardware of a JSON object with exactly the fields above. InvalidInputError "
                  "names the field that is wrong.")
      .def_static(
          "preset", [](const std::string& name) { return ValueOrRaise(HardwarePreset(name)); },
          py::arg("name"),
          "One of preset_names(), or one with less fast memory, such as tpu_v4i_16mib. "
          "InvalidInputError lists the names.")
      .def_static("preset_names", &HardwarePresetNames, "The names of the presets.")
      .def(
          "__eq__", [](const Hardware& a, const Hardware& b) { return a == b; }, py::is_operator())
      .def(py::pickle(
          [](const Hardware& h) { return py::bytes(HardwareToJson(h)); },
          [](const py::bytes& json) { return ValueOrRaise(HardwareFromJson(ViewOf(json))); }))
      .def("__repr__",
           [](const Hardware& h) { return Text("<mallocgame.Hardware " + h.name + ">"); });
  module.attr("Hardware").attr("__hash__") = py::none();
}

std::shared_ptr<ProgramHandle> CalibratedProgram(const ProgramHandle& handle,
                                                 const std::optional<Hardware>& hardware,
                                                 const std::optional<PriceLaw>& law) {
  auto made = WithoutGil([&] { return CalibratedFile(handle, HardwareOr(handle, hardware), law); });
  return std::make_shared<ProgramHandle>(ProgramHandle{ValueOrRaise(std::move(made))});
}

std::shared_ptr<ProgramHandle> ProgramAtBothPrices(const ProgramHandle& handle, double lean) {
  ProgramFile file = handle.file;
  file.program = ValueOrRaise(BothPricesOf(handle, file.hardware, lean));
  return std::make_shared<ProgramHandle>(ProgramHandle{std::move(file)});
}

std::shared_ptr<ProgramHandle> CautiousProgram(const ProgramHandle& handle, double caution) {
  if (!(caution >= 0 && caution <= 100))
    RaiseInvalid("caution: found ", caution, ", allowed: a number from 0 to 100");
  ProgramFile file = handle.file;
  file.program = Program::WithCaution(*handle.file.program, caution);
  return std::make_shared<ProgramHandle>(ProgramHandle{std::move(file)});
}

// The class of work, the bits of the widest elements, and the rows of each pool.
using PoolRow = typing::Tuple<py::int_, py::int_, py::int_>;
using Pool = typing::Tuple<py::str, py::int_, typing::List<PoolRow>>;

typing::List<Pool> PoolList(const ProgramHandle& handle) {
  static constexpr const char* kNames[] = {"unknown", "matmul", "reduction",
                                           "copy",    "vector", "kernel"};
  typing::List<Pool> pools;
  for (const CostPool& pool : handle.program().cost().pools) {
    py::list rows;
    for (const CostRow& row : pool.rows)
      rows.append(py::make_tuple(row.operands, row.outputs, row.cycles));
    pools.append(py::make_tuple(kNames[static_cast<size_t>(pool.work)], pool.element_bits, rows));
  }
  return pools;
}

typing::List<py::int_> PoolOfTick(const ProgramHandle& handle) {
  typing::List<py::int_> pools;
  for (const InstructionCost& cost : handle.program().cost().instructions) pools.append(cost.pool);
  return pools;
}

void BindPriceLaw(py::module_& module) {
  py::class_<PriceLaw>(
      module, "PriceLaw",
      "What a chip was measured to reach, and how much of the compiler's prices it needs.\n\nThese "
      "figures make calibrated prices (calibrated()). Shares are at most 1.")
      .def(py::init([](double main_share, int64_t copy_latency_ps, double speed, double kernel) {
             const PriceLaw law{main_share, copy_latency_ps, speed, kernel};
             RaiseIfError(ValidatePriceLaw(law));
             return law;
           }),
           py::kw_only(), py::arg("main_share") = 1.0, py::arg("copy_latency_ps") = 0,
           py::arg("speed") = 1.0, py::arg("kernel") = 1.0,
           "A law of these figures. InvalidInputError names one that is not allowed.")
      .def_static(
          "of", [](const std::string& hardware) { return ValueOrRaise(PriceLawOf(hardware)); },
          py::arg("hardware"),
          "The law of the chip that a hardware is named after. InvalidInputError lists the chips.")
      .def_static(
          "sources_of",
          [](const std::string& hardware) {
            typing::Dict<py::str, py::str> sources;
            for (const LawSource& one : ValueOrRaise(PriceLawSources(hardware)))
              sources[Text(one.figure)] = Text(one.source);
            return sources;
          },
          py::arg("hardware"), "Where each figure of that law is from, by its name.")
      .def_readonly("main_share", &PriceLaw::main_share,
                    "The bandwidth of main memory that is reached, over the hardware's.")
      .def_readonly("copy_latency_ps", &PriceLaw::copy_latency_ps,
                    "What a copy takes beside the transfer of its bytes.")
      .def_readonly("speed", &PriceLaw::speed,
                    "What the compiler's price of work is multiplied by.")
      .def_readonly("kernel", &PriceLaw::kernel,
                    "The share of the chip's flops that a kernel without a price reaches.")
      .def(
          "__eq__", [](const PriceLaw& a, const PriceLaw& b) { return a == b; }, py::is_operator())
      .def(Pickled<PriceLaw>())
      .def("__repr__", [](const PriceLaw& law) {
        return "<mallocgame.PriceLaw main_share=" + std::to_string(law.main_share) +
               " speed=" + std::to_string(law.speed) + ">";
      });
  module.attr("PriceLaw").attr("__hash__") = py::none();
}

}  // namespace

absl::StatusOr<ProgramFile> CalibratedFile(const ProgramHandle& handle, const Hardware& hardware,
                                           std::optional<PriceLaw> law) {
  MG_RETURN_IF_ERROR(ValidateHardware(hardware));
  if (!law) {
    MG_ASSIGN_OR_RETURN(law, PriceLawOf(hardware.name));
  }
  MG_ASSIGN_OR_RETURN(const Calibrated calibrated,
                      CalibratePrices(handle.program(), hardware, *law));
  ProgramFile file = handle.file;
  if (handle.XlaPlanFor(hardware) == nullptr) file.xla_plan.reset();
  file.program = calibrated.program;
  file.hardware = calibrated.hardware;
  if (file.xla_plan) file.xla_plan->program_fingerprint = file.program->fingerprint();
  return file;
}

void BindProgram(py::module_& module) {
  PYBIND11_NUMPY_DTYPE(InstructionRow, kind, plain_copy, results_in_main, region, logical_time,
                       first_access, access_count, reserved_bytes, trips);
  PYBIND11_NUMPY_DTYPE(BufferRow, size_bytes, origin, is_output, eligible);
  PYBIND11_NUMPY_DTYPE(AccessRow, tick, buffer, kind, writes_in_loop, held_until, pin);
  PYBIND11_NUMPY_DTYPE(LoopRow, entry, exit, trips, trips_known);
  module.attr("INSTRUCTION_ROW") = py::dtype::of<InstructionRow>();
  module.attr("BUFFER_ROW") = py::dtype::of<BufferRow>();
  module.attr("ACCESS_ROW") = py::dtype::of<AccessRow>();
  module.attr("LOOP_ROW") = py::dtype::of<LoopRow>();
  BindHardware(module);
  BindPriceLaw(module);
  // The numbers in the column `kind` of accesses and in the column `origin` of buffers.
  module.attr("READ") = static_cast<int>(AccessKind::kRead);
  module.attr("UPDATE") = static_cast<int>(AccessKind::kUpdate);
  module.attr("WRITE") = static_cast<int>(AccessKind::kWrite);
  module.attr("LOOP_ENTRY") = static_cast<int>(AccessKind::kLoopEntry);
  module.attr("INSTRUCTION") = static_cast<int>(BufferOrigin::kInstruction);
  module.attr("PARAMETER") = static_cast<int>(BufferOrigin::kParameter);
  module.attr("CONSTANT") = static_cast<int>(BufferOrigin::kConstant);
  module.attr("UNDEFINED") = static_cast<int>(BufferOrigin::kUndefined);

  py::class_<ProgramHandle, std::shared_ptr<ProgramHandle>> program_class(
      module, "Program",
      "A scheduled program, the hardware that it was compiled for, and XLA's own plan if it is "
      "known.");
  BindSchedule(program_class);
  ShareCopies(program_class)
      .def_property_readonly(
          "name", [](const ProgramHandle& p) { return Text(p.program().name()); },
          "The name of the program.")
      .def_property_readonly(
          "hardware", [](const ProgramHandle& p) { return p.file.hardware; },
          "The hardware that the program was compiled for.")
      .def_property_readonly(
          "xla_plan", [](const ProgramHandle& p) { return p.file.xla_plan; },
          "The Plan that XLA:TPU made on `hardware`, or None.")
      .def(
          "xla_plan_for",
          [](const ProgramHandle& p, const Hardware& hardware) {
            const Plan* plan = p.XlaPlanFor(hardware);
            return plan == nullptr ? std::nullopt : std::optional<Plan>(*plan);
          },
          py::arg("hardware"),
          "XLA's plan if it is one for this hardware, else None. It is one for the program's own, "
          "also with more preloads.")
      .def_property_readonly(
          "origin", [](const ProgramHandle& p) { return Text(p.file.origin); },
          "Free text on where the program is from, such as compiler versions.")
      .def_property_readonly(
          "fingerprint", [](const ProgramHandle& p) { return p.program().fingerprint(); },
          "A hash of everything the program is made of, as 16 hexadecimal digits.")
      .def_property_readonly(
          "argument_bytes",
          [](const ProgramHandle& p) { return p.program().data().argument_bytes; },
          "The bytes of the entry parameters as the caller passes them: without tiles and padding.")
      .def_property_readonly(
          "cost_model",
          [](const ProgramHandle& p) {
            static constexpr const char* kNames[] = {"roofline", "profile", "calibrated"};
            return kNames[static_cast<size_t>(p.program().cost().kind)];
          },
          "'profile' (prices of XLA:TPU), 'calibrated' (see mallocgame.calibrated) or 'roofline'.")
      .def_property_readonly(
          "ticks", [](const ProgramHandle& p) { return p.program().ticks(); },
          "The number of ticks: instructions, and one more for each loop's entry.")
      .def_property_readonly(
          "counts", &Counts,
          "A dict of the numbers of instructions, buffers, accesses, loops and prices.")
      .def_property_readonly(
          "instructions", &InstructionArray,
          "A structured array with a row for each tick.\n\nkind u1 (0 ordinary, 1 loop entry, 2 "
          "loop exit), plain_copy, results_in_main bool (what it makes lies in main memory in "
          "every plan), region, logical_time, first_access, access_count i4, reserved_bytes, trips "
          "i8 (runs in one run of the program).")
      .def_property_readonly(
          "instruction_names",
          [](const ProgramHandle& p) {
            return Names(p.program().instructions(), &Instruction::name);
          },
          "The name of each instruction.")
      .def_property_readonly(
          "instruction_opcodes",
          [](const ProgramHandle& p) {
            return Names(p.program().instructions(), &Instruction::opcode);
          },
          "The HLO opcode of each instruction.")
      .def_property_readonly(
          "op_names",
          [](const ProgramHandle& p) {
            return Names(p.program().instructions(), &Instruction::op_name);
          },
          "Where in the source each instruction is from: XLA's op_name, such as "
          "jit(step)/layer_3/attention/dot_general; empty: not known.")
      .def_property_readonly("buffers", &BufferArray,
                             "A structured array with a row for each buffer.\n\nsize_bytes i8, "
                             "origin u1 (INSTRUCTION, PARAMETER, CONSTANT or UNDEFINED), "
                             "is_output, eligible bool (it may lie in fast memory).")
      .def_property_readonly(
          "buffer_names",
          [](const ProgramHandle& p) { return Names(p.program().buffers(), &Buffer::name); },
          "The name of each buffer: its instruction's, with its index there, as in fusion.7{0}.")
      .def_property_readonly(
          "ineligible_because",
          [](const ProgramHandle& p) {
            return Names(p.program().buffers(), &Buffer::ineligible_because);
          },
          "For each buffer the reason why it must stay in main memory; empty if it need not.")
      .def_property_readonly(
          "accesses", &AccessArray,
          "A structured array in time order: tick, buffer i4, kind u1 (0 read, 1 update, 2 write, "
          "3 loop entry), writes_in_loop bool, held_until i4 (until then a transfer that it begins "
          "holds the buffer where it is; 0: it begins none), pin u1 (the memory that a kernel pins "
          "it to: 0 none, 1 main, 2 fast).")
      .def_property_readonly(
          "pools", &PoolList,
          "For each pool of prices what its instructions do, their widest elements, and its "
          "rows.\n\nThe class of work is 'matmul', 'reduction', 'copy', 'vector' or 'kernel'; "
          "'unknown': the program was imported before classes were known, and calibrated() refuses "
          "it. The width is in bits. A row says which operands and which outputs lie in fast "
          "memory, as bits, and the cycles.")
      .def_property_readonly("pool_of", &PoolOfTick,
                             "For each tick the index of its pool of prices, or -1.")
      .def_property_readonly(
          "loops", &LoopArray,
          "A structured array: entry, exit i4 (ticks), trips i8, trips_known bool.\n\ntrips: of "
          "the body for each entry, 0 if it never runs. trips_known: they are what the HLO says, "
          "or what the import was told. The name of a loop is instruction_names[entry].")
      .def(
          "to_bytes",
          [](const ProgramHandle& p) { return py::bytes(SerializeProgramFile(p.file)); },
          "The bytes of a .mgp file; equal programs give equal bytes.")
      .def_static(
          "from_bytes",
          [](const py::bytes& bytes) {
            const absl::string_view view = ViewOf(bytes);
            auto file = WithoutGil([&] { return ParseProgramFile(view); });
            return std::make_shared<ProgramHandle>(ProgramHandle{ValueOrRaise(std::move(file))});
          },
          py::arg("data"),
          "The program of the bytes of a .mgp file. InvalidInputError says what is wrong with "
          "them.")
      .def(
          py::pickle([](const ProgramHandle& p) { return py::bytes(SerializeProgramFile(p.file)); },
                     [](const py::bytes& bytes) {
                       return std::make_shared<ProgramHandle>(
                           ProgramHandle{ValueOrRaise(ParseProgramFile(ViewOf(bytes)))});
                     }))
      .def("__repr__", [](const ProgramHandle& p) {
        return Text("<mallocgame.Program " + p.program().name() + ": " +
                    std::to_string(p.program().instruction_count()) + " instructions, " +
                    std::to_string(p.program().eligible_count()) + " buffers that may move, for " +
                    p.file.hardware.name + ">");
      });
  module.def(
      "at_both_prices", &ProgramAtBothPrices, py::arg("program"), py::arg("lean") = 0.0,
      "Returns the same program, whose searches go by the compiler's prices and by calibrated ones "
      "together.\n\nThe solvers portfolio, portfolio-xla and packing make the larger of its two "
      "latencies small, each over that of XLA's plan (docs/both-prices.md); all else is at the "
      "compiler's prices, as are the reports of results.\n\nlean: the share by which a plan may be "
      "slower by calibrated prices for what it gains by the compiler's, or below 0 the other way "
      "round; at 1 and -1 one of them counts alone.\n\nInvalidInputError: as of calibrated(), or "
      "lean is not from -1 to 1.");
  module.def("cautious", &CautiousProgram, py::arg("program"), py::arg("caution"),
             "Returns the same program at cautious prices: a placement without a price costs no "
             "less than the cheapest of its instruction with nothing more in fast memory, and by "
             "the share `caution` more. at_both_prices() keeps to that. No file has "
             "it.\n\nInvalidInputError: caution is not from 0 to 100.");
  module.def("calibrated", &CalibratedProgram, py::arg("program"), py::arg("hardware") = py::none(),
             py::arg("law") = py::none(),
             "Returns the program with calibrated prices, on calibrated hardware.\n\nThese are the "
             "compiler's prices after a law that was fitted to published measurements "
             "(docs/results/measured.md). A plan of one program is one of the other "
             "(Plan.rebased_on).\n\nhardware: as of the compiler's prices; None is the program's "
             "own. law: None is that of the chip.\n\nInvalidInputError: the program has no prices "
             "of the compiler or is calibrated already, its file doesn't say what kind of work its "
             "instructions do, or there is no law of the chip.");
}

}  // namespace mallocgame::python
