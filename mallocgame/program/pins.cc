#include "mallocgame/program/pins.h"

#include <algorithm>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace mallocgame {
namespace {

// Where a residence from `from` over the access may end: after it, and after the loops it enters.
Tick EndBehind(const Program& program, Tick from, const Access& access) {
  Tick end = access.tick + 1;
  if (access.kind == AccessKind::kLoopEntry) end = program.loop_at(access.tick).exit;
  for (int32_t r = program.region_at(access.tick); r >= 0; r = program.regions()[r].parent) {
    const Region& region = program.regions()[r];
    if (region.begin <= from && from < region.end) break;
    if (region.loop >= 0) end = std::max(end, program.loops()[region.loop].exit);
  }
  return end;
}

// Why the buffer can't be in fast memory from its first access to its last; empty: it can.
absl::string_view WhyNotWhole(const Program& program, BufferId id) {
  const Buffer& buffer = program.buffer(id);
  if (buffer.is_output) return "the program ends with it in main memory";
  if (buffer.origin != BufferOrigin::kInstruction && buffer.origin != BufferOrigin::kUndefined)
    return "the program begins with it in main memory";
  const absl::Span<const AccessId> accesses = program.accesses_of(id);
  if (absl::c_any_of(accesses, [&](AccessId a) { return program.in_main_only(a); }))
    return "another instruction needs it in main memory";
  const Access& first = program.access(accesses.front());
  if (first.kind != AccessKind::kWrite && first.kind != AccessKind::kUpdate)
    return "it is used before it has a value";
  for (const AccessId a : accesses) {
    if (EndBehind(program, first.tick, program.access(a)) > program.scope_end(first.tick))
      return "it is used outside of the loop or branch that it is made in";
  }
  return "";
}

PinnedStay WholeStay(const Program& program, BufferId id) {
  const absl::Span<const AccessId> accesses = program.accesses_of(id);
  PinnedStay stay{.buffer = id, .serves = {accesses.begin(), accesses.end()}};
  stay.begin = program.access(accesses.front()).tick;
  for (const AccessId a : accesses)
    stay.end = std::max(stay.end, EndBehind(program, stay.begin, program.access(a)));
  return stay;
}

// Adds a stay for each pinned access, or for each that a transfer holds. Returns the first access
// that such a stay can't serve: it isn't a read, or is pinned to main memory.
AccessId AddShortStays(const Program& program, BufferId id, std::vector<PinnedStay>& stays) {
  Tick end = 0;
  for (const AccessId a : program.accesses_of(id)) {
    const Access& access = program.access(a);
    if (access.tick < end) {
      stays.back().serves.push_back(a);
    } else if (access.pin == Pin::kFast || access.held_until > 0) {
      end = std::max(access.tick + 1, access.held_until);
      stays.push_back({id, access.tick, end, true, {a}});
    } else {
      continue;
    }
    if (access.kind != AccessKind::kRead || program.in_main_only(a)) return a;
  }
  return AccessId();
}

}  // namespace

absl::StatusOr<std::vector<PinnedStay>> PinnedStays(const Program& program, bool whole) {
  std::vector<PinnedStay> stays;
  if (!program.any_pinned()) return stays;
  for (size_t b = 0; b < program.buffers().size(); ++b) {
    const BufferId id(b);
    if (!program.pinned(id)) continue;
    const absl::string_view why_not = WhyNotWhole(program, id);
    const size_t before = stays.size();
    const AccessId unserved = whole && why_not.empty() ? program.accesses_of(id).front()
                                                       : AddShortStays(program, id, stays);
    if (!unserved.valid()) continue;
    if (!why_not.empty()) {
      const Tick tick = program.access(unserved).tick;
      return absl::InvalidArgumentError(
          absl::StrCat("tick ", tick, " ('", program.instruction(tick).name, "'): buffer '",
                       program.buffer(id).name,
                       "' is pinned to fast memory by a kernel, where it can't stay: ", why_not));
    }
    stays.resize(before);
    stays.push_back(WholeStay(program, id));
  }
  return stays;
}

}  // namespace mallocgame
