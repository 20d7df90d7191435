#include "mallocgame/schedule/main_memory.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

namespace mallocgame {
namespace {

constexpr int64_t kAlignment = 16384;  // of what the compiler (libtpu 0.0.51) places itself

struct Life {
  Tick begin = kNever, end = 0;  // [begin, end)
  int64_t size = 0;
};

int64_t Aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

bool IsFixed(const Buffer& buffer) {
  return buffer.origin == BufferOrigin::kParameter || buffer.origin == BufferOrigin::kConstant ||
         buffer.is_output;
}

bool IsElsewhere(const Buffer& buffer) { return buffer.ineligible_because == "other memory space"; }

class Lives {
 public:
  explicit Lives(const Program& program)
      : program_(program), homes_(program.buffers().size(), kNowhere),
        lives_(program.buffers().size()) {
    ForEachUse([this](Tick tick, BufferId buffer) {
      int32_t& home = homes_[buffer.index()];
      const int32_t region = LoopRegionOf(program_.instruction(tick).region);
      home = home == kNowhere ? region : Common(home, region);
    });
    ForEachUse([this](Tick tick, BufferId buffer) { Extend(tick, buffer); });
    for (size_t b = 0; b < lives_.size(); ++b) lives_[b].size = program.buffers()[b].size_bytes;
  }

  const std::vector<Life>& lives() const { return lives_; }

 private:
  static constexpr int32_t kNowhere = -2;

  template <class Function>
  void ForEachUse(const Function& function) const {
    for (const Access& access : program_.accesses()) function(access.tick, access.buffer);
    for (const MainUse& use : program_.data().main_uses) function(use.tick, use.buffer);
  }

  // The innermost region around it that is a loop's condition or body, or the entry: only what runs
  // again keeps bytes for longer.
  int32_t LoopRegionOf(int32_t region) const {
    while (region > 0 && program_.regions()[region].loop < 0)
      region = program_.regions()[region].parent;
    return region;
  }
  int32_t LoopRegionAround(int32_t region) const {
    return LoopRegionOf(program_.regions()[region].parent);
  }

  int32_t Common(int32_t a, int32_t b) const {
    while (a != b) {
      // Regions are numbered as they begin, so the later one can't hold the other.
      (a > b ? a : b) = LoopRegionAround(std::max(a, b));
    }
    return a;
  }

  void Extend(Tick tick, BufferId buffer) {
    Life& life = lives_[buffer.index()];
    Tick begin = tick, end = tick + 1;
    int32_t region = LoopRegionOf(program_.instruction(tick).region);
    for (const int32_t home = homes_[buffer.index()]; region != home;
         region = LoopRegionAround(region)) {
      const Loop& loop = program_.loops()[program_.regions()[region].loop];
      begin = loop.entry;
      end = loop.exit + 1;
    }
    life.begin = std::min(life.begin, begin);
    life.end = std::max(life.end, end);
  }

  const Program& program_;
  std::vector<int32_t> homes_;  // by buffer: the innermost loop region that it never leaves
  std::vector<Life> lives_;     // by buffer
};

std::vector<Life> TemporaryLives(const Program& program) {
  std::vector<Life> found;
  const Lives all(program);
  for (size_t b = 0; b < all.lives().size(); ++b) {
    const Buffer& buffer = program.buffers()[b];
    if (!IsFixed(buffer) && !IsElsewhere(buffer) && all.lives()[b].end > 0)
      found.push_back(all.lives()[b]);
  }
  return found;
}

int64_t Peak(const Program& program, const std::vector<Life>& lives) {
  std::vector<int64_t> change(program.ticks() + 1);
  for (const Life& life : lives) {
    change[life.begin] += life.size;
    change[life.end] -= life.size;
  }
  int64_t now = 0, peak = 0;
  for (const int64_t bytes : change) peak = std::max(peak, now += bytes);
  return peak;
}

int64_t Height(std::vector<Life> lives) {
  std::stable_sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) {
    return std::tuple(-a.size, a.begin - a.end) < std::tuple(-b.size, b.begin - b.end);
  });
  std::vector<std::pair<int64_t, size_t>> placed;  // offset, index; sorted
  int64_t height = 0;
  for (size_t i = 0; i < lives.size(); ++i) {
    const Life& life = lives[i];
    int64_t free_from = 0, best = -1, best_room = 0;
    for (const auto& [offset, other] : placed) {
      if (lives[other].begin >= life.end || life.begin >= lives[other].end) continue;
      const int64_t room = offset - free_from;
      if (room >= life.size && (best < 0 || room < best_room)) best = free_from, best_room = room;
      free_from = std::max(free_from, Aligned(offset + lives[other].size));
    }
    const int64_t offset = best < 0 ? free_from : best;
    const std::pair<int64_t, size_t> own(offset, i);
    placed.insert(std::upper_bound(placed.begin(), placed.end(), own), own);
    height = std::max(height, offset + life.size);
  }
  return height;
}

}  // namespace

MainMemory MainMemoryOf(const Program& program) {
  MainMemory memory;
  for (const Buffer& buffer : program.buffers()) {
    if (IsFixed(buffer) && !IsElsewhere(buffer)) memory.fixed_bytes += buffer.size_bytes;
  }
  std::vector<Life> lives = TemporaryLives(program);
  memory.live_bytes = Peak(program, lives);
  memory.packed_bytes = Height(std::move(lives));
  return memory;
}

int64_t LiveMainBytes(const Program& program) { return Peak(program, TemporaryLives(program)); }

}  // namespace mallocgame
