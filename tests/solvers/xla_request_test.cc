// What XLA's allocator does with a request, as XLA:TPU was seen to do.
#include "mallocgame/solvers/xla/request.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/solvers/xla/heuristic.h"
#include "tests/catch.h"
#include "tests/support/plans.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::AccessAt;
using testing::ProgramBuilder;
using testing::TestHardware;

std::shared_ptr<const Game> GameWith(const std::shared_ptr<const Program>& program,
                                     int64_t fast_bytes, int max_preloads = 0) {
  Hardware hardware = TestHardware(fast_bytes);
  hardware.max_preloads = max_preloads;
  auto game = Game::Create(program, hardware, {});
  REQUIRE(game.ok());
  return *game;
}

// Two parameters of which one fits at a time, and a value that is made and read at once.
struct TwoParameters {
  explicit TwoParameters(int64_t fast_bytes) {
    ProgramBuilder b("sample", CostKind::kRoofline);
    p = b.Parameter("p", 8);
    q = b.Parameter("q", 8);
    v = b.Result("v", 4);
    const BufferId out = b.Result("out", 4);
    for (int i = 0; i < 6; ++i) b.Add({.name = "work." + std::to_string(i), .flops = 9});
    made = b.Add({.name = "make", .writes = {v}, .flops = 9});
    used = b.Add({.name = "use", .reads = {p, q, v}, .writes = {out}});
    b.MarkOutput(out);
    program = b.Build();
    game = GameWith(program, fast_bytes);
  }

  XlaOutcome Ask(const XlaRequest& request) const {
    XlaOutcome outcome = PlanLikeXla(*game, Deadline(), {}, request);
    const Verdict verdict = Validate(*program, game->hardware(), outcome.plan);
    INFO(verdict.message);
    REQUIRE(verdict.ok());
    return outcome;
  }
  bool Fast(const XlaOutcome& outcome, BufferId buffer, Tick tick) const {
    return outcome.plan.served_by[AccessAt(*program, buffer, tick).index()].valid();
  }

  BufferId p, q, v;
  Tick made = 0, used = 0;
  std::shared_ptr<const Program> program;
  std::shared_ptr<const Game> game;
};

TEST_CASE("what is kept stays in main memory, and nothing is refused") {
  const TwoParameters sample(64);
  const XlaOutcome without = sample.Ask({});
  CHECK(sample.Fast(without, sample.p, sample.used));
  CHECK(sample.Fast(without, sample.v, sample.used));
  XlaRequest request;
  request.in_main = {AccessAt(*sample.program, sample.p, sample.used),
                     AccessAt(*sample.program, sample.v, sample.used)};
  const XlaOutcome outcome = sample.Ask(request);
  CHECK(!sample.Fast(outcome, sample.p, sample.used));
  CHECK(!sample.Fast(outcome, sample.v, sample.used));
  CHECK(sample.Fast(outcome, sample.q, sample.used));
  CHECK(outcome.refused.empty());
}

TEST_CASE("the buffer with the first turn gets the space") {
  const TwoParameters sample(12);
  XlaRequest request;
  for (const BufferId first : {sample.p, sample.q}) {
    request.order = {first};
    const XlaOutcome outcome = sample.Ask(request);
    CHECK(sample.Fast(outcome, sample.p, sample.used) == (first == sample.p));
    CHECK(sample.Fast(outcome, sample.q, sample.used) == (first == sample.q));
    CHECK(outcome.order.front() == first);
  }
}

TEST_CASE("a copy begins where it is asked to, or the request is refused") {
  const TwoParameters sample(12);
  XlaRequest request;
  const AccessId p = AccessAt(*sample.program, sample.p, sample.used);
  for (const Tick begin : {1, 3, 5}) {
    request.prefetches = {{p, begin, true}};
    request.order = {sample.p};
    const XlaOutcome outcome = sample.Ask(request);
    CHECK(outcome.refused.empty());
    REQUIRE(outcome.plan.copies.size() == 1);
    CHECK(outcome.plan.copies[0].begin == begin);
  }
  // Where there is no space left nothing is packed anew for it.
  request.order = {sample.q};
  const XlaOutcome outcome = sample.Ask(request);
  REQUIRE(outcome.refused.size() == 1);
  CHECK(outcome.refused[0].access == p);
}

