// Places and transfers, read from a module after memory space assignment. Fast memory is memory
// space 1; f32[8] has 32 bytes.
#include "mallocgame/hlo/import/assigned_module.h"

#include <string>

#include "absl/strings/match.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo {
namespace {

using hlo_test::ModuleText;
using hlo_test::Named;
using hlo_test::UnitHardware;

absl::StatusOr<AssignedModule> TryRead(const Module& before, const ModuleText& after) {
  return AssignedModule::Read(before, *Flatten(before), after.Bytes(), UnitHardware());
}

// Ticks: p 0, a 1, b 2, r 3.
ModuleText Before() {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("a = f32[8] negate(p)")
      .Add("b = f32[8] abs(a)")
      .Add("r = f32[8] add(a, p)");
  return m;
}

// a is made in fast memory at 64. p is copied to fast memory at 0 while a and b run.
ModuleText After() {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("s = (f32[8]{0:S(1)}, f32[8], u32[]) copy-start(p)")
      .Add("a = f32[8]{0:S(1)} negate(p)")
      .Add("b = f32[8] abs(a)")
      .Add("d = f32[8]{0:S(1)} copy-done(s)")
      .Add("r = f32[8] add(a, d)")
      .Place("a", {}, 64, 1)
      .Place("s", {0}, 0, 1)
      .Place("b", {}, 512, 0);
  return m;
}

TEST_CASE("arrays that share storage have one place, with the offset that the assignment tells") {
  const auto before = hlo_test::Parse(Before());
  const absl::StatusOr<AssignedModule> assigned = TryRead(*before, After());
  INFO(assigned.status());
  REQUIRE(assigned.ok());
  const Module& after = assigned->module();
  const auto place_of = [&](const std::string& name, size_t k = 0) {
    return assigned->PlacesOf(Named(after, name))[k];
  };
  CHECK(place_of("d") == place_of("s", 0));
  CHECK(place_of("p") == place_of("s", 1));
  CHECK(place_of("a") != place_of("d"));
  const Place& a = assigned->places()[place_of("a")];
  CHECK(a.fast);
  CHECK(a.offset == 64);
  CHECK(a.size_bytes == 32);
  // Offsets outside of fast memory do not matter to a plan, so they are not told.
  CHECK_FALSE(assigned->places()[place_of("b")].fast);
  CHECK(assigned->places()[place_of("b")].offset == std::nullopt);
  // The counterpart of b is the second but one instruction before the root.
  CHECK(assigned->Counterpart(Named(*before, "b")) == Named(after, "b"));
}

TEST_CASE("a transfer begins and ends at ticks of the program before assignment") {
  const auto before = hlo_test::Parse(Before());
  const absl::StatusOr<AssignedModule> assigned = TryRead(*before, After());
  REQUIRE(assigned.ok());
  REQUIRE(assigned->transfers().size() == 1);
  const Transfer& transfer = assigned->transfers()[0];
  // It starts before a (tick 1) and is done before r (tick 3).
  CHECK(transfer.begin == 1);
  CHECK(transfer.end == 3);
  CHECK(transfer.part_begin == 0);
  CHECK(transfer.part_end == 32);
  CHECK_FALSE(transfer.preload);
  CHECK(transfer.from == assigned->PlacesOf(Named(assigned->module(), "p"))[0]);
  CHECK(assigned->places()[transfer.to].offset == 0);

  ModuleText preloaded = After();
  preloaded.at("s").set_cross_program_prefetch_index(0);
  const absl::StatusOr<AssignedModule> preload = TryRead(*before, preloaded);
  REQUIRE(preload.ok());
  CHECK(preload->transfers()[0].preload);
  CHECK(preload->transfers()[0].begin == 0);  // before everything else
}

TEST_CASE("an asynchronous slice fills its part of the whole") {
  ModuleText m;
  for (const std::string k : {"0", "1"}) {
    m.Computation("wrapped" + k, true)
        .Add("w" + k + " = f32[8] parameter()")
        .Add("part" + k + " = f32[4]{0:S(1)} slice(w" + k + ")");
  }
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("s0 = ((f32[8]), f32[4]{0:S(1)}, u32[]) async-start(p)", "", {"wrapped0"})
      .Add("a = f32[8] negate(p)")
      .Add("s1 = ((f32[8]), f32[4]{0:S(1)}, u32[]) async-start(p)", "", {"wrapped1"})
      .Add("d0 = f32[4]{0:S(1)} async-done(s0)")
      .Add("b = f32[8] abs(a)")
      .Add("d1 = f32[4]{0:S(1)} async-done(s1)")
      .Add("q = f32[8]{0:S(1)} custom-call(d0, d1)", "custom_call_target: 'ConcatBitcast'")
      .Add("r = f32[8] add(a, q)")
      .Place("part0", {}, 96, 1)
      .Place("part1", {}, 112, 1);
  const auto before = hlo_test::Parse(Before());
  const absl::StatusOr<AssignedModule> assigned = TryRead(*before, m);
  INFO(assigned.status());
  REQUIRE(assigned.ok());
  const absl::Span<const Transfer> transfers = assigned->transfers();
  REQUIRE(transfers.size() == 2);
  CHECK(transfers[0].to == transfers[1].to);
  CHECK(assigned->places()[transfers[0].to].offset == 96);
  CHECK(assigned->places()[transfers[0].to].size_bytes == 32);
  // Each slice has 16 bytes; the second lies 16 bytes above the first.
  CHECK(transfers[0].part_begin == 0);
  CHECK(transfers[0].part_end == 16);
  CHECK(transfers[1].part_begin == 16);
  CHECK(transfers[1].part_end == 32);
  // The first: from before a (1) to before b (2); the second: from before b (2) to before r (3).
  CHECK(transfers[0].begin == 1);
  CHECK(transfers[0].end == 2);
  CHECK(transfers[1].begin == 2);
  CHECK(transfers[1].end == 3);
}

TEST_CASE(
    "an asynchronous instruction of the program's own is no transfer, and needs no end here") {
  ModuleText m;
  m.Computation("wrapped", true)
      .Add("w = f32[8] parameter()")
      .Add("part = f32[4]{0:S(1)} dynamic-slice(w)");
  m.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("start = ((f32[8]), f32[4]{0:S(1)}, u32[]) async-start(p)", "", {"wrapped"})
      .Add("a = f32[8] negate(p)")
      .Add("b = f32[8] abs(a)")
      .Add("r = f32[8] add(a, b)")
      .Place("part", {}, 0, 1);
  const auto before = hlo_test::Parse(Before());
  const absl::StatusOr<AssignedModule> assigned = TryRead(*before, m);
  INFO(assigned.status());
  REQUIRE(assigned.ok());
  CHECK(assigned->transfers().empty());
}

TEST_CASE("an instruction that is gone, or has become another, has no counterpart") {
  const auto before = hlo_test::Parse(Before());
  ModuleText m = After();
  m.at("b").set_opcode("copy");
  const absl::StatusOr<AssignedModule> assigned = TryRead(*before, m);
  REQUIRE(assigned.ok());
  CHECK(assigned->Counterpart(Named(*before, "b")) == std::nullopt);
  CHECK(assigned->Counterpart(Named(*before, "a")).has_value());
}

// The compiler numbers copies anew, as soon as it makes one more or less.
TEST_CASE("a copy has the counterpart of its operand and shape, whatever its name") {
  ModuleText before_text, after;
  before_text.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("q = s32[] parameter()")
      .Add("copy.1 = s32[] copy(q)")
      .Add("a = f32[8] negate(p)")
      .Add("copy.2 = f32[8] copy(a)")
      .Add("copy.3 = f32[8] copy(p)")
      .Add("gone = f32[8] copy(a)");
  after.Computation("main")
      .Add("p = f32[8] parameter()")
      .Add("q = s32[] parameter()")
      .Add("copy.2 = s32[] copy(q)")
      .Add("a = f32[8] negate(p)")
      .Add("copy.3 = f32[8]{0:S(1)} copy(a)")
      .Add("copy.4 = f32[8] copy(p)")
      .Place("copy.3", {}, 64, 1);
  const auto before = hlo_test::Parse(before_text);
  const absl::StatusOr<AssignedModule> assigned = TryRead(*before, after);
  REQUIRE(assigned.ok());
  const auto counterpart = [&](const std::string& name) {
    const auto own = assigned->Counterpart(Named(*before, name));
    return own ? assigned->module().instruction(*own).proto->name() : std::string();
  };
  CHECK(counterpart("copy.1") == "copy.2");
  CHECK(counterpart("copy.2") == "copy.3");
  CHECK(counterpart("copy.3") == "copy.4");
  CHECK(counterpart("gone").empty());
}

TEST_CASE("an assignment that does not fit is refused, saying what and where") {
  const auto before = hlo_test::Parse(Before());
  const auto refusal = [&](auto change) {
    ModuleText m = After();
    change(m);
    return std::string(TryRead(*before, m).status().message());
  };
  CHECK(absl::StrContains(refusal([](ModuleText& m) { m.proto().clear_buffer_assignment(); }),
                          "it has no buffer_assignment"));
  CHECK(absl::StrContains(refusal([](ModuleText& m) { m.Place("a", {}, -1, 1); }),
                          "buffer allocation 0 has offset -1"));
  CHECK(absl::StrContains(refusal([](ModuleText& m) {
                            m.proto().mutable_buffer_assignment()->clear_logical_buffers();
                          }),
                          "holds logical buffer 1, which there is none of"));
  CHECK(absl::StrContains(refusal([](ModuleText& m) { m.at("d").set_opcode("copy"); }),
                          "'s' of computation 'main' is never done"));
  CHECK(absl::StrContains(refusal([](ModuleText& m) { m.at("r").add_operand_ids(m.at("p").id()); }),
                          "'r' of computation 'main' has other operands or results than before"));
}

}  // namespace
}  // namespace mallocgame::hlo
