#include "mallocgame/pjrt/compile_options.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/pjrt/compile.pb.h"

namespace mallocgame::pjrt {
namespace {

constexpr int64_t kUnset = -1;
constexpr int64_t kEffortO2 = 29;

// Partition i on device i.
DeviceAssignmentProto DeviceAssignment(int64_t num_partitions) {
  DeviceAssignmentProto assignment;
  assignment.set_replica_count(1);
  assignment.set_computation_count(num_partitions);
  for (int64_t device = 0; device < num_partitions; ++device)
    assignment.add_computation_devices()->add_replica_device_ids(device);
  return assignment;
}

ExecutableBuildOptionsProto BuildOptions(int64_t num_partitions) {
  ExecutableBuildOptionsProto build;
  build.set_device_ordinal(kUnset);
  build.set_num_replicas(1);
  build.set_num_partitions(num_partitions);
  build.set_use_spmd_partitioning(true);
  if (num_partitions > 1) *build.mutable_device_assignment() = DeviceAssignment(num_partitions);
  build.add_allow_spmd_sharding_propagation_to_output(false);
  build.add_allow_spmd_sharding_propagation_to_parameters(false);
  build.set_use_shardy_partitioner(true);
  build.set_process_count(1);
  build.set_memory_fitting_level(kEffortO2);
  return build;
}

struct SetValue {
  OptionOverrideProto* option;
  void operator()(const std::string& text) const { option->set_string_field(text); }
  void operator()(bool flag) const { option->set_bool_field(flag); }
  void operator()(int64_t number) const { option->set_int_field(number); }
  void operator()(double number) const { option->set_double_field(number); }
};

}  // namespace

absl::StatusOr<std::string> CompileOptions(int64_t num_partitions,
                                           const OptionOverrides& overrides) {
  if (num_partitions < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("partitions: found ", num_partitions, ", allowed: 1 or more"));
  }
  CompileOptionsProto options;
  *options.mutable_executable_build_options() = BuildOptions(num_partitions);
  options.set_profile_version(kUnset);
  for (const auto& [name, value] : overrides) {
    Override* entry = options.add_env_option_overrides();
    entry->set_key(name);
    std::visit(SetValue{entry->mutable_value()}, value);
  }
  return options.SerializeAsString();
}

}  // namespace mallocgame::pjrt
