// The rules that do not follow values: well-formedness, eligibility, space, regions and the limits
// of the hardware. value_rules.cc has the others.
#include "mallocgame/plan/validate.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mallocgame/plan/value_rules.h"

namespace mallocgame {
namespace {

class Validator {
 public:
  Validator(const Program& program, const Hardware& hardware, const Plan& plan)
      : program_(program), hardware_(hardware), plan_(plan), prefetches_(plan.residences.size()) {}

  Verdict Run() {
    if (const absl::Status status = CheckWellFormed(program_, hardware_, plan_); !status.ok()) {
      return {Rule::kMalformed, std::string(status.message())};
    }
    for (size_t i = 0; i < plan_.copies.size(); ++i) {
      if (plan_.copies[i].kind == CopyKind::kPrefetch)
        prefetches_[plan_.copies[i].residence.index()].push_back(i);
    }
    for (const auto check :
         {&Validator::CheckEligible, &Validator::CheckServed, &Validator::CheckPrefetches,
          &Validator::CheckCopies, &Validator::CheckRegions, &Validator::CheckLoopEntries,
          &Validator::CheckHeld, &Validator::CheckSpace, &Validator::CheckLastEvictions,
          &Validator::CheckOutstanding}) {
      (this->*check)();
      if (!verdict_.ok()) return verdict_;
    }
    verdict_ = CheckValues(program_, plan_);
    CheckBetweenSlices();
    return verdict_;
  }

 private:
  template <class... Parts>
  void Break(Rule rule, const Parts&... parts) {
    if (verdict_.ok()) verdict_ = {rule, absl::StrCat(parts...)};
  }

  const Residence& residence(ResidenceId id) const { return plan_.residences[id.index()]; }
  const std::string& BufferName(const Residence& r) const { return program_.buffer(r.buffer).name; }
  std::string At(Tick tick) const {
    return tick < program_.ticks()
               ? absl::StrCat("tick ", tick, " ('", program_.instruction(tick).name, "')")
               : absl::StrCat("tick ", tick, " (the end)");
  }
  std::string Describe(size_t index) const {
    const Residence& r = plan_.residences[index];
    return absl::StrCat("residence ", index, " of buffer '", BufferName(r), "' at ticks [", r.begin,
                        ", ", r.end, "): ");
  }
  std::string DescribeCopy(size_t index) const {
    const Copy& c = plan_.copies[index];
    const char* const kind = c.preload                       ? "preload"
                             : c.kind == CopyKind::kPrefetch ? "prefetch"
                                                             : "eviction";
    return absl::StrCat("copy ", index, ", a ", kind, " of buffer '",
                        BufferName(residence(c.residence)), "' at ticks [", c.begin, ", ", c.end,
                        "): ");
  }

  // The region that `tick` lies in; the program's end belongs to the entry. Program::region_at and
  // scope_end say the same: the judge shares no code with the players, so it has its own.
  int32_t RegionAt(Tick tick) const {
    return tick < program_.ticks() ? program_.instruction(tick).region : 0;
  }
  const Region& region(int32_t index) const { return program_.regions()[index]; }

  // The end of the innermost loop condition, loop body or branch around `tick`: a residence that
  // begins there ends there at the latest.
  Tick ScopeEnd(Tick tick) const {
    int32_t r = RegionAt(tick);
    while (region(r).kind == RegionKind::kCall) r = region(r).parent;
    return region(r).end;
  }

  // Whether the residence is filled in place of the plain copy at `tick`.
  bool Replaces(ResidenceId id, Tick tick) const {
    const std::vector<size_t>& copies = prefetches_[id.index()];
    return !copies.empty() && plan_.copies[copies[0]].replaces == tick;
  }

  void CheckEligible() {
    for (size_t i = 0; i < plan_.residences.size(); ++i) {
      const Buffer& b = program_.buffer(plan_.residences[i].buffer);
      if (!b.eligible)
        Break(Rule::kEligible, Describe(i),
              "the buffer must stay in main memory: ", b.ineligible_because);
    }
    for (size_t i = 0; i < plan_.served_by.size(); ++i) {
      const ResidenceId id = plan_.served_by[i];
      const Access& access = program_.accesses()[i];
      const Tick tick = access.tick;
      if (access.pin != Pin::kNone && id.valid() != (access.pin == Pin::kFast)) {
        Break(Rule::kEligible, At(tick), ": its access of buffer '",
              program_.buffer(access.buffer).name, "' is served from ",
              id.valid() ? "fast" : "main", " memory, and the kernel pins it to ",
              id.valid() ? "main" : "fast", " memory");
      }
      if (!id.valid() || !program_.in_main_only(AccessId(i))) continue;
      if (!Replaces(id, tick)) {
        Break(Rule::kEligible, Describe(id.index()), "it serves ", At(tick),
              ", which makes its results in main memory");
      }
    }
  }

