// When copies may begin: the worked examples of the XLA reference, loops and slices.
#include "mallocgame/solvers/xla/interval_picker.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;

std::shared_ptr<const Program> Ticks(int count) {
  ProgramBuilder b;
  for (int i = 0; i < count; ++i) b.Add({.name = "op." + std::to_string(i)});
  return b.Build();
}

std::vector<Tick> All(IntervalPicker::Candidates candidates) {
  std::vector<Tick> all;
  while (const auto s = candidates.Next()) all.push_back(*s);
  return all;
}

TEST_CASE("interval picker: the reference's example") {
  const auto program = Ticks(7);
  const std::vector<int64_t> elapsed = {0, 4, 2, 3, 1, 5, 2};
  const IntervalPicker picker(*program, elapsed, {1, 2, 1000, 5});
  const double between[] = {15, 11, 9, 6, 5, 0};
  for (Tick s = 0; s < 6; ++s) CHECK(picker.Elapsed(s, 6) == between[s]);
  CHECK(picker.Elapsed(-1, 6) == 0);
  CHECK(All(picker.Begins(0, 6, 4, 0)) == std::vector<Tick>{2, 3, 1, 4, 0});
  // What the user saves moves the latest begin, an upper limit the earliest one.
  CHECK(*picker.Begins(0, 6, 6, 0).latest() == 3);
  CHECK(*picker.Begins(0, 6, 6, 1).latest() == 4);
  CHECK(!picker.Begins(0, 6, 16, 0).latest());
  const IntervalPicker limited(*program, elapsed, {1, 2, 9, 5});
  CHECK(All(limited.Begins(0, 6, 4, 0)) == std::vector<Tick>{2, 3, 4});
  CHECK(limited.MayStay(3, 6));
  CHECK(!limited.MayStay(2, 6));
  CHECK(picker.HiddenBy(0, 6) == 3);  // 4 + 2 before tick 3
}

TEST_CASE("interval picker: the preferred begin may hide less than a copy needs") {
  const auto program = Ticks(6);
  const std::vector<int64_t> elapsed = {0, 0, 10, 1, 1, 0};
  const IntervalPicker picker(*program, elapsed, {1, 2, 1000, 5});
  CHECK(picker.Preferred(0, 4, 6, 1) == 2);  // It hides 2, twice the copy.
  CHECK(picker.Preferred(0, 4, 6, 3) == 2);  // 6 is wanted: 2 is closer than 12.
  CHECK(picker.Begins(0, 6, 3, 0).latest() == 1);
  CHECK(picker.Preferred(0, 4, 6, 5) == 0);  // Of 0 and 1, which hide 12, the earlier one.
}

TEST_CASE("interval picker: loops weigh more from outside, and windows stay in a region") {
  ProgramBuilder b;
  b.Add({.name = "before"});
  b.Add({.name = "hides"});
  b.BeginLoop("while", 7);
  b.BeginBody();
  b.Add({.name = "x"});
  b.Add({.name = "y"});
  b.Add({.name = "z"});
  const Tick exit = b.EndLoop();
  b.Add({.name = "use"});
  b.Add({.name = "later"});
  const auto program = b.Build();
  std::vector<int64_t> elapsed(program->instructions().size(), 0);
  const Tick x = exit - 3;
  elapsed[1] = 4;
  for (Tick t = x; t < exit; ++t) elapsed[t] = 2;
  const IntervalPicker picker(*program, elapsed, {1, 2, 1000, 5});
  CHECK(picker.Elapsed(0, exit + 1) == 4 + 5 * 6);
  CHECK(picker.Elapsed(x, exit - 1) == 2);
  // A window to `use` may span the loop, but not begin inside it. A window inside doesn't leave it.
  CHECK(picker.WindowEnd(exit) == 2 + 1);
  for (const Tick s : All(picker.Begins(0, exit + 1, 4, 0))) CHECK(s < 2);
  // Behind the loop it begins after the exit, not at it.
  const std::vector<Tick> behind = All(picker.Begins(0, exit + 2, 0, 0));
  CHECK(std::find(behind.begin(), behind.end(), exit) != behind.end());
  for (const Tick s : behind) CHECK((s < 2 || s == exit));
  for (const Tick s : All(picker.Begins(0, exit, 1, 0))) CHECK(s >= x - 1);
}

TEST_CASE("interval picker: slices begin when another part of the time is over") {
  const auto program = Ticks(8);
  const IntervalPicker picker(*program, std::vector<int64_t>{0, 4, 0, 4, 0, 0, 8, 0},
                              {1, 2, 1000, 5});
  // From tick 0 to 7 there are 16 ps. Ticks that take no time are no places to begin behind.
  CHECK(picker.SliceBegins(0, 7, 4) == std::vector<Tick>{0, 1, 3, 3});
  CHECK(picker.SliceBegins(0, 7, 2) == std::vector<Tick>{0, 3});
  CHECK(picker.SliceBegins(5, 7, 4) == std::vector<Tick>{5, 5, 5, 5});
}

}  // namespace
}  // namespace mallocgame
