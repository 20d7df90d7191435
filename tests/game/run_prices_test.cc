// What space is worth where runs compete for it, on a program that is worked out by hand and on
// random ones.
#include "mallocgame/game/order/run_prices.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;
using testing::RandomProgram;
using testing::TestHardware;

std::shared_ptr<const Game> OrderGameOf(std::shared_ptr<const Program> program, int64_t bytes) {
  GameOptions options;
  options.kind = GameKind::kOrder;
  options.min_buffer_bytes = 0;
  return *Game::Create(std::move(program), TestHardware(bytes), options);
}

TEST_CASE("space has a price where a run finds no room, and only there") {
  ProgramBuilder builder("two", CostKind::kRoofline);
  const BufferId a = builder.Result("a", 8), b = builder.Result("b", 8),
                 alone = builder.Result("alone", 8);
  builder.Add({.name = "make_a", .writes = {a}});
  builder.Add({.name = "make_b", .writes = {b}});
  builder.Add({.name = "use", .reads = {a, b}});
  builder.Add({.name = "make_alone", .writes = {alone}});
  builder.Add({.name = "use_alone", .reads = {alone}});
  const auto program = builder.Build();
  const auto roomy = OrderGameOf(program, 64);
  for (const double price : RunPrices(roomy->order_tables()).space_ps_per_byte) CHECK(price == 0);
  // For one of a and b there is room.
  const auto narrow = OrderGameOf(program, 12);
  const Prices prices = RunPrices(narrow->order_tables());
  REQUIRE(ValidatePrices(*program, prices).ok());
  CHECK(prices.channel_ps_per_ps.empty());
  const std::vector<double>& space = prices.space_ps_per_byte;
  REQUIRE(space.size() == 5);
  CHECK(space[2] > 0);
  CHECK(space[3] == 0);
  CHECK(space[4] == 0);
  CHECK(space[0] == 0);
  // a saves less for each byte and picosecond and finds no room where b is. It would pay there at
  // most what it saves.
  int priced = 0;
  for (const Run& run : narrow->order_tables().runs) {
    const BufferId id = narrow->order_tables().arrangement.tables.buffers[run.buffer].id;
    if (run.parent >= 0 || id != a) continue;
    ++priced;
    const double rent = PriceSums(prices).OfSpace(8, run.planned.begin, run.planned.end);
    CHECK(rent > 0);
    CHECK(rent <= 1.001 * static_cast<double>(run.saving_ps));
  }
  CHECK(priced == 1);
}

TEST_CASE("prices of random programs are valid, and rise where there is less space") {
  Rng rng(5);
  double before = 0, after = 0;
  int priced = 0;
  for (int i = 0; i < 60; ++i) {
    const auto program = RandomProgram(rng, {.instructions = 20, .loops = 1, .branches = 1});
    const auto total = [&](int64_t bytes) {
      const auto game = OrderGameOf(program, bytes);
      const Prices prices = RunPrices(game->order_tables());
      REQUIRE(ValidatePrices(*program, prices).ok());
      return PriceSums(prices).OfSpace(1, 0, program->ticks());
    };
    CHECK(total(1 << 20) == 0);
    before += total(24);
    after += total(8);
    priced += total(8) > 0;
  }
  CHECK(priced > 30);
  CHECK(after > before);
}

}  // namespace
}  // namespace mallocgame