TEST_CASE("a pinned buffer stays for all its uses, or the request is refused") {
  XlaRequest request;
  const TwoParameters large(64), small(9);
  request.pinned = {large.v};
  CHECK(large.Ask(request).refused.empty());
  // Behind p, which takes 8 of the 9 bytes, there is no room.
  request.order = {small.p};
  const XlaOutcome outcome = small.Ask(request);
  CHECK(small.Fast(outcome, small.p, small.used));
  CHECK(outcome.refused.size() == 1);
  // The first turn helps.
  request.order = {small.v};
  CHECK(small.Ask(request).refused.empty());
}

TEST_CASE("a pin holds up to the first loop: behind it is another value") {
  ProgramBuilder b("loop", CostKind::kRoofline);
  const BufferId v = b.Result("v", 8), large = b.Result("large", 16), out = b.Result("out", 4);
  const Tick made = b.Add({.name = "make", .writes = {v}, .flops = 1});
  const Tick entry = b.BeginLoop("while", 4);
  b.BeginBody();
  b.Add({.name = "x", .reads = {v}, .flops = 1});
  b.EndLoop();
  for (int k = 0; k < 6; ++k) b.Add({.name = "work", .flops = 9});
  b.Add({.name = "fill", .writes = {large}, .flops = 1});
  const Tick late = b.Add({.name = "late", .reads = {v, large}, .writes = {out}});
  b.MarkOutput(out);
  const auto program = b.Build();
  XlaRequest request;
  request.pinned = {v};
  request.order = {large};  // From "fill" on it leaves no bytes for the pinned buffer.
  const auto game = GameWith(program, 16);
  const XlaOutcome outcome = PlanLikeXla(*game, Deadline(), {}, request);
  CHECK(outcome.refused.empty());
  const auto fast = [&](BufferId buffer, Tick tick) {
    return outcome.plan.served_by[AccessAt(*program, buffer, tick).index()].valid();
  };
  CHECK(fast(v, made));
  CHECK(fast(v, entry));
  CHECK(fast(large, late));
  CHECK_FALSE(fast(v, late));
}

TEST_CASE("what failed for a use that is served in the end repacks nothing") {
  ProgramBuilder b("twice", CostKind::kRoofline);
  const BufferId p = b.Parameter("p", 8), r = b.Result("r", 8), out = b.Result("out", 4);
  const auto work = [&] {
    for (int k = 0; k < 6; ++k) b.Add({.name = "work", .flops = 9});
  };
  work();
  const Tick first = b.Add({.name = "first", .reads = {p}});
  b.Add({.name = "fill", .writes = {r}});
  b.Add({.name = "drain", .reads = {r}});
  work();
  const Tick last = b.Add({.name = "last", .reads = {p}, .writes = {out}});
  b.MarkOutput(out);
  const auto program = b.Build();
  XlaRequest request;
  request.order = {r};  // It takes all bytes between the uses of p, which can't stay.
  const XlaOutcome outcome = PlanLikeXla(*GameWith(program, 8), Deadline(), {}, request);
  for (const Tick use : {first, last})
    CHECK(outcome.plan.served_by[AccessAt(*program, p, use).index()].valid());
  CHECK(outcome.plan.copies.size() == 2);
  CHECK(outcome.counts.repacks == 0);
}

TEST_CASE("the parameters asked for are preloaded, and no others") {
  const TwoParameters sample(64);
  for (const std::vector<BufferId>& wanted :
       {std::vector<BufferId>{}, {sample.q}, {sample.q, sample.p}}) {
    XlaRequest request;
    request.preloads = wanted;
    const XlaOutcome outcome = PlanLikeXla(*sample.game, Deadline(), {}, request);
    std::vector<BufferId> preloaded;
    for (const Copy& copy : outcome.plan.copies) {
      if (copy.preload) preloaded.push_back(outcome.plan.residences[copy.residence.index()].buffer);
    }
    CHECK_THAT(preloaded, Catch::UnorderedEquals(wanted));
  }
}

