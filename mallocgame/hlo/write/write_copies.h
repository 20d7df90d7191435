// Writes the copies of a plan into a draft: copy-start and copy-done, slices, and what joins them.
// Private to the folder.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/schedule.h"
#include "mallocgame/hlo/module/value_flow.h"
#include "mallocgame/hlo/write/module_draft.h"
#include "mallocgame/hlo/write/placed_values.h"
#include "mallocgame/hlo/write/plan_transfers.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame::hlo {

class CopyWriter {
 public:
  // `newest` has for each buffer the array that is its newest value while the plan is written.
  CopyWriter(const Program& program, const Plan& plan, const Module& module,
             const Schedule& schedule, const ValueFlow& flow, const std::vector<int32_t>& newest,
             ModuleDraft& draft, PlacedValues& values, HloModuleProto& proto);

  // Whether a prefetch takes the place of the plain copy at the tick.
  bool IsReplaced(Tick tick) const { return is_replaced_[tick]; }
  // Begins the preloads, right behind the entry's parameters.
  absl::Status BeginPreloads();
  // Before the instruction at the tick, in the computation: ends what is due, then begins what
  // begins there.
  absl::Status At(Tick tick, int32_t computation);
  void EndDue(Tick tick, int32_t computation);
  // At the end of the computation, before its result: ends what has begun in it. At the entry's
  // end, what hasn't begun begins.
  absl::Status Finish(int32_t computation);
  // Behind a run: the plan with its copies as they were written. Those are missing that bring what
  // main memory has, or nobody reads there, and slices are those that there are.
  Plan AsWritten() const;

 private:
  struct Live {
    int32_t piece = 0;
    int32_t start = 0;         // instruction of the draft
    Tick end = 0;              // when it is due
    int64_t sliced_id = 0;     // the slice in the computation that it starts; 0: it is no slice
    int64_t sliced_bytes = 0;  // of that slice
    bool again = false;        // it fetches for the next run
  };
  // A preload has to be fetched for the next run, as soon as nothing else needs its bytes.
  struct Again {
    int32_t piece = 0;
    int32_t first = 0;  // the copy-start at the start
    Tick from = 0;
  };

  Tick FirstUse(ResidenceId residence) const;
  Tick FreeFrom(const Residence& residence) const;
  absl::Status BeginPreload(int32_t p, int32_t number);
  void FetchAgain(Tick tick);
  absl::Status Begin(int32_t p, int32_t computation);
  Tick LastUse(int32_t value);
  bool IsReadFrom(ResidenceId residence, Tick tick) const;
  bool IsFetchedFrom(int32_t value, Tick tick) const;
  void ProlongSource(const PlanTransfer& transfer, Tick end);
  // The accesses at fault are those that the transfer's residence serves.
  absl::Status Refuse(const PlanTransfer& transfer, absl::string_view rule,
                      absl::string_view what) const;
  absl::Status FindValue(const PlanTransfer& transfer, int32_t t);
  absl::StatusOr<int32_t> SourceOf(const PlanTransfer& transfer, int32_t t);
  int32_t StartWhole(const Piece& piece, int32_t source, int32_t computation);
  Live StartSlice(const Piece& piece, int32_t source, int32_t computation);
  void End(const Live& live);
  void AddPlaces(const Live& live, int32_t done);
  void Join(int32_t t, int32_t computation);
  ShapeProto ResultOf(const PlanTransfer& transfer, int32_t source) const;
  int32_t LocationOf(const PlanTransfer& transfer) const;
  int32_t HomeOf(int32_t value) const;
  const ShapeProto& ShapeOf(int32_t value) const;
  bool SlicesOperand(const PlanTransfer& transfer) const;
  int32_t ReplacedBy(const PlanTransfer& transfer) const {
    return schedule_.ticks[transfer.replaces].instruction;
  }

  const Program& program_;
  const Plan& plan_;
  const Module& module_;
  const Schedule& schedule_;
  const ValueFlow& flow_;
  const std::vector<int32_t>& newest_;
  ModuleDraft& draft_;
  PlacedValues& values_;
  HloModuleProto& proto_;
  PlanTransfers all_;
  std::vector<Tick> last_use_;              // by array: in the module before, of what is a value
  std::vector<bool> is_replaced_;           // by tick
  std::multimap<Tick, int32_t> beginning_;  // pieces that haven't begun, by their start
  std::vector<int32_t> value_;              // by transfer: what it copies, once it begins
  std::vector<std::map<int64_t, int32_t>> slices_;  // by transfer: what has arrived, by first byte
  std::vector<Live> live_;                          // in order of their begins
  std::vector<Again> again_;
  std::vector<int32_t> left_out_;  // transfers
};

}  // namespace mallocgame::hlo
