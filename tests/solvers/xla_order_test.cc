// The order in which XLA's allocator looks at buffers, and the parameters it preloads.
#include "mallocgame/solvers/xla/order.h"

#include <algorithm>
#include <vector>

#include "mallocgame/game/time/time_game.h"
#include "tests/catch.h"
#include "tests/support/plans.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;
using testing::TestHardware;

std::vector<BufferId> OrderOf(const ProgramBuilder& b, const TimeGameOptions& options = {}) {
  const auto game = Game::Create(b.Build(), TestHardware(64), options);
  REQUIRE(game.ok());
  const Program& program = (*game)->program();
  return XlaOrder(**game, XlaCost(program, (*game)->hardware()), XlaDefinitions(program));
}

TEST_CASE("the buffer whose uses save most for the root of its size comes first") {
  // All are read by instructions that only move bytes: what is saved grows with the bytes, and is
  // divided by their root.
  ProgramBuilder b("order", CostKind::kRoofline);
  const BufferId small = b.Parameter("small", 4), large = b.Parameter("large", 16),
                 twice = b.Parameter("twice", 16), fixed = b.Parameter("fixed", 16);
  b.Parameter("unused", 16);
  b.MarkIneligible(fixed, "effective scalar");
  b.Add({.name = "a", .reads = {small}});
  b.Add({.name = "b", .reads = {large}});
  b.Add({.name = "c", .reads = {twice}});
  b.Add({.name = "d", .reads = {twice, fixed}});
  CHECK(OrderOf(b) == std::vector<BufferId>{twice, large, small});
}

TEST_CASE("of equal buffers the longer lived comes first, then the one that ends earlier") {
  ProgramBuilder b("ties", CostKind::kRoofline);
  const BufferId x = b.Result("x", 8), y = b.Result("y", 8), z = b.Result("z", 8);
  b.Add({.name = "0", .writes = {x}});
  b.Add({.name = "1", .writes = {y}});
  b.Add({.name = "2", .writes = {z}});
  b.Add({.name = "3", .reads = {x}});
  b.Add({.name = "4", .reads = {z}});
  b.Add({.name = "5", .reads = {y}});
  // x lives for 3 ticks, y for 4, z for 2.
  CHECK(OrderOf(b) == std::vector<BufferId>{y, x, z});
}

TEST_CASE("with an operand come the plain copies of it that a prefetch may replace") {
  ProgramBuilder b("copies", CostKind::kRoofline);
  // The largest come first.
  const BufferId p = b.Parameter("p", 32), q = b.Parameter("q", 8), copied = b.Result("copied", 4),
                 v = b.Result("v", 16), made = b.Result("made", 4);
  b.Add({.name = "copy", .reads = {p}, .writes = {copied}, .plain_copy = true});
  b.Add({.name = "use", .reads = {copied, q}, .writes = {v}});
  b.Add({.name = "again", .reads = {v}});
  b.Add({.name = "copy.1", .reads = {v}, .writes = {made}, .plain_copy = true});
  b.Add({.name = "last", .reads = {made}});
  const std::vector<BufferId> order = OrderOf(b);
  const auto behind = [&](BufferId buffer) {
    return *(std::find(order.begin(), order.end(), buffer) + 1);
  };
  CHECK(behind(p) == copied);
  // What an instruction makes is no operand of that kind.
  CHECK(behind(v) != made);
}

TEST_CASE("a life is as long as there are values that begin or end in it") {
  ProgramBuilder b("events", CostKind::kRoofline);
  const BufferId x = b.Result("x", 8), y = b.Result("y", 8), other = b.Result("other", 4);
  b.Add({.name = "0", .writes = {x}});
  b.Add({.name = "1"});
  b.Add({.name = "2", .reads = {x}});
  b.Add({.name = "3", .writes = {y}});
  b.Add({.name = "4", .writes = {other}});
  b.Add({.name = "5", .reads = {y}});
  // Both live for two ticks.
  CHECK(OrderOf(b) == std::vector<BufferId>{y, x, other});
}

TEST_CASE("a life ends where a loop is entered that updates the buffer") {
  ProgramBuilder b("carried", CostKind::kRoofline);
  const BufferId x = b.Result("x", 8), y = b.Result("y", 8), other = b.Result("other", 4),
                 another = b.Result("another", 4);
  b.Add({.name = "0", .writes = {x}});
  b.BeginLoop("first", 4);
  b.BeginBody();
  b.Add({.name = "1", .writes = {other}});
  b.Add({.name = "2", .reads = {other}});
  b.Add({.name = "3", .updates = {x}});
  b.EndLoop();
  b.Add({.name = "4", .writes = {y}});
  b.Add({.name = "5", .writes = {another}});
  b.BeginLoop("second", 4);
  b.BeginBody();
  b.Add({.name = "6", .updates = {y}});
  b.EndLoop();
  b.Add({.name = "7", .reads = {another}});
  // Until its loop updates it more values begin and end in the life of x, until its loop begins in
  // that of y.
  const std::vector<BufferId> order = OrderOf(b);
  CHECK(std::find(order.begin(), order.end(), y) < std::find(order.begin(), order.end(), x));
}

TEST_CASE("parameters live throughout, so that the last use decides, then the order of operands") {
  ProgramBuilder b("parameters", CostKind::kRoofline);
  const BufferId x = b.Parameter("x", 8), y = b.Parameter("y", 8), z = b.Parameter("z", 8);
  b.Add({.name = "0", .reads = {x}});
  b.Add({.name = "1", .reads = {z, y}});
  b.Add({.name = "2", .reads = {x}});
  b.Add({.name = "3", .reads = {z, y}});
  CHECK(OrderOf(b) == std::vector<BufferId>{x, z, y});
}

TEST_CASE("factors of products are preloaded, the largest first; activations are not") {
  ProgramBuilder b("preload", CostKind::kRoofline);
  const BufferId in = b.Parameter("in", 12), small = b.Parameter("small", 4),
                 large = b.Parameter("large", 16), light = b.Parameter("light", 20),
                 updated = b.Parameter("updated", 24), weight = b.Constant("constant", 28),
                 out = b.Result("out", 12);
  const testing::Op product = {
      .name = "product", .reads = {in, small, large}, .writes = {out}, .flops = 1000};
  b.Add(product);
  b.Add({.name = "sum", .reads = {light, weight}, .flops = 1});  // too little work for a product
  b.Add({.name = "step", .updates = {updated}, .flops = 1000});
  // "in" is as large as the output: used element by element.
  CHECK(XlaPreloadOrder(*b.Build()) == std::vector<BufferId>{large, small});
}

}  // namespace
}  // namespace mallocgame