TEST_CASE("what is no parameter is not preloaded, whatever is asked") {
  const TwoParameters sample(64);
  XlaRequest request;
  request.preloads = {sample.v};
  for (const Copy& copy : sample.Ask(request).plan.copies) CHECK_FALSE(copy.preload);
}

TEST_CASE("a preload serves uses that are kept in main memory too") {
  const TwoParameters sample(64);
  XlaRequest request;
  request.preloads = {sample.q};
  request.in_main = {AccessAt(*sample.program, sample.q, sample.used)};
  const XlaOutcome outcome = PlanLikeXla(*sample.game, Deadline(), {}, request);
  REQUIRE(!outcome.plan.copies.empty());
  CHECK(outcome.plan.copies[0].preload);
  CHECK(sample.Fast(outcome, sample.q, sample.used));
}

TEST_CASE("behind a use that is kept in main memory the next one needs a copy of its own") {
  ProgramBuilder b("uses", CostKind::kRoofline);
  const BufferId p = b.Parameter("p", 8), out = b.Result("out", 4);
  std::vector<Tick> uses;
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 4; ++k) b.Add({.name = "work", .flops = 9});
    const BufferId v = i < 2 ? b.Result("v", 4) : out;
    uses.push_back(b.Add({.name = "use", .reads = {p}, .writes = {v}}));
  }
  b.MarkOutput(out);
  const auto program = b.Build();
  const auto game = GameWith(program, 64);
  const auto prefetches = [&](const XlaRequest& request) {
    return PlanLikeXla(*game, Deadline(), {}, request).plan.copies.size();
  };
  CHECK(prefetches({}) == 1);
  XlaRequest request;
  request.in_main = {AccessAt(*program, p, uses[1])};
  CHECK(prefetches(request) == 2);
}

TEST_CASE("a plain copy is not replaced where its operand or its result's first use is kept") {
  ProgramBuilder b("copied", CostKind::kRoofline);
  const BufferId p = b.Parameter("p", 8), c = b.Result("c", 8), out = b.Result("out", 4);
  for (int k = 0; k < 4; ++k) b.Add({.name = "work", .flops = 9});
  const Tick copy = b.Add({.name = "copy", .reads = {p}, .writes = {c}, .plain_copy = true});
  for (int k = 0; k < 4; ++k) b.Add({.name = "work", .flops = 9});
  const Tick use = b.Add({.name = "use", .reads = {c}, .writes = {out}});
  b.MarkOutput(out);
  const auto program = b.Build();
  const auto game = GameWith(program, 64);
  const auto asked = [&](std::vector<AccessId> in_main) {
    XlaRequest request;
    request.in_main = std::move(in_main);
    return PlanLikeXla(*game, Deadline(), {}, request).plan;
  };
  const Plan replaced = asked({});
  REQUIRE(replaced.copies.size() == 1);
  CHECK(replaced.copies[0].replaces == copy);
  // The copy makes its result in fast memory.
  const Plan operand = asked({AccessAt(*program, p, copy)});
  CHECK(operand.copies.empty());
  CHECK(operand.served_by[AccessAt(*program, c, use).index()].valid());
  // The copy reads its operand there.
  const Plan result = asked({AccessAt(*program, c, copy), AccessAt(*program, c, use)});
  REQUIRE(result.copies.size() == 1);
  CHECK(result.copies[0].replaces < 0);
  CHECK(result.served_by[AccessAt(*program, p, copy).index()].valid());
}

