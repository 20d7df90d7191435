#include "mallocgame/hlo/check/lifetimes.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "mallocgame/hlo/module/async_chains.h"
#include "mallocgame/hlo/module/hlo.pb.h"

namespace mallocgame::hlo {
namespace {

class LifetimeFinder {
 public:
  explicit LifetimeFinder(const PhaseReading& written)
      : written_(written), module_(*written.module), positions_(*written.positions),
        schedule_(written.schedule), entry_of_(module_.instructions().size(), kNone),
        body_of_(module_.computations().size(), kNone),
        lifetimes_(positions_.size(), Lifetime{kNone, kNone, {}}) {}

  std::vector<Lifetime> Run() && {
    ReadRegions();
    for (int32_t p = 0; p < std::ssize(positions_); ++p) {
      if (written_.flow.Runs(positions_[p].instruction) && written_.flow.IsMade(p)) Begin(p);
    }
    for (int32_t i = 0; i < std::ssize(module_.instructions()); ++i) {
      if (written_.flow.Runs(i)) AddUses(i);
    }
    for (const LoopLeaf& leaf : written_.flow.loop_leaves()) AddUsesOfLoop(leaf);
    AddUsesOfProgram();
    return std::move(lifetimes_);
  }

 private:
  void ReadRegions() {
    for (const Loop& loop : schedule_.loops)
      entry_of_[schedule_.ticks[loop.entry].instruction] = loop.entry;
    for (const Schedule::Entry& entry : schedule_.ticks)
      body_of_[module_.instruction(entry.instruction).computation] = entry.region;
  }

  const Region& RegionOf(int32_t computation) const {
    return schedule_.regions[body_of_[computation]];
  }

  // What is wrapped happens when its async-start does.
  Tick TickOf(int32_t i) const {
    while (written_.flow.WrappedBy(i) != kNone) i = written_.flow.WrappedBy(i);
    return schedule_.tick_of[i];
  }

  void Begin(int32_t p) {
    const int32_t i = positions_[p].instruction;
    Tick begin = TickOf(i);
    const bool parameter = written_.opcode(i) == kParameter;
    // Parameters of a loop hold what is carried from where its body or condition begins.
    if (parameter) begin = RegionOf(module_.instruction(i).computation).begin;
    lifetimes_[p] = {begin, begin, {}};
  }

  // The value at `position` is read at a tick. If that is in a loop that the value comes from
  // outside of, it is read again in the next trip.
  void Use(int32_t position, Tick tick) {
    Lifetime& lifetime = lifetimes_[written_.flow.SourceOf(position)];
    for (int32_t r = schedule_.ticks[tick].region; r >= 0; r = schedule_.regions[r].parent) {
      const Region& region = schedule_.regions[r];
      if (lifetime.begin >= region.begin && lifetime.begin < region.end) break;
      if (region.loop >= 0) tick = std::max(tick, schedule_.loops[region.loop].exit);
    }
    lifetime.end = std::max(lifetime.end, tick);
    lifetime.reads.push_back(tick);
  }

  void UseAll(int32_t operand, Tick tick) {
    const PositionRange range = positions_.Of(operand);
    for (int32_t k = 0; k < range.count; ++k) Use(range.first + k, tick);
  }

  // Which instructions end what `i` has begun.
  void AddUses(int32_t i) {
    const Opcode opcode = written_.opcode(i);
    const absl::Span<const int32_t> operands = module_.operands(i);
    const Tick tick = TickOf(i);
    if (opcode == kBitcast || opcode == kTuple || opcode == kWhile) {
      // They name values. What a loop reads of them stands in it.
      if (opcode == kWhile) UseTable(operands[0], entry_of_[i]);
      return;
    }
    if (opcode == kGetTupleElement) return UseTable(operands[0], tick);
    if (opcode == kConditional) return AddUsesOfBranches(i, tick);
    for (const int32_t operand : operands) {
      opcode == kAsyncDone ? UseFilled(operand, tick) : UseAll(operand, tick);
    }
    if (IsDone(opcode)) KeepUntilDone(i, tick);
    if (opcode == kCall) UseAll(module_.computation(module_.called(i)[0]).root, tick);
  }

  // A conditional takes over its operands where the first branch begins. What a branch reads of
  // them stands in it, and what it makes and returns waits for the end of the others.
  void AddUsesOfBranches(int32_t i, Tick tick) {
    Tick begin = tick;
    for (const int32_t branch : module_.called(i)) {
      const Region& region = RegionOf(branch);
      begin = std::min(begin, region.begin);
      const PositionRange root = positions_.Of(module_.computation(branch).root);
      for (int32_t p = root.first; p < root.first + root.count; ++p) {
        const bool makes = lifetimes_[written_.flow.SourceOf(p)].begin >= region.begin;
        Use(p, makes ? tick : region.end - 1);
      }
    }
    for (const int32_t operand : module_.operands(i)) UseAll(operand, begin);
  }

