#include "mallocgame/schedule/main_memory.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "mallocgame/base/rounding.h"
#include "mallocgame/schedule/loop_homes.h"

namespace mallocgame {
namespace {

bool IsFixed(const Buffer& buffer) {
  return buffer.origin == BufferOrigin::kParameter || buffer.origin == BufferOrigin::kConstant ||
         buffer.is_output;
}

bool IsElsewhere(const Buffer& buffer) { return buffer.ineligible_because == "other memory space"; }

class UseFinder {
 public:
  explicit UseFinder(const Program& program)
      : program_(program), homes_(program.regions(), program.loops(), program.buffers().size()) {
    ForEachUse([this](Tick tick, BufferId buffer) {
      homes_.Add(buffer.value, program_.instruction(tick).region);
    });
  }

  std::vector<BufferUse> Find() const {
    std::vector<BufferUse> all, uses;
    ForEachTemporary([&](const BufferUse& use) { all.push_back(use); });
    // The longer of two that begin together first; what lies inside another is no use of its own.
    std::sort(all.begin(), all.end(), [](const BufferUse& a, const BufferUse& b) {
      return std::tuple(a.buffer, a.begin, -a.end) < std::tuple(b.buffer, b.begin, -b.end);
    });
    for (const BufferUse& use : all) {
      if (uses.empty() || uses.back().buffer != use.buffer || uses.back().end <= use.begin)
        uses.push_back(use);
    }
    return uses;
  }

  std::vector<BufferLife> Lives() const {
    std::vector<BufferLife> lives(program_.buffers().size());
    ForEachTemporary([&](const BufferUse& use) {
      BufferLife& life = lives[use.buffer];
      life.begin = std::min(life.begin, use.begin);
      life.end = std::max(life.end, use.end);
      life.bytes = program_.buffers()[use.buffer].size_bytes;
    });
    lives.erase(std::remove_if(lives.begin(), lives.end(),
                               [](const BufferLife& life) { return life.end == 0; }),
                lives.end());
    return lives;
  }

 private:
  template <class Function>
  void ForEachUse(const Function& function) const {
    for (const Access& access : program_.accesses()) function(access.tick, access.buffer);
    for (const MainUse& use : program_.data().main_uses) function(use.tick, use.buffer);
  }

  template <class Function>
  void ForEachTemporary(const Function& function) const {
    ForEachUse([&](Tick tick, BufferId id) {
      const Buffer& buffer = program_.buffer(id);
      if (IsFixed(buffer) || IsElsewhere(buffer)) return;
      const auto [begin, end] = homes_.Widened(id.value, tick, program_.instruction(tick).region);
      function(BufferUse{id.value, begin, end});
    });
  }

  const Program& program_;
  LoopHomes homes_;
};

int64_t Peak(const Program& program, const std::vector<BufferLife>& lives) {
  std::vector<int64_t> change(program.ticks() + 1);
  for (const BufferLife& life : lives) {
    change[life.begin] += life.bytes;
    change[life.end] -= life.bytes;
  }
  int64_t now = 0, peak = 0;
  for (const int64_t bytes : change) peak = std::max(peak, now += bytes);
  return peak;
}

}  // namespace

std::vector<BufferUse> TemporaryUses(const Program& program) { return UseFinder(program).Find(); }

int64_t PackedMainBytes(std::vector<BufferLife> lives) {
  std::sort(lives.begin(), lives.end(), [](const BufferLife& a, const BufferLife& b) {
    return std::tuple(-a.bytes, a.begin - a.end, a.begin) <
           std::tuple(-b.bytes, b.begin - b.end, b.begin);
  });
  const std::vector<int64_t> offsets = BestFitOffsets(lives, kMainAlignment);
  int64_t height = 0;
  for (size_t k = 0; k < lives.size(); ++k) height = std::max(height, offsets[k] + lives[k].bytes);
  return height;
}

std::vector<int64_t> BestFitOffsets(absl::Span<const BufferLife> lives, int64_t alignment) {
  struct Placed {
    int64_t offset, end_of_bytes;  // the latter aligned
    Tick begin, end;
  };
  std::vector<Placed> placed;  // by offset, those of one in the order in which they were placed
  placed.reserve(lives.size());
  std::vector<int64_t> offsets;
  offsets.reserve(lives.size());
  for (const BufferLife& life : lives) {
    int64_t free_from = 0, best = -1, best_room = 0;
    for (const Placed& other : placed) {
      if (other.begin >= life.end || life.begin >= other.end) continue;
      const int64_t room = other.offset - free_from;
      if (room >= life.bytes && (best < 0 || room < best_room)) best = free_from, best_room = room;
      free_from = std::max(free_from, other.end_of_bytes);
    }
    const int64_t offset = offsets.emplace_back(best < 0 ? free_from : best);
    const auto at = std::upper_bound(placed.begin(), placed.end(), offset,
                                     [](int64_t o, const Placed& p) { return o < p.offset; });
    placed.insert(at, {offset, RoundUp(offset + life.bytes, alignment), life.begin, life.end});
  }
  return offsets;
}

MainMemory MainMemoryOf(const Program& program) {
  MainMemory memory;
  for (const Buffer& buffer : program.buffers()) {
    if (IsFixed(buffer) && !IsElsewhere(buffer)) memory.fixed_bytes += buffer.size_bytes;
  }
  std::vector<BufferLife> lives = UseFinder(program).Lives();
  memory.live_bytes = Peak(program, lives);
  memory.packed_bytes = PackedMainBytes(std::move(lives));
  return memory;
}

int64_t LiveMainBytes(const Program& program) { return Peak(program, UseFinder(program).Lives()); }

}  // namespace mallocgame
