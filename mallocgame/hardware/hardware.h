// The machine a program runs on: two memories, the channel between them, and the rates that turn
// work into time. Knows no program. A Hardware is a plain value; presets and JSON files make it.
#ifndef MALLOCGAME_HARDWARE_HARDWARE_H_
#define MALLOCGAME_HARDWARE_HARDWARE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mallocgame {

struct Hardware {
  std::string name;

  int64_t fast_bytes = 0;       // capacity of fast memory that a plan may use; > 0
  int64_t alignment_bytes = 0;  // every offset is a multiple of this; > 0

  int64_t main_bytes_per_second = 0;        // main memory, shared by instructions and copies; > 0
  int64_t fast_read_bytes_per_second = 0;   // used by the roofline cost model only; > 0
  int64_t fast_write_bytes_per_second = 0;  // likewise
  int64_t flops_per_second = 0;             // likewise
  int64_t transcendentals_per_second = 0;   // likewise
  int64_t clock_hz = 0;                     // turns the compiler's cycles into picoseconds; > 0

  // copies main to fast whose windows may share a tick; > 0
  int32_t max_outstanding_prefetches = 0;
  int32_t max_outstanding_write_backs = 0;  // copies fast to main, likewise; > 0
  // entry parameters that may be in fast memory before the program starts
  int32_t max_preloads = 0;

  // Layout mark of fast memory in HLO text and protos, S(n): 3 for CMEM (TPUv4i), 1 for VMEM.
  int32_t fast_memory_space = 1;

  // Time a transfer of `bytes` takes the main-memory channel, rounded up. At most 2^60 (13 days), 0
  // for bytes <= 0.
  int64_t TransferPs(int64_t bytes) const;
  // `cycles` in picoseconds, rounded to nearest. Limits likewise.
  int64_t CyclesToPs(int64_t cycles) const;

  friend bool operator==(const Hardware&, const Hardware&) = default;
};

// InvalidArgument naming the field, the value found and the values allowed.
absl::Status ValidateHardware(const Hardware& hardware);

// `tpu_v4i`, `tpu_v5e`, `tpu_v6e`, and any of them with less fast memory: `tpu_v4i_16mib` (a whole
// number of MiB, at most the preset's own, else InvalidArgument). NotFound lists the presets.
absl::StatusOr<Hardware> HardwarePreset(absl::string_view name);
std::vector<std::string> HardwarePresetNames();

// JSON object with the field names above. Unknown or missing fields are errors. Text in, text out:
// files are the caller's.
absl::StatusOr<Hardware> HardwareFromJson(absl::string_view json);
std::string HardwareToJson(const Hardware& hardware);

}  // namespace mallocgame

#endif  // MALLOCGAME_HARDWARE_HARDWARE_H_
