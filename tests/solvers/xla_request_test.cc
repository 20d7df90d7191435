// What XLA's allocator does with a request, as XLA:TPU was seen to do.
#include "mallocgame/solvers/xla/request.h"

#include <vector>

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
    Hardware hardware = TestHardware(fast_bytes);
    hardware.max_preloads = 0;
    auto created = Game::Create(program, hardware, {});
    REQUIRE(created.ok());
    game = *created;
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

}  // namespace
}  // namespace mallocgame
