// Finds the transfers of an assigned module, asks which are needed, and rewrites the module's
// protobuf without the others.
#include "mallocgame/hlo/import/unassigned_module.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/import/buffers.h"
#include "mallocgame/hlo/import/needed_copies.h"
#include "mallocgame/hlo/import/pins.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/memory_spaces.h"
#include "mallocgame/hlo/module/opcodes.h"
#include "mallocgame/hlo/module/schedule.h"

namespace mallocgame::hlo {
namespace {

// A copy or slice between the two memories, or slices of all of an array that are joined again.
struct FastTransfer {
  int32_t source = 0;             // the instruction whose result is copied
  int32_t end = kNone;            // the instruction that gives the copy; kNone: nothing uses it
  std::vector<int32_t> others;    // all other instructions of it
  int32_t slice = kNone;          // the instruction that it wraps, if it is a slice
  std::vector<int32_t> begun_as;  // arrays
};

class TransferFinder {
 public:
  TransferFinder(const Module& module, const Schedule& schedule, int64_t fast)
      : module_(module), schedule_(schedule), fast_(fast), users_(module.instructions().size()) {
    for (int32_t i = 0; i < std::ssize(module.instructions()); ++i) {
      for (const int32_t operand : module.operands(i)) users_[operand].push_back(i);
    }
  }

  std::vector<FastTransfer> Find() {
    for (int32_t i = 0; i < std::ssize(module_.instructions()); ++i) {
      if (schedule_.tick_of[i] == kNone) continue;
      if (std::optional<FastTransfer> transfer = BeginningAt(i)) {
        if (transfer->end != kNone) by_end_[transfer->end] = found_.size();
        found_.push_back(*std::move(transfer));
      }
    }
    for (int32_t i = 0; i < std::ssize(module_.instructions()); ++i) {
      if (schedule_.tick_of[i] != kNone) Join(i);
    }
    std::erase_if(found_, [](const FastTransfer& t) { return t.source == kNone; });
    return std::move(found_);
  }

 private:
  const HloInstructionProto& proto(int32_t i) const { return *module_.instruction(i).proto; }

  // The one array of an instruction's result; null if it has several.
  const Array* ArrayOf(int32_t i) const {
    return module_.arrays(i).size() == 1 ? &module_.arrays(i)[0] : nullptr;
  }

  std::optional<FastTransfer> BeginningAt(int32_t i) const {
    const bool copies = module_.opcode(i) == kCopyStart;
    if ((!copies && module_.opcode(i) != kAsyncStart) || module_.operands(i).empty())
      return std::nullopt;
    FastTransfer transfer;
    transfer.source = module_.operands(i)[0];
    transfer.others.push_back(i);
    const auto made = module_.SubShape(i, {copies ? 0 : 1});
    const Array* const from = ArrayOf(transfer.source);
    if (!made.ok() || made->count != 1 || from == nullptr) return std::nullopt;
    const Array& to = module_.arrays(i)[made->first];
    const bool between = (from->memory_space == fast_ && to.memory_space == 0) ||
                         (from->memory_space == 0 && to.memory_space == fast_);
    if (!between) return std::nullopt;
    transfer.begun_as.push_back(module_.instruction(i).first_array + made->first);
    if (!copies) {
      if (module_.called(i).size() != 1) return std::nullopt;
      transfer.slice = module_.computation(module_.called(i)[0]).root;
      const absl::Span<const int32_t> sliced = module_.operands(transfer.slice);
      const Opcode slices = module_.opcode(transfer.slice);
      if ((slices != kSlice && slices != kDynamicSlice) ||
          sliced.size() != module_.operands(i).size() || module_.opcode(sliced[0]) != kParameter)
        return std::nullopt;
    } else if (ArrayWithoutSpace(*from->shape) != ArrayWithoutSpace(*to.shape)) {
      return std::nullopt;
    }
    if (users_[i].size() > 1) return std::nullopt;
    if (users_[i].empty()) return transfer;
    const int32_t end = users_[i][0];
    if (module_.opcode(end) != (copies ? kCopyDone : kAsyncDone) || ArrayOf(end) == nullptr)
      return std::nullopt;
    transfer.end = end;
    return transfer;
  }

