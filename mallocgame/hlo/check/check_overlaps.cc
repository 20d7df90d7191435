// Values that live at one time and share bytes. Sweeps over the values in the order in which they
// begin, with those before it that still live.
#include <algorithm>
#include <compare>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "mallocgame/hlo/check/lifetimes.h"
#include "mallocgame/hlo/check/phase_reading.h"
#include "mallocgame/hlo/check/phase_rules.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/opcodes.h"

namespace mallocgame::hlo {
namespace {

struct Value {
  int32_t position = 0;
  Lifetime lifetime;
  int64_t offset = 0, end = 0;
};

// A value, named alike in the original and in what is written of it: what copies or slices bring is
// what they bring it of.
struct Identity {
  std::string instruction;
  int32_t position = 0;  // within its result
  bool is_slice = false;

  auto operator<=>(const Identity&) const = default;
};
using Pair = std::pair<Identity, Identity>;

class OverlapChecker {
 public:
  OverlapChecker(const PhaseReading& written, const Hardware& hardware)
      : written_(written), module_(*written.module), positions_(*written.positions),
        hardware_(hardware) {}

  // The pairs of values that begin at one byte although they live at one time.
  struct Shared {
    std::set<Pair> until_read;  // the second is made by the last reader of the first
    std::set<Pair> while_read;  // the first is read later too
  };
  Shared FindShared() const {
    Shared shared;
    ForEachOverlap([&](const Value& other, const Value& next) {
      if (other.offset != next.offset) return true;
      const bool is_last = LastRead(other, next) == next.lifetime.begin;
      std::set<Pair>& pairs = is_last ? shared.until_read : shared.while_read;
      const Pair pair = PairOf(other, next);
      pairs.insert(pair);
      // Of two that begin together either may be the first in the other module.
      if (other.lifetime.begin == next.lifetime.begin) pairs.insert({pair.second, pair.first});
      return true;
    });
    return shared;
  }

  // `shared` is what the compiler's own assignment shares.
  absl::Status Check(const Shared& shared) const {
    absl::Status status;
    ForEachOverlap([&](const Value& other, const Value& next) {
      if (MayShare(other, next, shared)) return true;
      status = Overlap(other, next);
      return false;
    });
    return status;
  }

 private:
  // Visits the pairs of values that live at one time and share bytes, the one that begins first
  // first, until `visit` says false.
  template <class Visit>
  void ForEachOverlap(const Visit& visit) const {
    for (auto& [memory, values] : ValuesByMemory()) {
      std::vector<Value> living;
      for (const Value& value : values) {
        std::erase_if(living,
                      [&](const Value& v) { return v.lifetime.end < value.lifetime.begin; });
        for (const Value& other : living) {
          if (other.offset >= value.end || value.offset >= other.end) continue;
          if (InOtherBranch(other, value) || LastRead(other, value) < value.lifetime.begin)
            continue;
          if (!visit(other, value)) return;
        }
        living.push_back(value);
      }
    }
  }

  // By memory: an allocation, or all of fast memory. In the order in which they begin. Computations
  // that run for each element have memory of their own.
  std::map<int64_t, std::vector<Value>> ValuesByMemory() const {
    const std::vector<Lifetime> lifetimes = FindLifetimes(written_);
    std::map<int64_t, std::vector<Value>> values;
    for (int32_t p = 0; p < std::ssize(positions_); ++p) {
      const Placement& placement = written_.placements.At(p);
      if (placement.allocation == nullptr || placement.size == 0 || lifetimes[p].begin == kNone ||
          placement.allocation->is_thread_local() || !IsPacked(placement.color, hardware_))
        continue;
      const bool fast = placement.color == hardware_.fast_memory_space;
      values[fast ? -1 : placement.allocation->index()].push_back(
          {p, lifetimes[p], placement.offset, placement.end()});
    }
    for (auto& [memory, list] : values) {
      std::sort(list.begin(), list.end(), [](const Value& a, const Value& b) {
        return std::tie(a.lifetime.begin, a.position) < std::tie(b.lifetime.begin, b.position);
      });
    }
    return values;
  }

  // Whether the two are made in branches of which one runs only. What a branch returns lives until
  // the conditional ends, behind the other branches.
  bool InOtherBranch(const Value& other, const Value& next) const {
    const std::vector<Region>& regions = written_.schedule.regions;
    const Tick made = next.lifetime.begin;
    int32_t r = written_.schedule.ticks[other.lifetime.begin].region;
    // The outermost region that holds `other` alone: is it a branch beside one that holds `next`?
    int32_t apart = kNone;
    for (; r >= 0 && (made < regions[r].begin || made >= regions[r].end); r = regions[r].parent)
      apart = r;
    int32_t beside = written_.schedule.ticks[made].region;
    while (beside >= 0 && regions[beside].parent != r) beside = regions[beside].parent;
    return apart != kNone && beside >= 0 && regions[apart].kind == RegionKind::kBranch &&
           regions[beside].kind == RegionKind::kBranch && beside != apart;
  }

