#include "mallocgame/pjrt/plugin.h"

#include <dlfcn.h>

#include <cstddef>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/pjrt/c_api.h"

namespace mallocgame::pjrt {
namespace {

// Makes a status of an error of the plugin's, and destroys it. nullptr is no error.
absl::Status TakeError(const Api* api, Error* error) {
  if (error == nullptr) return absl::OkStatus();
  ErrorMessageArgs message;
  message.error = error;
  api->error_message(&message);
  ErrorGetCodeArgs code;
  code.error = error;
  Error* const unknown = api->error_get_code(&code);
  const absl::Status status(
      unknown == nullptr ? static_cast<absl::StatusCode>(code.code) : absl::StatusCode::kUnknown,
      absl::string_view(message.message, message.message_size));
  for (Error* const done : {error, unknown}) {
    if (done == nullptr) continue;
    ErrorDestroyArgs destroy;
    destroy.error = done;
    api->error_destroy(&destroy);
  }
  return status;
}

absl::Status CheckApi(const std::string& path, const Api* api) {
  if (api == nullptr)
    return absl::FailedPreconditionError(absl::StrCat(path, ": its GetPjrtApi gives no functions"));
  // The version lies at the same place in all versions.
  const ApiVersion& version = api->pjrt_api_version;
  if (version.major_version != kApiMajorVersion) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": PJRT C API: found version ", version.major_version, ".",
                     version.minor_version, ", allowed: ", kApiMajorVersion, ".*"));
  }
  if (api->struct_size < sizeof(Api)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": PJRT C API: found a table of ", api->struct_size,
                     " bytes, allowed: ", sizeof(Api), " or more"));
  }
  return absl::OkStatus();
}

const PhaseCompileExtension* FindPhases(const Api* api) {
  for (const ExtensionBase* one = api->extension_start; one != nullptr; one = one->next) {
    if (one->type == kPhaseCompileExtensionType &&
        one->struct_size >= sizeof(PhaseCompileExtension))
      return reinterpret_cast<const PhaseCompileExtension*>(one);
  }
  return nullptr;
}

NamedValue ToNamedValue(const TopologyOptions::value_type& option) {
  NamedValue value;
  value.name = option.first.data();
  value.name_size = option.first.size();
  if (const auto* text = std::get_if<std::string>(&option.second)) {
    value.type = NamedValueType::kString;
    value.string_value = text->data();
    value.value_size = text->size();
  } else {
    const auto& numbers = std::get<std::vector<int64_t>>(option.second);
    value.type = NamedValueType::kInt64List;
    value.int64_array_value = numbers.data();
    value.value_size = numbers.size();
  }
  return value;
}

}  // namespace

Topology::Topology(const Api* api, TopologyDescription* description)
    : description_(description, [api](TopologyDescription* done) {
        TopologyDescriptionDestroyArgs args;
        args.topology = done;
        TakeError(api, api->topology_description_destroy(&args)).IgnoreError();
      }) {}

Plugin::Plugin(const Api* api, const PhaseCompileExtension* phases) : api_(api), phases_(phases) {}

Plugin::~Plugin() {
  if (phase_compiler_ == nullptr) return;
  PhaseCompileDestroyCompilerArgs args;
  args.phase_compiler = phase_compiler_;
  phases_->destroy_compiler(&args);
}

absl::StatusOr<std::unique_ptr<Plugin>> Plugin::Load(const std::string& path) {
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return absl::NotFoundError(dlerror());
  using GetPjrtApi = const Api* (*)();
  const auto get_api = reinterpret_cast<GetPjrtApi>(dlsym(library, "GetPjrtApi"));
  if (get_api == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, ": found no function GetPjrtApi, so it is no PJRT plugin"));
  }
  const Api* const api = get_api();
  MG_RETURN_IF_ERROR(CheckApi(path, api));
  std::unique_ptr<Plugin> plugin(new Plugin(api, FindPhases(api)));
  MG_RETURN_IF_ERROR(plugin->Start());
  return plugin;
}

