// The part of the PJRT C API that is called here: how structs lie in memory, and which slot of the
// function table has which function. The source is openxla/xla, xla/pjrt/c/pjrt_c_api.h and
// pjrt_c_api_phase_compile_extension.h; what structs and functions mean is said there.
//
// Within one major version fields and slots are added at the end only. Each struct says its size,
// so that either side knows which fields the other has.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mallocgame::pjrt {

constexpr int kApiMajorVersion = 0;

// The plugin's own classes.
struct Error;
struct TopologyDescription;
struct Executable;
struct SerializedExecutable;
struct PhaseCompiler;

struct ExtensionBase {
  size_t struct_size;
  int type;
  ExtensionBase* next;
};

struct ApiVersion {
  size_t struct_size;
  ExtensionBase* extension_start;
  int major_version;
  int minor_version;
};

struct ErrorDestroyArgs {
  size_t struct_size = sizeof(ErrorDestroyArgs);
  ExtensionBase* extension_start = nullptr;
  Error* error = nullptr;
};

struct ErrorMessageArgs {
  size_t struct_size = sizeof(ErrorMessageArgs);
  ExtensionBase* extension_start = nullptr;
  const Error* error = nullptr;
  const char* message = nullptr;  // out; it lives as long as the error
  size_t message_size = 0;        // out
};

struct ErrorGetCodeArgs {
  size_t struct_size = sizeof(ErrorGetCodeArgs);
  ExtensionBase* extension_start = nullptr;
  const Error* error = nullptr;
  int code = 0;  // out; the numbers of absl::StatusCode
};

struct PluginInitializeArgs {
  size_t struct_size = sizeof(PluginInitializeArgs);
  ExtensionBase* extension_start = nullptr;
};

enum class NamedValueType : int { kString = 0, kInt64List = 2 };

struct NamedValue {
  size_t struct_size = sizeof(NamedValue);
  ExtensionBase* extension_start = nullptr;
  const char* name = nullptr;
  size_t name_size = 0;
  NamedValueType type = NamedValueType::kString;
  union {
    const char* string_value = nullptr;
    const int64_t* int64_array_value;
  };
  size_t value_size = 0;
};

struct TopologyDescriptionCreateArgs {
  size_t struct_size = sizeof(TopologyDescriptionCreateArgs);
  ExtensionBase* extension_start = nullptr;
  const char* topology_name = nullptr;
  size_t topology_name_size = 0;
  const NamedValue* create_options = nullptr;
  size_t num_options = 0;
  TopologyDescription* topology = nullptr;  // out
};

struct TopologyDescriptionDestroyArgs {
  size_t struct_size = sizeof(TopologyDescriptionDestroyArgs);
  ExtensionBase* extension_start = nullptr;
  TopologyDescription* topology = nullptr;
};

struct Program {
  size_t struct_size = sizeof(Program);
  ExtensionBase* extension_start = nullptr;
  const char* code = nullptr;
  size_t code_size = 0;
  const char* format = nullptr;
  size_t format_size = 0;
};

struct CompileArgs {
  size_t struct_size = sizeof(CompileArgs);
  ExtensionBase* extension_start = nullptr;
  const TopologyDescription* topology = nullptr;
  const Program* program = nullptr;
  const char* compile_options = nullptr;
  size_t compile_options_size = 0;
  void* client = nullptr;
  Executable* executable = nullptr;  // out
};

struct ExecutableDestroyArgs {
  size_t struct_size = sizeof(ExecutableDestroyArgs);
  ExtensionBase* extension_start = nullptr;
  Executable* executable = nullptr;
};

struct ExecutableSerializeArgs {
  size_t struct_size = sizeof(ExecutableSerializeArgs);
  ExtensionBase* extension_start = nullptr;
  const Executable* executable = nullptr;
  const char* serialized_bytes = nullptr;                                  // out
  size_t serialized_bytes_size = 0;                                        // out
  SerializedExecutable* serialized_executable = nullptr;                   // out; has the bytes
  void (*serialized_executable_deleter)(SerializedExecutable*) = nullptr;  // out
};