  // The transfer of a slice that ends at `i`, perhaps behind bitcasts, which it gets then. None:
  // there is no such transfer, or others use it too.
  std::optional<size_t> SliceEndingAt(int32_t i, std::vector<int32_t>& bitcasts) const {
    while (module_.opcode(i) == kBitcast && users_[i].size() == 1 &&
           module_.operands(i).size() == 1) {
      bitcasts.push_back(i);
      i = module_.operands(i)[0];
    }
    const auto found = by_end_.find(i);
    if (found == by_end_.end() || users_[i].size() != 1) return std::nullopt;
    const int32_t slice = found_[found->second].slice;
    if (slice == kNone || module_.opcode(slice) != kSlice) return std::nullopt;
    return found->second;
  }

  // Makes one transfer of slices that are together all of an array, and are joined by `i`.
  void Join(int32_t i) {
    if (proto(i).custom_call_target() != "ConcatBitcast" || module_.operands(i).empty()) return;
    FastTransfer joined;
    std::vector<size_t> parts;
    for (const int32_t operand : module_.operands(i)) {
      const std::optional<size_t> part = SliceEndingAt(operand, joined.others);
      if (!part) return;
      parts.push_back(*part);
    }
    joined.end = i;
    const int32_t sliced = found_[parts[0]].source;
    const std::optional<int32_t> source = WithShapeOf(i, sliced);
    if (!source) return;
    joined.source = *source;
    for (const size_t p : parts) {
      const FastTransfer& part = found_[p];
      if (part.source != sliced) return;
      joined.others.push_back(part.end);
      joined.others.insert(joined.others.end(), part.others.begin(), part.others.end());
      joined.begun_as.insert(joined.begun_as.end(), part.begun_as.begin(), part.begun_as.end());
    }
    if (!AreAllOf(*ArrayOf(sliced)->shape, parts)) return;
    for (const size_t p : parts) found_[p].source = kNone;
    found_.push_back(std::move(joined));
  }

  // What bitcasts have made `array` of, or itself, that has the shape of the result of `i`.
  std::optional<int32_t> WithShapeOf(int32_t i, int32_t array) const {
    const Array* const to = ArrayOf(i);
    if (to == nullptr) return std::nullopt;
    for (;; array = module_.operands(array)[0]) {
      const Array* const from = ArrayOf(array);
      if (from == nullptr) return std::nullopt;
      if (ArrayWithoutSpace(*from->shape) == ArrayWithoutSpace(*to->shape)) return array;
      if (module_.opcode(array) != kBitcast || module_.operands(array).size() != 1)
        return std::nullopt;
    }
  }

  // Whether slices that cut one dimension make up the whole.
  bool AreAllOf(const ShapeProto& whole, absl::Span<const size_t> parts) const {
    std::vector<const HloInstructionProto*> slices;
    for (const size_t p : parts) slices.push_back(&proto(found_[p].slice));
    for (const HloInstructionProto* slice : slices) {
      if (slice->slice_dimensions_size() != whole.dimensions_size()) return false;
    }
    int cut = 0;
    for (int d = 0; d < whole.dimensions_size(); ++d) {
      std::sort(slices.begin(), slices.end(), [d](const auto* a, const auto* b) {
        return a->slice_dimensions(d).start() < b->slice_dimensions(d).start();
      });
      bool every_all = true, in_line = true;
      int64_t reached = 0;
      for (const HloInstructionProto* slice : slices) {
        const auto& part = slice->slice_dimensions(d);
        const int64_t begin = std::exchange(reached, part.limit());
        every_all &= part.start() == 0 && part.limit() == whole.dimensions(d);
        in_line &= part.stride() <= 1 && part.start() == begin;
      }
      if (every_all) continue;
      if (!in_line || slices.back()->slice_dimensions(d).limit() != whole.dimensions(d))
        return false;
      ++cut;
    }
    return cut == 1;
  }