  void CheckServed() {
    for (size_t i = 0; i < plan_.served_by.size(); ++i) {
      const ResidenceId id = plan_.served_by[i];
      if (!id.valid()) continue;
      const Access& a = program_.accesses()[i];
      const Residence& r = residence(id);
      // The result of a plain copy that is replaced may arrive after that tick; until then its
      // operand stands for it.
      const bool comes_later = a.tick < r.begin && Replaces(id, a.tick);
      if (r.buffer != a.buffer || (a.tick < r.begin && !comes_later) || a.tick >= r.end) {
        Break(Rule::kServed, At(a.tick), ": the access of buffer '", program_.buffer(a.buffer).name,
              "' is served by ", Describe(id.index()), "it is not there");
      }
    }
  }

  // The prefetches of a residence fill each of its bytes once, from its start on, from one source.
  void CheckPrefetches() {
    for (size_t i = 0; i < prefetches_.size(); ++i) {
      std::vector<size_t>& copies = prefetches_[i];
      if (copies.empty()) continue;
      const Residence& r = plan_.residences[i];
      const Copy& first = plan_.copies[copies[0]];  // copies stand in the order of their begins
      if (first.begin != r.begin)
        Break(Rule::kCopy, Describe(i), "its first prefetch begins at ", first.begin);
      for (const size_t c : copies) {
        if (plan_.copies[c].preload != first.preload ||
            plan_.copies[c].replaces != first.replaces) {
          Break(Rule::kCopy, Describe(i), "its prefetches come from different sources");
        }
        if (ScopeEnd(plan_.copies[c].begin) != ScopeEnd(first.begin)) {
          Break(Rule::kRegion, Describe(i),
                "its prefetches begin in different loops or branches, at ", first.begin, " and ",
                plan_.copies[c].begin);
        }
      }
      std::vector<size_t> parts = copies;
      std::sort(parts.begin(), parts.end(), [this](size_t a, size_t b) {
        return std::pair(plan_.copies[a].part_begin, a) < std::pair(plan_.copies[b].part_begin, b);
      });
      int64_t filled = 0;
      size_t good = 0;
      while (good < parts.size() && plan_.copies[parts[good]].part_begin == filled) {
        filled = plan_.copies[parts[good++]].part_end;
      }
      const int64_t size = program_.buffer(r.buffer).size_bytes;
      if (good < parts.size() || filled != size) {
        Break(Rule::kCopy, Describe(i), "the parts prefetched are not its ", size,
              " bytes, each once; good up to ", filled);
      }
      if (first.replaces >= 0) CheckReplaced(i, first);
    }
  }

  // Between two slices no copy is under way, and neither is one before the first that takes the
  // place of a plain copy. So the value rules find nothing wrong, although bytes are missing.
  void CheckBetweenSlices() {
    for (size_t i = 0; i < plan_.copies.size(); ++i) {
      const Copy& c = plan_.copies[i];
      const std::vector<size_t>& copies = prefetches_[c.residence.index()];
      if (c.kind != CopyKind::kEviction || copies.empty() || copies.back() < i) continue;
      Break(Rule::kCopy, DescribeCopy(i), "part of it is prefetched only later, from tick ",
            plan_.copies[copies.back()].begin, " on");
    }
    for (size_t i = 0; i < prefetches_.size(); ++i) {
      const std::vector<size_t>& copies = prefetches_[i];
      if (copies.size() < 2) continue;
      const Residence& r = plan_.residences[i];
      const Tick last_begin = plan_.copies[copies.back()].begin;
      for (const AccessId a : program_.accesses_of(r.buffer)) {
        const Tick tick = program_.access(a).tick;
        const bool served =
            plan_.served_by[a.index()].value == static_cast<int32_t>(i) && tick >= r.begin;
        if (served && tick < last_begin && tick != plan_.copies[copies[0]].replaces) {
          Break(Rule::kServed, At(tick), ": ", Describe(i),
                "part of it is prefetched only from tick ", last_begin, " on");
        }
      }
    }
  }

