// From arrays to buffers: which there are, and which may move. Private to the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/schedule.h"
#include "mallocgame/program/program.h"

namespace mallocgame::hlo {

struct BufferTable {
  std::vector<Buffer> buffers;  // in the order in which they appear on the time axis
  // by array of the module: its buffer, or kNone for zero bytes or off the time axis
  std::vector<int32_t> of_array;
};

// Makes one buffer of each set of arrays that share storage. It is eligible to move by the rules of
// XLA reference 1.5. Arrays that lie in `fast_memory_space` already are so because a kernel pins
// them there, and their buffers are eligible like others.
absl::StatusOr<BufferTable> BuildBuffers(const Module& module, const Schedule& schedule,
                                         std::optional<int64_t> fast_memory_space = std::nullopt);

// InvalidArgument unless ImportHlo made `program` of this module.
absl::Status CheckMadeOf(const Program& program, const Module& module, const Schedule& schedule,
                         const BufferTable& table);

}  // namespace mallocgame::hlo
