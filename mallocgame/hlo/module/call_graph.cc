// Walks the call sites from the entry on in the order of execution within the module. Module bounds
// how deep calls nest.
#include "mallocgame/hlo/module/call_graph.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/module/hlo.pb.h"

namespace mallocgame::hlo {
namespace {

// Whether what the instruction calls runs on the program's behalf at that place. Other callees,
// such as fused computations and reducers, say what an instruction does, and may be shared.
bool IsCallSite(const Module& module, int32_t instruction) {
  const Opcode opcode = module.opcode(instruction);
  return RunsComputations(opcode) || opcode == kAsyncStart;
}

template <class Function>
void ForEachInstruction(const Computation& computation, const Function& function) {
  for (int32_t k = 0; k < computation.instruction_count; ++k)
    function(computation.first_instruction + k);
}

// How often each computation must exist, saturated; 0 if it is reached by no call site.
std::vector<int64_t> CountSites(const Module& module) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  std::vector<int64_t> sites(module.computations().size(), 0);
  sites[module.entry()] = 1;
  // A computation comes after all that it calls.
  for (auto c = static_cast<int32_t>(sites.size()); c-- > 0;) {
    if (sites[c] == 0) continue;
    ForEachInstruction(module.computation(c), [&](int32_t i) {
      if (!IsCallSite(module, i)) return;
      for (const int32_t callee : module.called(i))
        sites[callee] = std::min(sites[callee] + sites[c], kMost);
    });
  }
  return sites;
}

absl::Status CheckGrowth(const Module& module, const std::vector<int64_t>& sites) {
  int64_t instructions = 0, bytes = 0;
  for (size_t c = 0; c < sites.size(); ++c) {
    if (sites[c] < 2) continue;
    const Computation& computation = module.computation(static_cast<int32_t>(c));
    const auto size = static_cast<int64_t>(computation.proto->ByteSizeLong());
    instructions += (sites[c] - 1) * computation.instruction_count;
    if (instructions <= kMaxClonedInstructions) bytes += (sites[c] - 1) * size;
    if (instructions > kMaxClonedInstructions || bytes > kMaxClonedBytes) {
      return absl::InvalidArgumentError(absl::StrCat(
          "computation '", computation.proto->name(), "' is called from ", sites[c],
          " places, directly or through others, and each gets a copy; at most ",
          kMaxClonedInstructions, " instructions and ", kMaxClonedBytes, " bytes are copied"));
    }
  }
  return absl::OkStatus();
}

class CallGraphFlattener {
 public:
  CallGraphFlattener(const Module& module, HloModuleProto& proto)
      : module_(module), proto_(proto), visited_(module.computations().size(), false),
        clones_(module.computations().size()) {
    for (const Computation& computation : module.computations()) {
      next_computation_ = std::max(next_computation_, computation.proto->id());
    }
    for (const HloInstruction& instruction : module.instructions())
      next_instruction_ = std::max(next_instruction_, instruction.proto->id());
  }

  absl::Status Run() {
    // Copies get the ids above all others.
    constexpr int64_t kMostId = std::numeric_limits<int64_t>::max() - 2 * kMaxClonedInstructions;
    if (next_computation_ > kMostId || next_instruction_ > kMostId) {
      return absl::InvalidArgumentError(
          absl::StrCat("ids of instructions or computations above ", kMostId));
    }
    VisitOriginal(module_.entry());
    Reorder();
    return absl::OkStatus();
  }

 private:
  void VisitOriginal(int32_t c) {
    visited_[c] = true;
    const Computation& computation = module_.computation(c);
    ForEachInstruction(computation, [&](int32_t i) {
      if (!IsCallSite(module_, i)) return;
      HloInstructionProto& instruction =
          *proto_.mutable_computations(c)->mutable_instructions(i - computation.first_instruction);
      for (size_t k = 0; k < module_.called(i).size(); ++k) {
        const int32_t callee = module_.called(i)[k];
        if (visited_[callee]) {
          instruction.set_called_computation_ids(static_cast<int>(k), Clone(callee));
        } else {
          VisitOriginal(callee);
        }
      }
    });
  }

  // Returns the id of the copy.
  int64_t Clone(int32_t c) {
    const Computation& original = module_.computation(c);
    auto clone = std::make_unique<HloComputationProto>(*original.proto);
    const int64_t id = ++next_computation_;
    clone->set_id(id);
    clone->set_name(FreeName(original.proto->name(), computation_names_));
    absl::flat_hash_map<int64_t, int64_t> ids;
    ForEachInstruction(original, [&](int32_t i) {
      HloInstructionProto& copy = *clone->mutable_instructions(i - original.first_instruction);
      copy.set_id(ids[copy.id()] = ++next_instruction_);
      copy.set_name(FreeName(copy.name(), instruction_names_));
      for (int64_t& operand : *copy.mutable_operand_ids()) operand = ids[operand];
      if (!IsCallSite(module_, i)) return;
      for (size_t k = 0; k < module_.called(i).size(); ++k)
        copy.set_called_computation_ids(static_cast<int>(k), Clone(module_.called(i)[k]));
    });
    // Control edges may point ahead.
    for (HloInstructionProto& copy : *clone->mutable_instructions()) {
      for (int64_t& before : *copy.mutable_control_predecessor_ids()) {
        if (const auto found = ids.find(before); found != ids.end()) before = found->second;
      }
    }
    clone->set_root_id(ids[clone->root_id()]);
    auto& sequences = *proto_.mutable_schedule()->mutable_sequences();
    if (const auto found = sequences.find(original.proto->id()); found != sequences.end()) {
      HloScheduleProto::InstructionSequence sequence = found->second;
      for (int64_t& instruction : *sequence.mutable_instruction_ids())
        instruction = ids[instruction];
      sequences[id] = std::move(sequence);
    }
    clones_[c].push_back(std::move(clone));
    return id;
  }

  // A name that nothing else has: `name`.clone, or that with the first number that is free.
  std::string FreeName(const std::string& name, absl::flat_hash_map<std::string, int64_t>& counts) {
    const std::string base = absl::StrCat(name, ".clone");
    int64_t& count = counts[base];
    while (true) {
      std::string free = count == 0 ? base : absl::StrCat(base, ".", count);
      ++count;
      if (!module_.FindByName(free)) return free;
    }
  }

  // Puts copies behind their originals, so that callees stay before their callers.
  void Reorder() {
    google::protobuf::RepeatedPtrField<HloComputationProto> all;
    for (size_t c = 0; c < clones_.size(); ++c) {
      all.Add()->Swap(proto_.mutable_computations(static_cast<int>(c)));
      for (const auto& clone : clones_[c]) all.Add()->Swap(clone.get());
    }
    proto_.mutable_computations()->Swap(&all);
  }

  const Module& module_;
  HloModuleProto& proto_;
  std::vector<bool> visited_;                                              // by computation
  std::vector<std::vector<std::unique_ptr<HloComputationProto>>> clones_;  // by computation
  absl::flat_hash_map<std::string, int64_t> computation_names_, instruction_names_;
  int64_t next_computation_ = 0, next_instruction_ = 0;
};

}  // namespace

absl::StatusOr<bool> FlattenCallGraph(const Module& module, HloModuleProto& proto) {
  const std::vector<int64_t> sites = CountSites(module);
  if (std::none_of(sites.begin(), sites.end(), [](int64_t count) { return count > 1; }))
    return false;
  MG_RETURN_IF_ERROR(CheckGrowth(module, sites));
  MG_RETURN_IF_ERROR(CallGraphFlattener(module, proto).Run());
  return true;
}

}  // namespace mallocgame::hlo
