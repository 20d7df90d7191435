// Index types that can't be mixed up.
#include "mallocgame/base/ids.h"

#include <type_traits>

#include "tests/catch.h"

namespace mallocgame {
namespace {

static_assert(!std::is_convertible_v<AccessId, BufferId>);
static_assert(!std::is_constructible_v<AccessId, BufferId>);
static_assert(!std::is_convertible_v<int, BufferId>);

TEST_CASE("an id is none unless it is given an index") {
  CHECK_FALSE(BufferId().valid());
  CHECK(BufferId(0).valid());
  CHECK(BufferId(7).index() == 7);
  CHECK(BufferId(1) < BufferId(2));
  CHECK(BufferId(2) == BufferId(2));
  CHECK(BufferId() < BufferId(0));
}

}  // namespace
}  // namespace mallocgame
