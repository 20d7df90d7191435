// Makes a Plan of the compiler's own answer.
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
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
#include "mallocgame/hlo/scratch.h"

namespace mallocgame::hlo {
namespace {

// The place of an access whose arrays lie in different places.
constexpr int32_t kSeveral = -2;

class PlanReader {
 public:
  PlanReader(const Program& program, const Module& before, const Schedule& schedule,
             const BufferTable& table, const AssignedModule& assigned, const Hardware& hardware,
             bool let_go, int64_t turned_by)
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

  absl::StatusOr<Plan> Run() {
    for (size_t t = 0; t < schedule_.ticks.size(); ++t) NameByInstruction(schedule_.ticks[t]);
    NameByTransfer();
    MG_RETURN_IF_ERROR(CheckCapacity());
    Turn();
    for (Tick t = 0; t < program_.ticks(); ++t) MG_RETURN_IF_ERROR(PlaceAccesses(t));
    for (int32_t& p : place_of_access_) p = p >= 0 ? Same(p) : p;
    MG_RETURN_IF_ERROR(PlaceReplaced());
    PlaceLoopEntries();
    WidenFills();
    MG_RETURN_IF_ERROR(AddResidences());
    MG_RETURN_IF_ERROR(AddCopies());
    return std::move(plan_);
  }

 private:
  struct Step : Transfer {
    Tick replaces = kNone;  // the plain copy whose place it takes
  };

  absl::Span<const int32_t> BuffersOf(int32_t i) const {
    const HloInstruction& instruction = before_.instruction(i);
    return absl::MakeConstSpan(of_array_).subspan(instruction.first_array, instruction.array_count);
  }
  const std::string& NameOf(BufferId buffer) const { return program_.buffer(buffer).name; }
  const Place& place(int32_t p) const { return places_[p]; }

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
    const auto name = [this](int32_t unnamed, int32_t named) {
      int32_t& buffer = buffer_of_[unnamed];
      if (buffer == kNone) buffer = buffer_of_[named];
    };
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

  absl::Span<const Access> AccessesAt(Tick t) const {
    const Instruction& instruction = program_.instruction(t);
    return program_.accesses().subspan(instruction.first_access, instruction.access_count);
  }
  int32_t& PlaceOfAccess(Tick t, size_t slot) {
    return place_of_access_[program_.instruction(t).first_access + slot];
  }

  // The place whose residence stands for `p` too.
  int32_t Same(int32_t p) const {
    while (same_as_[p] != p) p = same_as_[p];
    return p;
  }

  // An access is served from fast memory if all arrays of it lie in one place there. The compiler
  // may read a value that a loop carries from one place and write its next to another. In a Plan an
  // update is in one place, so these are one then: the one that is written.
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
          const int32_t here =
              places[k] != kNone && place(places[k]).fast ? Same(places[k]) : kNone;
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
    for (Step& transfer : transfers_) {
      const int32_t from = buffer_of_[transfer.from];
      const int32_t to = buffer_of_[transfer.to];
      if (from == to || to == kNone || !program_.buffer(BufferId(to)).eligible) continue;
      const auto found = gone.find({from, to});
      if (found == gone.end()) return CantTell(transfer, "no plain copy between them is missing");
      if (place(transfer.from).fast || !place(transfer.to).fast) {
        return CantTell(transfer, "a plain copy can be replaced by a prefetch only");
      }
      const auto after = absl::c_upper_bound(found->second, transfer.begin);
      transfer.replaces = after == found->second.begin() ? *after : *std::prev(after);
      replaced_[transfer.replaces] = true;
      PlaceOfAccess(transfer.replaces, 1) = Same(transfer.to);
    }
    return absl::OkStatus();
  }

  // Whether the body of the loop fills the place with a copy.
  bool IsRefilled(const Loop& loop, int32_t p) const {
    return absl::c_any_of(transfers_, [&](const Transfer& transfer) {
      return InBody(loop, transfer) && place(transfer.to).fast && Same(transfer.to) == p;
    });
  }
  bool InBody(const Loop& loop, const Transfer& transfer) const {
    const Region& region = program_.regions()[transfer.region];
    return region.kind == RegionKind::kLoopBody && region.end == loop.exit;
  }

  // The compiler may let go of what a loop carries after its last use in the body, and fetch it at
  // the end for the next trip. A Plan fetches it at the begin of each trip instead, and once more
  // behind the loop if that is for something: as many copies, and the bytes are as free between.
  // Then the loop's entry finds it in main memory.
  void FillAnew(const Loop& loop, absl::Span<const AccessId> inside,
                absl::Span<const AccessId> after, int32_t p) {
    const int32_t fresh = PlaceLike(p, inside);
    std::vector<Step> again;
    for (Step& transfer : transfers_) {
      if (!InBody(loop, transfer) || !Moves(transfer, p)) continue;
      const bool fills = place(transfer.to).fast;
      (fills ? transfer.to : transfer.from) = fresh;
      if (!fills) continue;
      again.push_back(transfer);
      transfer.begin = transfer.end = program_.regions()[transfer.region].begin;
    }
    PutBackReplaced(p);
    if (!absl::c_any_of(after, [&](AccessId a) { return place_of_access_[a.index()] == p; }))
      return;
    const int32_t behind = PlaceLike(p, after);
    for (Step& transfer : transfers_) {
      if (transfer.begin <= loop.exit || !Moves(transfer, p)) continue;
      (place(transfer.to).fast ? transfer.to : transfer.from) = behind;
    }
    for (Step& transfer : again) {
      transfer.to = behind;
      transfer.begin = transfer.end = loop.exit + 1;
      transfer.region = program_.instruction(loop.exit).region;
      transfers_.push_back(transfer);
    }
  }

