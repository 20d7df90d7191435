// The same for the readers of checkpoints. There are fewer mutations, because networks are made for
// each.
#include "tests/catch.h"
#include "tests/fuzz/bear_seeds.h"

namespace mallocgame::fuzz {
namespace {

TEST_CASE("the readers of checkpoints bear their seeds and mutations of them") {
  for (const Reader& reader : AgentReaders()) CheckBearsSeeds(reader, 30);
}

}  // namespace
}  // namespace mallocgame::fuzz