absl::Status Plugin::Start() {
  PluginInitializeArgs initialize;
  MG_RETURN_IF_ERROR(TakeError(api_, api_->plugin_initialize(&initialize)));
  if (phases_ == nullptr) return absl::OkStatus();
  PhaseCompileGetCompilerArgs args;
  MG_RETURN_IF_ERROR(TakeError(api_, phases_->get_compiler(&args)));
  phase_compiler_ = args.phase_compiler;
  return absl::OkStatus();
}

std::string Plugin::api_version() const {
  const ApiVersion& version = api_->pjrt_api_version;
  return absl::StrCat(version.major_version, ".", version.minor_version);
}

bool Plugin::HasPhases() const { return phases_ != nullptr; }

absl::StatusOr<Topology> Plugin::CreateTopology(const std::string& name,
                                                const TopologyOptions& options) const {
  std::vector<NamedValue> values;
  for (const auto& option : options) values.push_back(ToNamedValue(option));
  TopologyDescriptionCreateArgs args;
  args.topology_name = name.data();
  args.topology_name_size = name.size();
  args.create_options = values.data();
  args.num_options = values.size();
  MG_RETURN_IF_ERROR(TakeError(api_, api_->topology_description_create(&args)));
  return Topology(api_, args.topology);
}

absl::StatusOr<std::string> Plugin::Compile(absl::string_view format, absl::string_view program,
                                            absl::string_view options,
                                            const Topology& topology) const {
  Program code;
  code.code = program.data();
  code.code_size = program.size();
  code.format = format.data();
  code.format_size = format.size();
  CompileArgs args;
  args.topology = topology.description_.get();
  args.program = &code;
  args.compile_options = options.data();
  args.compile_options_size = options.size();
  MG_RETURN_IF_ERROR(TakeError(api_, api_->compile(&args)));

  const std::shared_ptr<Executable> executable(args.executable, [this](Executable* done) {
    ExecutableDestroyArgs destroy;
    destroy.executable = done;
    TakeError(api_, api_->executable_destroy(&destroy)).IgnoreError();
  });
  ExecutableSerializeArgs serialize;
  serialize.executable = executable.get();
  MG_RETURN_IF_ERROR(TakeError(api_, api_->executable_serialize(&serialize)));
  std::string bytes(serialize.serialized_bytes, serialize.serialized_bytes_size);
  serialize.serialized_executable_deleter(serialize.serialized_executable);
  return bytes;
}

absl::StatusOr<std::vector<std::string>> Plugin::RunPhase(absl::string_view phase,
                                                          absl::Span<const std::string> programs,
                                                          absl::string_view options,
                                                          const Topology& topology) const {
  if (!HasPhases()) {
    return absl::FailedPreconditionError(absl::StrCat("the plugin with PJRT C API ", api_version(),
                                                      " has no phases that run one by one"));
  }
  std::vector<const char*> inputs;
  std::vector<size_t> sizes;
  for (const std::string& program : programs) {
    inputs.push_back(program.data());
    sizes.push_back(program.size());
  }
  const std::string name(phase);  // It has to end with a zero.
  const char* phase_name = name.c_str();
  const size_t phase_size = name.size();
  PhaseCompileRunPhaseArgs args;
  args.phase_compiler = phase_compiler_;
  args.input_programs = inputs.data();
  args.input_programs_sizes = sizes.data();
  args.num_input_programs = inputs.size();
  args.phases_to_run = &phase_name;
  args.phases_to_run_sizes = &phase_size;
  args.num_phases_to_run = 1;
  args.compile_options = options.data();
  args.compile_options_size = options.size();
  args.topology = topology.description_.get();
  MG_RETURN_IF_ERROR(TakeError(api_, phases_->run_phases(&args)));

  std::vector<std::string> outputs;
  for (size_t i = 0; i < args.num_output_programs; ++i)
    outputs.emplace_back(args.output_programs[i], args.output_programs_sizes[i]);
  PhaseCompileCBuffersDestroyArgs destroy;
  destroy.char_buffers = args.output_programs;
  destroy.char_buffer_sizes = args.output_programs_sizes;
  destroy.num_char_buffers = args.num_output_programs;
  phases_->c_buffers_destroy(&destroy);
  return outputs;
}

}  // namespace mallocgame::pjrt
