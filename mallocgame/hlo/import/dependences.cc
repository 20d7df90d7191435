// Walks over the time axis with the newest writer and the readers since, of each buffer in each
// region: a loop counts as one instruction of the region around it.
#include "mallocgame/hlo/import/dependences.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "mallocgame/hlo/cost/collectives.h"
#include "mallocgame/hlo/cost/links.h"
#include "mallocgame/hlo/module/collective_steps.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/opcodes.h"

namespace mallocgame::hlo {
namespace {

// A table of which instruction leads to which has a bit for each pair.
constexpr Tick kMostReduced = 1 << 13;

class DependenceBuilder {
 public:
  DependenceBuilder(const Module& module, const Schedule& schedule,
                    const std::vector<int32_t>& of_array, ProgramData& data)
      : module_(module), schedule_(schedule), of_array_(of_array), data_(data),
        collectives_(module, schedule), caller_(schedule.regions.size(), kNone),
        regions_(schedule.regions.size()) {}

  void Run() {
    FindCallers();
    for (Tick tick = 0; tick < std::ssize(schedule_.ticks); ++tick) {
      const Schedule::Entry& entry = schedule_.ticks[tick];
      if (entry.kind == InstructionKind::kLoopEntry) continue;
      AddOperands(tick);
      AddTouches(tick);
      AddEffects(tick);
    }
    std::sort(edges_.begin(), edges_.end());
    edges_.erase(std::unique(edges_.begin(), edges_.end()), edges_.end());
    data_.has_dependences = true;
    data_.dependences = Reduced();
    std::sort(data_.main_uses.begin(), data_.main_uses.end(),
              [](const MainUse& a, const MainUse& b) {
                return std::pair(a.tick, a.buffer) < std::pair(b.tick, b.buffer);
              });
    data_.main_uses.erase(std::unique(data_.main_uses.begin(), data_.main_uses.end()),
                          data_.main_uses.end());
  }

 private:
  // What has happened to a buffer in a region so far.
  struct BufferState {
    Tick writer = kNone;
    std::vector<Tick> readers;  // since
  };
  struct RegionState {
    std::map<int32_t, BufferState> buffers;
    Tick effect = kNone;   // the last instruction with effects
    Tick barrier = kNone;  // the last barrier
    std::vector<Tick> since_barrier;
  };

  const HloInstructionProto& ProtoAt(Tick tick) const {
    return *module_.instruction(schedule_.ticks[tick].instruction).proto;
  }

  // The instruction of the enclosing region that runs each region: a while, conditional or call
  // follows all that it runs.
  void FindCallers() {
    for (size_t r = 1; r < schedule_.regions.size(); ++r) {
      const int32_t parent = schedule_.regions[r].parent;
      Tick tick = schedule_.regions[r].end;
      while (schedule_.ticks[tick].region != parent ||
             schedule_.ticks[tick].kind == InstructionKind::kLoopEntry) {
        ++tick;
      }
      caller_[r] = tick;
    }
  }

  // Calls function(region, tick there) for the tick's own region and all around it.
  template <class Function>
  void ForEachLevel(Tick tick, const Function& function) {
    int32_t region = schedule_.ticks[tick].region;
    while (true) {
      function(region, tick);
      if (schedule_.regions[region].parent < 0) return;
      tick = caller_[region];
      region = schedule_.regions[region].parent;
    }
  }

  void Add(Tick before, Tick after) {
    if (before != kNone && before != after) edges_.push_back({before, after});
  }

  void AddOperands(Tick tick) {
    const int32_t i = schedule_.ticks[tick].instruction;
    for (const int32_t operand : module_.operands(i)) Add(schedule_.tick_of[operand], tick);
    for (const int64_t id : ProtoAt(tick).control_predecessor_ids()) {
      const std::optional<int32_t> before = module_.FindById(id);
      if (before && module_.instruction(*before).computation == module_.instruction(i).computation)
        Add(schedule_.tick_of[*before], tick);
    }
  }

