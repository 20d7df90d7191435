// In the toy machine a byte holds the number of the write that made it. Bytes that a prefetch has
// not brought yet, or that an instruction used for itself, are garbage.
#include "tests/support/machine.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace mallocgame::testing {
namespace {

constexpr int64_t kGarbage = -1;
constexpr int64_t kUndefined = 0;  // right wherever it is read
constexpr int kTrips = 3;

class Machine {
 public:
  Machine(const Program& program, const Hardware& hardware, const Plan& plan, CopyTiming timing)
      : program_(program), plan_(plan), timing_(timing), fast_(hardware.fast_bytes, kGarbage),
        on_its_way_(plan.copies.size(), false) {
    for (size_t b = 0; b < program.buffers().size(); ++b) {
      main_.emplace_back(program.buffers()[b].size_bytes, kGarbage);
      right_.push_back(kUndefined);
      Define(b);
    }
  }

  std::string Run() {
    for (const Residence& r : plan_.residences) {
      const int64_t size = program_.buffer(r.buffer).size_bytes,
                    all = static_cast<int64_t>(fast_.size());
      if (r.offset < 0 || size > all || r.offset > all - size)
        return "a residence outside fast memory";
    }
    for (size_t a = 0; a < plan_.served_by.size(); ++a) {
      const ResidenceId id = plan_.served_by[a];
      if (id.valid() && plan_.residences[id.index()].buffer != program_.accesses()[a].buffer) {
        return "a residence of another buffer";
      }
    }
    Play(0, program_.ticks());
    Transfers(program_.ticks());
    for (size_t b = 0; b < main_.size(); ++b) {
      if (program_.buffers()[b].is_output) Expect(main_[b].data(), b, "at the end, in main memory");
    }
    return error_;
  }

 private:
  void Define(size_t b) {
    const BufferOrigin origin = program_.buffers()[b].origin;
    right_[b] = kUndefined;
    if (origin != BufferOrigin::kParameter && origin != BufferOrigin::kConstant) return;
    right_[b] = ++writes_;
    std::fill(main_[b].begin(), main_[b].end(), right_[b]);
  }

  void Play(Tick begin, Tick end) {
    for (Tick t = begin; t < end && error_.empty(); ++t) {
      Transfers(t);
      Execute(t);
      if (program_.instruction(t).kind != InstructionKind::kLoopEntry) continue;
      const Loop& loop = program_.loop_at(t);
      for (int trip = 0; trip < kTrips; ++trip) {
        Renew(loop);
        Play(t + 1, loop.exit);
        Finish(loop.exit, loop.entry + 1);
      }
      t = loop.exit - 1;
    }
  }

  // Storage that lives and dies in a trip is undefined again.
  void Renew(const Loop& loop) {
    for (size_t b = 0; b < main_.size(); ++b) {
      const auto accesses = program_.accesses_of(BufferId(b));
      if (accesses.empty() || program_.buffers()[b].origin != BufferOrigin::kUndefined) continue;
      const Tick first = program_.access(accesses.front()).tick,
                 last = program_.access(accesses.back()).tick;
      if (first > loop.entry && last < loop.exit) Define(b);
    }
  }

  // Copies that end at `tick`, are on their way, and began at `from` or later.
  void Finish(Tick tick, Tick from) {
    for (size_t i = 0; i < plan_.copies.size(); ++i) {
      const Copy& c = plan_.copies[i];
      if (c.end != tick || c.begin < from || !on_its_way_[i]) continue;
      Move(c);
      on_its_way_[i] = false;
    }
  }

  // What ends and what begins before the instruction at `tick`.
  void Transfers(Tick tick) {
    Finish(tick, 0);
    for (size_t i = 0; i < plan_.copies.size(); ++i) {
      const Copy& c = plan_.copies[i];
      if (c.begin != tick) continue;
      on_its_way_[i] = timing_ == CopyTiming::kLate && c.end > c.begin && !c.preload;
      on_its_way_[i] ? Spoil(c) : Move(c);
    }
  }

