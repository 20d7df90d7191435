// What the text of a configuration says of scratch.
#include "mallocgame/hlo/import/scratch.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

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

TEST_CASE("the offsets of all scratch in a module, each once") {
  hlo_test::ModuleText module;
  module.Computation("main").Add("x = f32[8] parameter()");
  int number = 0;
  for (const int offset : {8192, 0, 8192, 4096, 12288, 16384, 20480}) {
    const std::string name = absl::StrCat("n", number++);
    module.Add(absl::StrCat(name, " = f32[8] negate(x)"));
    module.at(name).set_backend_config(
        absl::StrCat(R"({"scoped_memory_configs":[{"memory_space":"1","offset":")", offset,
                     R"(","size":"8"}]})"));
    if (number == 3)
      CHECK(ScratchOffsets(*hlo_test::Parse(module), 1) == std::vector<int64_t>{0, 8192});
  }
  CHECK(ScratchOffsets(*hlo_test::Parse(module), 1).size() == 4);
  CHECK(ScratchOffsets(*hlo_test::Parse(module), 0).empty());
}

}  // namespace
}  // namespace mallocgame::hlo