  void AddTouches(Tick tick) {
    const int32_t i = schedule_.ticks[tick].instruction;
    const HloInstructionProto& proto = ProtoAt(tick);
    const Opcode opcode = module_.opcode(schedule_.ticks[tick].instruction);
    // These have their storage for themselves from the start; a loop's parameters don't.
    const bool defines = opcode == kConstant || SetsStorageAside(proto) ||
                         (opcode == kParameter && schedule_.ticks[tick].region == 0);
    const bool moves = !MovesNothing(module_.instruction(i)) || IsTransfer(opcode);
    if (!defines && !moves) return;
    if (moves) {
      for (const int32_t operand : module_.operands(i)) {
        for (int32_t k = 0; k < module_.instruction(operand).array_count; ++k)
          Touch(tick, of_array_[module_.instruction(operand).first_array + k], false);
      }
    }
    const std::vector<bool> hands_on = HandsOn(module_, i);
    const bool ends = IsDone(opcode);  // Its start has written.
    for (int32_t k = 0; k < module_.instruction(i).array_count; ++k) {
      const bool writes = defines || (!ends && !hands_on[k]);
      Touch(tick, of_array_[module_.instruction(i).first_array + k], writes);
    }
  }

  void Touch(Tick tick, int32_t buffer, bool writes) {
    if (buffer == kNone) return;
    if (!data_.buffers[buffer].eligible) data_.main_uses.push_back({tick, BufferId(buffer)});
    ForEachLevel(tick, [&](int32_t region, Tick at) {
      BufferState& state = regions_[region].buffers[buffer];
      Add(state.writer, at);
      if (!writes) {
        if (state.readers.empty() || state.readers.back() != at) state.readers.push_back(at);
        return;
      }
      for (const Tick reader : state.readers) Add(reader, at);
      state.readers.clear();
      state.writer = at;
    });
  }

  void AddEffects(Tick tick) {
    const HloInstructionProto& proto = ProtoAt(tick);
    const Opcode opcode = module_.opcode(schedule_.ticks[tick].instruction);
    const bool transfers = IsTransfer(opcode) || opcode == kInfeed || opcode == kOutfeed ||
                           proto.is_host_transfer() || data_.cost.instructions[tick].link_ps > 0 ||
                           collectives_.Transfers(tick);
    const bool effect = proto.custom_call_has_side_effect() || opcode == kRng ||
                        opcode == kRngBitGenerator || opcode == kRngGetAndUpdateState;
    ForEachLevel(tick, [&](int32_t r, Tick at) {
      RegionState& region = regions_[r];
      if (effect || transfers) {
        Add(region.effect, at);
        region.effect = at;
      }
      if (transfers && region.barrier != at) {
        for (const Tick before : region.since_barrier) Add(before, at);
        Add(region.barrier, at);
        region.since_barrier.clear();
        region.barrier = at;
      }
    });
    RegionState& own = regions_[schedule_.ticks[tick].region];
    if (own.barrier == tick) return;
    Add(own.barrier, tick);
    own.since_barrier.push_back(tick);
  }

  // The edges that don't follow from others.
  std::vector<Dependence> Reduced() const {
    std::map<int32_t, std::vector<Tick>> members;  // by region
    for (Tick tick = 0; tick < std::ssize(schedule_.ticks); ++tick) {
      if (schedule_.ticks[tick].kind != InstructionKind::kLoopEntry)
        members[schedule_.ticks[tick].region].push_back(tick);
    }
    std::vector<Dependence> kept;
    for (const auto& [region, ticks] : members) {
      const bool reduces = std::ssize(ticks) <= kMostReduced;
      const size_t words = (ticks.size() + 63) / 64;
      std::vector<uint64_t> reach(reduces ? ticks.size() * words : 0);
      for (size_t m = ticks.size(); m-- > 0;) {
        auto edge = std::lower_bound(edges_.begin(), edges_.end(), Dependence{ticks[m], 0});
        for (; edge != edges_.end() && edge->before == ticks[m]; ++edge) {
          if (!reduces) {
            kept.push_back(*edge);
            continue;
          }
          const size_t to =
              std::lower_bound(ticks.begin(), ticks.end(), edge->after) - ticks.begin();
          uint64_t* const own = &reach[m * words];
          if ((own[to / 64] >> (to % 64) & 1) != 0) continue;
          kept.push_back(*edge);
          own[to / 64] |= uint64_t{1} << (to % 64);
          for (size_t w = to / 64; w < words; ++w) own[w] |= reach[to * words + w];
        }
      }
    }
    std::sort(kept.begin(), kept.end());
    return kept;
  }

  const Module& module_;
  const Schedule& schedule_;
  const std::vector<int32_t>& of_array_;
  ProgramData& data_;
  const Collectives collectives_;
  std::vector<Tick> caller_;  // by region; none of the entry
  std::vector<RegionState> regions_;
  std::vector<Dependence> edges_;
};

}  // namespace

void BuildDependences(const Module& module, const Schedule& schedule,
                      const std::vector<int32_t>& of_array, ProgramData& data) {
  DependenceBuilder(module, schedule, of_array, data).Run();
}

}  // namespace mallocgame::hlo
