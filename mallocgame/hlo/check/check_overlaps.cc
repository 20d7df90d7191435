// Values that live at one time and share bytes. Sweeps over the values in the order in which they
// begin, with those before it that still live.
#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "absl/algorithm/container.h"
#include "mallocgame/hlo/check/lifetimes.h"
#include "mallocgame/hlo/check/phase_reading.h"
#include "mallocgame/hlo/check/phase_rules.h"
#include "mallocgame/hlo/module/collective_steps.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/in_place.h"

namespace mallocgame::hlo {
namespace {

struct Value {
  int32_t position = 0;
  Lifetime lifetime;
  int64_t offset = 0, end = 0;
};

class OverlapChecker {
 public:
  OverlapChecker(const PhaseReading& written, const Hardware& hardware)
      : written_(written), module_(*written.module), positions_(*written.positions),
        hardware_(hardware) {}

  absl::Status Run() const {
    for (auto& [memory, values] : ValuesByMemory()) {
      std::vector<Value> living;
      for (const Value& value : values) {
        std::erase_if(living,
                      [&](const Value& v) { return v.lifetime.end < value.lifetime.begin; });
        for (const Value& other : living) {
          if (other.offset >= value.end || value.offset >= other.end) continue;
          if (InOtherBranch(other, value) || LastRead(other, value) < value.lifetime.begin ||
              MayShare(other, value))
            continue;
          return Overlap(other, value);
        }
        living.push_back(value);
      }
    }
    return absl::OkStatus();
  }

 private:
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

  // Whether `next`, which begins while `other` lives, may have bytes of it.
  bool MayShare(const Value& other, const Value& next) const {
    const int32_t i = positions_[next.position].instruction;
    if (positions_[other.position].instruction == i) return UpdateOneOperand(other, next);
    if (other.offset == next.offset && OriginOf(next.position) == OriginOf(other.position))
      return true;
    if (!Reads(i, other.position)) return false;
    const bool dies = LastRead(other, next) == next.lifetime.begin;
    if (dies && JoinsSlices(written_.proto(i))) return true;
    if (other.offset != next.offset) return false;
    // What a branch returns of that, nothing writes.
    if (written_.opcode(i) == kConditional) return true;
    return dies || IsHandedOn(i, next.position) || IsUpdatedWhileTransferred(other, next);
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

  // Where the value comes from that fusions of a collective hand on, each as its own result.
  int32_t OriginOf(int32_t position) const {
    while (true) {
      const int32_t i = positions_[position].instruction;
      if (!IsHandedOn(i, position)) return position;
      const absl::StatusOr<std::vector<InPlacePair>> pairs = InPlaceFinder(module_).PairsOf(i);
      if (!pairs.ok()) return position;
      const auto pair = std::find_if(pairs->begin(), pairs->end(), [&](const InPlacePair& p) {
        return positions_.OfArray(i, p.output_array) == position;
      });
      if (pair == pairs->end()) return position;
      position = written_.flow.SourceOf(
          positions_.OfArray(module_.operands(i)[pair->operand], pair->operand_array));
    }
  }

  // Whether an array of a result is an operand that still is read as it was.
  bool IsHandedOn(int32_t i, int32_t position) const {
    const std::vector<bool> handed = HandsOn(module_, i);
    for (int32_t k = 0; k < std::ssize(handed); ++k) {
      if (positions_.OfArray(i, k) == position) return handed[k];
    }
    return false;
  }

  // A fusion within a collective may hand on its operand twice: as what it was, and as updated.
  bool UpdateOneOperand(const Value& a, const Value& b) const {
    const int32_t i = positions_[b.position].instruction;
    const absl::StatusOr<std::vector<InPlacePair>> pairs = InPlaceFinder(module_).PairsOf(i);
    if (!pairs.ok() || a.offset != b.offset) return false;
    const auto operand_of = [&](int32_t position) {
      for (const InPlacePair& pair : *pairs) {
        if (positions_.OfArray(i, pair.output_array) == position)
          return written_.flow.SourceOf(
              positions_.OfArray(module_.operands(i)[pair.operand], pair.operand_array));
      }
      return kNone;
    };
    return operand_of(a.position) != kNone && operand_of(a.position) == operand_of(b.position);
  }

  // What an asynchronous instruction wraps may update an operand that is held until the *-done.
  bool IsUpdatedWhileTransferred(const Value& other, const Value& next) const {
    const int32_t i = positions_[next.position].instruction;
    if (written_.flow.WrappedBy(i) == kNone) return false;
    const absl::StatusOr<std::vector<InPlacePair>> pairs = InPlaceFinder(module_).PairsOf(i);
    if (!pairs.ok()) return false;
    return std::any_of(pairs->begin(), pairs->end(), [&](const InPlacePair& pair) {
      const int32_t operand = module_.operands(i)[pair.operand];
      return positions_.OfArray(i, pair.output_array) == next.position &&
             written_.flow.SourceOf(positions_.OfArray(operand, pair.operand_array)) ==
                 other.position &&
             written_.opcode(InstructionAt(other.lifetime.end)) == kAsyncDone;
    });
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
    return Refuse(PhaseRule::kOverlap, std::move(instructions), Describe(a), ", shares bytes with ",
                  Describe(b), "; values that live at one time must lie apart");
  }

  const PhaseReading& written_;
  const Module& module_;
  const Positions& positions_;
  const Hardware& hardware_;
};

}  // namespace

absl::Status CheckOverlaps(const PhaseReading& written, const Hardware& hardware) {
  return OverlapChecker(written, hardware).Run();
}

}  // namespace mallocgame::hlo
