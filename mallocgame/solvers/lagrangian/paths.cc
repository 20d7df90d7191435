#include "mallocgame/solvers/lagrangian/paths.h"

#include <algorithm>

namespace mallocgame::lagrangian {
namespace {

__extension__ using Int128 = __int128;

class Walk {
 public:
  Walk(const Program& program, const Levels& levels, const std::vector<uint8_t>& serves,
       const std::vector<std::vector<Tick>>& writes, std::vector<Step>& steps)
      : program_(program), levels_(levels), serves_(serves), writes_(writes), steps_(steps) {}

  void Run(BufferSteps& own) {
    ids_ = program_.accesses_of(own.buffer);
    const Buffer& buffer = program_.buffer(own.buffer);
    Position at = {0, false};
    Accesses(0, 0, ids_.size(), at);
    if (buffer.is_output) {
      const Level& top = levels_.levels()[0];
      if (at.position < top.last) AddGap(at, top.last - 1);
      steps_.push_back({.kind = Step::kSettle, .written = at.written, .to = top.last});
    }
  }

 private:
  struct Position {
    int32_t position = 0;
    bool written = false;  // the instruction in front of it writes the value
  };

  const Access& access(size_t i) const { return program_.access(ids_[i]); }

  void AddGap(Position& at, int32_t to) {
    if (at.position > to) return;
    steps_.push_back({.kind = Step::kGap, .written = at.written, .from = at.position, .to = to});
    at = {to + 1, false};
  }

  // The accesses [first, last) of the buffer, all inside the level.
  void Accesses(int32_t level, size_t first, size_t last, Position& at) {
    bool entered = false;
    for (size_t i = first; i < last; ++i) {
      const Access& a = access(i);
      if (levels_.index_of(a.tick) != level) {
        i = Loop(level, i, last, entered, at) - 1;
        entered = false;
        continue;
      }
      const int32_t point = levels_.point(a.tick);
      const uint8_t serves = serves_[ids_[i].index()];
      Step step = {.access = ids_[i].value, .to = point};
      step.serves = serves == 0 ? kByMain | kByFast : serves;
      if (a.kind == AccessKind::kWrite) {
        step.kind = Step::kWrite;
        step.from = (serves & kByReplacing) != 0 ? SourceWritten(level, a.tick) : point;
        steps_.push_back(step);
        at = {point + 1, true};
        continue;
      }
      AddGap(at, point);
      if (levels_.loop_ending_at(a.tick) >= 0) {
        steps_.push_back({.kind = Step::kSettle, .to = point + 1});
      }
      entered = a.kind == AccessKind::kLoopEntry && i + 1 < last &&
                levels_.index_of(access(i + 1).tick) != level;
      if (a.kind == AccessKind::kUpdate) {
        step.kind = Step::kUpdate;
        steps_.push_back(step);
        at = {point + 1, true};
      } else if (serves != 0 || entered) {
        step.kind = Step::kRead;
        steps_.push_back(step);
      }
    }
  }

  // Adds the accesses inside the loop that access `first` is in; returns the first one behind it.
  size_t Loop(int32_t level, size_t first, size_t last, bool entered, Position& at) {
    int32_t loop = levels_.index_of(access(first).tick);
    while (levels_.levels()[loop].parent != level) loop = levels_.levels()[loop].parent;
    const Level& inner = levels_.levels()[loop];
    size_t behind = first;
    bool writes = false;
    for (; behind < last && access(behind).tick < inner.end; ++behind) {
      const AccessKind kind = access(behind).kind;
      writes |= kind == AccessKind::kUpdate || kind == AccessKind::kWrite;
    }
    const size_t step = steps_.size();
    steps_.push_back({.kind = Step::kLoop, .writes = writes, .apart = !entered, .to = inner.exit});
    Position inside = {inner.first, false};
    Accesses(loop, first, behind, inside);
    if (entered && writes && inside.position <= inner.last) {
      if (inside.position < inner.last) AddGap(inside, inner.last - 1);
      steps_.push_back({.kind = Step::kSettle, .written = inside.written, .to = inner.last});
    }
    steps_[step].inside = static_cast<int32_t>(steps_.size() - step - 1);
    if (entered) at = {inner.exit + 1, false};
    return behind;
  }

  // The bucket behind the last tick before the plain copy at `tick` that writes what it reads.
  int32_t SourceWritten(int32_t level, Tick tick) const {
    const BufferId source = program_.accesses()[program_.instruction(tick).first_access].buffer;
    const std::vector<Tick>& written = writes_[source.index()];
    const auto next = std::lower_bound(written.begin(), written.end(), tick);
    const Level& own = levels_.levels()[level];
    Tick after = next == written.begin() ? own.begin : std::max(*(next - 1) + 1, own.begin);
    while (levels_.index_of(after) != level) ++after;  // at `tick` it ends
    return levels_.point(after);
  }

  const Program& program_;
  const Levels& levels_;
  const std::vector<uint8_t>& serves_;
  const std::vector<std::vector<Tick>>& writes_;
  std::vector<Step>& steps_;
  absl::Span<const AccessId> ids_;
};

}  // namespace

Paths FindPaths(const Program& program, const Levels& levels, const std::vector<uint8_t>& serves,
                int64_t least_bytes, const Hardware& hardware) {
  std::vector<std::vector<Tick>> writes(program.buffers().size());
  for (const Access& a : program.accesses()) {
    if (a.kind == AccessKind::kUpdate || a.kind == AccessKind::kWrite)
      writes[a.buffer.index()].push_back(a.tick);
  }
  Paths paths;
  Walk walk(program, levels, serves, writes, paths.steps);
  for (size_t i = 0; i < program.buffers().size(); ++i) {
    BufferSteps own;
    own.buffer = BufferId(static_cast<int64_t>(i));
    const Buffer& buffer = program.buffer(own.buffer);
    if (buffer.size_bytes < least_bytes || buffer.size_bytes > hardware.fast_bytes ||
        program.accesses_of(own.buffer).empty()) {
      continue;
    }
    const bool valued =
        buffer.origin == BufferOrigin::kParameter || buffer.origin == BufferOrigin::kConstant;
    own.begin = valued ? kMain : kNone;
    own.preloads = hardware.max_preloads > 0 && buffer.CanBePreloaded();
    own.ends_in_main = buffer.is_output;
    own.bytes = buffer.size_bytes;
    own.constant = buffer.origin == BufferOrigin::kConstant;
    own.copy_units = static_cast<int64_t>(Int128{buffer.size_bytes} * kCopyUnits *
                                          1'000'000'000'000 / hardware.main_bytes_per_second);
    own.first = static_cast<int32_t>(paths.steps.size());
    walk.Run(own);
    own.last = static_cast<int32_t>(paths.steps.size());
    paths.buffers.push_back(own);
  }
  return paths;
}

}  // namespace mallocgame::lagrangian
