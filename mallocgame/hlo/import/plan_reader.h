// Makes a Plan of the module after memory space assignment (ReadAssignment). Private to the folder.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/hlo/import/assigned_module.h"
#include "mallocgame/hlo/import/buffers.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/schedule.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame::hlo {

class PlanReader {
 public:
  // `let_go`: what a loop carries may go through main memory (LetGo). `turned_by`: the offset that
  // is 0 in the plan.
  PlanReader(const Program& program, const Module& before, const Schedule& schedule,
             const BufferTable& table, const AssignedModule& assigned, const Hardware& hardware,
             bool let_go, int64_t turned_by);

  absl::StatusOr<Plan> Run();

 private:
  struct Step : Transfer {
    Tick replaces = kNone;  // the plain copy whose place it takes
  };

  // assignment.cc
  void NameByInstruction(const Schedule::Entry& entry);
  void NameByTransfer();
  absl::Status PlaceAccesses(Tick t);
  void MakeWherePinned();
  void Cover(int32_t p, Tick begin, Tick end);
  absl::Status CheckCapacity() const;
  void Turn();
  absl::Status AddResidences();
  absl::Status AddCopies();
  bool BeginsBehindBody(const Transfer& transfer, BufferId buffer) const;
  absl::Status CantTell(const Transfer& transfer, absl::string_view what) const;
  absl::Span<const int32_t> BuffersOf(int32_t i) const {
    const HloInstruction& instruction = before_.instruction(i);
    return absl::MakeConstSpan(of_array_).subspan(instruction.first_array, instruction.array_count);
  }
  const std::string& NameOf(BufferId buffer) const { return program_.buffer(buffer).name; }
  const Place& place(int32_t p) const { return places_[p]; }
  absl::Span<const Access> AccessesAt(Tick t) const {
    const Instruction& instruction = program_.instruction(t);
    return program_.accesses().subspan(instruction.first_access, instruction.access_count);
  }
  int32_t& PlaceOfAccess(Tick t, size_t slot) {
    return place_of_access_[program_.instruction(t).first_access + slot];
  }
  int32_t Same(int32_t p) const;

  // assignment_replaced.cc
  absl::Status PlaceReplaced();
  void FillInTheCopysPlace();
  bool CopyDoes(Tick t, Step& transfer);
  void ReadWhereMade(Tick t);
  Tick FirstFill(int32_t p, Tick Transfer::* when) const;
  void PutBackReplaced(int32_t p);

  // assignment_loops.cc
  bool IsRefilled(const Loop& loop, int32_t p) const;
  int32_t RefilledPlace(const Loop& loop, BufferId buffer) const;
  bool InBody(const Loop& loop, const Transfer& transfer) const;
  void FillAnew(const Loop& loop, absl::Span<const AccessId> inside,
                absl::Span<const AccessId> after, int32_t p);
  bool Moves(const Transfer& transfer, int32_t p) const;
  int32_t PlaceLike(int32_t p, absl::Span<const AccessId> accesses);
  bool LetGo(const Loop& loop, absl::Span<const AccessId> before, absl::Span<const AccessId> inside,
             absl::Span<const AccessId> after, int32_t p);
  void Fill(int32_t p, Tick begin, int32_t region);
  void Empty(int32_t p, Tick begin, Tick end, int32_t region);
  void AddTransfer(Transfer transfer);
  int32_t MainPlace();
  void WidenFills();
  void PlaceLoopEntries();

  const Program& program_;
  const Module& before_;
  const Schedule& schedule_;
  const std::vector<int32_t>& of_array_;  // by array of before_: its buffer
  const AssignedModule& assigned_;
  const Hardware& hardware_;
  const bool let_go_;
  const int64_t turned_by_;
  // Of assigned_; and a place for each one that is refilled in a loop.
  std::vector<Place> places_;
  std::vector<Step> transfers_;
  Plan plan_;
  std::vector<int32_t> buffer_of_, residence_of_;  // by place
  std::vector<int32_t> same_as_;         // by place: another that it is one with, or itself
  std::map<int32_t, int32_t> refilled_;  // by place that FillAnew has added: the loop's own
  // the place in fast memory; kNone or kSeveral: the access is served from main memory
  std::vector<int32_t> place_of_access_;
  std::vector<bool> replaced_;  // by tick: a transfer replaces this plain copy
};

}  // namespace mallocgame::hlo
