#include "mallocgame/base/rounding.h"

#include "tests/catch.h"

namespace mallocgame {
namespace {

TEST_CASE("division rounds up, and so do multiples") {
  CHECK(DivideUp(0, 4) == 0);
  CHECK(DivideUp(1, 4) == 1);
  CHECK(DivideUp(4, 4) == 1);
  CHECK(DivideUp(5, 4) == 2);
  CHECK(RoundUp(0, 512) == 0);
  CHECK(RoundUp(1, 512) == 512);
  CHECK(RoundUp(512, 512) == 512);
  CHECK(RoundUp(int64_t{1} << 44, 512) == int64_t{1} << 44);
}

}  // namespace
}  // namespace mallocgame
