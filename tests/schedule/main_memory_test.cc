// The main memory that an order needs.
#include "mallocgame/schedule/main_memory.h"

#include "mallocgame/schedule/instruction_order.h"
#include "tests/catch.h"
#include "tests/support/dependences.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;

constexpr int64_t kPage = 16384;

// Two chains from one parameter: make, then use, which ends what was made.
std::shared_ptr<const Program> TwoChains() {
  ProgramBuilder b("chains");
  const BufferId w = b.Parameter("w", kPage), x = b.Result("x", 4 * kPage),
                 y = b.Result("y", 2 * kPage), p = b.Result("p", kPage), q = b.Result("q", kPage);
  b.MarkOutput(p);
  b.MarkOutput(q);
  b.Add({.name = "make x", .reads = {w}, .writes = {x}, .cycles = {1}});
  b.Add({.name = "make y", .reads = {w}, .writes = {y}, .cycles = {1}});
  b.Add({.name = "use x", .reads = {x}, .writes = {p}, .cycles = {1}});
  b.Add({.name = "use y", .reads = {y}, .writes = {q}, .cycles = {1}});
  return testing::WithDependences(*b.Build());
}

TEST_CASE("what lives at one time counts, and parameters and results always do") {
  const auto program = TwoChains();
  const MainMemory own = MainMemoryOf(*program);
  CHECK(own.fixed_bytes == 3 * kPage);
  CHECK(own.live_bytes == 6 * kPage);
  CHECK(own.packed_bytes == 6 * kPage);
  CHECK(own.total_bytes() == 9 * kPage);
  CHECK(LiveMainBytes(*program) == own.live_bytes);

  const auto other = Reordered(*program, {0, 2, 1, 3});
  REQUIRE(other.ok());
  CHECK(MainMemoryOf(*other->program).live_bytes == 4 * kPage);
  CHECK(MainMemoryOf(*other->program).packed_bytes == 4 * kPage);
}

TEST_CASE("what comes from outside of a loop lives to its end") {
  ProgramBuilder b("loop");
  const BufferId x = b.Result("x", kPage), y = b.Result("y", 2 * kPage), z = b.Result("z", kPage);
  b.MarkOutput(z);
  b.Add({.name = "make x", .writes = {x}, .cycles = {1}});
  b.BeginLoop("loop", 2);
  b.BeginBody();
  b.Add({.name = "use x", .reads = {x}, .cycles = {1}});
  b.Add({.name = "make y", .writes = {y}, .cycles = {1}});
  b.Add({.name = "use y", .reads = {y}, .cycles = {1}});
  b.EndLoop();
  b.Add({.name = "make z", .writes = {z}, .cycles = {1}});
  CHECK(LiveMainBytes(*b.Build()) == 3 * kPage);
}

TEST_CASE("buffers without accesses live as their uses say, unless they lie elsewhere") {
  ProgramBuilder b("ineligible");
  const BufferId x = b.Result("x", kPage), y = b.Result("y", kPage), z = b.Result("z", kPage);
  for (const BufferId buffer : {x, y}) b.MarkIneligible(buffer, "used asynchronously");
  b.MarkIneligible(z, "other memory space");
  b.Add({.name = "first", .cycles = {1}});
  b.Add({.name = "second", .cycles = {1}});
  b.Add({.name = "third", .cycles = {1}});
  const auto live = [&b](std::vector<MainUse> uses) {
    ProgramData data = b.Data();
    data.main_uses = std::move(uses);
    return LiveMainBytes(**Program::Create(std::move(data)));
  };
  CHECK(live({}) == 0);
  CHECK(live({{0, x}, {1, x}, {2, y}}) == kPage);
  CHECK(live({{0, x}, {1, x}, {1, y}, {2, y}}) == 2 * kPage);
  CHECK(live({{0, z}, {2, z}}) == 0);
}

TEST_CASE("offsets are multiples of the compiler's, and leave holes") {
  ProgramBuilder b("holes");
  const BufferId x = b.Result("x", kPage), y = b.Result("y", 10), z = b.Result("z", kPage);
  b.Add({.name = "all", .writes = {x, y, z}, .cycles = {1}});
  const MainMemory memory = MainMemoryOf(*b.Build());
  CHECK(memory.live_bytes == 2 * kPage + 10);
  CHECK(memory.packed_bytes == 2 * kPage + 10);
}

TEST_CASE("best fit takes the smallest hole, in the order given") {
  // The second and the fourth end at 2, and leave holes of 8 and 4 bytes.
  const std::vector<BufferLife> lives = {{0, 4, 4}, {0, 2, 8}, {0, 4, 4}, {0, 2, 4},
                                         {0, 4, 4}, {2, 4, 3}, {2, 4, 8}, {1, 2, 1}};
  CHECK(BestFitOffsets(lives, 4) == std::vector<int64_t>{0, 4, 12, 16, 20, 16, 4, 24});
}

}  // namespace
}  // namespace mallocgame
