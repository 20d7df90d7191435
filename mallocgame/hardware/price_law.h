// What the chips were measured to reach, beside the public figures of their presets, and how much
// of the compiler's prices they need: the figures that calibrated prices are made with
// (program/calibrate.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/hardware/hardware.h"

namespace mallocgame {

// The figures of one chip. All are above 0.
struct PriceLaw {
  // The bandwidth of main memory that instructions and copies reach, over the hardware's: at most 1
  // of a chip, above it where one asks what a faster memory would bring.
  double main_share = 1;
  // What a copy takes beside the transfer of its bytes.
  int64_t copy_latency_ps = 0;
  // What the compiler's price of work is multiplied by: its reserve, the clock, and the cores that
  // share an instruction of which the compiler prices one core's work.
  double speed = 1;
  // The share of the chip's flops that a kernel without a price reaches, at most 1.
  double kernel = 1;
  friend bool operator==(const PriceLaw&, const PriceLaw&) = default;
};

// One figure of a chip, and where it is from: a published measurement, a fit, or another chip that
// it is borrowed from.
struct LawSource {
  std::string figure;  // the name of the member above
  std::string source;
};

// InvalidArgument names the figure, the value found and the values allowed.
absl::Status ValidatePriceLaw(const PriceLaw& law);

// The law of the chip that `hardware` is named after, as a preset is (HardwarePreset). NotFound
// lists the chips. The figures are in price_law_figures.inc, which benchmarks/measured/fit.py
// writes.
absl::StatusOr<PriceLaw> PriceLawOf(absl::string_view hardware);
absl::StatusOr<std::vector<LawSource>> PriceLawSources(absl::string_view hardware);

// The hardware with the bandwidth, the latency of copies and the flops of kernels that the law
// says. InvalidArgument: it has a latency of copies already, so it is no preset's.
absl::StatusOr<Hardware> CalibrateHardware(const Hardware& hardware, const PriceLaw& law);

}  // namespace mallocgame
