// A copy of a module that is being rewritten: its instructions may change, new ones are added, and
// those on the time axis are put into a new order. Private to the folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/schedule.h"

namespace mallocgame::hlo {

// Instructions have the indices of the Module that the draft was made of; those of new ones follow.
// Computations have the Module's indices too.
class ModuleDraft {
 public:
  // `proto` is what `module` was read from; Finish() changes it. Unimplemented if the module has
  // computations that are called from several places.
  static absl::StatusOr<ModuleDraft> Create(const Module& module, const Schedule& schedule,
                                            HloModuleProto& proto);

  HloInstructionProto& instruction(int32_t i) { return *nodes_[i].proto; }
  const HloInstructionProto& instruction(int32_t i) const { return *nodes_[i].proto; }
  int32_t computation(int32_t i) const { return nodes_[i].computation; }
  int32_t instruction_count() const { return static_cast<int32_t>(nodes_.size()); }
  // Whether the computation is on the time axis, so that its instructions are emitted anew.
  bool IsWritten(int32_t computation) const { return is_written_[computation]; }

  // A new instruction with an id and a name of its own.
  int32_t Add(int32_t computation, absl::string_view opcode);
  // A copy of an instruction, without its control edges.
  int32_t Clone(int32_t i);
  // A new computation that stands before all others. Its instructions are added to it directly,
  // with ids from FirstId() on.
  HloComputationProto& AddComputation(absl::string_view name);
  int64_t FirstId(const HloComputationProto& computation, int count);

  // Appends the instruction to the schedule of its computation.
  void Emit(int32_t i);
  bool IsEmitted(int32_t i) const { return nodes_[i].emitted_at >= 0; }
  // How many instructions were emitted before it: the time of the new module.
  int32_t EmittedAt(int32_t i) const { return nodes_[i].emitted_at; }
  void SetRoot(int32_t computation, int32_t i) { roots_[computation] = i; }
  absl::Span<const int32_t> Order(int32_t computation) const { return orders_[computation]; }

  // Puts what was emitted into the proto, in its order, and drops what was not.
  void Finish();

 private:
  struct Node {
    HloInstructionProto* proto = nullptr;
    int32_t computation = 0;
    int32_t emitted_at = kNone;
  };

  explicit ModuleDraft(HloModuleProto& proto) : proto_(proto) {}
  int64_t NewId(int32_t computation);
  std::string NewName(absl::string_view base, int64_t id);
  void FinishComputation(int32_t c);
  void KeepControlEdges(int32_t c);

  HloModuleProto& proto_;
  std::vector<Node> nodes_;
  std::vector<std::shared_ptr<HloInstructionProto>> added_;
  std::vector<std::shared_ptr<HloComputationProto>> new_computations_;
  std::vector<HloComputationProto*> computations_;  // by the module's index
  std::vector<bool> is_written_;                    // by computation
  std::vector<std::vector<int32_t>> orders_;        // by computation
  std::vector<int32_t> roots_;                      // by computation
  std::vector<int64_t> next_id_;                    // by computation, where ids tell it
  bool ids_tell_computation_ = false;
  int64_t top_id_ = 0, top_computation_id_ = 0;
  int32_t emitted_ = 0;
  absl::flat_hash_set<std::string> names_;
};

}  // namespace mallocgame::hlo
