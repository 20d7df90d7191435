// Reads the module after memory space assignment.
#include "mallocgame/hlo/import/assigned_module.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/module/async_chains.h"
#include "mallocgame/hlo/module/buffer_assignment.h"
#include "mallocgame/hlo/module/dataflow.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/opcodes.h"

namespace mallocgame::hlo {

absl::StatusOr<AssignedModule> AssignedModule::Read(const Module& before, const Schedule& schedule,
                                                    absl::string_view bytes,
                                                    const Hardware& hardware) {
  AssignedModule assigned;
  MG_ASSIGN_OR_RETURN(assigned.module_, Module::Parse(bytes, "assigned module"));
  if (!assigned.module_->proto().has_buffer_assignment()) {
    return Refused({.rule = "readable"},
                   absl::InvalidArgumentError("assigned module: it has no buffer_assignment"));
  }
  const absl::Status status = CheckFastMemorySpace(*assigned.module_, hardware.fast_memory_space);
  if (!status.ok()) return Prefixed("assigned module", status);
  MG_ASSIGN_OR_RETURN(const Schedule own, Flatten(*assigned.module_));
  MG_RETURN_IF_ERROR(assigned.Match(before, schedule));
  MG_RETURN_IF_ERROR(assigned.BuildPlaces(own, hardware));
  assigned.MapTicks(schedule, own);
  MG_RETURN_IF_ERROR(assigned.ReadTransfers(schedule, own));
  return assigned;
}

std::optional<int32_t> AssignedModule::Counterpart(int32_t instruction) const {
  const int32_t own = counterpart_[instruction];
  if (own == kNone) return std::nullopt;
  return own;
}

absl::Span<const int32_t> AssignedModule::PlacesOf(int32_t i) const {
  const HloInstruction& instruction = module_->instruction(i);
  return absl::MakeConstSpan(place_of_).subspan(instruction.first_array, instruction.array_count);
}

// Whether `own` may be copy `i` of the module before: a copy to the same shape, and of the same
// operand as far as both are known.
bool AssignedModule::IsSameCopy(const Module& before, int32_t i, int32_t own) const {
  if (module_->opcode(own) != kCopy) return false;
  const ShapeProto &a = before.instruction(i).proto->shape(),
                   &b = module_->instruction(own).proto->shape();
  if (a.element_type() != b.element_type() ||
      !std::equal(a.dimensions().begin(), a.dimensions().end(), b.dimensions().begin(),
                  b.dimensions().end()))
    return false;
  const int32_t known = counterpart_[before.operands(i)[0]], operand = module_->operands(own)[0];
  return known == kNone || original_[operand] == kNone || known == operand;
}

// By name. But the compiler numbers copies anew, so that one may have another's name or a new one.
absl::Status AssignedModule::Match(const Module& before, const Schedule& schedule) {
  counterpart_.assign(before.instructions().size(), kNone);
  original_.assign(module_->instructions().size(), kNone);
  std::vector<int32_t> unmatched;  // copies
  for (const Schedule::Entry& entry : schedule.ticks) {
    const HloInstructionProto& proto = *before.instruction(entry.instruction).proto;
    const std::optional<int32_t> found = module_->FindByName(proto.name());
    const bool copies = before.opcode(entry.instruction) == kCopy;
    if (!found || module_->opcode(*found) != before.opcode(entry.instruction) ||
        (copies && !IsSameCopy(before, entry.instruction, *found))) {
      if (copies) unmatched.push_back(entry.instruction);
      continue;
    }
    const int32_t own = *found;
    counterpart_[entry.instruction] = own;
    original_[own] = entry.instruction;
    if (MovesNothing(before.instruction(entry.instruction))) continue;
    const auto same_arrays = [&](int32_t a, int32_t b) {
      return before.instruction(a).array_count == module_->instruction(b).array_count;
    };
    const absl::Span<const int32_t> a = before.operands(entry.instruction),
                                    b = module_->operands(own);
    bool same = a.size() == b.size() && same_arrays(entry.instruction, own);
    for (size_t k = 0; same && k < a.size(); ++k) same = same_arrays(a[k], b[k]);
    if (!same) {
      return Refused({.rule = "other-program", .instructions = {module_->NameOf(own)}},
                     absl::InvalidArgumentError(
                         absl::StrCat("assigned module: ", module_->Where(own),
                                      " has other operands or results than before assignment")));
    }
  }
  for (const int32_t i : unmatched) MatchCopy(before, i);
  return absl::OkStatus();
}

// With the first one left of the same operand.
void AssignedModule::MatchCopy(const Module& before, int32_t i) {
  const int32_t operand = counterpart_[before.operands(i)[0]];
  if (operand == kNone) return;
  for (int32_t own = 0; own < std::ssize(original_); ++own) {
    if (original_[own] != kNone || !IsSameCopy(before, i, own) ||
        module_->operands(own)[0] != operand)
      continue;
    counterpart_[i] = own;
    original_[own] = i;
    return;
  }
}

absl::Status AssignedModule::BuildPlaces(const Schedule& own, const Hardware& hardware) {
  MG_ASSIGN_OR_RETURN(const Dataflow dataflow, Dataflow::Build(*module_, own));
  MG_RETURN_IF_ERROR(ReadOffsets(hardware.fast_memory_space));
  place_of_.assign(range_of_.size(), kNone);
  std::vector<int32_t> place_of_set(range_of_.size(), kNone);
  // Wrapped computations come before their callers, so a place that slices fill gets the offsets of
  // its slices here.
  for (int32_t i = 0; i < std::ssize(module_->instructions()); ++i) {
    const HloInstruction& instruction = module_->instruction(i);
    for (int32_t k = 0; k < instruction.array_count; ++k) {
      const Array& array = module_->arrays(i)[k];
      if (array.size_bytes == 0) continue;
      const int32_t node = instruction.first_array + k;
      int32_t& place = place_of_set[dataflow.SetOf(node)];
      if (place == kNone) {
        place = static_cast<int32_t>(places_.size());
        Place fresh;
        fresh.fast = array.memory_space == hardware.fast_memory_space;
        places_.push_back(fresh);
      }
      place_of_[node] = place;
      Place& of = places_[place];
      of.size_bytes = std::max(of.size_bytes, array.size_bytes);
      if (const std::optional<Range>& range = range_of_[node]) {
        of.offset = std::min(of.offset.value_or(range->offset), range->offset);
        of.end_offset = std::max(of.end_offset, range->end_offset);
      }
    }
  }
  return absl::OkStatus();
}

absl::Status AssignedModule::ReadOffsets(int64_t color) {
  range_of_.resize(module_->array_count());
  const auto assigned = AssignedBuffers(module_->proto().buffer_assignment(), *module_, color);
  if (!assigned.ok()) {
    return Refused({.rule = "readable"}, absl::InvalidArgumentError(absl::StrCat(
                                             "assigned module: ", assigned.status().message())));
  }
  for (const AssignedBuffer& one : *assigned) {
    if (one.array != kNone) range_of_[one.array] = {one.offset, one.offset + one.size};
  }
  return absl::OkStatus();
}

// After assignment, instructions that move nothing may have another place in the schedule. So only
// the others tell the time, and those that wait for a transfer of the program's own.
void AssignedModule::MapTicks(const Schedule& before, const Schedule& own) {
  const size_t ticks = own.ticks.size();
  // by own tick: the tick before assignment of the instruction that it was
  std::vector<Tick> matched(ticks, kNone);
  region_.assign(own.regions.size(), 0);  // the entry computation if nothing tells it
  // by the exit of a loop: its entry; by a conditional or call: where what it runs begins
  std::vector<Tick> entry_of(before.ticks.size());
  std::iota(entry_of.begin(), entry_of.end(), 0);
  for (const Loop& loop : before.loops) entry_of[loop.exit] = loop.entry;
  for (const Region& region : before.regions) {
    if (region.kind != RegionKind::kBranch && region.kind != RegionKind::kCall) continue;
    Tick caller = region.end;
    while (before.ticks[caller].region != region.parent) ++caller;
    entry_of[caller] = std::min(entry_of[caller], region.begin);
  }
  for (size_t t = 0; t < ticks; ++t) {
    const Schedule::Entry& entry = own.ticks[t];
    const int32_t original = original_[entry.instruction];
    if (original == kNone) continue;
    const Tick tick = before.tick_of[original];
    region_[entry.region] = before.ticks[tick].region;
    const bool moves_nothing = MovesNothing(module_->instruction(entry.instruction)) &&
                               !IsAsynchronous(module_->opcode(entry.instruction));
    const bool runs_others = entry_of[tick] != tick;
    if (entry.kind == InstructionKind::kOrdinary && moves_nothing && !runs_others) continue;
    matched[t] = entry.kind == InstructionKind::kLoopExit ? tick : entry_of[tick];
  }
  std::vector<Tick> following(own.regions.size(), 0);
  for (size_t r = 0; r < following.size(); ++r) {
    following[r] = before.regions[region_[r]].end;
  }
  next_.assign(ticks, 0);
  for (size_t t = ticks; t-- > 0;) {
    Tick& next = following[own.ticks[t].region];
    if (matched[t] != kNone) next = matched[t];
    next_[t] = next;
  }
}

// Whether memory space assignment has begun a transfer here. Others, such as a slice that a loop
// starts in one trip for the next, are the program's own.
bool AssignedModule::IsTransfer(int32_t i) const {
  const Opcode opcode = module_->opcode(i);
  if (opcode == kCopyStart) return original_[i] == kNone;
  if (opcode != kAsyncStart || original_[i] != kNone || module_->called(i).empty()) return false;
  const Opcode wrapped = WrappedBy(i);
  return wrapped == kSlice || wrapped == kDynamicSlice || wrapped == kCopy;
}

absl::Status AssignedModule::ReadTransfers(const Schedule& before, const Schedule& own) {
  std::vector<Tick> done(module_->instructions().size(), kNone);  // by start
  for (size_t t = 0; t < own.ticks.size(); ++t) {
    const int32_t i = own.ticks[t].instruction;
    const Opcode opcode = module_->opcode(i);
    if (opcode != kCopyDone && opcode != kAsyncDone) continue;
    done[StartOfDone(*module_, i)] = static_cast<Tick>(t);
  }
  for (size_t t = 0; t < own.ticks.size(); ++t) {
    const int32_t i = own.ticks[t].instruction;
    if (!IsTransfer(i)) continue;
    if (done[i] == kNone && module_->opcode(i) == kAsyncStart && WrappedBy(i) == kDynamicSlice)
      continue;  // the program's own
    if (done[i] == kNone) {
      return Refused({.rule = "transfer", .instructions = {module_->NameOf(i)}},
                     absl::InvalidArgumentError(
                         absl::StrCat("assigned module: ", module_->Where(i), " is never done")));
    }
    Transfer window;
    window.begin = next_[t];
    window.end = next_[done[i]];
    window.started = static_cast<Tick>(t);
    window.done = done[i];
    window.region = region_[own.ticks[t].region];
    // Right before a conditional or call, whose first tick is one of what it runs.
    const Region& around = before.regions[window.region];
    if (window.begin > around.begin && window.begin < around.end &&
        before.ticks[window.begin].region != window.region) {
      --window.begin;
    }
    MG_RETURN_IF_ERROR(AddTransfer(i, window));
  }
  return absl::OkStatus();
}

absl::Status AssignedModule::AddTransfer(int32_t start, const Transfer& window) {
  const HloInstructionProto& proto = *module_->instruction(start).proto;
  const bool copies = module_->opcode(start) == kCopyStart;
  MG_ASSIGN_OR_RETURN(const Module::ArrayRange result, module_->SubShape(start, {copies ? 0 : 1}));
  // What follows the array are the indices of a dynamic slice.
  if (result.count != 1 || module_->operands(start).empty() ||
      PlacesOf(module_->operands(start)[0]).size() != 1) {
    return Refused({.rule = "transfer", .instructions = {module_->NameOf(start)}},
                   absl::InvalidArgumentError(absl::StrCat(
                       "assigned module: ", module_->Where(start), " transfers a tuple")));
  }
  const int32_t array = result.first;
  Transfer transfer = window;
  transfer.from = PlacesOf(module_->operands(start)[0])[0];
  transfer.to = PlacesOf(start)[array];
  if (transfer.from == kNone || transfer.to == kNone) return absl::OkStatus();
  transfer.end = std::max(window.begin, window.end);
  transfer.preload = proto.has_cross_program_prefetch_index();
  if (transfer.preload) transfer.begin = 0;
  const Place& place = places_[transfer.to];
  transfer.part_end = module_->arrays(start)[array].size_bytes;
  if (!copies && place.fast) {
    const HloInstruction& root =
        module_->instruction(module_->computation(module_->called(start)[0]).root);
    const std::optional<Range>& range = range_of_[root.first_array];
    if (root.array_count == 1 && range && place.offset)
      transfer.part_begin = range->offset - *place.offset;
    transfer.part_end += transfer.part_begin;
  }
  if (transfer.part_end > place.size_bytes) {
    return Refused({.rule = "transfer", .instructions = {module_->NameOf(start)}},
                   absl::InvalidArgumentError(absl::StrCat(
                       "assigned module: ", module_->Where(start), " fills bytes ",
                       transfer.part_begin, " to ", transfer.part_end, " of ", place.size_bytes)));
  }
  transfers_.push_back(transfer);
  return absl::OkStatus();
}

}  // namespace mallocgame::hlo
