#include "mallocgame/search/game_variants.h"

#include "tests/catch.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;
using testing::TestHardware;

TEST_CASE("a game without its largest buffers keeps them in main memory") {
  ProgramBuilder b;
  const BufferId large = b.Parameter("large", 6), small = b.Parameter("small", 2);
  b.Add({.name = "both", .reads = {large, small}, .cycles = {40, 30, 20, 10}});
  const auto game = testing::MakeGame(b.Build(), TestHardware(8));
  const auto without = GameWithoutLargest(*game);
  REQUIRE(without != nullptr);
  REQUIRE(without->options().forbidden.size() == 1);
  REQUIRE(without->program().access(without->options().forbidden[0]).buffer == large);
  REQUIRE(GameWithoutLargest(*testing::MakeGame(game->shared_program(), TestHardware(16))) ==
          nullptr);
}

TEST_CASE("a game of the other kind differs in nothing else, and of its own kind is itself") {
  ProgramBuilder b;
  const BufferId x = b.Parameter("x", 4);
  b.Add({.name = "use", .reads = {x}, .cycles = {20, 10}});
  const auto game = testing::MakeGame(b.Build(), TestHardware(8));
  const auto order = PriorityGameOf(*game);
  REQUIRE(order->options().kind == GameKind::kPriority);
  REQUIRE(TimeGameOf(*order)->options() == game->options());
  REQUIRE(TimeGameOf(*game) == game);
  REQUIRE(PriorityGameOf(*order) == order);
}

}  // namespace
}  // namespace mallocgame
