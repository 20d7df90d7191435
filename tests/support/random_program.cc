// The random program generator.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mallocgame/base/error.h"
#include "tests/support/programs.h"

namespace mallocgame::testing {
namespace {

class RandomGenerator {
 public:
  RandomGenerator(Rng& rng, const RandomProgramOptions& options)
      : rng_(rng), options_(options),
        builder_("random", options.roofline ? CostKind::kRoofline : CostKind::kProfile) {}

  std::shared_ptr<const Program> Run() {
    AddRoots();
    Fill(options_.instructions, 0, false);
    // What is written last is an output, and sometimes other buffers are.
    const BufferId last = Known("last", BufferOrigin::kInstruction);
    builder_.Add(MakeOp({Pick(visible_)}, {}, {last}));
    builder_.MarkOutput(last);
    for (const Visible& v : visible_) {
      if (v.writable && rng_.Below(4) == 0) builder_.MarkOutput(v.buffer);
    }
    const auto program = options_.constrained ? WithTransfers(*builder_.Build()) : builder_.Build();
    return options_.pinned ? WithPins(program) : program;
  }

 private:
  struct Visible {
    BufferId buffer;
    bool writable;   // in the region at hand
    bool has_value;  // a read is meaningful
  };

  // The same with transfers between accesses of a buffer in one region.
  std::shared_ptr<const Program> WithTransfers(const Program& program) {
    ProgramData data = program.data();
    for (size_t b = 0; b < data.buffers.size(); ++b) {
      const auto of = program.accesses_of(BufferId(b));
      for (size_t i = 0; i + 1 < of.size(); ++i) {
        Access& first = data.accesses[of[i].index()];
        const size_t end = i + 1 + rng_.Below(2);
        if (first.kind == AccessKind::kLoopEntry || end >= of.size() || rng_.Below(3) != 0)
          continue;
        const Tick last = program.access(of[end]).tick;
        if (program.instruction(last).region != program.instruction(first.tick).region ||
            program.instruction(last).kind != InstructionKind::kOrdinary)
          continue;
        first.held_until = last + 1;
        i = end;
      }
    }
    return Program::Create(std::move(data)).value();
  }

  // The same with pins. One that Program::Create refuses is left out.
  std::shared_ptr<const Program> WithPins(std::shared_ptr<const Program> program) {
    for (size_t a = 0; a < program->accesses().size(); ++a) {
      const Access& access = program->accesses()[a];
      if (program->instruction(access.tick).plain_copy || access.kind == AccessKind::kLoopEntry ||
          rng_.Below(8) != 0)
        continue;
      const Pin pin = rng_.Below(2) == 0 ? Pin::kMain : Pin::kFast;
      ProgramData data = program->data();
      data.accesses[a].pin = pin;
      if (auto pinned = Program::Create(std::move(data)); pinned.ok()) program = *pinned;
    }
    return program;
  }

  BufferId Known(const std::string& name, BufferOrigin origin) {
    const int64_t size = options_.size_unit * (1 + rng_.Below(8));
    const std::string unique = name + "." + std::to_string(count_++);
    const BufferId b = origin == BufferOrigin::kParameter   ? builder_.Parameter(unique, size)
                       : origin == BufferOrigin::kConstant  ? builder_.Constant(unique, size)
                       : origin == BufferOrigin::kUndefined ? builder_.Undefined(unique, size)
                                                            : builder_.Result(unique, size);
    sizes_.push_back(size);
    if (options_.ineligible && rng_.Below(12) == 0) builder_.MarkIneligible(b, "effective scalar");
    return b;
  }

  void AddRoots() {
    const int parameters = 1 + static_cast<int>(rng_.Below(3));
    for (int i = 0; i < parameters; ++i) {
      visible_.push_back({Known("parameter", BufferOrigin::kParameter), rng_.Below(2) == 0, true});
    }
    if (rng_.Below(2) == 0)
      visible_.push_back({Known("constant", BufferOrigin::kConstant), false, true});
    if (options_.undefined && rng_.Below(2) == 0) {
      visible_.push_back({Known("storage", BufferOrigin::kUndefined), true, false});
    }
  }

  BufferId Pick(const std::vector<Visible>& from) {
    for (;;) {
      const Visible& v = rng_.Pick(from);
      if (v.has_value) return v.buffer;  // parameters have, and there is always one
    }
  }