  void CheckReplaced(size_t index, const Copy& c) {
    const Instruction& copy = program_.instruction(c.replaces);
    const size_t source = copy.first_access, result = source + 1;
    if (plan_.served_by[result] != c.residence) {
      Break(Rule::kCopy, Describe(index), "it replaces the plain copy at ", At(c.replaces),
            ", whose result is not there");
    }
    if (plan_.served_by[source].valid()) {
      Break(Rule::kCopy, Describe(index), "it replaces the plain copy at ", At(c.replaces),
            ", whose operand is not served from main memory");
    }
    for (const size_t i : prefetches_[index]) {
      if (RegionAt(plan_.copies[i].begin) != RegionAt(c.replaces)) {
        Break(Rule::kRegion, DescribeCopy(i), "the plain copy it replaces, ", At(c.replaces),
              ", is in another region");
      }
    }
  }

  void CheckCopies() {
    for (size_t i = 0; i < plan_.copies.size(); ++i) {
      const Copy& c = plan_.copies[i];
      const Residence& r = residence(c.residence);
      // At the residence's very end nothing can be filled any more: only an eviction with an empty
      // window may lie there.
      if (c.begin < r.begin || c.end > r.end ||
          (c.kind == CopyKind::kPrefetch && c.begin == r.end)) {
        Break(Rule::kCopy, DescribeCopy(i), "its residence is there at ticks [", r.begin, ", ",
              r.end, ") only");
      }
      if (c.preload && !program_.buffer(r.buffer).CanBePreloaded()) {
        Break(Rule::kCopy, DescribeCopy(i),
              "the buffer is no entry parameter, or the program returns it");
      }
    }
  }

  void CheckRegions() {
    for (size_t i = 0; i < plan_.residences.size(); ++i) {
      const Residence& r = plan_.residences[i];
      const Tick scope_end = ScopeEnd(r.begin);
      if (r.end > scope_end) {
        Break(Rule::kRegion, Describe(i), "it begins in a loop or branch that ends at ", scope_end,
              ", and reaches out of it");
      }
      // It may not end inside a loop that it enters.
      for (int32_t g = RegionAt(r.end - 1); g >= 0 && region(g).begin > r.begin;
           g = region(g).parent) {
        if (region(g).loop < 0) continue;
        const Loop& loop = program_.loops()[region(g).loop];
        if (r.end < loop.exit) {
          Break(Rule::kRegion, Describe(i), "it enters the loop at ", At(loop.entry),
                " and ends inside; the loop ends at ", loop.exit);
        }
      }
    }
    for (size_t i = 0; i < plan_.copies.size(); ++i) {
      const Copy& c = plan_.copies[i];
      if (!c.preload && c.begin < c.end && RegionAt(c.begin) != RegionAt(c.end - 1)) {
        Break(Rule::kRegion, DescribeCopy(i), "its window enters or leaves a loop, branch or call");
      }
      if (!c.preload && region(RegionAt(c.begin)).trips == 0)
        Break(Rule::kRegion, DescribeCopy(i), "it begins in a loop that never runs");
      if (c.begin < program_.ticks() && c.begin >= ScopeEnd(residence(c.residence).begin)) {
        Break(Rule::kRegion, DescribeCopy(i),
              "it begins outside the loop or branch that its residence begins in");
      }
    }
  }

  // If a loop's entry is served from fast memory, its residence reaches over the whole loop and
  // serves every access inside.
  void CheckLoopEntries() {
    for (size_t i = 0; i < plan_.served_by.size(); ++i) {
      const Access& a = program_.accesses()[i];
      const ResidenceId id = plan_.served_by[i];
      if (a.kind != AccessKind::kLoopEntry || !id.valid()) continue;
      const Loop& loop = program_.loop_at(a.tick);
      if (residence(id).end < loop.exit) {
        Break(Rule::kRegion, Describe(id.index()), "it serves the entry of the loop at ",
              At(a.tick), ", and does not reach to its end at ", loop.exit);
      }
      const auto accesses = program_.accesses_of(a.buffer);
      auto inside = std::upper_bound(accesses.begin(), accesses.end(), AccessId(i));
      for (; inside != accesses.end() && program_.access(*inside).tick < loop.exit; ++inside) {
        if (plan_.served_by[inside->index()] != id) {
          Break(Rule::kServed, At(program_.access(*inside).tick), ": the access of buffer '",
                program_.buffer(a.buffer).name, "' is not served by the residence ", id.value,
                " that it entered the loop '", program_.instruction(a.tick).name, "' in");
          break;
        }
      }
    }
  }

