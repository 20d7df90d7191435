// Puts ProgramData together directly: ProgramBuilder looks at all accesses for each loop and
// buffer.
#include "tests/support/large_program.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/base/rng.h"

namespace mallocgame::testing {
namespace {

constexpr int kLoopTicks = 60;
constexpr double kFlopsForEachByte = 225;  // compute time equals memory time on tpu_v4i

class LargeGenerator {
 public:
  explicit LargeGenerator(const LargeProgramOptions& options)
      : options_(options), rng_(options.seed, 11) {
    MG_CHECK(options.instructions >= 200 && options.loops >= 0 &&
             options.loops <= options.instructions / 200);
  }

  std::shared_ptr<const Program> Run() {
    data_.name = "large";
    data_.cost.kind = CostKind::kRoofline;
    data_.regions.push_back({});
    recent_.push_back(AddBuffer("input", BufferOrigin::kParameter, 4 << 20));
    int loops = 0;
    while (tick() < options_.instructions - 1) {
      const int next_loop = (loops + 1) * (options_.instructions / (options_.loops + 1));
      if (loops < options_.loops && tick() + kLoopTicks + 4 < options_.instructions &&
          tick() >= next_loop - kLoopTicks) {
        AddLoop();
        ++loops;
      } else {
        AddInstruction();
      }
    }
    const BufferId last = AddBuffer("last", BufferOrigin::kInstruction, 1 << 20);
    data_.buffers[last.index()].is_output = true;
    AddOp({{recent_.back(), AccessKind::kRead}, {last, AccessKind::kWrite}}, 1);
    return Finish();
  }

 private:
  using Uses = std::vector<std::pair<BufferId, AccessKind>>;

  int tick() const { return static_cast<int>(data_.instructions.size()); }
  bool Chance(double share) { return rng_.Uniform() < share; }

  // Returns a few KiB, or `middle` to 8 times that, or, rarely, up to 32 times that.
  int64_t Size(int64_t middle) {
    const double kind = rng_.Uniform();
    if (kind < 0.5) return 512 * (1 + rng_.Below(16));
    const int64_t most = kind < 0.93 ? 8 : 32;
    return middle + 512 * rng_.Below((most - 1) * middle / 512);
  }

  BufferId AddBuffer(const std::string& name, BufferOrigin origin, int64_t size) {
    Buffer buffer;
    buffer.name = name + "." + std::to_string(data_.buffers.size());
    buffer.size_bytes = size;
    buffer.origin = origin;
    if (origin == BufferOrigin::kParameter) data_.argument_bytes += size;
    data_.buffers.push_back(std::move(buffer));
    return BufferId(static_cast<int64_t>(data_.buffers.size()) - 1);
  }

  Tick AddTick(const std::string& opcode, InstructionKind kind) {
    Instruction i;
    i.name = opcode + "." + std::to_string(tick());
    i.opcode = opcode;
    i.kind = kind;
    i.region = region_;
    data_.instructions.push_back(std::move(i));
    data_.cost.instructions.push_back({});
    uses_.emplace_back();
    return tick() - 1;
  }

  // `wanted` holds reads, then updates, then writes; a buffer that is named twice is left out the
  // second time.
  void AddOp(const Uses& wanted, double compute_to_memory) {
    const Tick at = AddTick("fusion", InstructionKind::kOrdinary);
    InstructionCost& cost = data_.cost.instructions.back();
    Uses& uses = uses_[at];
    double bytes = 0;
    for (const auto& [buffer, kind] : wanted) {
      const BufferId id = buffer;
      if (std::any_of(uses.begin(), uses.end(), [id](const auto& use) { return use.first == id; }))
        continue;
      const int64_t size = data_.buffers[buffer.index()].size_bytes;
      const auto slot = static_cast<int32_t>(uses.size());
      if (kind != AccessKind::kWrite) cost.operands.push_back({size, size, slot, true});
      if (kind != AccessKind::kRead) cost.outputs.push_back({size, size, slot, true});
      bytes += static_cast<double>(size) * (kind == AccessKind::kUpdate ? 2 : 1);
      uses.emplace_back(buffer, kind);
    }
    cost.flops = static_cast<int64_t>(bytes * kFlopsForEachByte * compute_to_memory);
  }

  double ComputeToMemory() { return Chance(0.5) ? 0.01 : 0.3 + 2.7 * rng_.Uniform(); }

  BufferId Recent() {
    const size_t back = Chance(0.7) ? 1 + rng_.Below(4) : 1 + rng_.Below(60);
    return recent_[recent_.size() - std::min(back, recent_.size())];
  }

