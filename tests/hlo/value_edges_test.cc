// What each opcode hands on: each test writes down the edges of an instruction.
#include "mallocgame/hlo/module/value_edges.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;

// "name p > t{0}; copy a > c{0}": how, from where, and to where.
std::string Edges(const ModuleText& text, const std::string& name) {
  static constexpr const char* kHow[] = {"name",  "step",   "copy",  "bytes",
                                         "enter", "return", "repeat"};
  const auto module = hlo_test::Parse(text);
  const AsyncChains chains(*module);
  const auto edges = EdgesOf(*module, chains, *module->FindByName(name));
  if (!edges.ok()) return std::string(edges.status().message());
  const auto at = [&](const ValuePlace& place) {
    const std::string& of = module->instruction(place.instruction).proto->name();
    return place.index.empty() ? of : absl::StrCat(of, "{", absl::StrJoin(place.index, ","), "}");
  };
  std::vector<std::string> lines;
  for (const ValueEdge& edge : *edges) {
    lines.push_back(
        absl::StrCat(kHow[static_cast<size_t>(edge.how)], " ", at(edge.from), " > ", at(edge.to)));
  }
  return absl::StrJoin(lines, "; ");
}

TEST_CASE("what names values, and what makes one") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("b = f32[2,4] bitcast(p)")
      .Add("a = f32[2,4] add(b, b)")
      .Add("t = (f32[8], f32[2,4]) tuple(p, a)")
      .Add("e = f32[2,4] get-tuple-element(t)", "tuple_index: 1");
  CHECK(Edges(m, "b") == "name p > b");
  CHECK(Edges(m, "a").empty());
  CHECK(Edges(m, "t") == "name p > t{0}; name a > t{1}");
  CHECK(Edges(m, "e") == "name t{1} > e");
  m.at("e").set_tuple_index(2);
  CHECK(Edges(m, "e") == "instruction 't' of computation 'main': no shape at index {2}");
}

TEST_CASE("what runs others gives to them and takes from them") {
  ModuleText m;
  m.Computation("body").Add("given = f32[8] parameter()").Add("next = f32[8] negate(given)");
  m.Computation("condition").Add("tested = f32[8] parameter()").Add("c = pred[] constant()");
  m.Computation("left").Add("x = f32[8] parameter()").Add("xl = f32[8] negate(x)");
  m.Computation("right").Add("y = f32[8] parameter()").Add("yr = f32[8] copy(y)");
  m.Computation("callee").Add("a = f32[8] parameter()").Add("b = f32[8] negate(a)");
  m.Computation("main")
      .Add("which = pred[] parameter()")
      .Add("p = f32[8] parameter()")
      .Add("loop = f32[8] while(p)", "", {"body", "condition"})
      .Add("either = f32[8] conditional(which, p, loop)", "", {"left", "right"})
      .Add("called = f32[8] call(either)", "", {"callee"});
  CHECK(Edges(m, "loop") ==
        "return p > loop; return next > loop; enter p > given; repeat next > given; "
        "enter p > tested; repeat next > tested");
  CHECK(Edges(m, "either") ==
        "enter p > x; return xl > either; enter loop > y; return yr > either");
  CHECK(Edges(m, "called") == "enter either > a; return b > called");
}

TEST_CASE("the steps of transfers hold operands, and give what comes of them") {
  ModuleText m;
  m.Computation("wrapped", true)
      .Add("w = f32[8] parameter()")
      .Add("v = f32[2] parameter()")
      .Add("part = f32[4] gather(w, v)");
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("q = f32[2] parameter()")
      .Add("copy = (f32[8], f32[8], u32[]) copy-start(p)")
      .Add("there = f32[8] copy-done(copy)")
      .Add("start = ((f32[8]), (), s32[]) async-start(there)", "", {"wrapped"})
      .Add("more = ((f32[8], f32[2]), f32[4], s32[]) async-update(start, q)")
      .Add("wait = ((f32[8], f32[2]), f32[4], s32[]) async-update(more)")
      .Add("end = f32[4] async-done(wait)")
      .Add("one = (f32[2], f32[4]) all-gather-start(q)")
      .Add("two = ((f32[2], f32[8]), (f32[4], f32[16])) all-gather-start(q, p)")
      .Add("both = (f32[4], f32[16]) all-gather-done(two)")
      .Add("sum = f32[8] all-reduce-start(p)")
      .Add("summed = f32[8] all-reduce-done(sum)")
      .Add("whole = f32[12] custom-call(end, p)", "custom_call_target: 'ConcatBitcast'");
  CHECK(Edges(m, "copy") == "step p > copy{1}; copy p > copy{0}");
  CHECK(Edges(m, "there") == "step copy{0} > there");
  CHECK(Edges(m, "start") == "step there > start{0,0}; enter there > w");
  CHECK(Edges(m, "more") ==
        "step start{0,0} > more{0,0}; step q > more{0,1}; enter q > v; bytes start{2} > more{2}; "
        "return part > more{1}");
  CHECK(Edges(m, "wait") == "step more > wait");
  CHECK(Edges(m, "end") == "step wait{1} > end");
  CHECK(Edges(m, "one") == "step q > one{0}");
  CHECK(Edges(m, "two") == "step q > two{0,0}; step p > two{0,1}");
  CHECK(Edges(m, "both") == "step two{1,0} > both{0}; step two{1,1} > both{1}");
  CHECK(Edges(m, "sum").empty());
  CHECK(Edges(m, "summed") == "step sum > summed");
  CHECK(Edges(m, "whole") == "bytes end > whole; bytes p > whole");
}

}  // namespace
}  // namespace mallocgame::hlo
