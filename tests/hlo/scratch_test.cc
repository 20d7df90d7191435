// What the text of a configuration says of scratch.
#include "mallocgame/hlo/scratch.h"

#include "tests/catch.h"

namespace mallocgame::hlo {
namespace {

TEST_CASE("the first scratch of a size in the memory space asked for") {
  const auto of = [](const char* text) { return ScratchOf(text, 1); };
  const auto found = of(R"({"scoped_memory_configs":[{"memory_space":"0","offset":"1","size":"2"},)"
                        R"({"memory_space":"1","offset":"4096","size":"8192"}]})");
  REQUIRE(found.has_value());
  CHECK(found->offset == 4096);
  CHECK(found->size_bytes == 8192);
  // What code generation used in the end is another list.
  CHECK(!of(R"({"used_scoped_memory_configs":[{"memory_space":"1","offset":"0","size":"8"}]})"));
  CHECK(!of(R"({"scoped_memory_configs":[{"memory_space":"1","offset":"0","size":"0"}]})"));
  CHECK(!of(R"({"scoped_memory_configs":[{"memory_space":"1","offset":"-1","size":"8"}]})"));
  CHECK(!of(R"({"scoped_memory_configs":[{"memory_space":"1","size":"8"}]})"));
  CHECK(!of(R"({"scoped_memory_configs":[{"memory_space":1}, 7, {]})"));
  CHECK(!of(R"({"scoped_memory_configs":[{"memory_space":"1")"));
  CHECK(!of(R"({"scoped_memory_configs":[]})"));
  CHECK(!of(""));
}

}  // namespace
}  // namespace mallocgame::hlo
