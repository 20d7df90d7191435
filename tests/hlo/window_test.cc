// The size that stands for all copies of a module. That XLA:TPU takes just this one was read from
// the log of its interval picker for 20 programs.
#include "mallocgame/hlo/import/window.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Of a module with one parameter of each size in MiB.
int64_t Of(const std::vector<int>& sizes, const std::string& last) {
  hlo_test::ModuleText text;
  text.Computation("main");
  for (size_t i = 0; i < sizes.size(); ++i) {
    text.Add(absl::StrCat("p", i, " = s8[", sizes[i] * kMiB, "] parameter()"));
  }
  if (!last.empty()) text.Add(last);
  return WindowBytes(*hlo_test::Parse(text));
}

TEST_CASE("the upper median of the arrays above 1 MiB") {
  CHECK(Of({1, 1}, "") == 0);
  CHECK(Of({1, 5}, "") == 5 * kMiB);
  CHECK(Of({9, 1, 3}, "") == 9 * kMiB);
  CHECK(Of({4, 9, 3}, "") == 4 * kMiB);
  CHECK(Of({4, 9, 3, 2}, "") == 4 * kMiB);
  CHECK(Of({4, 9, 4, 9}, "") == 9 * kMiB);
}

TEST_CASE("bitcasts and tuples make no array") {
  CHECK(Of({3, 9, 4}, "t = (s8[9437184], s8[9437184]) tuple(p1, p1)") == 4 * kMiB);
  CHECK(Of({3, 9, 4}, "b = s8[9437184] bitcast(p1)") == 4 * kMiB);
  CHECK(Of({3, 9, 4}, "n = s8[9437184] negate(p1)") == 9 * kMiB);
}

TEST_CASE("what a fusion makes on its way counts, padded as it would lie in memory") {
  hlo_test::ModuleText text;
  text.Computation("inside", /*fused=*/true)
      .Add("x = bf16[1000,1000]{1,0:T(8,128)(2,1)} parameter()")
      .Add("wide = f32[1000,1000]{1,0:T(8,128)} convert(x)")
      .Add("narrow = bf16[1000,1000]{1,0:T(8,128)(2,1)} convert(wide)");
  text.Computation("main")
      .Add("p = bf16[1000,1000]{1,0:T(8,128)(2,1)} parameter()")
      .Add("f = bf16[1000,1000]{1,0:T(8,128)(2,1)} fusion(p)", "", {"inside"});
  CHECK(WindowBytes(*hlo_test::Parse(text)) == 1000 * 1024 * 2);
  text.at("narrow").set_opcode("bitcast");
  text.at("f").set_opcode("bitcast");
  CHECK(WindowBytes(*hlo_test::Parse(text)) == 1000 * 1024 * 2);
  text.at("x").set_opcode("bitcast");
  CHECK(WindowBytes(*hlo_test::Parse(text)) == 1000 * 1024 * 4);
}

}  // namespace
}  // namespace mallocgame::hlo
