// Makes a Plan of the compiler's own answer.
#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/import/accesses.h"
#include "mallocgame/hlo/import/import.h"
#include "mallocgame/hlo/import/overlaps.h"
#include "mallocgame/hlo/import/plan_reader.h"
#include "mallocgame/hlo/import/scratch.h"
#include "mallocgame/hlo/import/unassigned_module.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/opcodes.h"

namespace mallocgame::hlo {
namespace {

// The place of an access whose arrays lie in different places.
constexpr int32_t kSeveral = -2;

}  // namespace

PlanReader::PlanReader(const Program& program, const Module& before, const Schedule& schedule,
                       const BufferTable& table, const AssignedModule& assigned,
                       const Hardware& hardware, bool let_go, int64_t turned_by)
    : program_(program), before_(before), schedule_(schedule), of_array_(table.of_array),
      assigned_(assigned), hardware_(hardware), let_go_(let_go), turned_by_(turned_by) {
  plan_.program_fingerprint = program.fingerprint();
  plan_.hardware = hardware.name;
  plan_.served_by.resize(program.accesses().size());
  places_.assign(assigned.places().begin(), assigned.places().end());
  for (const Transfer& transfer : assigned.transfers()) transfers_.push_back({transfer});
  const size_t places = places_.size();
  buffer_of_.assign(places, kNone);
  residence_of_.assign(places, kNone);
  same_as_.resize(places);
  std::iota(same_as_.begin(), same_as_.end(), 0);
  place_of_access_.assign(program.accesses().size(), kNone);
  replaced_.assign(program.instructions().size(), false);
}

absl::StatusOr<Plan> PlanReader::Run() {
  for (size_t t = 0; t < schedule_.ticks.size(); ++t) NameByInstruction(schedule_.ticks[t]);
  NameByTransfer();
  MG_RETURN_IF_ERROR(CheckCapacity());
  Turn();
  for (Tick t = 0; t < program_.ticks(); ++t) MG_RETURN_IF_ERROR(PlaceAccesses(t));
  for (int32_t& p : place_of_access_) p = p >= 0 ? Same(p) : p;
  MakeWherePinned();
  MG_RETURN_IF_ERROR(PlaceReplaced());
  PlaceLoopEntries();
  WidenFills();
  MG_RETURN_IF_ERROR(AddResidences());
  MG_RETURN_IF_ERROR(AddCopies());
  return std::move(plan_);
}

// Finds what lies in places: the buffers that an instruction from before assignment has there.
void PlanReader::NameByInstruction(const Schedule::Entry& entry) {
  const Opcode opcode = before_.opcode(entry.instruction);
  const bool moves_nothing = MovesNothing(before_.instruction(entry.instruction));
  const std::optional<int32_t> own = assigned_.Counterpart(entry.instruction);
  if (!own || entry.kind != InstructionKind::kOrdinary) return;
  const auto name = [this](int32_t instruction, int32_t counterpart) {
    const absl::Span<const int32_t> buffers = BuffersOf(instruction),
                                    places = assigned_.PlacesOf(counterpart);
    for (size_t k = 0; k < buffers.size() && k < places.size(); ++k) {
      if (places[k] == kNone || buffers[k] == kNone) continue;
      int32_t& buffer = buffer_of_[places[k]];
      if (buffer == kNone) buffer = buffers[k];
    }
  };
  // The compiler may have rebuilt tuples, and what passes them on, with other elements.
  if (moves_nothing && opcode != kParameter && opcode != kConstant && opcode != kCustomCall) {
    return;
  }
  name(entry.instruction, *own);
  if (moves_nothing) return;
  for (size_t k = 0; k < before_.operands(entry.instruction).size(); ++k) {
    name(before_.operands(entry.instruction)[k], assigned_.module().operands(*own)[k]);
  }
}

// A place that only transfers touch holds the buffer that it is filled from, or that it fills.
void PlanReader::NameByTransfer() {
  const auto name = [this](int32_t unnamed, int32_t named) {
    int32_t& buffer = buffer_of_[unnamed];
    if (buffer == kNone) buffer = buffer_of_[named];
  };
  // What an eviction brings to main memory is what it was, whatever fetches it from there.
  for (const Transfer& transfer : transfers_) {
    const Place &from = place(transfer.from), &to = place(transfer.to);
    if (from.fast && !to.fast && from.size_bytes == to.size_bytes) name(transfer.to, transfer.from);
  }
  // A prefetch that replaces a plain copy is from another buffer. If only an eviction reads what
  // it brings, main memory tells the name; and if nothing but a later prefetch reads that, what
  // this fills.
  for (size_t k = transfers_.size(); k-- > 0;) {
    if (!place(transfers_[k].from).fast) name(transfers_[k].from, transfers_[k].to);
  }
  for (const Transfer& transfer : transfers_) {
    if (!place(transfer.to).fast) name(transfer.from, transfer.to);
  }
  for (const Transfer& transfer : transfers_) name(transfer.to, transfer.from);
  for (size_t k = transfers_.size(); k-- > 0;) name(transfers_[k].from, transfers_[k].to);
}

// The place whose residence stands for `p` too.
int32_t PlanReader::Same(int32_t p) const {
  while (same_as_[p] != p) p = same_as_[p];
  return p;
}

// An access is served from fast memory if all arrays of it lie in one place there. The compiler
// may read a value that a loop carries from one place and write its next to another. In a Plan an
// update is in one place, so these are one then: the one that is written.
absl::Status PlanReader::PlaceAccesses(Tick t) {
  const absl::Span<const Access> accesses = AccessesAt(t);
  const Schedule::Entry& entry = schedule_.ticks[t];
  if (accesses.empty() || entry.kind != InstructionKind::kOrdinary) return absl::OkStatus();
  const std::optional<int32_t> own = assigned_.Counterpart(entry.instruction);
  if (!own) {
    if (IsPlainCopy(before_, entry.instruction)) return absl::OkStatus();
    return Refused({.rule = "other-program", .instructions = {program_.instruction(t).name}},
                   absl::InvalidArgumentError(absl::StrCat("assigned module: no instruction '",
                                                           program_.instruction(t).name, "'")));
  }
  for (size_t slot = 0; slot < accesses.size(); ++slot) {
    std::optional<int32_t> found;
    const auto look = [&](int32_t instruction, int32_t counterpart) {
      const absl::Span<const int32_t> buffers = BuffersOf(instruction),
                                      places = assigned_.PlacesOf(counterpart);
      for (size_t k = 0; k < buffers.size(); ++k) {
        if (buffers[k] != accesses[slot].buffer.value) continue;
        const int32_t here = places[k] != kNone && place(places[k]).fast ? Same(places[k]) : kNone;
        if (found && *found >= 0 && here >= 0 && *found != here &&
            accesses[slot].kind == AccessKind::kUpdate && instruction == entry.instruction) {
          same_as_[*found] = here;
          found = here;
        }
        found = here == found.value_or(here) ? here : kSeveral;
      }
    };
    for (size_t k = 0; k < before_.operands(entry.instruction).size(); ++k) {
      look(before_.operands(entry.instruction)[k], assigned_.module().operands(*own)[k]);
    }
    look(entry.instruction, *own);
    PlaceOfAccess(t, slot) = found.value_or(kNone);
  }
  return absl::OkStatus();
}

// The compiler may make in main memory what a kernel pins to fast memory, and fetch it. A pin is of
// the value all its life, so that a Plan has it made where it is fetched to.
void PlanReader::MakeWherePinned() {
  for (size_t a = 0; a < place_of_access_.size(); ++a) {
    const Access& access = program_.accesses()[a];
    if (access.pin != Pin::kFast || access.kind != AccessKind::kWrite || place_of_access_[a] >= 0)
      continue;
    const absl::Span<const AccessId> all = program_.accesses_of(access.buffer);
    const auto next = absl::c_upper_bound(all, AccessId(static_cast<int32_t>(a)));
    if (next == all.end() || place_of_access_[next->index()] < 0) continue;
    const int32_t p = place_of_access_[a] = place_of_access_[next->index()];
    std::erase_if(transfers_, [&](const Transfer& t) { return Same(t.to) == p; });
  }
}

absl::Status PlanReader::CantTell(const Transfer& transfer, absl::string_view what) const {
  const auto describe = [this](int32_t p) {
    const int32_t buffer = buffer_of_[p];
    const std::string name = buffer == kNone
                                 ? "something unknown"
                                 : absl::StrCat("buffer '", NameOf(BufferId(buffer)), "'");
    return absl::StrCat(name, place(p).fast ? " in fast memory" : " in main memory");
  };
  return Refused({.rule = "transfer"},
                 absl::InvalidArgumentError(absl::StrCat(
                     "assigned module: the transfer before tick ", transfer.begin, " from ",
                     describe(transfer.from), " to ", describe(transfer.to), ": ", what)));
}

// Stretches the residence of a place so that it covers [begin, end).
void PlanReader::Cover(int32_t p, Tick begin, Tick end) {
  Residence& residence = plan_.residences[residence_of_[p]];
  residence.begin = std::min(residence.begin, begin);
  residence.end = std::max(residence.end, end);
}

// The assignment of a compiler that was told of more fast memory than the hardware has would be a
// plan of another problem.
absl::Status PlanReader::CheckCapacity() const {
  for (size_t p = 0; p < places_.size(); ++p) {
    const Place& here = places_[p];
    if (!here.fast || !here.offset || here.end_offset <= hardware_.fast_bytes) continue;
    const std::string name = buffer_of_[p] == kNone
                                 ? "something unknown"
                                 : absl::StrCat("buffer '", NameOf(BufferId(buffer_of_[p])), "'");
    return Refused(
        {.rule = "capacity", .exceeded_bytes = here.end_offset - hardware_.fast_bytes},
        absl::InvalidArgumentError(absl::StrCat(
            "assigned module: ", name, " has bytes ", *here.offset, " to ", here.end_offset,
            " of fast memory; hardware '", hardware_.name, "' has ", hardware_.fast_bytes,
            ", so it was compiled for another chip or with other options")));
  }
  return absl::OkStatus();
}

// Turns fast memory until an offset is 0: what lay below comes to lie on top.
void PlanReader::Turn() {
  for (Place& place : places_) {
    if (!place.fast || !place.offset) continue;
    const int64_t turned = *place.offset - turned_by_;
    *place.offset = turned < 0 ? turned + hardware_.fast_bytes : turned;
    // Where no scratch is needed, something may lie across the offset. MoveOverlapping moves it.
    if (*place.offset > hardware_.fast_bytes - place.size_bytes) *place.offset = 0;
  }
}

absl::Status PlanReader::AddResidences() {
  for (size_t a = 0; a < place_of_access_.size(); ++a) {
    const int32_t p = place_of_access_[a];
    if (p < 0) continue;
    const Access& access = program_.accesses()[a];
    int32_t& residence = residence_of_[p];
    if (residence == kNone) {
      if (!place(p).offset) {
        return Refused(
            {.rule = "buffer", .accesses = {static_cast<int32_t>(a)}},
            absl::InvalidArgumentError(absl::StrCat(
                "assigned module: the buffer assignment gives no offset in fast memory to buffer '",
                NameOf(access.buffer), "'")));
      }
      residence = static_cast<int32_t>(plan_.residences.size());
      plan_.residences.push_back({access.buffer, *place(p).offset, program_.ticks(), 0});
    }
    const BufferId there = plan_.residences[residence].buffer;
    if (there != access.buffer) {
      return Refused({.rule = "overlap", .accesses = {static_cast<int32_t>(a)}},
                     absl::InvalidArgumentError(absl::StrCat(
                         "assigned module: buffers '", NameOf(access.buffer), "' and '",
                         NameOf(there), "' share one place in fast memory")));
    }
    plan_.served_by[a] = ResidenceId(residence);
    // The transfer that replaces a plain copy may take place later than that copy did.
    if (replaced_[access.tick]) continue;
    Cover(p, access.tick,
          access.kind == AccessKind::kLoopEntry ? program_.loop_at(access.tick).exit
                                                : access.tick + 1);
  }
  return absl::OkStatus();
}

absl::Status PlanReader::AddCopies() {
  for (const Step& transfer : transfers_) {
    const bool in = place(transfer.to).fast, out = place(transfer.from).fast;
    if (!(in || out)) continue;
    const int32_t fast = Same(in ? transfer.to : transfer.from);
    if (residence_of_[fast] == kNone) continue;
    if (in && out) return CantTell(transfer, "a transfer goes between the two memories");
    const BufferId buffer = plan_.residences[residence_of_[fast]].buffer;
    if (const int64_t size = program_.buffer(buffer).size_bytes; transfer.part_end > size) {
      return CantTell(transfer, absl::StrCat("it is of ", transfer.part_end, " bytes, buffer '",
                                             NameOf(buffer), "' has ", size));
    }
    Copy copy;
    copy.kind = in ? CopyKind::kPrefetch : CopyKind::kEviction;
    copy.residence = ResidenceId(residence_of_[fast]);
    copy.begin = transfer.begin;
    copy.end = transfer.end;
    copy.part_begin = transfer.part_begin;
    copy.part_end = transfer.part_end;
    copy.preload = transfer.preload;
    copy.replaces = transfer.replaces;
    if (!in && BeginsBehindBody(transfer, buffer)) --copy.begin;
    Cover(fast, copy.begin, copy.end);
    plan_.copies.push_back(copy);
  }
  // What only passes through fast memory, between two ticks, takes one of them.
  for (Residence& residence : plan_.residences)
    residence.end = std::max(residence.end, residence.begin + 1);
  absl::c_stable_sort(plan_.copies, [](const Copy& a, const Copy& b) { return a.begin < b.begin; });
  return absl::OkStatus();
}

// At the end of a loop or branch the compiler begins evictions right before the tuple that it
// gives. That moves nothing, so such a window is at the end of the region, where a Plan has what
// is outside. Before the tuple is as good, if that isn't what makes the buffer's value.
bool PlanReader::BeginsBehindBody(const Transfer& transfer, BufferId buffer) const {
  const Region& region = program_.regions()[transfer.region];
  if (region.kind == RegionKind::kEntry || transfer.begin != region.end) return false;
  return absl::c_none_of(AccessesAt(region.end - 1),
                         [buffer](const Access& access) { return access.buffer == buffer; });
}

}  // namespace mallocgame::hlo

