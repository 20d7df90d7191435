// FNV-1a on the values that its authors publish.
#include "mallocgame/base/fnv.h"

#include <cstdint>
#include <string>
#include <vector>

#include "tests/catch.h"

namespace mallocgame {
namespace {

TEST_CASE("FNV-1a of the published examples") {
  CHECK(Fnv1aOf(std::string()) == 0xCBF29CE484222325u);
  CHECK(Fnv1aOf(std::string("a")) == 0xAF63DC4C8601EC8Cu);
  CHECK(Fnv1aOf(std::string("foobar")) == 0x85944171F73967E8u);
}

TEST_CASE("byte by byte is the same as at once, and bytes have no sign") {
  Fnv1a hash;
  for (const char c : std::string("foobar")) hash.Add(static_cast<uint8_t>(c));
  CHECK(hash.value() == Fnv1aOf(std::string("foobar")));
  CHECK(Fnv1aOf(std::string("\xFF")) == Fnv1aOf(std::vector<uint8_t>{0xFF}));
}

}  // namespace
}  // namespace mallocgame