  // While a transfer holds a buffer, all accesses are served where the one is that begins it, and
  // nothing that the transfer fills is evicted.
  void CheckHeld() {
    for (size_t i = 0; i < plan_.served_by.size(); ++i) {
      const Access& a = program_.accesses()[i];
      if (a.held_until == 0) continue;
      const ResidenceId id = plan_.served_by[i];
      const auto accesses = program_.accesses_of(a.buffer);
      bool writes = false;
      for (auto other = std::lower_bound(accesses.begin(), accesses.end(), AccessId(i));
           other != accesses.end() && program_.access(*other).tick < a.held_until; ++other) {
        writes |= program_.access(*other).kind != AccessKind::kRead;
        if (plan_.served_by[other->index()] == id) continue;
        Break(Rule::kServed, At(program_.access(*other).tick), ": the access of buffer '",
              program_.buffer(a.buffer).name, "' is served elsewhere than the one at ", At(a.tick),
              ", where a transfer begins that holds it until tick ", a.held_until);
      }
      for (size_t c = 0; writes && id.valid() && c < plan_.copies.size(); ++c) {
        const Copy& copy = plan_.copies[c];
        if (copy.kind == CopyKind::kEviction && copy.residence == id && a.tick < copy.begin &&
            copy.begin < a.held_until) {
          Break(Rule::kCopy, DescribeCopy(c), "a transfer that begins at ", At(a.tick),
                " fills the buffer until tick ", a.held_until);
        }
      }
    }
  }

  // The bytes [offset, end_offset) that a residence takes over the ticks [begin, end).
  struct Piece {
    Tick begin, end;
    int64_t offset, end_offset;
    size_t residence;
  };

  std::vector<Piece> Pieces() const {
    std::vector<Piece> pieces;
    for (size_t i = 0; i < plan_.residences.size(); ++i) {
      const Residence& r = plan_.residences[i];
      if (prefetches_[i].empty()) {
        pieces.push_back(
            {r.begin, r.end, r.offset, r.offset + program_.buffer(r.buffer).size_bytes, i});
      }
      for (const size_t c : prefetches_[i]) {
        const Copy& copy = plan_.copies[c];
        pieces.push_back(
            {copy.begin, r.end, r.offset + copy.part_begin, r.offset + copy.part_end, i});
      }
    }
    return pieces;
  }

  void CheckSpace() {
    for (size_t i = 0; i < plan_.residences.size(); ++i) {
      const Residence& r = plan_.residences[i];
      const int64_t size = program_.buffer(r.buffer).size_bytes;
      if (r.offset < 0 || size > hardware_.fast_bytes || r.offset > hardware_.fast_bytes - size) {
        Break(Rule::kSpace, Describe(i), size, " bytes at offset ", r.offset, " of ",
              hardware_.fast_bytes);
      } else if (r.offset % hardware_.alignment_bytes != 0) {
        Break(Rule::kSpace, Describe(i), "offset ", r.offset, " is no multiple of ",
              hardware_.alignment_bytes);
      }
    }
    if (!verdict_.ok()) return;
    std::vector<Piece> pieces = Pieces();
    std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
      return std::tuple(a.begin, a.offset, a.residence) <
             std::tuple(b.begin, b.offset, b.residence);
    });
    std::vector<size_t> by_end(pieces.size());
    for (size_t i = 0; i < by_end.size(); ++i) by_end[i] = i;
    std::sort(by_end.begin(), by_end.end(),
              [&pieces](size_t a, size_t b) { return pieces[a].end < pieces[b].end; });
    std::map<int64_t, const Piece*> taken;  // by offset
    size_t next = 0, over = 0;
    for (Tick t = 0; t < program_.ticks() && verdict_.ok(); ++t) {
      for (; over < by_end.size() && pieces[by_end[over]].end <= t; ++over)
        taken.erase(pieces[by_end[over]].offset);
      for (; next < pieces.size() && pieces[next].begin == t; ++next) Take(pieces[next], taken);
      const int64_t reserved = program_.instruction(t).reserved_bytes;
      if (!taken.empty() && taken.begin()->first < reserved) {
        Break(Rule::kSpace, Describe(taken.begin()->second->residence), "offset ",
              taken.begin()->first, ", but ", At(t), " needs bytes [0, ", reserved, ") for itself");
      }
    }
  }

