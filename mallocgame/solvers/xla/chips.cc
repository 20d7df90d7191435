#include "mallocgame/solvers/xla/chips.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace mallocgame {
namespace {

struct Chip {
  const char* name;
  double main;                       // bytes a second of main memory
  double fast;                       // fast memory is so many times as fast
  double transcendentals;            // a second
  double flops = 1;                  // share of the preset's
  double clock_hz = 0;               // 0: the preset's
  int64_t slice_bytes = 0;           // copies are cut into slices of this size; 0: into equal ones
  bool kernels_move_arrays = false;  // as of XlaOptions
};
constexpr double kGiB = 0x1p30;
// A name that begins like another comes before it.
constexpr Chip kChips[] = {
    {.name = "tpu_v4i",
     .main = 458 * kGiB,
     .fast = 6,
     .transcendentals = 537.75e9,
     .flops = 0.9928},
    {.name = "tpu_v4_megacore", .main = 915 * kGiB, .fast = 6, .transcendentals = 1075.5e9},
    {.name = "tpu_v4", .main = 457.5 * kGiB, .fast = 6, .transcendentals = 537.75e9},
    {.name = "tpu_v5p",
     .main = 2189 * kGiB,
     .fast = 7.7,
     .transcendentals = 3072e9,
     .flops = 394.0 / 459,
     .clock_hz = 1.75e9},
    {.name = "tpu_v5e", .main = 687 * kGiB, .fast = 22.5, .transcendentals = 1536e9},
    {.name = "tpu_v6e",
     .main = 1638e9,
     .fast = 13,
     .transcendentals = 1792e9,
     .slice_bytes = 4 << 20,
     .kernels_move_arrays = true},
    {.name = "tpu7x",
     .main = 3686e9,
     .fast = 3.2,
     .transcendentals = 1945.6e9,
     .kernels_move_arrays = true},
};

// Null: no chip has the name.
const Chip* FindChip(absl::string_view hardware) {
  for (const Chip& chip : kChips) {
    if (absl::StartsWith(hardware, chip.name)) return &chip;
  }
  return nullptr;
}

}  // namespace

Hardware AsXlaReckons(Hardware hardware) {
  const Chip* const chip = FindChip(hardware.name);
  if (chip == nullptr) return hardware;
  const Hardware preset = *HardwarePreset(chip->name);
  const auto scaled = [](double rate, int64_t now, int64_t by_preset) {
    const double share = static_cast<double>(now) / static_cast<double>(by_preset);
    return std::max<int64_t>(1, static_cast<int64_t>(rate * share));
  };
  hardware.fast_read_bytes_per_second =
      scaled(chip->main * chip->fast, hardware.fast_read_bytes_per_second,
             preset.fast_read_bytes_per_second);
  hardware.fast_write_bytes_per_second =
      scaled(chip->main * chip->fast, hardware.fast_write_bytes_per_second,
             preset.fast_write_bytes_per_second);
  hardware.main_bytes_per_second =
      scaled(chip->main, hardware.main_bytes_per_second, preset.main_bytes_per_second);
  hardware.transcendentals_per_second =
      scaled(chip->transcendentals, hardware.transcendentals_per_second,
             preset.transcendentals_per_second);
  hardware.flops_per_second = scaled(chip->flops, hardware.flops_per_second, 1);
  if (chip->clock_hz > 0)
    hardware.clock_hz = scaled(chip->clock_hz, hardware.clock_hz, preset.clock_hz);
  return hardware;
}

XlaOptions OptionsForChip(XlaOptions options, const Hardware& hardware) {
  const Chip* const chip = FindChip(hardware.name);
  if (chip == nullptr) return options;
  if (options.slice_bytes == 0) options.slice_bytes = chip->slice_bytes;
  options.kernels_move_arrays |= chip->kernels_move_arrays;
  return options;
}

}  // namespace mallocgame