  // Has a plain copy run that the transfer to `p` took the place of, so that its result is in main
  // memory too. What else `p` serves is fetched from there.
  void PutBackReplaced(int32_t p) {
    for (Step& transfer : transfers_) {
      if (transfer.replaces == kNone || Same(transfer.to) != p) continue;
      replaced_[transfer.replaces] = false;
      PlaceOfAccess(transfer.replaces, 1) = kNone;
      transfer.begin = std::max(transfer.begin, transfer.replaces + 1);
      transfer.end = std::max(transfer.begin, transfer.end);
      transfer.replaces = kNone;
    }
  }

  // Whether the transfer fills or empties the place in fast memory.
  bool Moves(const Transfer& transfer, int32_t p) const {
    const bool fills = place(transfer.to).fast;
    return fills != place(transfer.from).fast && Same(fills ? transfer.to : transfer.from) == p;
  }

  // A place with the bytes of `p` that takes over some accesses.
  int32_t PlaceLike(int32_t p, absl::Span<const AccessId> accesses) {
    const auto fresh = static_cast<int32_t>(places_.size());
    places_.push_back(places_[p]);
    buffer_of_.push_back(buffer_of_[p]);
    residence_of_.push_back(kNone);
    same_as_.push_back(fresh);
    refilled_[fresh] = p;
    for (const AccessId a : accesses) {
      if (place_of_access_[a.index()] == p) place_of_access_[a.index()] = fresh;
    }
    return fresh;
  }

  // The compiler may let go of what a loop carries after its last use in the body, and write the
  // next value to the same place at the body's end. Where a Plan has no bytes for it between, it
  // goes through main memory: evicted at the end of each trip and before the loop, and fetched
  // at the begin of each trip and behind the loop. Returns false if nothing is let go.
  bool LetGo(const Loop& loop, absl::Span<const AccessId> before, absl::Span<const AccessId> inside,
             absl::Span<const AccessId> after, int32_t p) {
    const auto elsewhere = absl::c_find_if(inside, [&](AccessId a) {
      return program_.access(a).kind != AccessKind::kLoopEntry && place_of_access_[a.index()] != p;
    });
    const auto here = [&](AccessId a) { return place_of_access_[a.index()] == p; };
    const auto written = std::find_if(elsewhere, inside.end(), here);
    if (written == inside.end() || program_.access(*written).kind != AccessKind::kWrite)
      return false;
    const auto last = std::find_if(inside.rbegin(), inside.rend(), here);
    const Tick written_back = program_.access(*last).tick + 1;
    if (written_back >= loop.exit) return false;
    const absl::Span<const Region> regions = program_.regions();
    const auto body = absl::c_find_if(regions, [&](const Region& region) {
      return region.kind == RegionKind::kLoopBody && region.end == loop.exit;
    });
    const auto in_body = static_cast<int32_t>(body - regions.begin());
    const int32_t around = program_.instruction(loop.entry).region;

    const int32_t next = PlaceLike(p, absl::MakeConstSpan(written, inside.end()));
    const int32_t now = PlaceLike(p, inside);
    const int32_t behind = PlaceLike(p, after);
    std::erase_if(transfers_, [&](const Transfer& t) { return InBody(loop, t) && Moves(t, p); });
    for (Step& transfer : transfers_) {
      if (transfer.begin <= loop.exit || !Moves(transfer, p)) continue;
      (place(transfer.to).fast ? transfer.to : transfer.from) = behind;
    }
    Fill(now, body->begin, in_body);
    Empty(next, written_back, loop.exit, in_body);
    const auto made = std::find_if(before.rbegin(), before.rend(), [&](AccessId a) {
      return here(a) && program_.access(a).kind != AccessKind::kRead;
    });
    if (made != before.rend()) Empty(p, program_.access(*made).tick + 1, loop.entry, around);
    if (const auto first = absl::c_find_if(
            after, [&](AccessId a) { return place_of_access_[a.index()] == behind; });
        first != after.end() && program_.access(*first).kind != AccessKind::kWrite) {
      Fill(behind, loop.exit + 1, around);
    }
    return true;
  }

