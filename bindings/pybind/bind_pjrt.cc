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
                                const std::vector<std::string>& programs,
                                const py::bytes& options) {
  const absl::string_view settings = ViewOf(options);
  const std::vector<std::string> outputs = ValueOrRefuse(
      WithoutGil([&] { return self.plugin->RunPhase(phase, programs, settings, self.topology); }));
  return {outputs.begin(), outputs.end()};
}

py::tuple ParsePartialProgram(const py::bytes& bytes) {
  const absl::string_view view = ViewOf(bytes);
  const pjrt::PartialProgram partial =
      ValueOrRaise(WithoutGil([&] { return pjrt::ParsePartialProgram(view); }));
  py::tuple phases(partial.next_phases.size());
  for (size_t i = 0; i < partial.next_phases.size(); ++i) phases[i] = Text(partial.next_phases[i]);
  return py::make_tuple(py::bytes(partial.program), partial.compressed, Text(partial.format),
                        Text(partial.generating_phase), phases, Text(partial.version),
                        Text(partial.name));
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
  py::class_<PjrtCompilerHandle>(module, "PjrtCompiler")
      .def(py::init([](const std::string& library, const std::string& topology,
                       const pjrt::TopologyOptions& options) {
             return ValueOrRefuse(WithoutGil([&] { return Load(library, topology, options); }));
           }),
           py::arg("library"), py::arg("topology"), py::arg("options"))
      .def_property_readonly(
          "api_version", [](const PjrtCompilerHandle& self) { return self.plugin->api_version(); })
      .def_property_readonly(
          "has_phases", [](const PjrtCompilerHandle& self) { return self.plugin->HasPhases(); })
      .def("compile", &Compile, py::arg("format"), py::arg("program"), py::arg("options"))
      .def("run_phase", &RunPhase, py::arg("phase"), py::arg("programs"), py::arg("options"));
  module.def(
      "compile_options",
      [](int64_t num_partitions, const pjrt::OptionOverrides& overrides) {
        return py::bytes(ValueOrRaise(pjrt::CompileOptions(num_partitions, overrides)));
      },
      py::arg("num_partitions"), py::arg("overrides"));
  module.def("parse_partial_program", &ParsePartialProgram, py::arg("data"));
  module.def("serialize_partial_program", &SerializePartialProgram, py::arg("program"),
             py::arg("compressed"), py::arg("format"), py::arg("generating_phase"),
             py::arg("next_phases"), py::arg("version"), py::arg("name"));
}

}  // namespace mallocgame::python
