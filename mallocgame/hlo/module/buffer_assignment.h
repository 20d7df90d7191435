// Reads a BufferAssignmentProto. Private to the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {

class BufferAllocationProto;
class BufferAssignmentProto;
class LogicalBufferProto;

// A logical buffer in its allocation.
struct AssignedBuffer {
  const LogicalBufferProto* buffer = nullptr;
  const BufferAllocationProto* allocation = nullptr;
  int64_t offset = 0, size = 0;
  int32_t instruction = 0;  // that makes its value, at a shape index that there is
  int32_t array = kNone;    // of the module; kNone of the table of a tuple
};

// The array of the module at a shape index of an instruction; kNone where a tuple is.
absl::StatusOr<int32_t> ArrayAt(const Module& module, int32_t instruction,
                                absl::Span<const int64_t> index);

// In the order of allocations, of one memory only if `color` is given. An error is a refusal by
// "readable". InvalidArgument: two logical buffers have one id, or one is of nothing in the module,
// or there is none of an id. OutOfRange: a size or an offset is negative, or above kMaxArrayBytes.
absl::StatusOr<std::vector<AssignedBuffer>> AssignedBuffers(
    const BufferAssignmentProto& assignment, const Module& module,
    std::optional<int64_t> color = std::nullopt);

}  // namespace mallocgame::hlo
