// The presets and the validation of Hierarchy.
#include "mallocgame/placement/hierarchy.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mallocgame {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGigabytesPerSecond = 1'000'000'000;
constexpr int64_t kMost = int64_t{1} << 60, kMostEngines = 1024;

// Capacities and bandwidths are those that WikiChip and AnandTech report; each level is ten times
// as fast as the next. The compute rate is the advertised 50 TOPS: 12 engines of 4,096
// multiply-accumulates at about 0.5 GHz.
Hierarchy NnpI(absl::string_view name, int64_t sram_mib, int64_t engines = 1,
               int64_t staging_bytes = 0) {
  return {std::string(name),
          {{"SRAM", sram_mib * kMiB, 6800 * kGigabytesPerSecond / engines},
           {"LLC", 24 * kMiB, 680 * kGigabytesPerSecond},
           {"DRAM", 32 * 1024 * kMiB, 68 * kGigabytesPerSecond}},
          50'000 * kGigabytesPerSecond / engines,
          engines,
          staging_bytes};
}

const std::vector<Hierarchy>& Presets() {
  static const auto& presets = *new std::vector<Hierarchy>{
      NnpI("nnp_i", 4), NnpI("nnp_i_48mib", 48), NnpI("nnp_i_12_engines", 4, 12, kMiB / 4)};
  return presets;
}

absl::Status Within(absl::string_view field, int64_t found, int64_t least, int64_t most) {
  if (found >= least && found <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("hierarchy: ", field, ": found ", found, ", allowed: ", least, " to ", most));
}
absl::Status Positive(absl::string_view field, int64_t found) {
  return Within(field, found, 1, kMost);
}

}  // namespace

absl::Status ValidateHierarchy(const Hierarchy& hierarchy) {
  if (hierarchy.levels.size() < 2 || hierarchy.levels.size() > 8) {
    return absl::InvalidArgumentError(
        absl::StrCat("hierarchy: levels: found ", hierarchy.levels.size(), ", allowed: 2 to 8"));
  }
  if (absl::Status status = Within("engines", hierarchy.engines, 1, kMostEngines); !status.ok())
    return status;
  if (absl::Status status = Within("staging_bytes", hierarchy.staging_bytes, 0, kMost);
      !status.ok())
    return status;
  for (size_t i = 0; i < hierarchy.levels.size(); ++i) {
    const MemoryLevel& level = hierarchy.levels[i];
    const std::string where = absl::StrCat("levels[", i, "] ", level.name, ": ");
    if (absl::Status status = Positive(where + "capacity_bytes", level.capacity_bytes);
        !status.ok())
      return status;
    if (absl::Status status = Positive(where + "bytes_per_second", level.bytes_per_second);
        !status.ok())
      return status;
    if (i == 0) continue;
    // What an engine gets of a level must not be more than what it gets of the level before.
    const double before = static_cast<double>(hierarchy.levels[i - 1].bytes_per_second) *
                          static_cast<double>(i == 1 ? hierarchy.engines : 1);
    if (static_cast<double>(level.bytes_per_second) > before) {
      return absl::InvalidArgumentError(
          absl::StrCat("hierarchy: ", where, "bytes_per_second: found ", level.bytes_per_second,
                       ", allowed: at most that of the level before, ",
                       hierarchy.levels[i - 1].bytes_per_second, ", for each engine"));
    }
  }
  return Positive("flops_per_second", hierarchy.flops_per_second);
}

absl::StatusOr<Hierarchy> HierarchyPreset(absl::string_view name) {
  for (const Hierarchy& preset : Presets()) {
    if (preset.name == name) return preset;
  }
  return absl::NotFoundError(absl::StrCat(
      "hierarchy: found '", name, "', allowed: ", absl::StrJoin(HierarchyPresetNames(), ", ")));
}

std::vector<std::string> HierarchyPresetNames() {
  std::vector<std::string> names;
  for (const Hierarchy& preset : Presets()) names.push_back(preset.name);
  return names;
}

}  // namespace mallocgame