  void Take(const Piece& piece, std::map<int64_t, const Piece*>& taken) {
    const auto above = taken.lower_bound(piece.offset);
    const Piece* other = nullptr;
    if (above != taken.end() && above->first < piece.end_offset) other = above->second;
    if (above != taken.begin() && std::prev(above)->second->end_offset > piece.offset)
      other = std::prev(above)->second;
    if (other != nullptr) {
      return Break(Rule::kSpace, Describe(piece.residence), "bytes [", piece.offset, ", ",
                   piece.end_offset, ") from ", At(piece.begin), " on are taken by residence ",
                   other->residence, " of buffer '", BufferName(plan_.residences[other->residence]),
                   "', bytes [", other->offset, ", ", other->end_offset, ")");
    }
    taken.emplace(piece.offset, &piece);
  }

  // An eviction with an empty window at its residence's end finds the bytes unless a prefetch at
  // the same tick is served before it and fills them anew.
  void CheckLastEvictions() {
    // Such residences of the tick at hand by offset; they are disjoint.
    std::map<int64_t, size_t> leaving;
    Tick tick = -1;
    for (size_t i = plan_.copies.size(); i-- > 0;) {
      const Copy& c = plan_.copies[i];
      const Residence& r = residence(c.residence);
      if (c.begin != tick) leaving.clear();
      tick = c.begin;
      if (c.kind == CopyKind::kEviction && c.begin == r.end)
        leaving.emplace(r.offset, c.residence.index());
      if (c.kind != CopyKind::kPrefetch) continue;
      const auto above = leaving.lower_bound(r.offset + c.part_end);
      if (above == leaving.begin()) continue;
      const size_t other = std::prev(above)->second;
      const Residence& last = plan_.residences[other];
      if (last.offset + program_.buffer(last.buffer).size_bytes > r.offset + c.part_begin) {
        Break(Rule::kSpace, DescribeCopy(i), "it fills bytes of ", Describe(other),
              "before these are evicted");
      }
    }
  }

  // At each tick the residences that are being filled, or emptied, are counted. The slices of one
  // residence count as one copy, however their windows lie.
  void CheckOutstanding() {
    int64_t preloads = 0;
    for (const std::vector<size_t>& copies : prefetches_)
      preloads += !copies.empty() && plan_.copies[copies[0]].preload;
    if (preloads > hardware_.max_preloads) {
      Break(Rule::kOutstanding, preloads, " buffers are preloaded, the hardware allows ",
            hardware_.max_preloads);
    }
    CheckOutstanding(CopyKind::kPrefetch, hardware_.max_outstanding_prefetches);
    CheckOutstanding(CopyKind::kEviction, hardware_.max_outstanding_evictions);
  }

  void CheckOutstanding(CopyKind kind, int32_t limit) {
    std::vector<int32_t> change(program_.instructions().size() + 1, 0);
    // For each residence: up to where the windows so far cover it.
    std::vector<Tick> covered(plan_.residences.size(), 0);
    for (const Copy& c : plan_.copies) {
      if (c.kind != kind || c.preload) continue;
      Tick& until = covered[c.residence.index()];
      const Tick begin = std::max(c.begin, until);
      if (begin >= c.end) continue;
      ++change[begin];
      --change[c.end];
      until = c.end;
    }
    int32_t outstanding = 0;
    for (Tick t = 0; t < program_.ticks(); ++t) {
      outstanding += change[t];
      if (outstanding > limit) {
        Break(Rule::kOutstanding, outstanding,
              kind == CopyKind::kPrefetch ? " prefetches" : " evictions", " at ", At(t),
              ", the hardware allows ", limit);
      }
    }
  }

  const Program& program_;
  const Hardware& hardware_;
  const Plan& plan_;
  // For each residence the indices of its prefetches, in the plan's order.
  std::vector<std::vector<size_t>> prefetches_;
  Verdict verdict_;
};

}  // namespace

const char* RuleName(Rule rule) {
  switch (rule) {
    case Rule::kNone: return "none";
    case Rule::kMalformed: return "malformed";
    case Rule::kEligible: return "eligible";
    case Rule::kSpace: return "space";
    case Rule::kServed: return "served";
    case Rule::kMainValue: return "main-value";
    case Rule::kCopy: return "copy";
    case Rule::kOutstanding: return "outstanding";
    case Rule::kRegion: return "region";
  }
  return "unknown";
}

Verdict Validate(const Program& program, const Hardware& hardware, const Plan& plan) {
  return Validator(program, hardware, plan).Run();
}

}  // namespace mallocgame