  // An async-done reads its operand, but for scratch in main memory that an async-update got: the
  // compiler gives it to others from then on.
  void UseFilled(int32_t operand, Tick tick) {
    const PositionRange all = positions_.Of(operand);
    const bool updates = written_.opcode(operand) == kAsyncUpdate;
    const auto scratch = updates ? positions_.Find(operand, {2}) : std::nullopt;
    for (int32_t p = all.first; p < all.first + all.count; ++p) {
      if (!scratch || p < *scratch || positions_[p].memory_space != 0) Use(p, tick);
    }
  }

  void UseTable(int32_t operand, Tick tick) { Use(positions_.Of(operand).first, tick); }

  // What a transfer reads must stay until it is done. What it fills is an operand of its *-done.
  void KeepUntilDone(int32_t done, Tick tick) {
    const int32_t start = StartOfDone(module_, done);
    for (int32_t i = module_.operands(done)[0]; i != start; i = module_.operands(i)[0]) {
      for (const int32_t operand : module_.operands(i).subspan(1)) UseAll(operand, tick);
    }
    if (IsStart(written_.opcode(start))) {
      for (const int32_t operand : module_.operands(start)) UseAll(operand, tick);
    }
  }

  // A loop takes over what it carries where it begins. While the condition runs, it holds the value
  // whether the condition reads it or not; at the end of the body it holds the next one.
  void AddUsesOfLoop(const LoopLeaf& leaf) {
    const absl::Span<const int32_t> called = module_.called(leaf.loop);
    Use(leaf.init, entry_of_[leaf.loop]);
    Use(leaf.condition_parameter, RegionOf(called[1]).end - 1);
    Use(leaf.next, RegionOf(called[0]).end - 1);
  }

  // Parameters stay as they are, unless they are donated. Results and constants live on.
  void AddUsesOfProgram() {
    const auto last = static_cast<Tick>(schedule_.ticks.size()) - 1;
    const Computation& entry = module_.computation(module_.entry());
    std::set<int32_t> donated;
    for (const auto& alias : module_.module().input_output_alias().entries()) {
      if (alias.parameter_number() < 0 || alias.parameter_number() >= std::ssize(entry.parameters))
        continue;
      const auto position = positions_.Find(entry.parameters[alias.parameter_number()],
                                            alias.parameter_shape_index());
      if (position) donated.insert(*position);
    }
    for (const int32_t parameter : entry.parameters) {
      const PositionRange range = positions_.Of(parameter);
      for (int32_t k = 0; k < range.count; ++k) {
        if (!donated.contains(range.first + k)) Use(range.first + k, last);
      }
    }
    UseAll(entry.root, last);
    for (int32_t p = 0; p < std::ssize(positions_); ++p) {
      const int32_t i = positions_[p].instruction;
      if (written_.flow.Runs(i) && written_.opcode(i) == kConstant)
        lifetimes_[p] = {0, last, {last}};
    }
    AddPreloads(last);
  }

  // What is preloaded is there before the program begins. It stays for the next run, or a copy does
  // that is made for that and read by nothing.
  void AddPreloads(Tick last) {
    std::map<int32_t, int32_t> kept;  // by what is preloaded: what holds it at the end
    for (const int32_t i : module_.computation(module_.entry()).schedule) {
      if (written_.opcode(i) != kCopyStart) continue;
      const int32_t destination = positions_.Of(i).first + 1;
      const int32_t source = written_.flow.SourceOf(positions_.Of(module_.operands(i)[0]).first);
      if (written_.proto(i).has_cross_program_prefetch_index()) {
        lifetimes_[destination].begin = 0;
        kept[source] = destination;
      } else if (written_.users[written_.users[i][0]].empty() && kept.contains(source)) {
        kept[source] = destination;
      }
    }
    for (const auto& [source, destination] : kept) Use(destination, last);
  }

  const PhaseReading& written_;
  const Module& module_;
  const Positions& positions_;
  const Schedule& schedule_;
  std::vector<Tick> entry_of_;    // by while
  std::vector<int32_t> body_of_;  // by computation on the time axis: its region
  std::vector<Lifetime> lifetimes_;
};

}  // namespace

std::vector<Lifetime> FindLifetimes(const PhaseReading& written) {
  return LifetimeFinder(written).Run();
}

}  // namespace mallocgame::hlo
