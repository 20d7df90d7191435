// Reads the module after memory space assignment.
#include "mallocgame/hlo/assigned_module.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/dataflow.h"
#include "mallocgame/hlo/schedule.h"

namespace mallocgame::hlo {

absl::StatusOr<AssignedModule> AssignedModule::Read(const Module& before, const Timeline& timeline,
                                                    absl::string_view bytes,
                                                    const Hardware& hardware) {
  AssignedModule assigned;
  MG_ASSIGN_OR_RETURN(assigned.module_, Module::Parse(bytes, "assigned module"));
  if (!assigned.module_->proto().has_buffer_assignment()) {
    return absl::InvalidArgumentError("assigned module: it has no buffer_assignment");
  }
  const absl::Status status = CheckFastMemorySpace(*assigned.module_, hardware.fast_memory_space);
  if (!status.ok())
    return absl::InvalidArgumentError(absl::StrCat("assigned module: ", status.message()));
  MG_ASSIGN_OR_RETURN(const Timeline own, Flatten(*assigned.module_, /*default_trips=*/1));
  MG_RETURN_IF_ERROR(assigned.Match(before, timeline));
  MG_RETURN_IF_ERROR(assigned.BuildPlaces(own, hardware));
  assigned.MapTicks(timeline, own);
  MG_RETURN_IF_ERROR(assigned.ReadTransfers(own));
  return assigned;
}

absl::Span<const int32_t> AssignedModule::PlacesOf(int32_t i) const {
  const Instruction& instruction = module_->instruction(i);
  return absl::MakeConstSpan(place_of_).subspan(instruction.first_array, instruction.array_count);
}

absl::Status AssignedModule::Match(const Module& before, const Timeline& timeline) {
  counterpart_.assign(before.instructions().size(), -1);
  original_.assign(module_->instructions().size(), -1);
  for (const Timeline::Entry& entry : timeline.ticks) {
    const HloInstructionProto& proto = *before.instruction(entry.instruction).proto;
    const int32_t own = module_->FindByName(proto.name());
    if (own < 0 || module_->instruction(own).proto->opcode() != proto.opcode()) continue;
    counterpart_[entry.instruction] = own;
    original_[own] = entry.instruction;
    if (MovesNothing(proto)) continue;
    const auto same_arrays = [&](int32_t a, int32_t b) {
      return before.instruction(a).array_count == module_->instruction(b).array_count;
    };
    const absl::Span<const int32_t> a = before.operands(entry.instruction),
                                    b = module_->operands(own);
    bool same = a.size() == b.size() && same_arrays(entry.instruction, own);
    for (size_t k = 0; same && k < a.size(); ++k) same = same_arrays(a[k], b[k]);
    if (!same) {
      return absl::InvalidArgumentError(
          absl::StrCat("assigned module: ", module_->Where(own),
                       " has other operands or results than before assignment"));
    }
  }
  return absl::OkStatus();
}

absl::Status AssignedModule::BuildPlaces(const Timeline& own, const Hardware& hardware) {
  MG_ASSIGN_OR_RETURN(const Dataflow dataflow, Dataflow::Build(*module_, own));
  MG_RETURN_IF_ERROR(ReadOffsets(hardware.fast_memory_space));
  place_of_.assign(offset_of_.size(), -1);
  std::vector<int32_t> place_of_set(offset_of_.size(), -1);
  // Arrays of wrapped computations come first: with them a place of slices has its slices' offsets.
  for (int32_t i = 0; i < static_cast<int32_t>(module_->instructions().size()); ++i) {
    const Instruction& instruction = module_->instruction(i);
    for (int32_t k = 0; k < instruction.array_count; ++k) {
      const Array& array = module_->arrays(i)[k];
      if (array.size_bytes == 0) continue;
      const size_t node = instruction.first_array + k;
      int32_t& place = place_of_set[dataflow.SetOf(static_cast<int32_t>(node))];
      if (place < 0) {
        place = static_cast<int32_t>(places_.size());
        places_.push_back(Place{array.memory_space == hardware.fast_memory_space, -1, 0});
      }
      place_of_[node] = place;
      Place& of = places_[place];
      of.size_bytes = std::max(of.size_bytes, array.size_bytes);
      if (offset_of_[node] >= 0 && (of.offset < 0 || offset_of_[node] < of.offset))
        of.offset = offset_of_[node];
    }
  }
  return absl::OkStatus();
}

absl::Status AssignedModule::ReadOffsets(int64_t color) {
  const Instruction& last = module_->instructions().back();
  offset_of_.assign(last.first_array + last.array_count, -1);
  const BufferAssignmentProto& assignment = module_->proto().buffer_assignment();
  absl::flat_hash_map<int64_t, const LogicalBufferProto*> buffers;
  for (const LogicalBufferProto& buffer : assignment.logical_buffers())
    buffers.emplace(buffer.id(), &buffer);
  for (const BufferAllocationProto& allocation : assignment.buffer_allocations()) {
    if (allocation.color() != color) continue;
    for (const BufferAllocationProto::Assigned& assigned : allocation.assigned()) {
      if (assigned.offset() < 0 || assigned.offset() > kMaxArrayBytes) {
        return absl::InvalidArgumentError(
            absl::StrCat("assigned module: buffer allocation ", allocation.index(), " has offset ",
                         assigned.offset(), "; allowed are 0 to ", kMaxArrayBytes));
      }
      const auto found = buffers.find(assigned.logical_buffer_id());
      if (found == buffers.end()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "assigned module: buffer allocation ", allocation.index(), " holds logical buffer ",
            assigned.logical_buffer_id(), ", which there is none of"));
      }
      const LogicalBufferProto::Location& at = found->second->defined_at();
      const int32_t i = at.instruction_id() != 0 || at.instruction_name().empty()
                            ? module_->FindById(at.instruction_id())
                            : module_->FindByName(at.instruction_name());
      if (i < 0) {
        return absl::InvalidArgumentError(
            absl::StrCat("assigned module: logical buffer ", found->first, " is of instruction ",
                         at.instruction_id(), ", which there is none of"));
      }
      MG_ASSIGN_OR_RETURN(const Module::ArrayRange range, module_->SubShape(i, at.shape_index()));
      if (range.count != 1) continue;
      offset_of_[module_->instruction(i).first_array + range.first] = assigned.offset();
    }
  }
  return absl::OkStatus();
}

