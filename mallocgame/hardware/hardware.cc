// The unit conversions, the validation and the presets of Hardware.
#include "mallocgame/hardware/hardware.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hardware/chips.h"

namespace mallocgame {
namespace {

__extension__ using Int128 = __int128;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kPsPerSecond = 1'000'000'000'000;
// Times are cut off here (13 days), so that sums of a few of them stay inside 64 bits.
constexpr int64_t kMaxPs = int64_t{1} << 60;
// This is far beyond any real machine, and keeps products of two fields inside 128 bits.
constexpr int64_t kMaxRate = 1'000'000'000'000'000'000;
constexpr int64_t kMaxFastBytes = int64_t{1} << 46;

// The time of `amount` at `per_second` in picoseconds, rounded up or to nearest.
int64_t ToPs(int64_t amount, int64_t per_second, bool round_up) {
  if (amount <= 0) return 0;
  const Int128 product = Int128{amount} * kPsPerSecond;
  const Int128 ps = (product + (round_up ? per_second - 1 : per_second / 2)) / per_second;
  return static_cast<int64_t>(std::min<Int128>(ps, kMaxPs));
}

// The alignment is the common divisor of all fast-memory offsets that XLA:TPU wrote into the
// compiled corpus. Vendors publish no usable figure for the bandwidth of fast memory and the rate
// of transcendentals: we assume ten times the main-memory bandwidth in each direction, and one
// transcendental for every 128 flops. Only the roofline cost model uses these two.
Hardware Preset(const Chip& chip) {
  Hardware h;
  h.name = std::string(chip.name);
  h.fast_bytes = chip.fast_bytes;
  h.alignment_bytes = 4096;
  h.main_bytes_per_second = chip.main_bytes_per_second;
  h.fast_read_bytes_per_second = 10 * chip.main_bytes_per_second;
  h.fast_write_bytes_per_second = 10 * chip.main_bytes_per_second;
  h.flops_per_second = chip.flops_per_second;
  h.transcendentals_per_second = chip.flops_per_second / 128;
  h.clock_hz = chip.clock_hz;
  h.max_outstanding_prefetches = 40;  // this and the next two are XLA:TPU's defaults
  h.max_outstanding_evictions = 40;
  h.max_preloads = 1;
  h.fast_memory_space = chip.fast_memory_space;
  return h;
}

}  // namespace

int64_t Hardware::TransferPs(int64_t bytes) const {
  return ToPs(bytes, main_bytes_per_second, true);
}

int64_t Hardware::CopyPs(int64_t bytes) const {
  return bytes <= 0 ? 0 : std::min(kMaxPs, TransferPs(bytes) + copy_latency_ps);
}

int64_t Hardware::CyclesToPs(int64_t cycles) const { return ToPs(cycles, clock_hz, false); }

absl::Status ValidateHardware(const Hardware& h) {
  const auto what = [&h](absl::string_view field) {
    return absl::StrCat("hardware '", h.name, "': ", field);
  };
  if (h.name.empty() || h.name.size() > 200) {
    return absl::InvalidArgumentError(
        absl::StrCat("hardware: name has ", h.name.size(), " characters, allowed are 1 to 200"));
  }
  struct Field {
    const char* name;
    int64_t value, least, most;
  };
  constexpr int64_t kMaxCount = 1'000'000;
  const Field fields[] = {
      {"fast_bytes", h.fast_bytes, 1, kMaxFastBytes},
      {"alignment_bytes", h.alignment_bytes, 1, kMaxFastBytes},
      {"main_bytes_per_second", h.main_bytes_per_second, 1, kMaxRate},
      {"fast_read_bytes_per_second", h.fast_read_bytes_per_second, 1, kMaxRate},
      {"fast_write_bytes_per_second", h.fast_write_bytes_per_second, 1, kMaxRate},
      {"flops_per_second", h.flops_per_second, 1, kMaxRate},
      {"transcendentals_per_second", h.transcendentals_per_second, 1, kMaxRate},
      {"clock_hz", h.clock_hz, 1, kMaxRate},
      {"max_outstanding_prefetches", h.max_outstanding_prefetches, 1, kMaxCount},
      {"max_outstanding_evictions", h.max_outstanding_evictions, 1, kMaxCount},
      {"max_preloads", h.max_preloads, 0, kMaxCount},
      {"copy_latency_ps", h.copy_latency_ps, 0, kMaxCopyLatencyPs},
      {"fast_memory_space", h.fast_memory_space, 1, kMaxCount},
  };
  for (const Field& field : fields) {
    if (field.value < field.least || field.value > field.most) {
      return absl::InvalidArgumentError(absl::StrCat(what(field.name), " is ", field.value,
                                                     ", allowed are ", field.least, " to ",
                                                     field.most));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Hardware> HardwarePreset(absl::string_view name) {
  const Chip* const chip = FindChip(name);
  absl::string_view rest = name;
  if (chip != nullptr) rest.remove_prefix(chip->name.size());
  if (chip != nullptr && rest.empty()) return Preset(*chip);
  if (chip == nullptr || !absl::ConsumePrefix(&rest, "_") || !absl::ConsumeSuffix(&rest, "mib")) {
    return absl::NotFoundError(
        absl::StrCat("hardware '", name, "' is not known, allowed are ",
                     absl::StrJoin(HardwarePresetNames(), ", "),
                     ", and these with less fast memory, for example tpu_v4i_16mib"));
  }
  const int64_t most = chip->fast_bytes / kMiB;
  int64_t mib = 0;
  // Each size has one spelling, as the name is part of a plan: no sign, no leading zero, no
  // blanks.
  const bool number = absl::SimpleAtoi(rest, &mib) && absl::StrCat(mib) == rest;
  if (!number || mib < 1 || mib > most) {
    return absl::InvalidArgumentError(absl::StrCat("hardware '", name, "': fast memory is '", rest,
                                                   "' MiB, allowed are whole numbers from 1 to ",
                                                   most));
  }
  Hardware smaller = Preset(*chip);
  smaller.name = std::string(name);
  smaller.fast_bytes = mib * kMiB;
  return smaller;
}

std::vector<std::string> HardwarePresetNames() {
  std::vector<std::string> names;
  for (const Chip& chip : Chips()) names.emplace_back(chip.name);
  return names;
}

}  // namespace mallocgame
