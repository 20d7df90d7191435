// The buffer assignment of a module that a plan was written into. Private to the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/schedule.h"
#include "mallocgame/hlo/write/module_draft.h"

namespace mallocgame::hlo {

class BufferAssignmentProto;

inline constexpr int64_t kFlagBytes = 4;

// A value that the module before hasn't got.
struct NewValue {
  int64_t instruction_id = 0;
  std::vector<int64_t> index;  // place in the result, outermost first
  int64_t memory_space = 0;
  int64_t size_bytes = 0;
  std::optional<int64_t> fast_offset;  // of a value in fast memory
  // In main memory it lies where this value of the module before does: an array of `home`, or the
  // tuple itself. kNone, or a value that has no place there: it gets bytes that nothing else has.
  int32_t home = kNone;
  std::optional<int32_t> home_array;
  // For a flag: it is taken from one instruction to the other. None: for all time.
  struct Window {
    int32_t start = 0, done = 0;  // instructions of the draft
  };
  std::optional<Window> window;
};

// A value in main memory that a copy reads longer than the module before did.
struct ProlongedValue {
  int32_t array = 0;
  Tick last_use = 0;        // in the module before
  Tick until = 0;           // the copy is done before this tick
  int32_t instruction = 0;  // whose place the copy takes
};

// What of a module goes where it hasn't been before.
struct ChangedPlaces {
  std::vector<std::optional<int64_t>> fast_offset;  // by array of the module before
  std::vector<NewValue> added;
  std::vector<ProlongedValue> prolonged;
};

// `unassigned` is the assignment of the module before, with nothing in fast memory. Values of
// instructions that the draft has emitted stay, in fast memory where `changed` says so; values of
// others go. Heap traces, aliases and peak buffers are left out.
// `keeps_offsets`: the offsets in main memory are final; else they are found anew afterwards.
// InvalidArgument if `unassigned` is damaged, or of another module. Unimplemented if offsets are
// kept, and the bytes of a prolonged value belong to another one by then.
absl::StatusOr<BufferAssignmentProto> WriteAssignment(
    const BufferAssignmentProto& unassigned, const Module& module, const Schedule& schedule,
    const ModuleDraft& draft, int64_t fast_memory_space, const ChangedPlaces& changed,
    bool keeps_offsets);

}  // namespace mallocgame::hlo
