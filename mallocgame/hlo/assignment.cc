// Makes a Plan of the compiler's own answer.
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/assigned_module.h"
#include "mallocgame/hlo/buffers.h"
#include "mallocgame/hlo/hlo.pb.h"
#include "mallocgame/hlo/import.h"
#include "mallocgame/hlo/module.h"
#include "mallocgame/hlo/opcodes.h"
#include "mallocgame/hlo/overlaps.h"
#include "mallocgame/hlo/schedule.h"

namespace mallocgame::hlo {
namespace {

// The place of an access whose arrays lie in different places.
constexpr int32_t kSeveral = -2;

class PlanReader {
 public:
  PlanReader(const Program& program, const Module& before, const Schedule& schedule,
             const BufferTable& table, const AssignedModule& assigned, const Hardware& hardware)
      : program_(program), before_(before), schedule_(schedule), of_array_(table.of_array),
        assigned_(assigned) {
    plan_.program_fingerprint = program.fingerprint();
    plan_.hardware = hardware.name;
    plan_.served_by.resize(program.accesses().size());
    const size_t places = assigned.places().size();
    buffer_of_.assign(places, kNone);
    residence_of_.assign(places, kNone);
    place_of_access_.assign(program.accesses().size(), kNone);
    replaced_.assign(program.instructions().size(), false);
  }

  absl::StatusOr<Plan> Run() {
    for (size_t t = 0; t < schedule_.ticks.size(); ++t) NameByInstruction(schedule_.ticks[t]);
    NameByTransfer();
    for (Tick t = 0; t < program_.ticks(); ++t) MG_RETURN_IF_ERROR(PlaceAccesses(t));
    MG_RETURN_IF_ERROR(PlaceReplaced());
    PlaceLoopEntries();
    MG_RETURN_IF_ERROR(AddResidences());
    MG_RETURN_IF_ERROR(AddCopies());
    return std::move(plan_);
  }

 private:
  absl::Span<const int32_t> BuffersOf(int32_t i) const {
    const HloInstruction& instruction = before_.instruction(i);
    return absl::MakeConstSpan(of_array_).subspan(instruction.first_array, instruction.array_count);
  }
  const std::string& NameOf(BufferId buffer) const { return program_.buffer(buffer).name; }
  const Place& place(int32_t p) const { return assigned_.places()[p]; }

  // Finds what lies in places: the buffers that an instruction from before assignment has there.
  void NameByInstruction(const Schedule::Entry& entry) {
    const HloInstructionProto& proto = *before_.instruction(entry.instruction).proto;
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
    if (MovesNothing(proto) && proto.opcode() != "parameter" && proto.opcode() != "constant" &&
        proto.opcode() != "custom-call") {
      return;
    }
    name(entry.instruction, *own);
    if (MovesNothing(proto)) return;
    for (size_t k = 0; k < before_.operands(entry.instruction).size(); ++k) {
      name(before_.operands(entry.instruction)[k], assigned_.module().operands(*own)[k]);
    }
  }

  // A place that only transfers touch holds the buffer that it is filled from, or that it fills.
  void NameByTransfer() {
    const absl::Span<const Transfer> transfers = assigned_.transfers();
    const auto name = [this](int32_t unnamed, int32_t named) {
      int32_t& buffer = buffer_of_[unnamed];
      if (buffer == kNone) buffer = buffer_of_[named];
    };
    for (const Transfer& transfer : transfers) name(transfer.to, transfer.from);
    for (size_t k = transfers.size(); k-- > 0;) name(transfers[k].from, transfers[k].to);
  }

  absl::Span<const Access> AccessesAt(Tick t) const {
    const Instruction& instruction = program_.instruction(t);
    return program_.accesses().subspan(instruction.first_access, instruction.access_count);
  }
  int32_t& PlaceOfAccess(Tick t, size_t slot) {
    return place_of_access_[program_.instruction(t).first_access + slot];
  }

