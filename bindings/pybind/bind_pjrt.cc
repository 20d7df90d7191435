// The compiler behind the PJRT C API, as mallocgame.xla.worker has it.
#include <pybind11/stl.h>

#include "absl/strings/str_cat.h"
#include "bindings/pybind/handles.h"
#include "mallocgame/base/error.h"
#include "mallocgame/pjrt/compile_options.h"
#include "mallocgame/pjrt/partial_program.h"
#include "mallocgame/pjrt/plugin.h"

namespace py = pybind11;

namespace mallocgame::python {
namespace {

// Python's PjrtCompiler: a plugin, and the chips that it compiles for.
struct PjrtCompilerHandle {
  std::unique_ptr<pjrt::Plugin> plugin;
  pjrt::Topology topology;
};

// The status of the plugin with its code in its words, as XLA itself writes it.
template <class T>
T ValueOrRefuse(absl::StatusOr<T> result) {
  if (result.ok()) return *std::move(result);
  Raise(absl::Status(result.status().code(),
                     absl::StrCat(absl::StatusCodeToString(result.status().code()), ": ",
                                  result.status().message())));
}

absl::StatusOr<std::unique_ptr<PjrtCompilerHandle>> Load(const std::string& library,
                                                         const std::string& topology,
                                                         const pjrt::TopologyOptions& options) {
  MG_ASSIGN_OR_RETURN(std::unique_ptr<pjrt::Plugin> plugin, pjrt::Plugin::Load(library));
  MG_ASSIGN_OR_RETURN(pjrt::Topology chips, plugin->CreateTopology(topology, options));
  return std::make_unique<PjrtCompilerHandle>(
      PjrtCompilerHandle{std::move(plugin), std::move(chips)});
}

py::bytes Compile(const PjrtCompilerHandle& self, const std::string& format,
                  const py::bytes& program, const py::bytes& options) {
  const absl::string_view code = ViewOf(program), settings = ViewOf(options);
  return ValueOrRefuse(
      WithoutGil([&] { return self.plugin->Compile(format, code, settings, self.topology); }));
}

std::vector<py::bytes> RunPhase(const PjrtCompilerHandle& self, const std::string& phase,
                                const std::vector<py::bytes>& programs, const py::bytes& options) {
  const std::vector<std::string> inputs(programs.begin(), programs.end());
  const absl::string_view settings = ViewOf(options);
  const std::vector<std::string> outputs = ValueOrRefuse(
      WithoutGil([&] { return self.plugin->RunPhase(phase, inputs, settings, self.topology); }));
  return {outputs.begin(), outputs.end()};
}

typing::Tuple<py::bytes, bool, py::str, py::str, typing::Tuple<py::str, py::ellipsis>, py::str,
              py::str>
ParsePartialProgram(const py::bytes& bytes) {
  const absl::string_view view = ViewOf(bytes);
  const pjrt::PartialProgram partial =
      ValueOrRaise(WithoutGil([&] { return pjrt::ParsePartialProgram(view); }));
  py::tuple phases(partial.next_phases.size());
  for (size_t i = 0; i < partial.next_phases.size(); ++i) phases[i] = Text(partial.next_phases[i]);
  return py::tuple(py::make_tuple(py::bytes(partial.program), partial.compressed,
                                  Text(partial.format), Text(partial.generating_phase), phases,
                                  Text(partial.version), Text(partial.name)));
}

py::bytes SerializePartialProgram(const py::bytes& program, bool compressed,
                                  const std::string& format, const std::string& generating_phase,
                                  const std::vector<std::string>& next_phases,
                                  const std::string& version, const std::string& name) {
  const pjrt::PartialProgram partial{std::string(ViewOf(program)),
                                     compressed,
                                     format,
                                     generating_phase,
                                     next_phases,
                                     version,
                                     name};
  return py::bytes(WithoutGil([&] { return pjrt::SerializePartialProgram(partial); }));
}

}  // namespace

void BindPjrt(py::module_& module) {
  py::class_<PjrtCompilerHandle>(
      module, "PjrtCompiler",
      "A compiler behind the PJRT C API, such as libtpu, and the chips that it compiles for.\n\nIt "
      "belongs in a process of its own, because it ends the process where a check of its own "
      "fails. What it refuses is a MallocGameError whose message begins with the code of its "
      "status.")
      .def(py::init([](const std::string& library, const std::string& topology,
                       const pjrt::TopologyOptions& options) {
             return ValueOrRefuse(WithoutGil([&] { return Load(library, topology, options); }));
           }),
           py::arg("library"), py::arg("topology"), py::arg("options"),
           "library: path of the shared library. options: those of the topology.")
      .def_property_readonly(
          "api_version", [](const PjrtCompilerHandle& self) { return self.plugin->api_version(); },
          "The version of the PJRT C API, such as '0.90'.")
      .def("compile", &Compile, py::arg("format"), py::arg("program"), py::arg("options"),
           "Returns the serialized executable.\n\nformat: 'mlir', of StableHLO as a portable "
           "artifact, or 'hlo', of a HloModuleProto. options: those of compile_options().")
      .def("run_phase", &RunPhase, py::arg("phase"), py::arg("programs"), py::arg("options"),
           "Runs one phase on serialized partial programs, and returns those that it gives.");
  module.def(
      "compile_options",
      [](int64_t num_partitions, const pjrt::OptionOverrides& overrides) {
        return py::bytes(ValueOrRaise(pjrt::CompileOptions(num_partitions, overrides)));
      },
      py::arg("num_partitions"), py::arg("overrides"),
      "Returns XLA's serialized options for one partition on each of the first "
      "devices.\n\noverrides: the compiler's options by name. It reads a text as whatever the "
      "option is.");
  module.def(
      "parse_partial_program", &ParsePartialProgram, py::arg("data"),
      "Returns the fields of mallocgame.xla.partial_programs.PartialProgram. InvalidInputError.");
  module.def("serialize_partial_program", &SerializePartialProgram, py::arg("program"),
             py::arg("compressed"), py::arg("format"), py::arg("generating_phase"),
             py::arg("next_phases"), py::arg("version"), py::arg("name"),
             "Returns the bytes of a partial program that has these fields.");
}

}  // namespace mallocgame::python