  // When `other` is read last, but for reads in branches beside those that `next` is made in: where
  // that is made, these don't run.
  Tick LastRead(const Value& other, const Value& next) const {
    const Tick made = next.lifetime.begin;
    const std::vector<Region>& regions = written_.schedule.regions;
    Tick last = kNone;
    for (const Tick read : other.lifetime.reads) {
      bool runs = true;
      for (int32_t r = written_.schedule.ticks[made].region; r >= 0; r = regions[r].parent) {
        if (regions[r].kind == RegionKind::kBranch && read >= regions[r].end &&
            read < ConditionalOf(r))
          runs = false;
      }
      if (runs) last = std::max(last, read);
    }
    return last;
  }

  // The tick of the conditional that a branch is of: the next that is outside of branches.
  Tick ConditionalOf(int32_t branch) const {
    const Region& region = written_.schedule.regions[branch];
    Tick tick = region.end;
    while (written_.schedule.ticks[tick].region != region.parent) ++tick;
    return tick;
  }

  // Whether `next`, which begins while `other` lives, may have bytes of it: the compiler's own
  // assignment has them at one place too, or nothing is written.
  bool MayShare(const Value& other, const Value& next, const Shared& shared) const {
    const int32_t i = positions_[next.position].instruction;
    const bool dies = LastRead(other, next) == next.lifetime.begin;
    if (dies && JoinsSlices(written_.proto(i)) && Reads(i, other.position)) return true;
    if (other.offset != next.offset) return false;
    // What a branch returns of what is read, nothing writes.
    if (written_.opcode(i) == kConditional && Reads(i, other.position)) return true;
    const Pair pair = PairOf(other, next);
    return shared.while_read.contains(pair) || (dies && shared.until_read.contains(pair));
  }

  Pair PairOf(const Value& other, const Value& next) const {
    return {IdentityOf(other.position), IdentityOf(next.position)};
  }

  // `position` makes a value.
  Identity IdentityOf(int32_t position) const {
    bool is_slice = false;
    while (true) {
      const int32_t i = positions_[position].instruction;
      const Opcode opcode = written_.opcode(i);
      if (opcode == kSlice) {  // an asynchronous one too
        is_slice = true;
      } else if (JoinsSlices(written_.proto(i))) {
        is_slice = false;
        position = SourceOfOperand(i);  // one of the slices
      } else if (opcode != kCopy && opcode != kCopyStart) {
        return {module_.NameOf(i), position - positions_.Of(i).first, is_slice};
      }
      position = SourceOfOperand(positions_[position].instruction);
    }
  }

  int32_t SourceOfOperand(int32_t i) const {
    return written_.flow.SourceOf(positions_.Of(module_.operands(i)[0]).first);
  }

  // A conditional, or a call, reads what the computations return that it runs.
  bool Reads(int32_t i, int32_t position) const {
    const auto has = [&](int32_t instruction) {
      const PositionRange range = positions_.Of(instruction);
      for (int32_t k = 0; k < range.count; ++k) {
        if (written_.flow.SourceOf(range.first + k) == position) return true;
      }
      return false;
    };
    const Opcode opcode = written_.opcode(i);
    const bool runs = opcode == kConditional || opcode == kCall;
    return absl::c_any_of(module_.operands(i), has) ||
           (runs && absl::c_any_of(module_.called(i), [&](int32_t called) {
              return has(module_.computation(called).root);
            }));
  }

  int32_t InstructionAt(Tick tick) const { return written_.schedule.ticks[tick].instruction; }

  std::string Describe(const Value& value) const {
    const auto name = [&](Tick tick) {
      const Schedule::Entry& entry = written_.schedule.ticks[tick];
      return absl::StrCat("'", written_.proto(entry.instruction).name(), "'");
    };
    return absl::StrCat(positions_.Name(value.position), " at ",
                        Where(written_.placements.At(value.position)), ", which lives from ",
                        name(value.lifetime.begin), " (tick ", value.lifetime.begin, ") to ",
                        name(value.lifetime.end), " (tick ", value.lifetime.end, ")");
  }

  absl::Status Overlap(const Value& a, const Value& b) const {
    std::vector<std::string> instructions;
    for (const Value* value : {&a, &b}) {
      instructions.push_back(positions_.MakerOf(value->position));
      for (const Tick tick : {value->lifetime.begin, value->lifetime.end})
        instructions.push_back(module_.NameOf(InstructionAt(tick)));
    }
    return Refuse(PhaseRule::kOverlap, instructions, Describe(a), ", shares bytes with ",
                  Describe(b), "; values that live at one time must lie apart");
  }

  const PhaseReading& written_;
  const Module& module_;
  const Positions& positions_;
  const Hardware& hardware_;
};

}  // namespace

absl::Status CheckOverlaps(const PhaseReading& original, const PhaseReading& written,
                           const Hardware& hardware) {
  return OverlapChecker(written, hardware).Check(OverlapChecker(original, hardware).FindShared());
}

}  // namespace mallocgame::hlo
