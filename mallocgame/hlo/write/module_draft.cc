// Keeps pointers into the proto until Finish() orders its instructions.
#include "mallocgame/hlo/write/module_draft.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/module/hlo.pb.h"

namespace mallocgame::hlo {

absl::StatusOr<ModuleDraft> ModuleDraft::Create(const Module& module, const Schedule& schedule,
                                                HloModuleProto& proto) {
  ModuleDraft draft(proto);
  const size_t computations = module.computations().size();
  draft.nodes_.resize(module.instructions().size());
  draft.computations_.resize(computations);
  draft.is_written_.assign(computations, false);
  draft.orders_.resize(computations);
  draft.next_id_.assign(computations, 0);
  for (const Computation& computation : module.computations())
    draft.roots_.push_back(computation.root);
  size_t found = 0;
  for (HloComputationProto& computation : *proto.mutable_computations()) {
    draft.top_computation_id_ = std::max(draft.top_computation_id_, computation.id());
    for (HloInstructionProto& instruction : *computation.mutable_instructions()) {
      const std::optional<int32_t> i = module.FindById(instruction.id());
      if (!i || module.instruction(*i).proto->name() != instruction.name()) continue;
      const int32_t c = module.instruction(*i).computation;
      draft.computations_[c] = &computation;
      draft.nodes_[*i] = {&instruction, c, kNone};
      draft.next_id_[c] = std::max(draft.next_id_[c], instruction.id() + 1);
      draft.top_id_ = std::max(draft.top_id_, instruction.id());
      draft.names_.insert(instruction.name());
      ++found;
    }
  }
  if (found != module.instructions().size()) {
    return Refused(
        {.rule = "several-callers"},
        absl::UnimplementedError(absl::StrCat(
            "module: ", module.instructions().size() - found,
            " instructions belong to computations that are called from several places")));
  }
  draft.ids_tell_computation_ = (draft.top_id_ >> 32) != 0;
  for (const Schedule::Entry& entry : schedule.ticks)
    draft.is_written_[module.instruction(entry.instruction).computation] = true;
  return draft;
}

int64_t ModuleDraft::NewId(int32_t computation) {
  return ids_tell_computation_ ? next_id_[computation]++ : ++top_id_;
}

std::string ModuleDraft::NewName(absl::string_view base, int64_t id) {
  const size_t dot = base.rfind('.');
  if (dot != absl::string_view::npos && dot > 0 &&
      base.find_first_not_of("0123456789", dot + 1) == absl::string_view::npos) {
    base = base.substr(0, dot);
  }
  for (int64_t k = id & 0xffffffff;; ++k) {
    std::string name = absl::StrCat(base, ".", k);
    if (names_.insert(name).second) return name;
  }
}

int32_t ModuleDraft::Add(int32_t computation, absl::string_view opcode) {
  HloInstructionProto& proto = *added_.emplace_back(std::make_shared<HloInstructionProto>());
  proto.set_id(NewId(computation));
  proto.set_name(NewName(opcode, proto.id()));
  proto.set_opcode(std::string(opcode));
  nodes_.push_back({&proto, computation, kNone});
  return instruction_count() - 1;
}

int32_t ModuleDraft::Clone(int32_t i) {
  const int32_t clone = Add(computation(i), instruction(i).name());
  const int64_t id = instruction(clone).id();
  std::string name = instruction(clone).name();
  instruction(clone) = instruction(i);
  instruction(clone).set_id(id);
  instruction(clone).set_name(std::move(name));
  instruction(clone).clear_control_predecessor_ids();
  return clone;
}

HloComputationProto& ModuleDraft::AddComputation(absl::string_view name) {
  HloComputationProto& computation =
      *new_computations_.emplace_back(std::make_shared<HloComputationProto>());
  computation.set_id(++top_computation_id_);
  computation.set_name(NewName(name, top_computation_id_));
  return computation;
}

int64_t ModuleDraft::FirstId(const HloComputationProto& computation, int count) {
  if (ids_tell_computation_) return computation.id() << 32;
  top_id_ += count;
  return top_id_ - count + 1;
}

void ModuleDraft::Emit(int32_t i) {
  nodes_[i].emitted_at = emitted_++;
  orders_[computation(i)].push_back(i);
}

// An edge from what isn't there any more, or from what has come to stand behind, orders nothing.
void ModuleDraft::KeepControlEdges(int32_t c) {
  absl::flat_hash_set<int64_t> before;
  for (const int32_t i : orders_[c]) {
    auto& edges = *instruction(i).mutable_control_predecessor_ids();
    edges.erase(std::remove_if(edges.begin(), edges.end(),
                               [&before](int64_t id) { return !before.contains(id); }),
                edges.end());
    before.insert(instruction(i).id());
  }
}

void ModuleDraft::FinishComputation(int32_t c) {
  KeepControlEdges(c);
  HloComputationProto& computation = *computations_[c];
  google::protobuf::RepeatedPtrField<HloInstructionProto> ordered;
  auto& sequence = (*proto_.mutable_schedule()->mutable_sequences())[computation.id()];
  sequence.clear_instruction_ids();
  for (const int32_t i : orders_[c]) {
    sequence.add_instruction_ids(instruction(i).id());
    ordered.Add()->Swap(&instruction(i));
  }
  computation.mutable_instructions()->Swap(&ordered);
  computation.set_root_id(
      computation
          .instructions(static_cast<int>(
              std::find(orders_[c].begin(), orders_[c].end(), roots_[c]) - orders_[c].begin()))
          .id());
}

void ModuleDraft::Finish() {
  for (size_t c = 0; c < computations_.size(); ++c) {
    if (is_written_[c]) FinishComputation(static_cast<int32_t>(c));
  }
  google::protobuf::RepeatedPtrField<HloComputationProto> all;
  for (const auto& added : new_computations_) {
    HloComputationProto& computation = *added;
    auto& sequence = (*proto_.mutable_schedule()->mutable_sequences())[computation.id()];
    for (const HloInstructionProto& instruction : computation.instructions())
      sequence.add_instruction_ids(instruction.id());
    all.Add()->Swap(&computation);
  }
  for (HloComputationProto& computation : *proto_.mutable_computations())
    all.Add()->Swap(&computation);
  proto_.mutable_computations()->Swap(&all);
}

}  // namespace mallocgame::hlo
