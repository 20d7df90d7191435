// A chip with a hierarchy of memories, as the placement problem sees it: each tensor lies in one
// level for as long as it lives, nothing is copied between levels. Knows no program.
// mallocgame/hardware/hardware.h is the two-memory machine of the game.
#ifndef MALLOCGAME_PLACEMENT_HIERARCHY_H_
#define MALLOCGAME_PLACEMENT_HIERARCHY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mallocgame {

struct MemoryLevel {
  std::string name;
  int64_t capacity_bytes = 0;    // > 0
  int64_t bytes_per_second = 0;  // > 0, reads and writes together
  friend bool operator==(const MemoryLevel&, const MemoryLevel&) = default;
};

struct Hierarchy {
  std::string name;
  // 2 to 8, the fastest first; the last one must hold all of a program's tensors
  std::vector<MemoryLevel> levels;
  int64_t flops_per_second = 0;  // > 0
  friend bool operator==(const Hierarchy&, const Hierarchy&) = default;
};

// InvalidArgument naming the field, the value found and the values allowed.
absl::Status ValidateHierarchy(const Hierarchy& hierarchy);

// `nnp_i`: Intel NNP-I 1000 with the 4 MiB of SRAM that belong to one inference engine, as the EGRL
// paper is remembered to count it; `nnp_i_48mib`: with the SRAM of all twelve. 24 MiB of last-level
// cache and 32 GiB of DRAM in both. NotFound lists the names.
absl::StatusOr<Hierarchy> HierarchyPreset(absl::string_view name);
std::vector<std::string> HierarchyPresetNames();

}  // namespace mallocgame

#endif  // MALLOCGAME_PLACEMENT_HIERARCHY_H_