  struct Ends {
    const int64_t* from;
    int64_t* to;
    int64_t count;
  };
  Ends EndsOf(const Copy& c) {
    const Residence& r = plan_.residences[c.residence.index()];
    BufferId source = r.buffer;
    if (c.replaces >= 0) {
      source = program_.accesses()[program_.instruction(c.replaces).first_access].buffer;
    }
    int64_t* const main = main_[source.index()].data() + c.part_begin;
    int64_t* const fast = fast_.data() + r.offset + c.part_begin;
    return c.kind == CopyKind::kPrefetch ? Ends{main, fast, c.part_end - c.part_begin}
                                         : Ends{fast, main, c.part_end - c.part_begin};
  }
  void Move(const Copy& c) {
    const Ends ends = EndsOf(c);
    std::copy_n(ends.from, ends.count, ends.to);
  }
  void Spoil(const Copy& c) {
    const Ends ends = EndsOf(c);
    // A byte that is overwritten with its own value stays valid.
    for (int64_t i = 0; i < ends.count; ++i) {
      if (ends.to[i] != ends.from[i]) ends.to[i] = kGarbage;
    }
  }

  void Execute(Tick t) {
    const Instruction& i = program_.instruction(t);
    std::fill_n(fast_.begin(),
                std::min<int64_t>(i.reserved_bytes, static_cast<int64_t>(fast_.size())), kGarbage);
    const bool replaced = std::any_of(plan_.copies.begin(), plan_.copies.end(),
                                      [t](const Copy& c) { return c.replaces == t; });
    if (replaced) {
      right_[BufferAt(i.first_access + 1)] = right_[BufferAt(i.first_access)];
      return;
    }
    for (int32_t a = i.first_access; a < i.first_access + i.access_count; ++a) {
      if (program_.accesses()[a].kind == AccessKind::kWrite) continue;
      Expect(Place(a), BufferAt(a), absl::StrCat("at tick ", t, ", '", i.name, "'"));
    }
    for (int32_t a = i.first_access; a < i.first_access + i.access_count; ++a) {
      const AccessKind kind = program_.accesses()[a].kind;
      if (kind != AccessKind::kWrite && kind != AccessKind::kUpdate) continue;
      const size_t b = BufferAt(a);
      right_[b] = i.plain_copy ? right_[BufferAt(i.first_access)] : ++writes_;
      std::fill_n(Place(a), program_.buffers()[b].size_bytes, right_[b]);
    }
  }

  size_t BufferAt(int32_t access) const { return program_.accesses()[access].buffer.index(); }

  int64_t* Place(int32_t access) {
    const ResidenceId id = plan_.served_by[access];
    return id.valid() ? fast_.data() + plan_.residences[id.index()].offset
                      : main_[BufferAt(access)].data();
  }

  void Expect(const int64_t* place, size_t b, const std::string& where) {
    if (right_[b] == kUndefined || !error_.empty()) return;
    for (int64_t i = 0; i < program_.buffers()[b].size_bytes; ++i) {
      if (place[i] != right_[b]) {
        error_ = absl::StrCat("buffer '", program_.buffers()[b].name, "' ", where, ": byte ", i,
                              " is of write ", place[i], ", not ", right_[b]);
        return;
      }
    }
  }

  const Program& program_;
  const Plan& plan_;
  const CopyTiming timing_;
  std::vector<int64_t> fast_;
  std::vector<std::vector<int64_t>> main_;
  std::vector<int64_t> right_;    // one a buffer: the write whose bytes are right
  std::vector<bool> on_its_way_;  // one a copy
  int64_t writes_ = 0;
  std::string error_;
};

}  // namespace

std::string RunPlan(const Program& program, const Hardware& hardware, const Plan& plan,
                    CopyTiming timing) {
  return Machine(program, hardware, plan, timing).Run();
}

}  // namespace mallocgame::testing
