#include "mallocgame/pjrt/compile_options.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/pjrt/wire.h"

namespace mallocgame::pjrt {
namespace {

constexpr uint64_t kUnset = ~uint64_t{0};  // -1
constexpr uint64_t kEffortO2 = 29;

// Partition i on device i: a DeviceAssignmentProto.
std::string DeviceAssignment(int64_t num_partitions) {
  std::string assignment;
  AppendNumber(/*replica_count*/ 1, 1, &assignment);
  AppendNumber(/*computation_count*/ 2, num_partitions, &assignment);
  for (int64_t device = 0; device < num_partitions; ++device) {
    std::string replica_device_ids;  // a packed list of one number, which is a varint
    AppendNumber(/*replica_device_ids*/ 1, device, &replica_device_ids);
    std::string computation_device;
    AppendBytes(/*replica_device_ids*/ 1, absl::string_view(replica_device_ids).substr(1),
                &computation_device);
    AppendBytes(/*computation_devices*/ 3, computation_device, &assignment);
  }
  return assignment;
}

// An ExecutableBuildOptionsProto.
std::string BuildOptions(int64_t num_partitions) {
  const std::string no(1, '\0');  // a packed list of one false
  std::string build;
  AppendNumber(/*device_ordinal*/ 1, kUnset, &build);
  AppendNumber(/*num_replicas*/ 4, 1, &build);
  AppendNumber(/*num_partitions*/ 5, num_partitions, &build);
  AppendNumber(/*use_spmd_partitioning*/ 6, 1, &build);
  if (num_partitions > 1)
    AppendBytes(/*device_assignment*/ 9, DeviceAssignment(num_partitions), &build);
  AppendBytes(/*allow_spmd_sharding_propagation_to_output*/ 12, no, &build);
  AppendBytes(/*allow_spmd_sharding_propagation_to_parameters*/ 18, no, &build);
  AppendNumber(/*use_shardy_partitioner*/ 19, 1, &build);
  AppendNumber(/*process_count*/ 23, 1, &build);
  AppendNumber(/*memory_fitting_level*/ 25, kEffortO2, &build);
  return build;
}

// An OptionOverrideProto.
std::string Override(const OptionValue& value) {
  std::string message;
  if (const auto* text = std::get_if<std::string>(&value)) {
    AppendBytes(/*string_field*/ 1, *text, &message);
  } else if (const auto* flag = std::get_if<bool>(&value)) {
    AppendNumber(/*bool_field*/ 2, *flag ? 1 : 0, &message);
  } else if (const auto* number = std::get_if<int64_t>(&value)) {
    AppendNumber(/*int_field*/ 3, static_cast<uint64_t>(*number), &message);
  } else {
    AppendDouble(/*double_field*/ 4, std::get<double>(value), &message);
  }
  return message;
}

}  // namespace

absl::StatusOr<std::string> CompileOptions(int64_t num_partitions,
                                           const OptionOverrides& overrides) {
  if (num_partitions < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("partitions: found ", num_partitions, ", allowed: 1 or more"));
  }
  std::string options;
  AppendBytes(/*executable_build_options*/ 3, BuildOptions(num_partitions), &options);
  AppendNumber(/*profile_version*/ 5, kUnset, &options);
  for (const auto& [name, value] : overrides) {
    std::string entry;
    AppendBytes(/*key*/ 1, name, &entry);
    AppendBytes(/*value*/ 2, Override(value), &entry);
    AppendBytes(/*env_option_overrides*/ 7, entry, &options);
  }
  return options;
}

}  // namespace mallocgame::pjrt