TEST_CASE("slices that are asked for begin elsewhere if they would not be in time") {
  ProgramBuilder b("slices", CostKind::kRoofline);
  const BufferId p = b.Parameter("p", 40), out = b.Result("out", 4);
  for (int k = 0; k < 40; ++k) b.Add({.name = "work", .flops = 4});
  const Tick use = b.Add({.name = "use", .reads = {p}, .writes = {out}});
  b.MarkOutput(out);
  const auto program = b.Build();
  const auto game = GameWith(program, 64);
  const auto begins = [&](int slices, Tick asked) {
    XlaOptions options;
    options.min_sliced_bytes = 1;
    options.max_slices = slices;
    XlaRequest request;
    request.prefetches = {{AccessAt(*program, p, use), asked, false}};
    std::vector<Tick> found;
    for (const Copy& copy : PlanLikeXla(*game, Deadline(), options, request).plan.copies)
      found.push_back(copy.begin);
    return found;
  };
  // In one piece it takes 40 ps of the 48 behind that tick. Slices count as 1.8 times as much.
  CHECK(begins(1, use - 12) == std::vector<Tick>{use - 12});
  CHECK(begins(2, use - 30).front() == use - 30);
  const std::vector<Tick> sooner = begins(2, use - 12);
  REQUIRE(sooner.size() == 2);
  CHECK(sooner.front() < use - 12);
}

// A buffer of 40 bytes and 40 instructions before its use, each as long as 4 bytes take.
struct OnePrefetch {
  OnePrefetch() {
    ProgramBuilder b("one", CostKind::kRoofline);
    p = b.Parameter("p", 40);
    const BufferId out = b.Result("out", 4);
    b.Add({.name = "p"});
    for (int k = 0; k < 40; ++k) b.Add({.name = "work", .flops = 4});
    use = b.Add({.name = "use", .reads = {p}, .writes = {out}});
    b.MarkOutput(out);
    program = b.Build();
    game = GameWith(program, 256);
  }
  // When the copy begins. -1: there is none.
  Tick Begin(const std::vector<std::pair<const char*, const char*>>& settings) const {
    XlaOptions options;
    for (const auto& [name, value] : settings) REQUIRE(SetXlaOption(options, name, value).ok());
    const Plan plan = PlanLikeXla(*game, Deadline(), options).plan;
    return plan.copies.empty() ? -1 : plan.copies.front().begin;
  }
  BufferId p;
  Tick use = 0;
  std::shared_ptr<const Program> program;
  std::shared_ptr<const Game> game;
};

TEST_CASE("options of the compiler say when copies begin") {
  const OnePrefetch one;
  const Tick by_itself = one.Begin({});
  REQUIRE(by_itself > 1);
  CHECK(one.Begin({{"xla_msa_preferred_overlap_to_async_copy_ratio", "1"}}) > by_itself);
  CHECK(one.Begin({{"xla_tpu_async_copy_bandwidth_scaling_factor", "2"}}) > by_itself);
  CHECK(one.Begin({{"xla_tpu_async_copy_bandwidth_scaling_factor", "0.1"}}) == -1);
  CHECK(one.Begin({{"xla_msa_min_overlap_to_async_copy_ratio", "1000"}}) == -1);
}

TEST_CASE("eagerness says where a copy begins between the use before and its own") {
  const OnePrefetch one;
  const auto begin = [&one](const char* degree) {
    const std::string text = std::string("overrides { hlo_operand_filter { } override_options { ") +
                             "prefetch_eagerness: " + degree + " } }";
    return one.Begin({{"xla_tpu_preferred_prefetch_overrides", text.c_str()}});
  };
  CHECK(begin("0") == 1);              // behind the parameter, which stands at tick 0
  CHECK(begin("0.25") == 11);          // 41 ticks lie in between
  CHECK(begin("1") == one.Begin({}));  // too late, so that it does not count
}

TEST_CASE("an option that is not known, or a value that is none of it, is told") {
  XlaOptions options;
  for (const auto& [name, value] : std::vector<std::pair<const char*, const char*>>{
           {"xla_unknown", "1"},
           {"xla_msa_max_repacks", "-1"},
           {"xla_msa_max_repacks", "many"},
           {"xla_msa_min_overlap_to_async_copy_ratio", "nan"},
           {"xla_tpu_memory_space_assignment_while_execution_count", "0"},
           {"xla_tpu_sliced_prefetch_preferred_slice_size", "0"},
           {"xla_msa_enable_cross_program_prefetch_freeing", "1"},
           {"xla_tpu_preferred_prefetch_overrides", "prefetch_eagerness: 1"},
       }) {
    const absl::Status status = SetXlaOption(options, name, value);
    INFO(status);
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(absl::StrContains(status.message(), name));
  }
}