  void AddInstruction() {
    if (Chance(0.55)) {
      AddTick("bitcast", InstructionKind::kOrdinary);
      return;
    }
    const bool backward = tick() > options_.instructions / 2;
    Uses uses = {{Recent(), AccessKind::kRead}};
    if (Chance(0.6)) uses.emplace_back(Recent(), AccessKind::kRead);
    if (!backward && Chance(0.3)) {
      weights_.push_back(AddBuffer("weight", BufferOrigin::kParameter, Size(512 << 10)));
      uses.emplace_back(weights_.back(), AccessKind::kRead);
    }
    if (backward && !weights_.empty() && Chance(0.3)) {
      if (Chance(0.3)) {
        data_.buffers[weights_.back().index()].is_output = true;
        uses.emplace_back(weights_.back(), AccessKind::kUpdate);
      } else {
        uses.emplace_back(weights_.back(), AccessKind::kRead);
      }
      weights_.pop_back();
    }
    if (backward && !kept_.empty() && Chance(0.5)) {
      uses.emplace_back(kept_.back(), AccessKind::kRead);
      kept_.pop_back();
    }
    std::stable_sort(uses.begin(), uses.end(),
                     [](const auto& a, const auto& b) { return a.second < b.second; });
    const BufferId made = AddBuffer("value", BufferOrigin::kInstruction, Size(256 << 10));
    uses.emplace_back(made, AccessKind::kWrite);
    AddOp(uses, ComputeToMemory());
    recent_.push_back(made);
    if (!backward && Chance(0.4)) kept_.push_back(made);
  }

  void OpenRegion(RegionKind kind, int64_t trips) {
    Region region;
    region.kind = kind;
    region.parent = 0;
    region.loop = static_cast<int32_t>(data_.loops.size());
    region.begin = tick();
    region.trips = trips;
    data_.regions.push_back(region);
    region_ = static_cast<int32_t>(data_.regions.size()) - 1;
  }
  void CloseRegion() {
    data_.regions.back().end = tick();
    region_ = 0;
  }

  // Adds a recurrent network: three weights and the input are read in every trip, a state is
  // updated, and the rest is the body's own.
  void AddLoop() {
    const int64_t trips = 4 + rng_.Below(28);
    const BufferId state = AddBuffer("state", BufferOrigin::kInstruction, 256 << 10);
    AddOp({{Recent(), AccessKind::kRead}, {state, AccessKind::kWrite}}, 1);
    std::map<BufferId, bool> entered = {{state, true}};
    for (int i = 0; i < 3; ++i)
      entered[AddBuffer("weight", BufferOrigin::kParameter, Size(128 << 10))] = false;
    const Tick entry = AddTick("while", InstructionKind::kLoopEntry);
    OpenRegion(RegionKind::kLoopCondition, trips);
    AddTick("compare", InstructionKind::kOrdinary);
    CloseRegion();
    OpenRegion(RegionKind::kLoopBody, trips);
    BufferId last = state;
    const int begin = tick();
    for (const auto& [buffer, written] : entered) {
      const BufferId made = AddBuffer("local", BufferOrigin::kInstruction, Size(32 << 10));
      if (!written)
        AddOp({{last, AccessKind::kRead}, {buffer, AccessKind::kRead}, {made, AccessKind::kWrite}},
              1);
      if (!written) last = made;
    }
    while (tick() < begin + kLoopTicks - 2) {
      const BufferId made = AddBuffer("local", BufferOrigin::kInstruction, Size(32 << 10));
      AddOp({{last, AccessKind::kRead}, {made, AccessKind::kWrite}}, ComputeToMemory());
      last = made;
    }
    AddOp({{last, AccessKind::kRead}, {state, AccessKind::kUpdate}}, 1);
    CloseRegion();
    data_.loops.push_back({entry, tick(), trips, true});
    AddTick("while", InstructionKind::kLoopExit);
    for (const auto& [buffer, written] : entered) {
      uses_[entry].emplace_back(buffer, AccessKind::kLoopEntry);
      if (written) written_in_loop_.emplace_back(entry, buffer);
    }
    recent_.push_back(state);
  }

  std::shared_ptr<const Program> Finish() {
    data_.regions[0].end = tick();
    int32_t time = 0;
    for (size_t t = 0; t < uses_.size(); ++t) {
      Instruction& i = data_.instructions[t];
      i.logical_time = time;
      time += i.kind != InstructionKind::kLoopEntry;
      i.first_access = static_cast<int32_t>(data_.accesses.size());
      i.access_count = static_cast<int32_t>(uses_[t].size());
      for (const auto& [buffer, kind] : uses_[t]) {
        const std::pair<Tick, BufferId> here(static_cast<Tick>(t), buffer);
        const bool written = kind == AccessKind::kLoopEntry &&
                             std::find(written_in_loop_.begin(), written_in_loop_.end(), here) !=
                                 written_in_loop_.end();
        data_.accesses.push_back({here.first, buffer, kind, written});
      }
    }
    auto program = Program::Create(std::move(data_));
    if (!program.ok()) std::fprintf(stderr, "%s\n", program.status().ToString().c_str());
    MG_CHECK(program.ok());
    return *std::move(program);
  }

  const LargeProgramOptions options_;
  Rng rng_;
  ProgramData data_;
  std::vector<Uses> uses_;  // one list a tick
  int32_t region_ = 0;
  std::vector<BufferId> recent_;   // values made, newest last
  std::vector<BufferId> kept_;     // read once more in the backward half, newest first
  std::vector<BufferId> weights_;  // likewise
  std::vector<std::pair<Tick, BufferId>> written_in_loop_;
};

}  // namespace

std::shared_ptr<const Program> LargeProgram(const LargeProgramOptions& options) {
  return LargeGenerator(options).Run();
}

}  // namespace mallocgame::testing
