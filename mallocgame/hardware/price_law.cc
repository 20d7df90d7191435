// Looks the law of a chip up, and applies its figures to a Hardware.
#include "mallocgame/hardware/price_law.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hardware/chips.h"

namespace mallocgame {
namespace {

struct ChipLaw {
  absl::string_view chip;
  PriceLaw law;
  absl::string_view main_share, copy_latency_ps, speed, kernel;  // their sources
};

constexpr ChipLaw kLaws[] = {
#include "mallocgame/hardware/price_law_figures.inc"
};

// The law of the chip that `hardware` is named after.
absl::StatusOr<const ChipLaw*> Find(absl::string_view hardware) {
  const Chip* const chip = FindChip(hardware);
  for (const ChipLaw& one : kLaws) {
    if (chip != nullptr && one.chip == chip->name) return &one;
  }
  return absl::NotFoundError(absl::StrCat(
      "hardware '", hardware, "' has no calibrated prices, allowed are ",
      absl::StrJoin(kLaws, ", ",
                    [](std::string* out, const ChipLaw& one) { absl::StrAppend(out, one.chip); }),
      ", and these with something behind an underscore"));
}

// `rate` times a share of it, at least 1.
int64_t ShareOf(int64_t rate, double share) {
  return std::max<int64_t>(1, std::llround(static_cast<double>(rate) * share));
}

}  // namespace

absl::Status ValidatePriceLaw(const PriceLaw& law) {
  struct Field {
    const char* name;
    double value, most;
  };
  constexpr double kMostFactor = 100;
  for (const Field& field :
       {Field{"main_share", law.main_share, kMostFactor}, Field{"speed", law.speed, kMostFactor},
        Field{"kernel", law.kernel, 1}}) {
    if (field.value > 0 && field.value <= field.most) continue;
    return absl::InvalidArgumentError(absl::StrCat("price law: ", field.name, " is ", field.value,
                                                   ", allowed are above 0 to ", field.most));
  }
  if (law.copy_latency_ps >= 0 && law.copy_latency_ps <= kMaxCopyLatencyPs) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("price law: copy_latency_ps is ",
                                                 law.copy_latency_ps, ", allowed are 0 to ",
                                                 kMaxCopyLatencyPs));
}

absl::StatusOr<PriceLaw> PriceLawOf(absl::string_view hardware) {
  MG_ASSIGN_OR_RETURN(const ChipLaw* const found, Find(hardware));
  return found->law;
}

absl::StatusOr<std::vector<LawSource>> PriceLawSources(absl::string_view hardware) {
  MG_ASSIGN_OR_RETURN(const ChipLaw* const found, Find(hardware));
  return std::vector<LawSource>{{"main_share", std::string(found->main_share)},
                                {"copy_latency_ps", std::string(found->copy_latency_ps)},
                                {"speed", std::string(found->speed)},
                                {"kernel", std::string(found->kernel)}};
}

absl::StatusOr<Hardware> CalibrateHardware(const Hardware& hardware, const PriceLaw& law) {
  MG_RETURN_IF_ERROR(ValidatePriceLaw(law));
  if (hardware.copy_latency_ps != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("hardware '", hardware.name, "': copy_latency_ps is ",
                     hardware.copy_latency_ps, ", allowed is 0: it is calibrated already"));
  }
  Hardware calibrated = hardware;
  calibrated.main_bytes_per_second = ShareOf(hardware.main_bytes_per_second, law.main_share);
  calibrated.flops_per_second = ShareOf(hardware.flops_per_second, law.kernel);
  calibrated.copy_latency_ps = law.copy_latency_ps;
  return calibrated;
}

}  // namespace mallocgame
