// Which bit stands for which array.
#include "mallocgame/hlo/cost/cost_bits.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;

// r takes one operand of each of these numbers of f32 elements, and gives the same shapes.
CostBits BitsOf(const std::vector<int>& elements, bool outputs = false) {
  ModuleText m;
  m.Computation("main");
  std::vector<std::string> names, shapes;
  for (const int n : elements) {
    names.push_back(absl::StrCat("p", names.size()));
    shapes.push_back(absl::StrCat("f32[", n, "]"));
    m.Add(absl::StrCat(names.back(), " = ", shapes.back(), " parameter()"));
  }
  m.Add(absl::StrCat("r = (", absl::StrJoin(shapes, ", "), ") custom-call(",
                     absl::StrJoin(names, ", "), ")"));
  const auto module = hlo_test::Parse(m);
  const int32_t r = hlo_test::Named(*module, "r");
  return outputs ? OutputBits(*module, r) : OperandBits(*module, r);
}

TEST_CASE("up to 64 arrays each have the bit of their number") {
  const CostBits bits = BitsOf({5, 1, 3});
  CHECK(bits.of == std::vector<size_t>{0, 1, 2});
  CHECK(bits.size_bytes == std::vector<int64_t>{20, 4, 12});
  const CostBits full = BitsOf(std::vector<int>(64, 1));
  CHECK(full.of[63] == 63);
  CHECK_FALSE(full.shared(63));
}

TEST_CASE(
    "of more than 64 arrays the 63 largest have bits of their own, and the rest share the last") {
  // 66 arrays: three of one element at 0, 10 and 65, all others of two elements.
  std::vector<int> elements(66, 2);
  elements[0] = elements[10] = elements[65] = 1;
  for (const bool outputs : {false, true}) {
    const CostBits bits = BitsOf(elements, outputs);
    REQUIRE(bits.of.size() == 66);
    // The larger ones keep their order: 1 to 9 have bits 0 to 8, and 11 to 64 have bits 9 to 62.
    CHECK(bits.of[1] == 0);
    CHECK(bits.of[9] == 8);
    CHECK(bits.of[11] == 9);
    CHECK(bits.of[64] == 62);
    for (const size_t small : {0, 10, 65}) {
      CHECK(bits.of[small] == 63);
      CHECK(bits.shared(small));
    }
    CHECK_FALSE(bits.shared(64));
  }
}

TEST_CASE("of equally large arrays the first have bits of their own") {
  const CostBits bits = BitsOf(std::vector<int>(65, 1));
  CHECK(bits.of[62] == 62);
  CHECK_FALSE(bits.shared(62));
  CHECK(bits.shared(63));
  CHECK(bits.shared(64));
}

TEST_CASE("a tuple operand has the bytes of all its arrays") {
  ModuleText m;
  m.Computation("main")
      .Add("p = (f32[3], (f32[2], f32[1])) parameter()")
      .Add("r = f32[1] custom-call(p)");
  const auto module = hlo_test::Parse(m);
  CHECK(OperandBits(*module, hlo_test::Named(*module, "r")).size_bytes == std::vector<int64_t>{24});
}

}  // namespace
}  // namespace mallocgame::hlo
