// The machine that a program runs on: two memories, the channel between them, and the rates that
// turn work into time. A Hardware is a plain value, made from a preset or a JSON file; it knows no
// program.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mallocgame {

inline constexpr int64_t kMaxCopyLatencyPs = 1'000'000'000'000;

struct Hardware {
  std::string name;

  int64_t fast_bytes = 0;       // capacity of fast memory that a plan may use; > 0
  int64_t alignment_bytes = 0;  // every offset is a multiple of this; > 0

  int64_t main_bytes_per_second = 0;  // main memory's, shared by instructions and copies; > 0
  // Rates that only the roofline cost model uses; all > 0.
  int64_t fast_read_bytes_per_second = 0;
  int64_t fast_write_bytes_per_second = 0;
  int64_t flops_per_second = 0;
  int64_t transcendentals_per_second = 0;

  int64_t clock_hz = 0;  // turns the compiler's cycles into picoseconds; > 0

  // The most prefetches (copies from main to fast memory), and the most evictions (fast to main),
  // whose windows may share a tick; both > 0.
  int32_t max_outstanding_prefetches = 0;
  int32_t max_outstanding_evictions = 0;
  // The most entry parameters that may be in fast memory before the program starts.
  int32_t max_preloads = 0;

  // What a copy takes beside the transfer of its bytes, in which it holds the channel; from 0 to
  // kMaxCopyLatencyPs. It is 0 in the presets, as XLA counts none, and the law's in calibrated
  // hardware (price_law.h).
  int64_t copy_latency_ps = 0;

  // The mark S(n) of fast memory in layouts of HLO text and protos: 3 for CMEM (TPUv4i), 1 for
  // VMEM.
  int32_t fast_memory_space = 1;

  // The time that a transfer of `bytes` takes on the main-memory channel, in picoseconds, rounded
  // up. At most 2^60 (13 days); 0 for bytes <= 0.
  int64_t TransferPs(int64_t bytes) const;
  // The time that a copy of `bytes` holds the channel: TransferPs and the latency; 0 for <= 0.
  int64_t CopyPs(int64_t bytes) const;
  // `cycles` in picoseconds, rounded to nearest. At most 2^60; 0 for cycles <= 0.
  int64_t CyclesToPs(int64_t cycles) const;

  friend bool operator==(const Hardware&, const Hardware&) = default;
};

// InvalidArgument names the field, the value found and the values allowed.
absl::Status ValidateHardware(const Hardware& hardware);

// The presets are the chips that HardwarePresetNames lists, and each of them with less fast memory,
// named as in `tpu_v4i_16mib`. InvalidArgument unless that is a whole number of MiB, at most the
// chip's own. NotFound lists the chips.
absl::StatusOr<Hardware> HardwarePreset(absl::string_view name);
std::vector<std::string> HardwarePresetNames();

// From and to a JSON object with the field names above. Unknown and missing fields are errors, but
// copy_latency_ps may be missing, and is not written, where it is 0.
// The caller reads and writes the files.
absl::StatusOr<Hardware> HardwareFromJson(absl::string_view json);
std::string HardwareToJson(const Hardware& hardware);

}  // namespace mallocgame
