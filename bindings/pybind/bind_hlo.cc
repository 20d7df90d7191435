// Makes a Program of scheduled HLO modules, with XLA's own plan if the assigned module is given.
// Tells what HLO calls the accesses of a Program.
#include <pybind11/stl.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bindings/pybind/handles.h"
#include "bindings/pybind/status.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/import/import.h"
#include "mallocgame/hlo/import/uses.h"

namespace py = pybind11;

namespace mallocgame::python {
namespace {

absl::StatusOr<ProgramFile> Import(const ImportInput& input, absl::string_view assigned,
                                   const Hardware& hardware, const ImportOptions& options,
                                   const std::string& origin) {
  MG_RETURN_IF_ERROR(ValidateHardware(hardware));
  MG_ASSIGN_OR_RETURN(const Imported imported, ImportHlo(input, hardware, options));
  ProgramFile file;
  file.program = imported.program;
  file.hardware = hardware;
  file.origin = origin;
  file.summary = imported.summary;
  if (!assigned.empty()) {
    MG_ASSIGN_OR_RETURN(file.xla_plan,
                        ReadAssignment(*file.program, input.module, assigned, hardware));
  }
  return file;
}

std::shared_ptr<ProgramHandle> ImportModules(const py::bytes& module, const Hardware& hardware,
                                             const std::optional<py::bytes>& assigned,
                                             const std::vector<py::bytes>& priced,
                                             const std::optional<py::bytes>& profile,
                                             const std::string& name, int64_t default_trips,
                                             std::map<std::string, int64_t> trips,
                                             bool requires_schedule, const std::string& origin) {
  ImportInput input;
  input.module = ViewOf(module);
  for (const py::bytes& bytes : priced) input.priced.push_back(ViewOf(bytes));
  if (profile) input.profile = ViewOf(*profile);
  if (assigned && ViewOf(*assigned).empty()) RaiseInvalid("assigned module: found 0 bytes");
  if (profile && input.profile.empty()) RaiseInvalid("profile: found 0 bytes");
  const absl::string_view assigned_bytes = assigned ? ViewOf(*assigned) : absl::string_view();
  const ImportOptions options{name, default_trips, std::nullopt, std::move(trips),
                              requires_schedule};
  auto file = WithoutGil([&] { return Import(input, assigned_bytes, hardware, options, origin); });
  return std::make_shared<ProgramHandle>(ProgramHandle{ValueOrRaise(std::move(file))});
}

// The access, the operand or -1, the index in a tuple, the memory space that a kernel asks for.
using Use = std::tuple<int, int, typing::Tuple<py::int_, py::ellipsis>, std::optional<int64_t>>;

std::vector<Use> FindUsesOf(const ProgramHandle& program, const py::bytes& module) {
  const absl::string_view bytes = ViewOf(module);
  auto uses = WithoutGil([&] { return FindUses(program.program(), bytes); });
  std::vector<Use> rows;
  for (const HloUse& use : ValueOrRaise(std::move(uses))) {
    rows.emplace_back(use.access.value, use.operand.value_or(-1), py::tuple(py::cast(use.index)),
                      use.memory_space);
  }
  return rows;
}

}  // namespace

void BindHlo(py::module_& module) {
  module.def("import_modules", &ImportModules, py::arg("module"), py::arg("hardware"),
             py::arg("assigned"), py::arg("priced"), py::arg("profile"), py::arg("name"),
             py::arg("default_trips"), py::arg("trips"), py::arg("requires_schedule"),
             py::arg("origin"), "See mallocgame.import_hlo.");
  module.def("find_uses", &FindUsesOf, py::arg("program"), py::arg("module"),
             "What HLO calls the accesses of a program that was made of `module` (its bytes, "
             "decompressed): a list of (access, number of the operand or -1 for the result, index "
             "of the array in a tuple, the memory space that a kernel requires or None). "
             "InvalidInputError if it was made of another module.");
}

}  // namespace mallocgame::python
