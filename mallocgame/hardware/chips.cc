#include "mallocgame/hardware/chips.h"

#include "absl/strings/strip.h"

namespace mallocgame {
namespace {

constexpr int64_t kMebi = int64_t{1} << 20, kGiga = 1'000'000'000, kTera = 1'000 * kGiga;
constexpr double kGibi = 0x1p30;

constexpr Chip kChips[] = {
    {.name = "tpu_v4i",
     .fast_bytes = 128 * kMebi,
     .main_bytes_per_second = 614 * kGiga,
     .flops_per_second = 138 * kTera,
     .clock_hz = 1'050'000'000,
     .fast_memory_space = 3,
     .allocator = {.main = 458 * kGibi, .fast = 6, .transcendentals = 537.75e9, .flops = 0.9928}},
    {.name = "tpu_v4",
     .fast_bytes = 64 * kMebi,
     .main_bytes_per_second = 614 * kGiga,
     .flops_per_second = 137'500 * kGiga,
     .clock_hz = 1'050'000'000,
     .fast_memory_space = 3,
     .link_bytes_per_second = 45 * kGiga,
     .allocator = {.main = 457.5 * kGibi, .fast = 6, .transcendentals = 537.75e9}},
    {.name = "tpu_v4_megacore",
     .fast_bytes = 128 * kMebi,
     .main_bytes_per_second = 1'228 * kGiga,
     .flops_per_second = 275 * kTera,
     .clock_hz = 1'050'000'000,
     .fast_memory_space = 3,
     .link_bytes_per_second = 45 * kGiga,
     .allocator = {.main = 915 * kGibi, .fast = 6, .transcendentals = 1075.5e9}},
    {.name = "tpu_v5p",
     .fast_bytes = 50'266'112,
     .main_bytes_per_second = 2'765 * kGiga,
     .flops_per_second = 459 * kTera,
     .clock_hz = 1'500'000'000,
     .link_bytes_per_second = 90 * kGiga,
     .allocator = {.main = 2189 * kGibi,
                   .fast = 7.7,
                   .transcendentals = 3072e9,
                   .flops = 394.0 / 459,
                   .clock_hz = 1.75e9}},
    {.name = "tpu_v5e",
     .fast_bytes = 112 * kMebi,
     .main_bytes_per_second = 819 * kGiga,
     .flops_per_second = 197 * kTera,
     .clock_hz = 1'500'000'000,
     .link_bytes_per_second = 45 * kGiga,
     .allocator = {.main = 687 * kGibi, .fast = 22.5, .transcendentals = 1536e9}},
    {.name = "tpu_v6e",
     .fast_bytes = 100'597'760,
     .main_bytes_per_second = 1'640 * kGiga,
     .flops_per_second = 918 * kTera,
     .clock_hz = 1'750'000'000,
     .link_bytes_per_second = 90 * kGiga,
     .allocator = {.main = 1638e9,
                   .fast = 13,
                   .transcendentals = 1792e9,
                   .slice_bytes = 4 * kMebi,
                   .kernels_move_arrays = true}},
    {.name = "tpu7x",
     .fast_bytes = 67'043'328,
     .main_bytes_per_second = 3'690 * kGiga,
     .flops_per_second = 1'153'500 * kGiga,
     .clock_hz = 1'900'000'000,
     .link_bytes_per_second = 90 * kGiga,
     .allocator =
         {.main = 3686e9, .fast = 3.2, .transcendentals = 1945.6e9, .kernels_move_arrays = true}},
};

}  // namespace

absl::Span<const Chip> Chips() { return kChips; }

const Chip* FindChip(absl::string_view hardware) {
  const Chip* found = nullptr;
  for (const Chip& chip : kChips) {
    absl::string_view rest = hardware;
    if (!absl::ConsumePrefix(&rest, chip.name) || !(rest.empty() || rest.front() == '_')) continue;
    if (found == nullptr || chip.name.size() > found->name.size()) found = &chip;
  }
  return found;
}

}  // namespace mallocgame
