// Checks the invariants of ProgramData in groups: the structure of the time axis, instructions and
// their accesses, buffers over time, dependences; and costs (check_costs.h).
#include "mallocgame/program/check.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/program/check_costs.h"

namespace mallocgame {
namespace {

constexpr int kMaxLoopDepth = 8;
constexpr size_t kMaxRegionDepth = 64;
constexpr int kMaxAccesses = 64;  // of one instruction: a placement is a 64-bit mask

bool IsLoopRegion(const Region& region) {
  return region.kind == RegionKind::kLoopCondition || region.kind == RegionKind::kLoopBody;
}

class Checker {
 public:
  explicit Checker(const ProgramData& data) : data_(data) {}

  absl::Status Run() {
    MG_RETURN_IF_ERROR(CheckCounts());
    MG_RETURN_IF_ERROR(CheckRegions());
    MG_RETURN_IF_ERROR(CheckLoops());
    MG_RETURN_IF_ERROR(CheckInstructions());
    MG_RETURN_IF_ERROR(CheckBuffers());
    MG_RETURN_IF_ERROR(CheckLoopEntries());
    MG_RETURN_IF_ERROR(CheckHeld());
    MG_RETURN_IF_ERROR(CheckCosts(data_));
    MG_RETURN_IF_ERROR(CheckDependences());
    return CheckMainUses();
  }

 private:
  int64_t ticks() const { return static_cast<int64_t>(data_.instructions.size()); }
  const Region& region(int32_t index) const { return data_.regions[index]; }
  const Instruction& instruction(int64_t tick) const { return data_.instructions[tick]; }
  std::string At(int64_t tick) const { return AtTick(data_, tick); }

  bool NeverRuns(int64_t tick) const { return region(instruction(tick).region).trips == 0; }

  absl::Status CheckCounts() const {
    const auto check = [](const char* what, size_t count, size_t least) {
      if (count >= least && count <= static_cast<size_t>(kMaxProgramCount)) return absl::OkStatus();
      return BrokenProgram(count, " ", what, ", allowed are ", least, " to ", kMaxProgramCount);
    };
    MG_RETURN_IF_ERROR(check("instructions", data_.instructions.size(), 1));
    MG_RETURN_IF_ERROR(check("regions", data_.regions.size(), 1));
    MG_RETURN_IF_ERROR(check("loops", data_.loops.size(), 0));
    MG_RETURN_IF_ERROR(check("buffers", data_.buffers.size(), 0));
    MG_RETURN_IF_ERROR(check("accesses", data_.accesses.size(), 0));
    if (!InRange(data_.argument_bytes, 0, kMaxProgramBytes)) {
      return BrokenProgram("argument_bytes is ", data_.argument_bytes, ", allowed are 0 to ",
                           kMaxProgramBytes);
    }
    if (!InRange(data_.window_bytes, 0, kMaxProgramBytes)) {
      return BrokenProgram("window_bytes is ", data_.window_bytes, ", allowed are 0 to ",
                           kMaxProgramBytes);
    }
    return absl::OkStatus();
  }

  absl::Status CheckRegion(int32_t index) const {
    const Region& r = region(index);
    const auto where = [index] { return absl::StrCat("region ", index, ": "); };
    if (r.begin < 0 || r.begin >= r.end || r.end > ticks()) {
      return BrokenProgram(where(), "ticks [", r.begin, ", ", r.end,
                           ") are no interval inside [0, ", ticks(), ")");
    }
    if ((r.kind == RegionKind::kEntry) != (index == 0))
      return BrokenProgram(where(), "the entry is region 0, and only that");
    if (index == 0 && (r.parent != -1 || r.trips != 1 || r.begin != 0 || r.end != ticks())) {
      return BrokenProgram(where(), "the entry must hold all ticks, run once and have no parent");
    }
    if (index > 0 && (!InRange(r.parent, 0, static_cast<int64_t>(data_.regions.size()) - 1) ||
                      r.parent == index)) {
      return BrokenProgram(where(), "parent ", r.parent, " is no other region");
    }
    if (IsLoopRegion(r) ? !InRange(r.loop, 0, static_cast<int64_t>(data_.loops.size()) - 1)
                        : r.loop != -1) {
      return BrokenProgram(where(), "loop ", r.loop, " does not fit its kind, there are ",
                           data_.loops.size(), " loops");
    }
    return absl::OkStatus();
  }

