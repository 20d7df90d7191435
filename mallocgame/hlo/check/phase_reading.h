// A phase module as the check reads it, and the parts of the check. Each part looks at some rules
// of check_phase_module.h, and trusts what those before it in that list have found right. Private
// to the folder.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/hlo/check/placements.h"
#include "mallocgame/hlo/check/positions.h"
#include "mallocgame/hlo/check/value_sources.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/phase_module.h"
#include "mallocgame/hlo/module/schedule.h"

namespace mallocgame::hlo {

struct PhaseReading {
  // Refuses by kReadable, kSchedule, kShape and kBuffer. Messages call the module `what`.
  static absl::StatusOr<PhaseReading> Read(const PhaseModule& phase, absl::string_view what);

  std::unique_ptr<const Module> module;
  std::unique_ptr<const Positions> positions;
  Schedule schedule;
  ValueSources flow;
  Placements placements;
  std::vector<std::vector<int32_t>> users;  // by instruction, each once

  const HloInstructionProto& proto(int32_t i) const { return *module->instruction(i).proto; }
  Opcode opcode(int32_t i) const { return module->opcode(i); }
};

// kSchedule and kTransfer.
absl::Status CheckTransfers(const PhaseReading& written);
// kShape and kMemorySpace.
absl::Status CheckHandedOn(const PhaseReading& written);
// kBuffer, kColor, kSize, kAlignment and kCapacity.
absl::Status CheckBuffers(const PhaseReading& original, const PhaseReading& written,
                          const Hardware& hardware);
// kLoopLeaf, kBranch, kInPlace, kSlicePlace and kPreload.
absl::Status CheckPlaces(const PhaseReading& written, const Hardware& hardware);
// kOverlap, in memories of the main core.
absl::Status CheckOverlaps(const PhaseReading& original, const PhaseReading& written,
                           const Hardware& hardware);
// kComputation.
absl::Status CheckComputation(const PhaseReading& original, const PhaseReading& written,
                              const Hardware& hardware);
// kSignature. Both are messages HloModuleProtoWithConfig.
absl::Status CheckSignature(const std::string& original, const std::string& written);

// Whether it is a memory of the main core that values are packed into: main memory, fast memory,
// sync flags, small arrays or scalars. In those of other cores the compiler lets values share bytes
// by rules of its own, so that nothing may be moved there.
bool IsPacked(int64_t color, const Hardware& hardware);

}  // namespace mallocgame::hlo