  // An access is served from fast memory if all arrays of it lie in one place there.
  absl::Status PlaceAccesses(Tick t) {
    const absl::Span<const Access> accesses = AccessesAt(t);
    const Schedule::Entry& entry = schedule_.ticks[t];
    if (accesses.empty() || entry.kind != InstructionKind::kOrdinary) return absl::OkStatus();
    const std::optional<int32_t> own = assigned_.Counterpart(entry.instruction);
    if (!own) {
      if (program_.instruction(t).plain_copy) return absl::OkStatus();
      return absl::InvalidArgumentError(
          absl::StrCat("assigned module: no instruction '", program_.instruction(t).name, "'"));
    }
    for (size_t slot = 0; slot < accesses.size(); ++slot) {
      std::optional<int32_t> found;
      const auto look = [&](int32_t instruction, int32_t counterpart) {
        const absl::Span<const int32_t> buffers = BuffersOf(instruction),
                                        places = assigned_.PlacesOf(counterpart);
        for (size_t k = 0; k < buffers.size(); ++k) {
          if (buffers[k] != accesses[slot].buffer.value) continue;
          const int32_t here = places[k] != kNone && place(places[k]).fast ? places[k] : kNone;
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

  absl::Status CantTell(const Transfer& transfer, absl::string_view what) const {
    const auto describe = [this](int32_t p) {
      const int32_t buffer = buffer_of_[p];
      const std::string name = buffer == kNone
                                   ? "something unknown"
                                   : absl::StrCat("buffer '", NameOf(BufferId(buffer)), "'");
      return absl::StrCat(name, place(p).fast ? " in fast memory" : " in main memory");
    };
    return absl::InvalidArgumentError(
        absl::StrCat("assigned module: the transfer before tick ", transfer.begin, " from ",
                     describe(transfer.from), " to ", describe(transfer.to), ": ", what));
  }

  // A transfer from one buffer to another replaces a plain copy that is gone.
  absl::Status PlaceReplaced() {
    // the ticks of plain copies that are gone, by the buffers that they read and write
    std::map<std::pair<int32_t, int32_t>, std::vector<Tick>> gone;
    for (Tick t = 0; t < program_.ticks(); ++t) {
      if (!program_.instruction(t).plain_copy) continue;
      if (assigned_.Counterpart(schedule_.ticks[t].instruction)) continue;
      gone[{AccessesAt(t)[0].buffer.value, AccessesAt(t)[1].buffer.value}].push_back(t);
    }
    replaces_.assign(assigned_.transfers().size(), kNone);
    for (size_t k = 0; k < replaces_.size(); ++k) {
      const Transfer& transfer = assigned_.transfers()[k];
      const int32_t from = buffer_of_[transfer.from];
      const int32_t to = buffer_of_[transfer.to];
      if (from == to || to == kNone || !program_.buffer(BufferId(to)).eligible) continue;
      const auto found = gone.find({from, to});
      if (found == gone.end()) return CantTell(transfer, "no plain copy between them is missing");
      if (place(transfer.from).fast || !place(transfer.to).fast) {
        return CantTell(transfer, "a plain copy can be replaced by a prefetch only");
      }
      const auto after = absl::c_upper_bound(found->second, transfer.begin);
      replaces_[k] = after == found->second.begin() ? *after : *std::prev(after);
      replaced_[replaces_[k]] = true;
      PlaceOfAccess(replaces_[k], 1) = transfer.to;
    }
    return absl::OkStatus();
  }

  // If a loop carries the place that an access inside is served from, the buffer stays there over
  // the whole loop.
  void PlaceLoopEntries() {
    for (const Loop& loop : program_.loops()) {
      const std::optional<int32_t> own =
          assigned_.Counterpart(schedule_.ticks[loop.entry].instruction);
      if (!own) continue;
      const absl::Span<const int32_t> places = assigned_.PlacesOf(*own);
      std::vector<int32_t> carried(places.begin(), places.end());
      absl::c_sort(carried);
      for (size_t slot = 0; slot < AccessesAt(loop.entry).size(); ++slot) {
        const absl::Span<const AccessId> accesses =
            program_.accesses_of(AccessesAt(loop.entry)[slot].buffer);
        const AccessId entry(program_.instruction(loop.entry).first_access + slot);
        const auto first = std::next(absl::c_lower_bound(accesses, entry));
        const auto last = std::find_if(first, accesses.end(), [&](AccessId a) {
          return program_.access(a).tick >= loop.exit;
        });
        const auto resident = std::find_if(first, last, [&](AccessId a) {
          return place_of_access_[a.index()] >= 0 &&
                 absl::c_binary_search(carried, place_of_access_[a.index()]);
        });
        if (resident == last) continue;
        const int32_t stays = place_of_access_[resident->index()];
        place_of_access_[entry.index()] = stays;
        for (auto inside = first; inside != last; ++inside)
          place_of_access_[inside->index()] = stays;
      }
    }
  }

  // Stretches the residence of a place so that it covers [begin, end).
  void Cover(int32_t p, Tick begin, Tick end) {
    Residence& residence = plan_.residences[residence_of_[p]];
    residence.begin = std::min(residence.begin, begin);
    residence.end = std::max(residence.end, end);
  }

  absl::Status AddResidences() {
    for (size_t a = 0; a < place_of_access_.size(); ++a) {
      const int32_t p = place_of_access_[a];
      if (p < 0) continue;
      const Access& access = program_.accesses()[a];
      int32_t& residence = residence_of_[p];
      if (residence == kNone) {
        if (!place(p).offset) {
          return absl::InvalidArgumentError(absl::StrCat(
              "assigned module: the buffer assignment gives no offset in fast memory to buffer '",
              NameOf(access.buffer), "'"));
        }
        residence = static_cast<int32_t>(plan_.residences.size());
        plan_.residences.push_back({access.buffer, *place(p).offset, program_.ticks(), 0});
      }
      const BufferId there = plan_.residences[residence].buffer;
      if (there != access.buffer) {
        return absl::InvalidArgumentError(
            absl::StrCat("assigned module: buffers '", NameOf(access.buffer), "' and '",
                         NameOf(there), "' share one place in fast memory"));
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

  absl::Status AddCopies() {
    for (size_t k = 0; k < replaces_.size(); ++k) {
      const Transfer& transfer = assigned_.transfers()[k];
      const bool in = place(transfer.to).fast, out = place(transfer.from).fast;
      const int32_t fast = in ? transfer.to : transfer.from;
      if (!(in || out) || residence_of_[fast] == kNone) continue;
      if (in && out) return CantTell(transfer, "a transfer goes between the two memories");
      Copy copy;
      copy.kind = in ? CopyKind::kPrefetch : CopyKind::kWriteBack;
      copy.residence = ResidenceId(residence_of_[fast]);
      copy.begin = transfer.begin;
      copy.end = transfer.end;
      copy.part_begin = transfer.part_begin;
      copy.part_end = transfer.part_end;
      copy.preload = transfer.preload;
      copy.replaces = replaces_[k];
      Cover(fast, copy.begin, copy.end);
      plan_.copies.push_back(copy);
    }
    absl::c_stable_sort(plan_.copies,
                        [](const Copy& a, const Copy& b) { return a.begin < b.begin; });
    return absl::OkStatus();
  }

  const Program& program_;
  const Module& before_;
  const Schedule& schedule_;
  const std::vector<int32_t>& of_array_;  // by array of before_: its buffer
  const AssignedModule& assigned_;
  Plan plan_;
  std::vector<int32_t> buffer_of_, residence_of_;  // by place
  // the place in fast memory; kNone or kSeveral: the access is served from main memory
  std::vector<int32_t> place_of_access_;
  std::vector<Tick> replaces_;  // by transfer: the plain copy that it replaces, or kNone
  std::vector<bool> replaced_;  // by tick: a transfer replaces this plain copy
};

}  // namespace
}  // namespace mallocgame::hlo

namespace mallocgame {

absl::StatusOr<Plan> ReadAssignment(const Program& program, absl::string_view module,
                                    absl::string_view assigned, const Hardware& hardware) {
  MG_RETURN_IF_ERROR(ValidateHardware(hardware));
  MG_ASSIGN_OR_RETURN(const std::unique_ptr<const hlo::Module> before,
                      hlo::Module::Parse(module, "module"));
  MG_ASSIGN_OR_RETURN(const hlo::Schedule schedule, hlo::Flatten(*before, /*default_trips=*/1));
  MG_ASSIGN_OR_RETURN(const hlo::BufferTable table, hlo::BuildBuffers(*before, schedule));
  MG_RETURN_IF_ERROR(hlo::CheckMadeOf(program, *before, schedule, table));
  MG_ASSIGN_OR_RETURN(const hlo::AssignedModule after,
                      hlo::AssignedModule::Read(*before, schedule, assigned, hardware));
  MG_ASSIGN_OR_RETURN(Plan plan,
                      hlo::PlanReader(program, *before, schedule, table, after, hardware).Run());
  hlo::MoveOverlapping(program, hardware, plan);
  return plan;
}

}  // namespace mallocgame