  // Regions nest, and each instruction names the innermost one around it. The sweep goes through
  // the ticks and keeps the stack of the regions that are open.
  absl::Status CheckRegions() {
    const auto count = static_cast<int32_t>(data_.regions.size());
    for (int32_t i = 0; i < count; ++i) MG_RETURN_IF_ERROR(CheckRegion(i));
    std::vector<int32_t> order(data_.regions.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [this](int32_t a, int32_t b) {
      const Region &x = region(a), &y = region(b);
      if (x.begin != y.begin) return x.begin < y.begin;
      return x.end != y.end ? x.end > y.end : a < b;
    });
    std::vector<int32_t> open;
    loop_depth_.assign(data_.regions.size(), 0);
    innermost_loop_.assign(data_.regions.size(), -1);
    size_t next = 0;
    for (Tick tick = 0; tick < ticks(); ++tick) {
      while (!open.empty() && region(open.back()).end <= tick) open.pop_back();
      for (; next < order.size() && region(order[next]).begin == tick; ++next) {
        MG_RETURN_IF_ERROR(CheckNesting(order[next], open.empty() ? -1 : open.back()));
        open.push_back(order[next]);
        if (open.size() > kMaxRegionDepth)
          return BrokenProgram(At(tick), "regions nest deeper than ", kMaxRegionDepth);
      }
      if (instruction(tick).region != open.back()) {
        return BrokenProgram(At(tick), "region ", instruction(tick).region,
                             ", the innermost around it is ", open.back());
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckNesting(int32_t index, int32_t around) {
    const Region& r = region(index);
    if (r.parent != around)
      return BrokenProgram("region ", index, ": parent ", r.parent, ", the innermost around it is ",
                           around);
    if (around < 0) return absl::OkStatus();
    const Region& parent = region(around);
    // The while, conditional or call that runs a region comes after the region, in its parent.
    if (r.end >= parent.end)
      return BrokenProgram("region ", index, " ends at ", r.end, ", not before its parent ",
                           around);
    int64_t trips = parent.trips;
    loop_depth_[index] = loop_depth_[around];
    innermost_loop_[index] = IsLoopRegion(r) ? r.loop : innermost_loop_[around];
    if (IsLoopRegion(r)) {
      if (++loop_depth_[index] > kMaxLoopDepth) {
        return BrokenProgram("region ", index, ": loops nest deeper than ", kMaxLoopDepth);
      }
      const Loop& loop = data_.loops[r.loop];
      if (!InRange(loop.trips, 0, kMaxTrips) || (trips > 0 && loop.trips > kMaxTrips / trips)) {
        return BrokenProgram("loop ", r.loop, ": ", loop.trips, " trips within ", trips,
                             ", allowed are 0 to ", kMaxTrips, " in all");
      }
      trips *= loop.trips;
    }
    if (r.trips != trips)
      return BrokenProgram("region ", index, ": trips ", r.trips, ", its loops multiply to ",
                           trips);
    return absl::OkStatus();
  }

  absl::Status CheckLoops() const {
    std::vector<int32_t> condition(data_.loops.size(), -1), body(data_.loops.size(), -1);
    for (size_t i = 0; i < data_.regions.size(); ++i) {
      const Region& r = data_.regions[i];
      if (!IsLoopRegion(r)) continue;
      int32_t& slot = (r.kind == RegionKind::kLoopCondition ? condition : body)[r.loop];
      if (slot >= 0)
        return BrokenProgram("loop ", r.loop, ": regions ", slot, " and ", i,
                             " are both of one kind");
      slot = static_cast<int32_t>(i);
    }
    int64_t ends = 0;
    for (const Instruction& i : data_.instructions) ends += i.kind != InstructionKind::kOrdinary;
    if (ends != 2 * static_cast<int64_t>(data_.loops.size())) {
      return BrokenProgram(ends, " ticks of kind loop entry or exit, but ", data_.loops.size(),
                           " loops");
    }
    for (size_t i = 0; i < data_.loops.size(); ++i)
      MG_RETURN_IF_ERROR(CheckLoop(i, condition[i], body[i]));
    return absl::OkStatus();
  }

  // No two loops can share a tick: there are as many entry and exit ticks as loops, and the two
  // regions of each loop lie between its own two ticks.
  absl::Status CheckLoop(size_t index, int32_t condition, int32_t body) const {
    const Loop& loop = data_.loops[index];
    const auto where = [index] { return absl::StrCat("loop ", index, ": "); };
    if (loop.entry < 0 || loop.entry >= loop.exit || loop.exit >= ticks()) {
      return BrokenProgram(where(), "entry ", loop.entry, " and exit ", loop.exit,
                           " are not ticks in that order");
    }
    if (instruction(loop.entry).kind != InstructionKind::kLoopEntry ||
        instruction(loop.exit).kind != InstructionKind::kLoopExit) {
      return BrokenProgram(where(), "ticks ", loop.entry, " and ", loop.exit,
                           " are not of kind loop entry and loop exit");
    }
    if (condition < 0 || body < 0)
      return BrokenProgram(where(), "it has no condition or no body region");
    const int32_t around = instruction(loop.entry).region;
    if (instruction(loop.exit).region != around || region(condition).parent != around ||
        region(body).parent != around) {
      return BrokenProgram(where(), "entry, exit, condition and body are not in the same region");
    }
    if (region(condition).begin != loop.entry + 1 || region(condition).end != region(body).begin ||
        region(body).end != loop.exit) {
      return BrokenProgram(where(), "condition and body are not the ticks [", loop.entry + 1, ", ",
                           loop.exit, ")");
    }
    return absl::OkStatus();
  }

  absl::Status CheckInstructions() const {
    int64_t first = 0;
    int32_t time = 0;
    for (Tick tick = 0; tick < ticks(); ++tick) {
      const Instruction& i = instruction(tick);
      if (!InRange(static_cast<int64_t>(i.kind), 0, 2))
        return BrokenProgram(At(tick), "kind is not known");
      if (i.logical_time != time)
        return BrokenProgram(At(tick), "logical_time ", i.logical_time, ", it must be ", time);
      time += i.kind != InstructionKind::kLoopEntry;
      if (!InRange(i.reserved_bytes, 0, kMaxProgramBytes))
        return BrokenProgram(At(tick), "reserved_bytes ", i.reserved_bytes);
      if (i.first_access != first || !InRange(i.access_count, 0, kMaxAccesses) ||
          first + i.access_count > static_cast<int64_t>(data_.accesses.size())) {
        return BrokenProgram(At(tick), "accesses ", i.first_access, " + ", i.access_count,
                             ", they must start at ", first, ", be at most ", kMaxAccesses,
                             ", and there are ", data_.accesses.size());
      }
      if (NeverRuns(tick) && i.access_count > 0)
        return BrokenProgram(At(tick), i.access_count, " accesses, but its loop has no trips");
      MG_RETURN_IF_ERROR(CheckAccesses(tick));
      first += i.access_count;
    }
    if (first != static_cast<int64_t>(data_.accesses.size())) {
      return BrokenProgram(data_.accesses.size(), " accesses, but the instructions have ", first);
    }
    return absl::OkStatus();
  }

  absl::Status CheckAccesses(Tick tick) const {
    const Instruction& i = instruction(tick);
    const Access* const begin = data_.accesses.data() + i.first_access;
    std::vector<int32_t> seen;
    for (const Access* a = begin; a != begin + i.access_count; ++a) {
      if (a->tick != tick) return BrokenProgram(At(tick), "one of its accesses has tick ", a->tick);
      if (!InRange(a->buffer.value, 0, static_cast<int64_t>(data_.buffers.size()) - 1)) {
        return BrokenProgram(At(tick), "it accesses buffer ", a->buffer.value, " of ",
                             data_.buffers.size());
      }
      if (!data_.buffers[a->buffer.index()].eligible) {
        return BrokenProgram(At(tick), "it accesses buffer '",
                             data_.buffers[a->buffer.index()].name, "', not eligible");
      }
      if (!InRange(static_cast<int64_t>(a->kind), 0, 3) ||
          (a->kind == AccessKind::kLoopEntry) != (i.kind == InstructionKind::kLoopEntry)) {
        return BrokenProgram(At(tick), "an access of a kind that does not fit the instruction");
      }
      if (a != begin && (a->kind < a[-1].kind ||
                         (a->kind == AccessKind::kLoopEntry && a->buffer <= a[-1].buffer))) {
        return BrokenProgram(At(tick), "its accesses are not sorted");
      }
      if (!InRange(static_cast<int64_t>(a->pin), 0, static_cast<int64_t>(Pin::kFast)))
        return BrokenProgram(At(tick), "an access is pinned to a memory that is not known");
      seen.push_back(a->buffer.value);
    }
    std::sort(seen.begin(), seen.end());
    if (const auto twice = std::adjacent_find(seen.begin(), seen.end()); twice != seen.end()) {
      return BrokenProgram(At(tick), "two accesses of buffer '", data_.buffers[*twice].name, "'");
    }
    if (i.results_in_main && i.kind != InstructionKind::kOrdinary)
      return BrokenProgram(At(tick),
                           "the tick of a loop makes no results, in main memory or elsewhere");
    if (i.plain_copy &&
        (i.kind != InstructionKind::kOrdinary || i.access_count != 2 ||
         begin[0].kind != AccessKind::kRead || begin[1].kind != AccessKind::kWrite)) {
      return BrokenProgram(At(tick), "a plain copy must read one buffer and write another");
    }
    return absl::OkStatus();
  }

  absl::Status CheckBuffers() const {
    std::vector<bool> accessed(data_.buffers.size(), false);
    for (const Access& a : data_.accesses) {
      const Buffer& b = data_.buffers[a.buffer.index()];
      if (!accessed[a.buffer.index()] && b.origin == BufferOrigin::kInstruction &&
          a.kind != AccessKind::kWrite) {
        return BrokenProgram(At(a.tick), "buffer '", b.name,
                             "' is not a write's, though an instruction defines it");
      }
      accessed[a.buffer.index()] = true;
    }
    for (size_t i = 0; i < data_.buffers.size(); ++i) {
      const Buffer& b = data_.buffers[i];
      if (!InRange(b.unit_bytes, 0, b.size_bytes) ||
          (b.unit_bytes != 0 && b.size_bytes % b.unit_bytes != 0)) {
        return BrokenProgram("buffer ", i, " ('", b.name, "'): unit_bytes ", b.unit_bytes,
                             ", which is no part of its ", b.size_bytes, " bytes");
      }
      if (!InRange(b.size_bytes, 1, kMaxProgramBytes)) {
        return BrokenProgram("buffer ", i, " ('", b.name, "'): size_bytes ", b.size_bytes,
                             ", allowed are 1 to ", kMaxProgramBytes);
      }
      if (!InRange(static_cast<int64_t>(b.origin), 0, 3))
        return BrokenProgram("buffer ", i, ": origin is not known");
      if (b.eligible != b.ineligible_because.empty()) {
        return BrokenProgram("buffer ", i, " ('", b.name,
                             "'): a buffer that is not eligible must say why, an eligible one not");
      }
    }
    return absl::OkStatus();
  }

  int32_t LoopOf(Tick tick) const { return innermost_loop_[instruction(tick).region]; }
  int32_t LoopAround(int32_t loop) const { return LoopOf(data_.loops[loop].entry); }

  // The innermost loop around both; -1 if there is none.
  int32_t CommonLoop(int32_t a, int32_t b) const {
    while (a != b) {
      // Of two different loops, the one that begins later cannot hold the other.
      const auto begin = [this](int32_t loop) { return loop < 0 ? -1 : data_.loops[loop].entry; };
      const bool a_later = begin(a) > begin(b);
      (a_later ? a : b) = LoopAround(a_later ? a : b);
    }
    return a;
  }

  // A buffer that is accessed inside a loop and alive outside of it enters the loop by an access of
  // its own. Each such access stands for at least one access inside, and says truly whether the
  // loop writes the buffer.
  absl::Status CheckLoopEntries() const {
    constexpr int32_t kUnused = -2;
    // One for each buffer: the innermost loop that it never leaves.
    std::vector<int32_t> home(data_.buffers.size(), kUnused);
    for (size_t i = 0; i < data_.buffers.size(); ++i) {
      if (data_.buffers[i].origin == BufferOrigin::kParameter || data_.buffers[i].is_output)
        home[i] = -1;
    }
    for (const Access& a : data_.accesses) {
      int32_t& h = home[a.buffer.index()];
      h = h == kUnused ? LoopOf(a.tick) : CommonLoop(h, LoopOf(a.tick));
    }
    std::vector<bool> used(data_.accesses.size(), false), written(data_.accesses.size(), false);
    for (const Access& a : data_.accesses) {
      for (int32_t l = LoopOf(a.tick); l != home[a.buffer.index()]; l = LoopAround(l)) {
        const Instruction& entry = instruction(data_.loops[l].entry);
        const auto begin = data_.accesses.begin() + entry.first_access,
                   end = begin + entry.access_count;
        const auto it = std::lower_bound(begin, end, a.buffer,
                                         [](const Access& x, BufferId y) { return x.buffer < y; });
        if (it == end || it->buffer != a.buffer) {
          return BrokenProgram(At(a.tick), "buffer '", data_.buffers[a.buffer.index()].name,
                               "' lives outside the loop '", entry.name,
                               "' too, which has no loop-entry access of it");
        }
        const size_t index = it - data_.accesses.begin();
        used[index] = true;
        if (a.kind == AccessKind::kUpdate || a.kind == AccessKind::kWrite) written[index] = true;
      }
    }
    for (size_t i = 0; i < data_.accesses.size(); ++i) {
      const Access& a = data_.accesses[i];
      if (a.kind == AccessKind::kLoopEntry ? !used[i] || written[i] != a.writes_in_loop
                                           : a.writes_in_loop) {
        return BrokenProgram(At(a.tick), "the access of buffer '",
                             data_.buffers[a.buffer.index()].name,
                             "' is of no use in the loop, or writes_in_loop is wrong");
      }
    }
    return absl::OkStatus();
  }

  // A transfer holds a buffer from one instruction to another of the same region, which accesses it
  // too.
  absl::Status CheckHeld() const {
    std::vector<Tick> until(data_.buffers.size(), 0);
    for (const Access& a : data_.accesses) {
      if (a.held_until == 0) continue;
      const std::string& name = data_.buffers[a.buffer.index()].name;
      if (a.kind == AccessKind::kLoopEntry ||
          !InRange(a.held_until, a.tick + 2, static_cast<int64_t>(data_.instructions.size()))) {
        return BrokenProgram(At(a.tick), "held_until of buffer '", name, "' is ", a.held_until,
                             "; allowed are 0 and what follows the next tick");
      }
      if (a.tick < until[a.buffer.index()])
        return BrokenProgram(At(a.tick), "two transfers hold buffer '", name, "'");
      until[a.buffer.index()] = a.held_until;
      const Instruction& last = instruction(a.held_until - 1);
      const auto begin = data_.accesses.begin() + last.first_access;
      if (last.region != instruction(a.tick).region ||
          std::none_of(begin, begin + last.access_count,
                       [&a](const Access& other) { return other.buffer == a.buffer; })) {
        return BrokenProgram(At(a.tick), "buffer '", name, "' is held until tick ", a.held_until,
                             ", which follows no access of it in the same region");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckDependences() const {
    const std::vector<Dependence>& all = data_.dependences;
    if (!data_.has_dependences && !all.empty())
      return BrokenProgram(all.size(), " dependences, though they are said not to be known");
    for (size_t i = 0; i < all.size(); ++i) {
      const auto where = [&] { return absl::StrCat("dependence ", i, ": "); };
      const auto& [before, after] = all[i];
      if (before < 0 || before >= after || after >= ticks()) {
        return BrokenProgram(where(), "ticks ", before, " and ", after, " of ", ticks(),
                             " are not in that order");
      }
      if (instruction(before).region != instruction(after).region) {
        return BrokenProgram(where(), "'", instruction(before).name, "' and '",
                             instruction(after).name, "' are not in the same region");
      }
      for (const Tick tick : {before, after}) {
        if (instruction(tick).kind == InstructionKind::kLoopEntry)
          return BrokenProgram(where(), "tick ", tick,
                               " is a loop's entry; its exit stands for the loop");
      }
      if (i > 0 && all[i - 1] >= all[i]) return BrokenProgram(where(), "not sorted and distinct");
    }
    return absl::OkStatus();
  }

  absl::Status CheckMainUses() const {
    for (size_t i = 0; i < data_.main_uses.size(); ++i) {
      const MainUse& use = data_.main_uses[i];
      if (!InRange(use.tick, 0, ticks() - 1) ||
          !InRange(use.buffer.value, 0, static_cast<int64_t>(data_.buffers.size()) - 1)) {
        return BrokenProgram("main use ", i, ": tick ", use.tick, " of ", ticks(), ", buffer ",
                             use.buffer.value, " of ", data_.buffers.size());
      }
      if (data_.buffers[use.buffer.index()].eligible) {
        return BrokenProgram("main use ", i, ": buffer '", data_.buffers[use.buffer.index()].name,
                             "' is eligible, so accesses say what uses it");
      }
      if (i == 0) continue;
      const MainUse& last = data_.main_uses[i - 1];
      if (std::pair(last.tick, last.buffer) >= std::pair(use.tick, use.buffer))
        return BrokenProgram("main use ", i, ": not sorted and distinct");
    }
    return absl::OkStatus();
  }

  const ProgramData& data_;
  // One for each region: the number of loops around its ticks, and the innermost of them, -1 if
  // there is none.
  std::vector<int> loop_depth_;
  std::vector<int32_t> innermost_loop_;
};

}  // namespace

absl::Status CheckProgramData(const ProgramData& data) { return Checker(data).Run(); }

}  // namespace mallocgame
