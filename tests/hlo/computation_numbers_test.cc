// Values of two modules have equal numbers where they are equal.
#include "mallocgame/hlo/check/computation_numbers.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;

// Both branches are given `given`, a tuple of as many arrays as the shape `tuple` has. The left one
// computes `left` of the elements x and y.
ModuleText Branches(const std::string& tuple, const std::string& given, int x, int y,
                    const std::string& left) {
  ModuleText m;
  m.Computation("left")
      .Add(absl::StrCat("l = ", tuple, " parameter()"))
      .Add("x = f32[8] get-tuple-element(l)", absl::StrCat("tuple_index: ", x))
      .Add("y = f32[8] get-tuple-element(l)", absl::StrCat("tuple_index: ", y))
      .Add("a = f32[8] negate(x)")
      .Add(absl::StrCat("b = f32[8] ", left));
  m.Computation("right")
      .Add(absl::StrCat("r = ", tuple, " parameter()"))
      .Add("u = f32[8] get-tuple-element(r)", "tuple_index: 0");
  m.Computation("main")
      .Add("which = pred[] parameter()")
      .Add("p = f32[8] parameter()")
      .Add("q = f32[8] parameter()")
      .Add("s = (f32[8]{0:S(1)}, f32[8], u32[]) copy-start(p)")
      .Add("t = f32[8]{0:S(1)} copy-done(s)")
      .Add(absl::StrCat("g = ", tuple, " tuple(", given, ")"))
      .Add("c = f32[8] conditional(which, g, g)", "", {"left", "right"});
  return m;
}

TEST_CASE("a branch may be given one value at several places") {
  const std::string two = "(f32[8], f32[8])", three = "(f32[8], f32[8], f32[8]{0:S(1)})";
  ValueTable table(1);
  const auto number = [&](const ModuleText& m) {
    const auto module = hlo_test::Parse(m);
    return ModuleNumbers(*module, table).OfComputation(module->entry());
  };
  const int32_t original = number(Branches(two, "p, q", 0, 1, "subtract(a, x)"));
  CHECK(number(Branches(three, "p, q, t", 0, 1, "subtract(a, x)")) == original);
  CHECK(number(Branches(three, "p, q, t", 2, 0, "subtract(a, y)")) == original);
  CHECK(number(Branches(three, "p, q, t", 2, 1, "subtract(a, x)")) == original);
  // Other values than the original's.
  CHECK(number(Branches(three, "p, q, t", 2, 1, "subtract(a, y)")) != original);
  CHECK(number(Branches(three, "p, q, t", 1, 0, "subtract(a, x)")) != original);
  CHECK(number(Branches(three, "q, p, t", 0, 1, "subtract(a, x)")) != original);
  CHECK(number(Branches(three, "q, p, t", 2, 0, "subtract(a, x)")) != original);
}

}  // namespace
}  // namespace mallocgame::hlo