  const Module& module_;
  const Schedule& schedule_;
  const int64_t fast_;
  std::vector<std::vector<int32_t>> users_;      // by instruction
  absl::flat_hash_map<int32_t, size_t> by_end_;  // of those that a single start begins
  std::vector<FastTransfer> found_;
};

class Rewriter {
 public:
  explicit Rewriter(const Module& module) : module_(module), proto_(module.module()) {
    for (int32_t c = 0; c < std::ssize(module.computations()); ++c) {
      const Computation& computation = module.computation(c);
      for (int32_t k = 0; k < computation.instruction_count; ++k)
        instructions_.push_back(proto_.mutable_computations(c)->mutable_instructions(k));
    }
    instead_.resize(instructions_.size());
    for (size_t i = 0; i < instead_.size(); ++i) instead_[i] = static_cast<int32_t>(i);
    removed_.resize(instructions_.size());
  }

  void TakeOut(const FastTransfer& transfer) {
    for (const int32_t i : transfer.others) removed_[i] = true;
    if (transfer.end == kNone) return;
    removed_[transfer.end] = true;
    instead_[transfer.end] = transfer.source;
  }

  // Makes it a plain copy, or a plain slice.
  void MakePlain(const FastTransfer& transfer) {
    for (const int32_t i : transfer.others) removed_[i] = true;
    if (transfer.end == kNone) return;
    HloInstructionProto& end = *instructions_[transfer.end];
    HloInstructionProto plain;
    plain.set_opcode("copy");
    plain.add_operand_ids(instructions_[transfer.source]->id());
    if (transfer.slice != kNone) {
      const HloInstructionProto& slice = *module_.instruction(transfer.slice).proto;
      *plain.mutable_slice_dimensions() = slice.slice_dimensions();
      *plain.mutable_dynamic_slice_sizes() = slice.dynamic_slice_sizes();
      plain.set_opcode(slice.opcode());
      for (const int32_t index : module_.operands(transfer.others[0]).subspan(1))
        plain.add_operand_ids(instructions_[index]->id());
    }
    plain.set_name(end.name());
    plain.set_id(end.id());
    *plain.mutable_shape() = end.shape();
    end = std::move(plain);
  }

  // Brings shapes back to main memory and returns the module.
  HloModuleProto Finish(int64_t fast) && {
    absl::flat_hash_map<int64_t, int64_t> ids;  // of what was removed: of what stands for it
    for (size_t i = 0; i < instructions_.size(); ++i) {
      if (!removed_[i]) continue;
      int32_t at = instead_[i];
      while (removed_[at] && instead_[at] != at) at = instead_[at];
      ids[instructions_[i]->id()] = instructions_[at]->id();
    }
    const auto replace = [&](int64_t id) {
      const auto found = ids.find(id);
      return found == ids.end() ? id : found->second;
    };
    const auto is_removed = [&](int64_t id) { return ids.contains(id); };
    int32_t first = 0;
    for (HloComputationProto& computation : *proto_.mutable_computations()) {
      computation.set_root_id(replace(computation.root_id()));
      auto& sequences = *proto_.mutable_schedule()->mutable_sequences();
      if (const auto found = sequences.find(computation.id()); found != sequences.end()) {
        auto& order = *found->second.mutable_instruction_ids();
        order.erase(std::remove_if(order.begin(), order.end(), is_removed), order.end());
      }
      for (HloInstructionProto& instruction : *computation.mutable_instructions()) {
        for (int64_t& operand : *instruction.mutable_operand_ids()) operand = replace(operand);
        auto& edges = *instruction.mutable_control_predecessor_ids();
        edges.erase(std::remove_if(edges.begin(), edges.end(), is_removed), edges.end());
        ToMain(*instruction.mutable_shape(), fast);
      }
      const int32_t count = computation.instructions_size();
      int kept = 0;
      for (int k = 0; k < count; ++k) {
        if (removed_[first + k]) continue;
        computation.mutable_instructions()->SwapElements(kept++, k);
      }
      computation.mutable_instructions()->DeleteSubrange(kept, count - kept);
      first += count;
      ToMain(*computation.mutable_program_shape(), fast);
    }
    ToMain(*proto_.mutable_host_program_shape(), fast);
    return std::move(proto_);
  }