  // Adds a copy of all of a place, from or to main memory. WidenFills says when a fill ends.
  void Fill(int32_t p, Tick begin, int32_t region) {
    AddTransfer({.from = MainPlace(), .to = p, .begin = begin, .end = begin, .region = region});
  }
  void Empty(int32_t p, Tick begin, Tick end, int32_t region) {
    AddTransfer({.from = p, .to = MainPlace(), .begin = begin, .end = end, .region = region});
  }
  void AddTransfer(Transfer transfer) {
    transfer.part_end = place(place(transfer.to).fast ? transfer.to : transfer.from).size_bytes;
    transfers_.push_back({transfer});
  }
  int32_t MainPlace() {
    places_.emplace_back();
    buffer_of_.push_back(kNone);
    residence_of_.push_back(kNone);
    same_as_.push_back(static_cast<int32_t>(same_as_.size()));
    return static_cast<int32_t>(places_.size()) - 1;
  }

  // Such a copy is done by the first access that it is for.
  void WidenFills() {
    std::vector<Tick> first(places_.size(), kNone);
    for (size_t a = place_of_access_.size(); a-- > 0;) {
      if (place_of_access_[a] >= 0) first[place_of_access_[a]] = program_.accesses()[a].tick;
    }
    for (Step& transfer : transfers_) {
      if (refilled_.contains(transfer.to)) transfer.end = first[transfer.to];
    }
  }

  // If a loop carries the place that an access inside is served from, the buffer stays there over
  // the whole loop.
  void PlaceLoopEntries() {
    for (const Loop& loop : program_.loops()) {
      const std::optional<int32_t> own =
          assigned_.Counterpart(schedule_.ticks[loop.entry].instruction);
      if (!own) continue;
      const absl::Span<const int32_t> places = assigned_.PlacesOf(*own);
      std::vector<int32_t> carried;
      for (const int32_t p : places) carried.push_back(p == kNone ? kNone : Same(p));
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
          const int32_t p = place_of_access_[a.index()];
          return p >= 0 &&
                 absl::c_binary_search(carried, refilled_.contains(p) ? refilled_.at(p) : p);
        });
        if (resident == last) continue;
        const int32_t stays = place_of_access_[resident->index()];
        if (IsRefilled(loop, stays)) {
          FillAnew(loop, absl::MakeConstSpan(first, last),
                   absl::MakeConstSpan(last, accesses.end()), stays);
          continue;
        }
        if (let_go_ && LetGo(loop, accesses.first(first - accesses.begin() - 1),
                             absl::MakeConstSpan(first, last),
                             absl::MakeConstSpan(last, accesses.end()), stays)) {
          continue;
        }
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

  // The assignment of a compiler that was told of more fast memory than the hardware has would be a
  // plan of another problem.
  absl::Status CheckCapacity() const {
    for (size_t p = 0; p < places_.size(); ++p) {
      const Place& here = places_[p];
      if (!here.fast || !here.offset || here.end_offset <= hardware_.fast_bytes) continue;
      const std::string name = buffer_of_[p] == kNone
                                   ? "something unknown"
                                   : absl::StrCat("buffer '", NameOf(BufferId(buffer_of_[p])), "'");
      return absl::InvalidArgumentError(absl::StrCat(
          "assigned module: ", name, " has bytes ", *here.offset, " to ", here.end_offset,
          " of fast memory; hardware '", hardware_.name, "' has ", hardware_.fast_bytes,
          ", so it was compiled for another chip or with other options"));
    }
    return absl::OkStatus();
  }

  // Turns fast memory until an offset is 0: what lay below comes to lie on top.
  void Turn() {
    for (Place& place : places_) {
      if (!place.fast || !place.offset) continue;
      const int64_t turned = *place.offset - turned_by_;
      *place.offset = turned < 0 ? turned + hardware_.fast_bytes : turned;
      // Where no scratch is needed, something may lie across the offset. MoveOverlapping moves it.
      if (*place.offset > hardware_.fast_bytes - place.size_bytes) *place.offset = 0;
    }
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
    absl::c_stable_sort(plan_.copies,
                        [](const Copy& a, const Copy& b) { return a.begin < b.begin; });
    return absl::OkStatus();
  }

  // At the end of a loop or branch the compiler begins evictions right before the tuple that it
  // gives. That moves nothing, so such a window is at the end of the region, where a Plan has what
  // is outside. Before the tuple is as good, if that isn't what makes the buffer's value.
  bool BeginsBehindBody(const Transfer& transfer, BufferId buffer) const {
    const Region& region = program_.regions()[transfer.region];
    if (region.kind == RegionKind::kEntry || transfer.begin != region.end) return false;
    return absl::c_none_of(AccessesAt(region.end - 1),
                           [buffer](const Access& access) { return access.buffer == buffer; });
  }

  const Program& program_;
  const Module& before_;
  const Schedule& schedule_;
  const std::vector<int32_t>& of_array_;  // by array of before_: its buffer
  const AssignedModule& assigned_;
  const Hardware& hardware_;
  const bool let_go_;  // whether what a loop carries may go through main memory (LetGo)
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

}  // namespace
}  // namespace mallocgame::hlo

namespace mallocgame {

absl::StatusOr<Plan> ReadAssignment(const Program& program, absl::string_view module,
                                    absl::string_view assigned, const Hardware& hardware) {
  MG_RETURN_IF_ERROR(ValidateHardware(hardware));
  MG_ASSIGN_OR_RETURN(const std::unique_ptr<const hlo::Module> before,
                      hlo::Module::Parse(module, "module"));
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
