#include "mallocgame/hlo/check/check_phase_module.h"

#include <algorithm>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/check/phase_reading.h"
#include "mallocgame/hlo/check/phase_rules.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/memory_spaces.h"
#include "mallocgame/hlo/module/opcodes.h"

namespace mallocgame {
namespace hlo {

absl::StatusOr<PhaseReading> PhaseReading::Read(const PhaseModule& phase, absl::string_view what) {
  absl::StatusOr<std::unique_ptr<const Module>> module = Module::Parse(phase.module, what);
  if (!module.ok()) {
    const Refusal refusal = RefusalOf(module.status());
    const bool schedule = refusal.rule == kScheduleRule;
    return Refuse(schedule ? PhaseRule::kSchedule : PhaseRule::kReadable, refusal.instructions,
                  module.status().message());
  }
  if (const absl::Status known = CheckOpcodes(**module); !known.ok())
    return Refuse(PhaseRule::kReadable, RefusalOf(known).instructions, known.message());
  FlattenOptions options;
  options.requires_schedule = true;
  absl::StatusOr<Schedule> schedule = Flatten(**module, options);
  if (!schedule.ok())
    return Refuse(PhaseRule::kSchedule, RefusalOf(schedule.status()).instructions,
                  schedule.status().message());
  auto positions = std::make_unique<const Positions>(**module);
  MG_ASSIGN_OR_RETURN(ValueSources flow, ValueSources::Build(**module, *positions));
  MG_ASSIGN_OR_RETURN(Placements placements,
                      Placements::Read(**module, *positions, phase.buffer_assignment));
  std::vector<std::vector<int32_t>> users((*module)->instructions().size());
  for (int32_t i = 0; i < std::ssize(users); ++i) {
    for (const int32_t operand : (*module)->operands(i)) {
      if (users[operand].empty() || users[operand].back() != i) users[operand].push_back(i);
    }
  }
  return PhaseReading{*std::move(module), std::move(positions),  *std::move(schedule),
                      std::move(flow),    std::move(placements), std::move(users)};
}

bool IsPacked(int64_t color, const Hardware& hardware) {
  return color == 0 || color == kFlagSpace || color == kScalarSpace || color == kSmallArraySpace ||
         color == hardware.fast_memory_space;
}

}  // namespace hlo

absl::string_view PhaseRuleName(PhaseRule rule) {
  switch (rule) {
    case PhaseRule::kReadable: return "readable";
    case PhaseRule::kSchedule: return "schedule";
    case PhaseRule::kTransfer: return "transfer";
    case PhaseRule::kShape: return "shape";
    case PhaseRule::kMemorySpace: return "memory-space";
    case PhaseRule::kBuffer: return "buffer";
    case PhaseRule::kColor: return "color";
    case PhaseRule::kSize: return "size";
    case PhaseRule::kAlignment: return "alignment";
    case PhaseRule::kCapacity: return "capacity";
    case PhaseRule::kLoopLeaf: return "loop-leaf";
    case PhaseRule::kBranch: return "branch";
    case PhaseRule::kInPlace: return "in-place";
    case PhaseRule::kSlicePlace: return "slice-place";
    case PhaseRule::kPreload: return "preload";
    case PhaseRule::kPin: return "pin";
    case PhaseRule::kOverlap: return "overlap";
    case PhaseRule::kComputation: return "computation";
    case PhaseRule::kSignature: return "signature";
  }
  return "unknown";
}

absl::Status CheckPhaseModule(const PhaseModule& original, const PhaseModule& written,
                              const Hardware& hardware) {
  MG_RETURN_IF_ERROR(ValidateHardware(hardware));
  MG_ASSIGN_OR_RETURN(const hlo::PhaseReading before,
                      hlo::PhaseReading::Read(original, "original module"));
  MG_ASSIGN_OR_RETURN(const hlo::PhaseReading after,
                      hlo::PhaseReading::Read(written, "written module"));
  MG_RETURN_IF_ERROR(hlo::CheckTransfers(after));
  MG_RETURN_IF_ERROR(hlo::CheckHandedOn(after));
  MG_RETURN_IF_ERROR(hlo::CheckBuffers(before, after, hardware));
  MG_RETURN_IF_ERROR(hlo::CheckPlaces(after, hardware));
  MG_RETURN_IF_ERROR(hlo::CheckOverlaps(before, after, hardware));
  MG_RETURN_IF_ERROR(hlo::CheckComputation(before, after, hardware));
  return hlo::CheckSignature(original.module, written.module);
}

}  // namespace mallocgame
