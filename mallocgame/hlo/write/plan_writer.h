// The walk over the time axis that writes a plan into a draft. Private to the folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "mallocgame/hlo/import/buffers.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/schedule.h"
#include "mallocgame/hlo/module/value_flow.h"
#include "mallocgame/hlo/write/module_draft.h"
#include "mallocgame/hlo/write/placed_values.h"
#include "mallocgame/hlo/write/write_copies.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame::hlo {

// Locations of the arrays of one result (placed_values.h).
using Locations = std::vector<int32_t>;

class PlanWriter {
 public:
  PlanWriter(const Program& program, const Plan& plan, const Module& module,
             const Schedule& schedule, const BufferTable& table, const ValueFlow& flow,
             ModuleDraft& draft, PlacedValues& values, HloModuleProto& proto);

  // A refusal has the accesses at fault that the plan serves from fast memory: those of what it is
  // about, else those of the instruction that was to be written.
  absl::Status Run();
  // Behind a Run: the plan with its copies as they were written.
  Plan AsWritten() const { return copies_.AsWritten(); }

 private:
  // write_plan.cc
  absl::Status WriteEntry();
  // Refuses instruction `i`, because a transfer that `from` has begun holds its arrays.
  absl::Status Held(int32_t i, const std::string& from, absl::string_view what) const;
  absl::StatusOr<Locations> WriteComputation(int32_t c, const Locations* result);
  absl::Status WriteInstruction(int32_t i);
  absl::Status WriteOperands(int32_t i);
  absl::Status GoOnWithTransfer(int32_t i, const std::vector<bool>& hands_on);
  absl::Status CheckHeld(int32_t i, int32_t array);
  absl::Status CheckDone(int32_t i);
  void EmitParameter(int32_t parameter, const Locations& locations);
  void SetOperand(int32_t i, size_t k, int32_t operand);
  // where the access of the instruction at the tick to the array's buffer is served from; none: the
  // program holds no such access
  std::optional<int32_t> ServedFrom(Tick tick, int32_t array) const;
  Locations LocationsAt(Tick tick, int32_t i) const;
  int32_t BufferOf(int32_t array) const { return of_array_[array]; }
  int32_t FirstArray(int32_t i) const { return module_.instruction(i).first_array; }
  int32_t ArrayCount(int32_t i) const { return module_.instruction(i).array_count; }
  void Renew(int32_t array);

  // write_loops.cc
  absl::Status WriteLoop(int32_t i);
  Locations CarriedBy(int32_t i, Tick entry, Tick exit) const;
  absl::Status WriteBranches(int32_t i);
  Locations HandOn(int32_t i, std::vector<Locations>& given) const;
  absl::Status WriteCall(int32_t i);
  // Where the arrays of a result are accessed first in the ticks [begin, end), of the places where
  // they lie.
  Locations NeededFirst(int32_t i, Tick begin, Tick end) const;

  const Program& program_;
  const Plan& plan_;
  const Module& module_;
  const std::vector<int32_t>& of_array_;  // buffers
  const ValueFlow& flow_;
  ModuleDraft& draft_;
  PlacedValues& values_;
  std::vector<bool> is_held_;       // by array: an operand that a collective hands on
  std::vector<bool> is_moving_;     // by array: a transfer that a fusion has begun with it runs
  std::vector<int32_t> newest_;     // by buffer: the array that is its newest value
  std::vector<int32_t> region_of_;  // by computation on the time axis
  Tick tick_ = 0;
  CopyWriter copies_;
};

}  // namespace mallocgame::hlo