  // The cycles are those of its own work or of the arrays in main memory, whichever takes longer;
  // sometimes fast memory is slower.
  Op MakeOp(std::vector<BufferId> reads, std::vector<BufferId> updates,
            std::vector<BufferId> writes) {
    Op op;
    op.name = "op." + std::to_string(count_++);
    op.reads = std::move(reads);
    op.updates = std::move(updates);
    op.writes = std::move(writes);
    std::vector<int64_t> bytes;
    for (const BufferId b : op.reads) bytes.push_back(sizes_[b.index()]);
    for (const BufferId b : op.updates) bytes.push_back(2 * sizes_[b.index()]);
    for (const BufferId b : op.writes) bytes.push_back(sizes_[b.index()]);
    const int64_t work = options_.size_unit * rng_.Below(12);
    op.flops = work;
    if (options_.constrained) {
      if (rng_.Below(4) == 0) op.reserved_bytes = options_.size_unit * (1 + rng_.Below(8));
      op.results_in_main = rng_.Below(4) == 0;
    }
    const bool odd = rng_.Below(6) == 0;
    for (uint64_t mask = 0; mask < uint64_t{1} << bytes.size(); ++mask) {
      int64_t main = 0;
      for (size_t i = 0; i < bytes.size(); ++i) main += mask >> i & 1 ? 0 : bytes[i];
      const int64_t extra = odd ? options_.size_unit * rng_.Below(4) : 0;
      op.cycles.push_back(std::max(work, main) + extra);
    }
    return op;
  }

  void AddOrdinary() {
    std::vector<BufferId> used, reads, updates, writes;
    const auto take = [&](BufferId b, std::vector<BufferId>& into) {
      if (std::find(used.begin(), used.end(), b) != used.end()) return;
      used.push_back(b);
      into.push_back(b);
    };
    if (options_.plain_copies && rng_.Below(6) == 0) return AddPlainCopy();
    for (uint32_t n = 1 + rng_.Below(2); n > 0; --n) take(Pick(visible_), reads);
    Visible& old = rng_.Pick(visible_);
    if (old.writable && rng_.Below(2) == 0) {
      take(old.buffer, rng_.Below(2) == 0 ? updates : writes);
      if (!used.empty() && used.back() == old.buffer) old.has_value |= !in_loop_;
    }
    if (rng_.Below(4) != 0 || writes.size() + updates.size() == 0) {
      const BufferId made = Known("value", BufferOrigin::kInstruction);
      take(made, writes);
      builder_.Add(MakeOp(reads, updates, writes));
      visible_.push_back({made, true, true});
      return;
    }
    builder_.Add(MakeOp(reads, updates, writes));
  }

  void AddPlainCopy() {
    const BufferId from = Pick(visible_);
    const BufferId to = builder_.Result("copy." + std::to_string(count_++), sizes_[from.index()]);
    sizes_.push_back(sizes_[from.index()]);
    Op op = MakeOp({from}, {}, {to});
    op.plain_copy = true;
    builder_.Add(op);
    visible_.push_back({to, true, true});
  }

  void Fill(int instructions, int depth, bool in_branch) {
    for (int i = 0; i < instructions; ++i) {
      if (depth < 2 && loops_ < options_.loops && rng_.Below(5) == 0) {
        AddLoop(depth);
        i += 2;
      } else if (!in_branch && branches_ < options_.branches && rng_.Below(8) == 0) {
        AddConditional(depth);
        i += 2;
      } else {
        AddOrdinary();
      }
    }
  }

  // What a loop or branch makes for itself can't be seen behind it.
  void AddLoop(int depth) {
    ++loops_;
    const bool outer = in_loop_;
    const size_t alive = visible_.size();
    in_loop_ = true;
    builder_.BeginLoop("loop." + std::to_string(count_++), 1 + rng_.Below(4));
    if (rng_.Below(3) == 0) AddOrdinary();
    visible_.resize(alive);
    builder_.BeginBody();
    Fill(1 + static_cast<int>(rng_.Below(4)), depth + 1, false);
    builder_.EndLoop();
    visible_.resize(alive);
    in_loop_ = outer;
  }

  void AddConditional(int depth) {
    ++branches_;
    const std::vector<Visible> before = visible_;
    for (int branch = 0; branch < 2; ++branch) {
      for (Visible& v : visible_) v.writable = false;
      builder_.BeginBranch();
      Fill(1 + static_cast<int>(rng_.Below(2)), depth, true);
      builder_.EndBranch();
      visible_ = before;
    }
    builder_.Add(MakeOp({}, {}, {}));
  }

  Rng& rng_;
  const RandomProgramOptions& options_;
  ProgramBuilder builder_;
  std::vector<Visible> visible_;
  std::vector<int64_t> sizes_;  // one a buffer
  int count_ = 0, loops_ = 0, branches_ = 0;
  bool in_loop_ = false;
};

}  // namespace

std::shared_ptr<const Program> RandomProgram(Rng& rng, const RandomProgramOptions& options) {
  return RandomGenerator(rng, options).Run();
}

}  // namespace mallocgame::testing
