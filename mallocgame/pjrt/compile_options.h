// How a program is to be compiled: xla::CompileOptionsProto.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "absl/status/statusor.h"

namespace mallocgame::pjrt {

// A value of one of the compiler's options. A text is read as whatever the option is, but for XLA's
// own debug options, which take "True" and "False" only.
using OptionValue = std::variant<bool, int64_t, double, std::string>;
using OptionOverrides = std::map<std::string, OptionValue>;  // by the names of options

// Returns serialized options for one partition on each of the first `num_partitions` devices of the
// topology. They are those that JAX gives, but for XLA's debug options, whose defaults and
// XLA_FLAGS the compiler knows itself.
// InvalidArgument: num_partitions is less than one.
absl::StatusOr<std::string> CompileOptions(int64_t num_partitions,
                                           const OptionOverrides& overrides);

}  // namespace mallocgame::pjrt