TEST_CASE("a preload counts as a copy that is under way until its first use") {
  ProgramBuilder b("preload", CostKind::kRoofline);
  const BufferId p = b.Parameter("p", 8), q = b.Parameter("q", 8), out = b.Result("out", 4);
  for (int k = 0; k < 9; ++k) b.Add({.name = "work", .flops = 4});
  b.Add({.name = "first", .reads = {p}, .flops = 9});
  const Tick use = b.Add({.name = "use", .reads = {q}, .writes = {out}});
  b.MarkOutput(out);
  const auto program = b.Build();
  const auto game = GameWith(program, 64, 1);
  XlaRequest request;
  request.preloads = {{p}};
  request.prefetches = {{AccessAt(*program, q, use), 5, false}};
  const auto begin = [&](int most) {
    XlaOptions options;
    options.max_prefetches = most;
    for (const Copy& copy : PlanLikeXla(*game, Deadline(), options, request).plan.copies)
      if (!copy.preload) return copy.begin;
    return -1;
  };
  CHECK(begin(2) == 5);
  CHECK(begin(1) != 5);
}

TEST_CASE("a preload leaves its bytes to others behind its last use, unless an option forbids it") {
  ProgramBuilder b("freed", CostKind::kRoofline);
  const BufferId p = b.Parameter("p", 20), q = b.Parameter("q", 20), out = b.Result("out", 4);
  b.Add({.name = "first", .reads = {p}, .flops = 9});
  for (int k = 0; k < 40; ++k) b.Add({.name = "work", .flops = 4});
  const Tick use = b.Add({.name = "use", .reads = {q}, .writes = {out}});
  for (int k = 0; k < 40; ++k) b.Add({.name = "work", .flops = 4});
  b.MarkOutput(out);
  const auto program = b.Build();
  const auto game = GameWith(program, 24, 1);
  XlaRequest request;
  request.preloads = {{p}};
  const auto served = [&](const char* freed) {
    XlaOptions options;
    REQUIRE(SetXlaOption(options, "xla_msa_enable_cross_program_prefetch_freeing", freed).ok());
    const Plan plan = PlanLikeXla(*game, Deadline(), options, request).plan;
    CHECK(plan.copies[0].preload);
    return plan.served_by[AccessAt(*program, q, use).index()].valid();
  };
  CHECK(served("true"));
  CHECK_FALSE(served("false"));
}

TEST_CASE("a write-back that slices leave too few bytes ends at once") {
  ProgramBuilder b("edges", CostKind::kRoofline);
  const BufferId v = b.Result("v", 12), p = b.Parameter("p", 24), out = b.Result("out", 4);
  b.Add({.name = "make", .writes = {v}});
  b.Add({.name = "soon", .reads = {v}, .flops = 1});
  for (int k = 0; k < 30; ++k) b.Add({.name = "work", .flops = 1});
  const Tick use = b.Add({.name = "use", .reads = {p}, .writes = {out}});
  b.MarkOutput(v);
  b.MarkOutput(out);
  const auto program = b.Build();
  const auto game = GameWith(program, 24);
  // Both halves of p lie where v could lie; the second comes before v is best written back.
  XlaOptions options;
  options.min_sliced_bytes = 20;
  options.max_slices = 2;
  options.slice_work = 1;
  XlaRequest request;
  request.order = {p};
  request.prefetches = {{AccessAt(*program, p, use), 1, false}};
  const Plan plan = PlanLikeXla(*game, Deadline(), options, request).plan;
  REQUIRE(plan.copies.size() == 3);
  for (const Copy& copy : plan.copies) {
    if (copy.kind != CopyKind::kWriteBack) continue;
    CHECK(copy.begin == 1);
    CHECK(copy.end == 1);
  }
}

}  // namespace
}  // namespace mallocgame