 private:
  static void ToMain(ShapeProto& shape, int64_t fast) {
    for (ShapeProto* const array : ArraysOf(shape)) {
      if (array->layout().memory_space() == fast) array->mutable_layout()->clear_memory_space();
    }
  }
  static void ToMain(ProgramShapeProto& program, int64_t fast) {
    for (ShapeProto& parameter : *program.mutable_parameters()) ToMain(parameter, fast);
    ToMain(*program.mutable_result(), fast);
  }

  const Module& module_;
  HloModuleProto proto_;
  std::vector<HloInstructionProto*> instructions_;  // by the module's index
  std::vector<int32_t> instead_;                    // by instruction: what stands for it
  std::vector<bool> removed_;
};

int64_t FastResults(const Module& module, const Schedule& schedule, int64_t fast) {
  int64_t count = 0;
  for (int32_t i = 0; i < std::ssize(module.instructions()); ++i) {
    if (schedule.tick_of[i] == kNone || MovesNothing(module.instruction(i)) ||
        IsAsynchronous(module.opcode(i)))
      continue;
    for (const Array& array : module.arrays(i)) count += array.memory_space == fast ? 1 : 0;
  }
  return count;
}

// Whether arrays lie in fast memory that no kernel pins there. A module that can't be read so far
// is the importer's to refuse.
bool IsAssigned(const Module& module, int64_t fast_memory_space) {
  bool any = false;
  for (int32_t i = 0; i < std::ssize(module.instructions()); ++i) {
    for (const Array& array : module.arrays(i)) any |= array.memory_space == fast_memory_space;
  }
  if (!any) return false;
  const absl::StatusOr<Schedule> schedule = Flatten(module);
  if (!schedule.ok()) return false;
  const auto table = BuildBuffers(module, *schedule, fast_memory_space);
  return table.ok() &&
         !CheckBeforeAssignment(module, *schedule, table->of_array, fast_memory_space).ok();
}

}  // namespace

absl::StatusOr<UnassignedModule> Unassign(const Module& assigned, int64_t fast_memory_space) {
  MG_ASSIGN_OR_RETURN(const Schedule schedule, Flatten(assigned));
  UnassignedModule unassigned;
  unassigned.arrays = FastResults(assigned, schedule, fast_memory_space);
  const std::vector<FastTransfer> transfers =
      TransferFinder(assigned, schedule, fast_memory_space).Find();
  std::vector<CopyOfArray> copies;
  std::vector<const FastTransfer*> copied;
  Rewriter rewriter(assigned);
  for (const FastTransfer& transfer : transfers) {
    if (transfer.slice == kNone && transfer.end != kNone) {
      copies.push_back({assigned.instruction(transfer.source).first_array,
                        assigned.instruction(transfer.end).first_array, transfer.begun_as});
      copied.push_back(&transfer);
    } else {
      rewriter.MakePlain(transfer);
      ++(transfer.end == kNone ? unassigned.copies : unassigned.kept_copies);
    }
  }
  MG_ASSIGN_OR_RETURN(const std::vector<bool> needed, NeededCopies(assigned, schedule, copies));
  for (size_t c = 0; c < copies.size(); ++c) {
    if (needed[c]) {
      rewriter.MakePlain(*copied[c]);
    } else {
      rewriter.TakeOut(*copied[c]);
    }
    ++(needed[c] ? unassigned.kept_copies : unassigned.copies);
  }
  HloProto proto;
  *proto.mutable_hlo_module() = std::move(rewriter).Finish(fast_memory_space);
  MG_ASSIGN_OR_RETURN(unassigned.module, Module::Parse(proto.SerializeAsString(), "module"));
  return unassigned;
}

absl::StatusOr<UnassignedModule> ParseUnassigned(absl::string_view bytes,
                                                 int64_t fast_memory_space) {
  UnassignedModule unassigned;
  MG_ASSIGN_OR_RETURN(unassigned.module, Module::Parse(bytes, "module"));
  if (!IsAssigned(*unassigned.module, fast_memory_space)) return unassigned;
  return Unassign(*unassigned.module, fast_memory_space);
}

}  // namespace mallocgame::hlo
