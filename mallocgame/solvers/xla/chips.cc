#include "mallocgame/solvers/xla/chips.h"

#include <algorithm>
#include <cstdint>

#include "mallocgame/hardware/chips.h"

namespace mallocgame {
namespace {

// Null: nobody knows what the allocator reckons with on such hardware.
const Chip* KnownChip(const Hardware& hardware) {
  const Chip* const chip = FindChip(hardware.name);
  return chip == nullptr || chip->allocator.main == 0 ? nullptr : chip;
}

}  // namespace

Hardware AsXlaReckons(Hardware hardware) {
  const Chip* const chip = KnownChip(hardware);
  if (chip == nullptr) return hardware;
  const AllocatorRates& rates = chip->allocator;
  const Hardware preset = *HardwarePreset(chip->name);
  const auto scaled = [](double rate, int64_t now, int64_t by_preset) {
    const double share = static_cast<double>(now) / static_cast<double>(by_preset);
    return std::max<int64_t>(1, static_cast<int64_t>(rate * share));
  };
  hardware.fast_read_bytes_per_second =
      scaled(rates.main * rates.fast, hardware.fast_read_bytes_per_second,
             preset.fast_read_bytes_per_second);
  hardware.fast_write_bytes_per_second =
      scaled(rates.main * rates.fast, hardware.fast_write_bytes_per_second,
             preset.fast_write_bytes_per_second);
  hardware.main_bytes_per_second =
      scaled(rates.main, hardware.main_bytes_per_second, preset.main_bytes_per_second);
  hardware.transcendentals_per_second =
      scaled(rates.transcendentals, hardware.transcendentals_per_second,
             preset.transcendentals_per_second);
  hardware.flops_per_second = scaled(rates.flops, hardware.flops_per_second, 1);
  if (rates.clock_hz > 0)
    hardware.clock_hz = scaled(rates.clock_hz, hardware.clock_hz, preset.clock_hz);
  return hardware;
}

XlaOptions OptionsForChip(XlaOptions options, const Hardware& hardware) {
  const Chip* const chip = KnownChip(hardware);
  if (chip == nullptr) return options;
  if (options.slice_bytes == 0) options.slice_bytes = chip->allocator.slice_bytes;
  options.kernels_move_arrays |= chip->allocator.kernels_move_arrays;
  return options;
}

}  // namespace mallocgame