// The table of functions. Those that aren't called here are slots without a name.
struct Api {
  using Slot = void (*)();

  size_t struct_size;
  ExtensionBase* extension_start;
  ApiVersion pjrt_api_version;
  void (*error_destroy)(ErrorDestroyArgs*);
  void (*error_message)(ErrorMessageArgs*);
  Error* (*error_get_code)(ErrorGetCodeArgs*);
  Error* (*plugin_initialize)(PluginInitializeArgs*);
  Slot slots_4_to_39[36];
  Error* (*executable_destroy)(ExecutableDestroyArgs*);
  Slot slots_41_to_48[8];
  Error* (*executable_serialize)(ExecutableSerializeArgs*);
  Slot slots_50_to_81[32];
  Error* (*topology_description_create)(TopologyDescriptionCreateArgs*);
  Error* (*topology_description_destroy)(TopologyDescriptionDestroyArgs*);
  Slot slots_84_to_88[5];
  Error* (*compile)(CompileArgs*);
};

constexpr size_t SlotOffset(size_t slot) {
  return offsetof(Api, error_destroy) + slot * sizeof(Api::Slot);
}
static_assert(SlotOffset(0) == 40);
static_assert(offsetof(Api, executable_destroy) == SlotOffset(40));
static_assert(offsetof(Api, executable_serialize) == SlotOffset(49));
static_assert(offsetof(Api, topology_description_create) == SlotOffset(82));
static_assert(offsetof(Api, compile) == SlotOffset(89));
static_assert(sizeof(Api) == SlotOffset(90));

// The extension that runs phases of a compile one by one.
constexpr int kPhaseCompileExtensionType = 9;

struct PhaseCompileGetCompilerArgs {
  size_t struct_size = sizeof(PhaseCompileGetCompilerArgs);
  ExtensionBase* extension_start = nullptr;
  const PhaseCompiler* phase_compiler = nullptr;  // out
};

struct PhaseCompileDestroyCompilerArgs {
  size_t struct_size = sizeof(PhaseCompileDestroyCompilerArgs);
  ExtensionBase* extension_start = nullptr;
  const PhaseCompiler* phase_compiler = nullptr;
};

struct PhaseCompileRunPhaseArgs {
  size_t struct_size = sizeof(PhaseCompileRunPhaseArgs);
  ExtensionBase* extension_start = nullptr;
  const PhaseCompiler* phase_compiler = nullptr;
  const char** input_programs = nullptr;
  const size_t* input_programs_sizes = nullptr;
  size_t num_input_programs = 0;
  const char** phases_to_run = nullptr;
  const size_t* phases_to_run_sizes = nullptr;
  size_t num_phases_to_run = 0;
  const char* compile_options = nullptr;
  size_t compile_options_size = 0;
  TopologyDescription* topology = nullptr;
  const char** output_programs = nullptr;         // out; phase_compile_c_buffers_destroy frees them
  const size_t* output_programs_sizes = nullptr;  // out
  size_t num_output_programs = 0;                 // out
};

struct PhaseCompileCBuffersDestroyArgs {
  size_t struct_size = sizeof(PhaseCompileCBuffersDestroyArgs);
  ExtensionBase* extension_start = nullptr;
  const char** char_buffers = nullptr;
  const size_t* char_buffer_sizes = nullptr;
  size_t num_char_buffers = 0;
};

struct PhaseCompileExtension {
  ExtensionBase base;
  Error* (*get_compiler)(PhaseCompileGetCompilerArgs*);
  void (*destroy_compiler)(PhaseCompileDestroyCompilerArgs*);
  Error* (*run_phases)(PhaseCompileRunPhaseArgs*);
  Api::Slot get_phase_names;  // It isn't called here.
  void (*c_buffers_destroy)(PhaseCompileCBuffersDestroyArgs*);
};

}  // namespace mallocgame::pjrt