// Instructions that do nothing may stand elsewhere after assignment, so only the others tell the
// time.
void AssignedModule::MapTicks(const Timeline& before, const Timeline& own) {
  const size_t ticks = own.ticks.size();
  // The tick of the matched instruction that each own tick is, or -1.
  std::vector<Tick> matched(ticks, -1);
  std::vector<int32_t> region(own.regions.size(), -1);  // before assignment
  std::vector<Tick> entry_of(before.ticks.size(), -1);  // by a loop's exit: its entry
  for (const Loop& loop : before.loops) entry_of[loop.exit] = loop.entry;
  for (size_t t = 0; t < ticks; ++t) {
    const Timeline::Entry& entry = own.ticks[t];
    const int32_t original = original_[entry.instruction];
    if (original < 0) continue;
    const Tick tick = before.tick_of[original];
    region[entry.region] = before.ticks[tick].region;
    const bool moves_nothing = MovesNothing(*module_->instruction(entry.instruction).proto);
    if (entry.kind == InstructionKind::kOrdinary && moves_nothing) continue;
    matched[t] = entry.kind == InstructionKind::kLoopEntry ? entry_of[tick] : tick;
  }
  std::vector<Tick> following(own.regions.size(), 0);
  for (size_t r = 0; r < following.size(); ++r) {
    const int32_t counterpart = std::max(region[r], 0);
    following[r] = before.regions[counterpart].end;
  }
  next_.assign(ticks, 0);
  for (size_t t = ticks; t-- > 0;) {
    Tick& next = following[own.ticks[t].region];
    if (matched[t] >= 0) next = matched[t];
    next_[t] = next;
  }
}

absl::Status AssignedModule::ReadTransfers(const Timeline& own) {
  std::vector<Tick> done(module_->instructions().size(), -1);  // by start
  for (size_t t = 0; t < own.ticks.size(); ++t) {
    const int32_t i = own.ticks[t].instruction;
    const std::string& opcode = module_->instruction(i).proto->opcode();
    if (opcode != "copy-done" && opcode != "async-done") continue;
    int32_t start = module_->operands(i)[0];
    while (module_->instruction(start).proto->opcode() == "async-update")
      start = module_->operands(start)[0];
    done[start] = next_[t];
  }
  for (size_t t = 0; t < own.ticks.size(); ++t) {
    const int32_t i = own.ticks[t].instruction;
    const std::string& opcode = module_->instruction(i).proto->opcode();
    if (opcode != "copy-start" && opcode != "async-start") continue;
    if (done[i] < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("assigned module: ", module_->Where(i), " is never done"));
    }
    MG_RETURN_IF_ERROR(AddTransfer(i, next_[t], done[i]));
  }
  return absl::OkStatus();
}

absl::Status AssignedModule::AddTransfer(int32_t start, Tick begin, Tick end) {
  const HloInstructionProto& proto = *module_->instruction(start).proto;
  const bool copies = proto.opcode() == "copy-start";
  if (!copies) {
    const std::string& wrapped =
        module_->instruction(module_->computation(module_->called(start)[0]).root).proto->opcode();
    if (wrapped != "slice" && wrapped != "copy") return absl::OkStatus();
  }
  MG_ASSIGN_OR_RETURN(const Module::ArrayRange result, module_->SubShape(start, {copies ? 0 : 1}));
  if (result.count != 1 || module_->operands(start).size() != 1 ||
      PlacesOf(module_->operands(start)[0]).size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("assigned module: ", module_->Where(start), " transfers a tuple"));
  }
  const size_t array = result.first;
  Transfer transfer;
  transfer.from = PlacesOf(module_->operands(start)[0])[0];
  transfer.to = PlacesOf(start)[array];
  if (transfer.from < 0 || transfer.to < 0) return absl::OkStatus();
  transfer.begin = begin;
  transfer.end = std::max(begin, end);
  transfer.preload = proto.has_cross_program_prefetch_index();
  if (transfer.preload) transfer.begin = 0;
  const Place& place = places_[transfer.to];
  transfer.part_end = module_->arrays(start)[array].size_bytes;
  if (!copies && place.fast) {
    const Instruction& root =
        module_->instruction(module_->computation(module_->called(start)[0]).root);
    const int64_t offset = offset_of_[root.first_array];
    if (root.array_count == 1 && offset >= 0) transfer.part_begin = offset - place.offset;
    transfer.part_end += transfer.part_begin;
  }
  if (transfer.part_end > place.size_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("assigned module: ", module_->Where(start),
                                                   " fills bytes ", transfer.part_begin, " to ",
                                                   transfer.part_end, " of ", place.size_bytes));
  }
  transfers_.push_back(transfer);
  return absl::OkStatus();
}

}  // namespace mallocgame::hlo
