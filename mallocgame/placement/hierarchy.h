// A chip with a hierarchy of memories, as the placement problem sees it: each tensor lies in one
// level for as long as it lives. It knows no program. The game's machine with two memories is in
// mallocgame/hardware/hardware.h.
//
// Engines. They run the program at the same time, each on inputs of its own. Level 0 and the
// compute rate belong to each engine. The other levels belong to all: an engine gets an equal share
// of their bandwidth, and an activation takes its bytes there once for each engine. Weights are
// there for all engines.
//
// Staging. Each engine has a buffer beside the levels. While nodes leave an engine's share of the
// last level's bandwidth idle, the weights that lie there are fetched into the buffer, in the order
// of their first readers, as far as they have room. The first reader then takes what is in the
// buffer from there, at the rate of level 0, and gives its room back. Weights whose first reader
// runs several times are not fetched.
#pragma once

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
  int64_t bytes_per_second = 0;  // reads and writes together, of all engines that share it; > 0
  friend bool operator==(const MemoryLevel&, const MemoryLevel&) = default;
};

struct Hierarchy {
  std::string name;
  // 2 to 8 levels, the one that is fastest for an engine first. The last one must hold all of a
  // program's tensors.
  std::vector<MemoryLevel> levels;
  int64_t flops_per_second = 0;  // of an engine; > 0
  int64_t engines = 1;           // 1 to 1024
  int64_t staging_bytes = 0;     // of an engine; >= 0
  friend bool operator==(const Hierarchy&, const Hierarchy&) = default;
};

// InvalidArgument names the field, the value found and the values allowed.
absl::Status ValidateHierarchy(const Hierarchy& hierarchy);

// The presets are an Intel NNP-I 1000 with 24 MiB of last-level cache and 32 GiB of DRAM: `nnp_i`
// with the 4 MiB of SRAM that belong to one inference engine, `nnp_i_48mib` with the SRAM of all
// twelve. Which of them was used for EGRL is not known. `nnp_i_12_engines`
// has the twelve engines, each with its twelfth of SRAM, SRAM bandwidth and compute rate, and its
// 256 KiB of tightly coupled memory for staging. NotFound lists the names.
absl::StatusOr<Hierarchy> HierarchyPreset(absl::string_view name);
std::vector<std::string> HierarchyPresetNames();

}  // namespace mallocgame