namespace mallocgame {

absl::StatusOr<Plan> ReadAssignment(const Program& program, absl::string_view module,
                                    absl::string_view assigned, const Hardware& hardware) {
  MG_RETURN_IF_ERROR(ValidateHardware(hardware));
  MG_ASSIGN_OR_RETURN(const hlo::UnassignedModule unassigned,
                      hlo::ParseUnassigned(module, hardware.fast_memory_space));
  const hlo::Module* const before = unassigned.module.get();
  MG_ASSIGN_OR_RETURN(const hlo::Schedule schedule, hlo::Flatten(*before));
  MG_ASSIGN_OR_RETURN(const hlo::BufferTable table, hlo::BuildBuffers(*before, schedule));
  MG_RETURN_IF_ERROR(hlo::CheckMadeOf(program, *before, schedule, table));
  MG_ASSIGN_OR_RETURN(const hlo::AssignedModule after,
                      hlo::AssignedModule::Read(*before, schedule, assigned, hardware));
  // A Plan leaves the lowest bytes to scratch. The compiler has it somewhere, and seldom in several
  // places, one after another. Then one of them may be the lowest for all.
  std::vector<int64_t> scratch = hlo::ScratchOffsets(after.module(), hardware.fast_memory_space);
  if (scratch.size() != 1 && !absl::c_linear_search(scratch, 0)) scratch.insert(scratch.begin(), 0);
  std::optional<Plan> first;
  for (const bool let_go : {false, true}) {
    for (const int64_t lowest : scratch) {
      hlo::PlanReader reader(program, *before, schedule, table, after, hardware, let_go, lowest);
      MG_ASSIGN_OR_RETURN(Plan plan, reader.Run());
      if (hlo::MoveOverlapping(program, hardware, plan)) return plan;
      if (!first) first = std::move(plan);
    }
  }
  return *std::move(first);
}

}  // namespace mallocgame
