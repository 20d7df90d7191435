// What loops carry in the compiler's own answer, as a Plan can say it.
#include <algorithm>
#include <iterator>

#include "absl/algorithm/container.h"
#include "mallocgame/hlo/import/plan_reader.h"

namespace mallocgame::hlo {

// Whether the body of the loop fills the place with a copy.
bool PlanReader::IsRefilled(const Loop& loop, int32_t p) const {
  return absl::c_any_of(transfers_, [&](const Transfer& transfer) {
    return InBody(loop, transfer) && place(transfer.to).fast && Same(transfer.to) == p;
  });
}

bool PlanReader::InBody(const Loop& loop, const Transfer& transfer) const {
  const Region& region = program_.regions()[transfer.region];
  return region.kind == RegionKind::kLoopBody && region.end == loop.exit;
}

// The compiler may let go of what a loop carries after its last use in the body, and fetch it at
// the end for the next trip. A Plan fetches it at the start of each trip instead, and once more
// behind the loop if that is for something: as many copies, and the bytes are as free between.
// Then the loop's entry finds it in main memory, and no copy brings it there before a trip has
// changed it.
void PlanReader::FillAnew(const Loop& loop, absl::Span<const AccessId> inside,
                          absl::Span<const AccessId> after, int32_t p) {
  const auto written = absl::c_find_if(inside, [&](AccessId a) {
    const AccessKind kind = program_.access(a).kind;
    return place_of_access_[a.index()] == p &&
           (kind == AccessKind::kWrite || kind == AccessKind::kUpdate);
  });
  const Tick changed = written == inside.end() ? loop.exit : program_.access(*written).tick;
  std::erase_if(transfers_, [&](const Transfer& t) {
    return InBody(loop, t) && Moves(t, p) && !place(t.to).fast && t.begin <= changed;
  });
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
  if (!absl::c_any_of(after, [&](AccessId a) { return place_of_access_[a.index()] == p; })) return;
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

// Whether the transfer fills or empties the place in fast memory.
bool PlanReader::Moves(const Transfer& transfer, int32_t p) const {
  const bool fills = place(transfer.to).fast;
  return fills != place(transfer.from).fast && Same(fills ? transfer.to : transfer.from) == p;
}

// A place with the bytes of `p` that takes over some accesses.
int32_t PlanReader::PlaceLike(int32_t p, absl::Span<const AccessId> accesses) {
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
// at the start of each trip and behind the loop. Returns false if nothing is let go.
bool PlanReader::LetGo(const Loop& loop, absl::Span<const AccessId> before,
                       absl::Span<const AccessId> inside, absl::Span<const AccessId> after,
                       int32_t p) {
  const auto elsewhere = absl::c_find_if(inside, [&](AccessId a) {
    return program_.access(a).kind != AccessKind::kLoopEntry && place_of_access_[a.index()] != p;
  });
  const auto here = [&](AccessId a) { return place_of_access_[a.index()] == p; };
  const auto written = std::find_if(elsewhere, inside.end(), here);
  if (written == inside.end() || program_.access(*written).kind != AccessKind::kWrite) return false;
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
  if (const auto first =
          absl::c_find_if(after, [&](AccessId a) { return place_of_access_[a.index()] == behind; });
      first != after.end() && program_.access(*first).kind != AccessKind::kWrite) {
    Fill(behind, loop.exit + 1, around);
  }
  return true;
}

// Adds a copy of all of a place, from or to main memory. WidenFills says when a fill ends.
void PlanReader::Fill(int32_t p, Tick begin, int32_t region) {
  AddTransfer({.from = MainPlace(), .to = p, .begin = begin, .end = begin, .region = region});
}

void PlanReader::Empty(int32_t p, Tick begin, Tick end, int32_t region) {
  AddTransfer({.from = p, .to = MainPlace(), .begin = begin, .end = end, .region = region});
}

void PlanReader::AddTransfer(Transfer transfer) {
  transfer.part_end = place(place(transfer.to).fast ? transfer.to : transfer.from).size_bytes;
  transfers_.push_back({transfer});
}

int32_t PlanReader::MainPlace() {
  places_.emplace_back();
  buffer_of_.push_back(kNone);
  residence_of_.push_back(kNone);
  same_as_.push_back(static_cast<int32_t>(same_as_.size()));
  return static_cast<int32_t>(places_.size()) - 1;
}

// Such a copy is done by the first access that it is for.
void PlanReader::WidenFills() {
  std::vector<Tick> first(places_.size(), kNone);
  for (size_t a = place_of_access_.size(); a-- > 0;) {
    if (place_of_access_[a] >= 0) first[place_of_access_[a]] = program_.accesses()[a].tick;
  }
  for (Step& transfer : transfers_) {
    if (refilled_.contains(transfer.to)) transfer.end = first[transfer.to];
  }
}

// The place in which the loop carries the buffer from trip to trip, and which its body fills for
// the next one; kNone: there is no such place.
int32_t PlanReader::RefilledPlace(const Loop& loop, BufferId buffer) const {
  const int32_t i = schedule_.ticks[loop.entry].instruction;
  const absl::Span<const int32_t> buffers = BuffersOf(i),
                                  places = assigned_.PlacesOf(*assigned_.Counterpart(i));
  for (size_t k = 0; k < buffers.size(); ++k) {
    if (buffers[k] != buffer.value || places[k] == kNone) continue;
    if (place(places[k]).fast && IsRefilled(loop, Same(places[k]))) return Same(places[k]);
  }
  return kNone;
}

// If a loop carries the place that an access inside is served from, the buffer stays there over
// the whole loop.
void PlanReader::PlaceLoopEntries() {
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
      const auto last = std::find_if(
          first, accesses.end(), [&](AccessId a) { return program_.access(a).tick >= loop.exit; });
      const auto resident = std::find_if(first, last, [&](AccessId a) {
        const int32_t p = place_of_access_[a.index()];
        return p >= 0 &&
               absl::c_binary_search(carried, refilled_.contains(p) ? refilled_.at(p) : p);
      });
      const int32_t stays = resident != last ? place_of_access_[resident->index()]
                                             : RefilledPlace(loop, program_.access(entry).buffer);
      if (stays == kNone) continue;
      if (IsRefilled(loop, stays)) {
        FillAnew(loop, absl::MakeConstSpan(first, last), absl::MakeConstSpan(last, accesses.end()),
                 stays);
        continue;
      }
      if (let_go_ && LetGo(loop, accesses.first(first - accesses.begin() - 1),
                           absl::MakeConstSpan(first, last),
                           absl::MakeConstSpan(last, accesses.end()), stays)) {
        continue;
      }
      place_of_access_[entry.index()] = stays;
      for (auto inside = first; inside != last; ++inside) place_of_access_[inside->index()] = stays;
    }
  }
}

}  // namespace mallocgame::hlo
