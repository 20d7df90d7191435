// A plugin that compiles nothing: it gives back what it is given.
#include <algorithm>
#include <cstring>
#include <string>

#include "mallocgame/pjrt/c_api.h"

#ifdef FAKE_NOTHING

extern "C" int Nothing() { return 0; }

#else

#ifndef FAKE_MAJOR_VERSION
#define FAKE_MAJOR_VERSION 0
#endif
#ifndef FAKE_TABLE_BYTES
#define FAKE_TABLE_BYTES sizeof(Api)
#endif
#ifndef FAKE_PHASES
#define FAKE_PHASES true
#endif

namespace mallocgame::pjrt {

struct Error {
  int code;
  std::string message;
};
struct TopologyDescription {
  std::string name;
};
struct Executable {
  std::string code;
};
struct SerializedExecutable {
  std::string bytes;
};
struct PhaseCompiler {};

namespace {

constexpr int kInvalidArgument = 3;

Error* Refuse(const std::string& message) { return new Error{kInvalidArgument, message}; }

void DestroyError(ErrorDestroyArgs* args) { delete args->error; }

void ErrorMessage(ErrorMessageArgs* args) {
  args->message = args->error->message.data();
  args->message_size = args->error->message.size();
}

Error* ErrorCode(ErrorGetCodeArgs* args) {
  args->code = args->error->code;
  return nullptr;
}

Error* Initialize(PluginInitializeArgs*) { return nullptr; }

// Names the topology after its name and the options.
Error* CreateTopology(TopologyDescriptionCreateArgs* args) {
  std::string name(args->topology_name, args->topology_name_size);
  if (name == "none") return Refuse("no such chip");
  for (size_t i = 0; i < args->num_options; ++i) {
    const NamedValue& option = args->create_options[i];
    name.append(" ").append(option.name, option.name_size).append("=");
    if (option.type == NamedValueType::kString) {
      name += std::string(option.string_value, option.value_size);
    } else {
      for (size_t k = 0; k < option.value_size; ++k)
        name += std::to_string(option.int64_array_value[k]);
    }
  }
  args->topology = new TopologyDescription{name};
  return nullptr;
}

Error* DestroyTopology(TopologyDescriptionDestroyArgs* args) {
  delete args->topology;
  return nullptr;
}

Error* Compile(CompileArgs* args) {
  const std::string code(args->program->code, args->program->code_size);
  if (code == "refuse") return Refuse("refused");
  args->executable = new Executable{
      args->topology->name + "|" + std::string(args->program->format, args->program->format_size) +
      "|" + code + "|" + std::string(args->compile_options, args->compile_options_size)};
  return nullptr;
}

Error* Serialize(ExecutableSerializeArgs* args) {
  auto* serialized = new SerializedExecutable{args->executable->code};
  args->serialized_bytes = serialized->bytes.data();
  args->serialized_bytes_size = serialized->bytes.size();
  args->serialized_executable = serialized;
  args->serialized_executable_deleter = [](SerializedExecutable* done) { delete done; };
  return nullptr;
}

Error* DestroyExecutable(ExecutableDestroyArgs* args) {
  delete args->executable;
  return nullptr;
}

Error* GetCompiler(PhaseCompileGetCompilerArgs* args) {
  args->phase_compiler = new PhaseCompiler;
  return nullptr;
}

void DestroyCompiler(PhaseCompileDestroyCompilerArgs* args) { delete args->phase_compiler; }

// Gives its inputs back, with the name of the phase before each.
Error* RunPhases(PhaseCompileRunPhaseArgs* args) {
  if (args->num_phases_to_run != 1) return Refuse("one phase at a time");
  const std::string phase(args->phases_to_run[0], args->phases_to_run_sizes[0]);
  if (phase == "none" || std::strlen(args->phases_to_run[0]) != phase.size())
    return Refuse("no such phase");
  const size_t count = args->num_input_programs;
  auto** programs = new const char*[count];
  auto* sizes = new size_t[count];
  for (size_t i = 0; i < count; ++i) {
    const std::string output =
        phase + ":" + std::string(args->input_programs[i], args->input_programs_sizes[i]);
    char* const bytes = new char[output.size()];
    std::copy(output.begin(), output.end(), bytes);
    programs[i] = bytes;
    sizes[i] = output.size();
  }
  args->output_programs = programs;
  args->output_programs_sizes = sizes;
  args->num_output_programs = count;
  return nullptr;
}

void DestroyBuffers(PhaseCompileCBuffersDestroyArgs* args) {
  for (size_t i = 0; i < args->num_char_buffers; ++i) delete[] args->char_buffers[i];
  delete[] args->char_buffers;
  delete[] args->char_buffer_sizes;
}

PhaseCompileExtension phases = {
    {sizeof(PhaseCompileExtension), kPhaseCompileExtensionType, nullptr},
    GetCompiler,
    DestroyCompiler,
    RunPhases,
    nullptr,
    DestroyBuffers};
// An extension of another kind stands before it.
ExtensionBase first = {sizeof(ExtensionBase), 0, &phases.base};

Api MakeApi() {
  Api api{};
  api.struct_size = FAKE_TABLE_BYTES;
  api.extension_start = FAKE_PHASES ? &first : nullptr;
  api.pjrt_api_version = {sizeof(ApiVersion), nullptr, FAKE_MAJOR_VERSION, 7};
  api.error_destroy = DestroyError;
  api.error_message = ErrorMessage;
  api.error_get_code = ErrorCode;
  api.plugin_initialize = Initialize;
  api.executable_destroy = DestroyExecutable;
  api.executable_serialize = Serialize;
  api.topology_description_create = CreateTopology;
  api.topology_description_destroy = DestroyTopology;
  api.compile = Compile;
  return api;
}

}  // namespace
}  // namespace mallocgame::pjrt

extern "C" const mallocgame::pjrt::Api* GetPjrtApi() {
  static const mallocgame::pjrt::Api api = mallocgame::pjrt::MakeApi();
  return &api;
}
#endif
