// A chip with a hierarchy of memories, as the placement problem sees it: each tensor lies in one
// level for as long as it lives, and nothing is copied between levels. It knows no program. The
// game's machine with two memories is in mallocgame/hardware/hardware.h.
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
  int64_t bytes_per_second = 0;  // reads and writes together; > 0
  friend bool operator==(const MemoryLevel&, const MemoryLevel&) = default;
};

struct Hierarchy {
  std::string name;
  // 2 to 8 levels, the fastest first. The last one must hold all of a program's tensors.
  std::vector<MemoryLevel> levels;
  int64_t flops_per_second = 0;  // > 0
  friend bool operator==(const Hierarchy&, const Hierarchy&) = default;
};

// InvalidArgument names the field, the value found and the values allowed.
absl::Status ValidateHierarchy(const Hierarchy& hierarchy);

// The presets are an Intel NNP-I 1000 with 24 MiB of last-level cache and 32 GiB of DRAM: `nnp_i`
// with the 4 MiB of SRAM that belong to one inference engine, `nnp_i_48mib` with the SRAM of all
// twelve. Which of them the EGRL paper uses is not verified against the paper. NotFound lists the
// names.
absl::StatusOr<Hierarchy> HierarchyPreset(absl::string_view name);
std::vector<std::string> HierarchyPresetNames();

}  // namespace mallocgame

#endif  // MALLOCGAME_PLACEMENT_HIERARCHY_H_
