// Instructions by which chips hand each other arrays: which there are, their groups, what waits for
// links and how long, and who accesses what while a transfer goes on.
#include "mallocgame/hlo/cost/collectives.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/hlo/import/import.h"
#include "mallocgame/hlo/import/uses.h"
#include "mallocgame/program/cost_model.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame {
namespace {

using hlo_test::ModuleText;
using hlo_test::UnitHardware;

// A byte takes a picosecond over one link, and a hop is for free.
constexpr Links kUnitLinks = {1'000'000'000'000, 0};

const char kFour[] = "collective_device_list { replica_groups { replica_ids: [0, 1, 2, 3] } }";
// mesh['a'=2, 'b'=4] {'b'}
const char kAxisOfFour[] =
    "mesh_axes_replica_group_list { mesh { axes { name: 'a' size: 2 } axes { name: 'b' size: 4 } } "
    "axes { mesh_axis_index: 1 } }";

Imported Import(const ModuleText& module, const std::string& profile = "{}",
                std::optional<Links> links = kUnitLinks) {
  const std::string bytes = module.Bytes();
  ImportInput input;
  input.module = bytes;
  input.profile = profile;
  ImportOptions options;
  options.links = links;
  absl::StatusOr<Imported> imported = ImportHlo(input, UnitHardware(), options);
  INFO(imported.status());
  REQUIRE(imported.ok());
  return *std::move(imported);
}

int64_t WaitAt(const Imported& imported, const std::string& name) {
  const Program& program = *imported.program;
  for (Tick t = 0; t < program.ticks(); ++t) {
    if (program.instruction(t).name == name) return program.cost().instructions[t].link_ps;
  }
  FAIL("no instruction " << name);
  throw;
}

// Such as "read a, update b".
std::string AccessesOf(const Program& program, const std::string& name) {
  static constexpr const char* kKinds[] = {"read", "update", "write", "enter"};
  std::vector<std::string> parts;
  for (const Access& access : program.accesses()) {
    if (program.instruction(access.tick).name != name) continue;
    parts.push_back(absl::StrCat(kKinds[static_cast<int>(access.kind)], " ",
                                 program.buffer(access.buffer).name));
  }
  return absl::StrJoin(parts, ", ");
}

ModuleText OneCollective(const std::string& line, const std::string& extra) {
  ModuleText module;
  module.Computation("main").Add("x = f32[1024] parameter()").Add(line, extra);
  return module;
}

TEST_CASE("The time of each kind of collective") {
  const struct {
    const char* line;
    int64_t wait;  // of 4 members and 4096 bytes
  } cases[] = {
      {"c = f32[4096] all-gather(x)", 6144},         {"c = f32[256] reduce-scatter(x)", 1536},
      {"c = f32[1024] all-reduce(x)", 3072},         {"c = f32[1024] all-to-all(x)", 2048},
      {"c = f32[1024] collective-permute(x)", 4096},
  };
  for (const auto& [line, wait] : cases) {
    const Imported imported = Import(OneCollective(line, kFour));
    INFO(line);
    CHECK(WaitAt(imported, "c") == wait);
    CHECK(imported.summary.modelled_instructions == 1);
    CHECK(imported.summary.unpriced_instructions == 0);
  }
  // A tuple of several is one transfer.
  ModuleText tuple;
  tuple.Computation("main")
      .Add("x = f32[1024] parameter()")
      .Add("y = f32[512] parameter()")
      .Add("c = (f32[1024], f32[512]) all-reduce(x, y)", kFour);
  CHECK(WaitAt(Import(tuple), "c") == 3072 + 1536);
}

TEST_CASE("Groups of a collective in all spellings") {
  const auto wait = [](const std::string& extra) {
    return WaitAt(Import(OneCollective("c = f32[1024] all-to-all(x)", extra)), "c");
  };
  CHECK(wait(kFour) == 2048);
  CHECK(wait(kAxisOfFour) == 2048);
  CHECK(wait("replica_groups { replica_ids: [0, 1, 2, 3] } replica_groups { replica_ids: 4 }") ==
        2048);
  CHECK(wait("collective_device_list { iota_replica_group_list { num_replica_groups: 2 "
             "num_devices_per_group: 4 } }") == 2048);
  CHECK(wait("mesh_axes_replica_group_list { mesh { axes { size: 8 } } axes { sub_axis_info { "
             "pre_size: 2 size: 4 } } }") == 2048);
  CHECK(wait("replica_groups { replica_ids: [0, 1] }") == 2048);  // half of it over one link
  CHECK(wait("replica_groups { replica_ids: 0 }") == 0);
  // Without a group all devices are one. The module says how many there are.
  CHECK(wait("") == 0);
  ModuleText all = OneCollective("c = f32[1024] all-to-all(x)", "");
  auto* devices = all.proto().mutable_hlo_module()->mutable_device_assignment();
  devices->set_replica_count(1);
  devices->set_computation_count(4);
  CHECK(WaitAt(Import(all), "c") == 2048);
  // Absurd groups are no reason to fail.
  CHECK(
      wait("mesh_axes_replica_group_list { mesh { axes { size: 9000000000000000000 } axes { size: "
           "9 } } axes { } axes { mesh_axis_index: 1 } axes { mesh_axis_index: 7 } }") >= 0);
}

TEST_CASE("Links that are known, and those that are not") {
  const ModuleText module = OneCollective("c = f32[1024] all-reduce(x)", kFour);
  CHECK_FALSE(LinksOf("unit"));
  CHECK(LinksOf("tpu_v5e") == LinksOf("tpu_v5e_16mib"));
  CHECK(LinksOf("tpu_v5p") != LinksOf("tpu_v5e"));
  const Imported unknown = Import(module, "{}", std::nullopt);
  CHECK(WaitAt(unknown, "c") == 0);
  CHECK(unknown.summary.unpriced_instructions == 1);
  CHECK(unknown.summary.modelled_instructions == 0);
  const std::string bytes = module.Bytes();
  for (const Links& bad : {Links{0, 0}, Links{1, -1}}) {
    CHECK_FALSE(ImportHlo({bytes, {}, {}}, UnitHardware(), {"", 5, bad, {}, false}).ok());
  }
  // A small transfer takes as long as its steps.
  CHECK(CollectivePs(CollectiveKind::kAllReduce, 1, 8, {1'000'000'000, 500}) == 2 * 4 * 500);
  CHECK(CollectivePs(CollectiveKind::kAllGather, int64_t{1} << 40, int64_t{1} << 20, {1, 0}) ==
        int64_t{1} << 60);
}

ModuleText Permute() {
  ModuleText module;
  module.Computation("main")
      .Add("x = f32[1024] parameter()")
      .Add("a = f32[1024] negate(x)")
      .Add("start = (f32[1024], f32[1024], u32[]) collective-permute-start(a)")
      .Add("b = f32[1024] negate(x)")
      .Add("done = f32[1024] collective-permute-done(start)")
      .Add("sum = f32[1024] add(b, done)");
  return module;
}

TEST_CASE("An asynchronous collective waits for what the instructions between leave of it") {
  // The negation between takes 1024 ps at the full rate, whatever its price is.
  CHECK(WaitAt(Import(Permute()), "start") == 0);
  CHECK(WaitAt(Import(Permute()), "done") == 4096 - 1024);
  CHECK(WaitAt(Import(Permute(), R"({"b": [["0", "0", 5000]]})"), "done") == 4096 - 1024);
  const Links fast = {8 * kUnitLinks.bytes_per_second, 0};
  CHECK(WaitAt(Import(Permute(), "{}", fast), "done") == 0);
}

TEST_CASE("An asynchronous collective holds its operand and its result until it is done") {
  const Imported imported = Import(Permute());
  const Program& program = *imported.program;
  CHECK(program.eligible_count() == 5);  // x a start{1} b sum; the context is a scalar
  CHECK(AccessesOf(program, "start") == "read a, write start{1}");
  CHECK(AccessesOf(program, "done") == "read a, update start{1}");
  CHECK(AccessesOf(program, "sum") == "read b, read start{1}, write sum");
  std::vector<Tick> held;
  for (const Access& access : program.accesses()) {
    if (access.held_until != 0) held.insert(held.end(), {access.tick, access.held_until});
  }
  CHECK(held == std::vector<Tick>{2, 5, 2, 5});
  const auto uses = FindUses(program, Permute().Bytes());
  REQUIRE(uses.ok());
  std::vector<std::string> texts;
  for (const HloUse& use : *uses) {
    const Access& access = program.access(use.access);
    if (program.instruction(access.tick).name != "done") continue;
    texts.push_back(absl::StrCat(program.buffer(access.buffer).name, " ", use.operand.value_or(-1),
                                 " {", absl::StrJoin(use.index, ","), "}"));
  }
  CHECK(texts == std::vector<std::string>{"a 0 {0}", "start{1} 0 {1}", "start{1} -1 {}"});
}

TEST_CASE("A sum over chips begins and ends in the place of its operand") {
  ModuleText module;
  module.Computation("main")
      .Add("x = f32[1024] parameter()")
      .Add("a = f32[1024] negate(x)")
      .Add("start = f32[1024] all-reduce-start(a)", kFour)
      .Add("b = f32[1024] negate(x)")
      .Add("done = f32[1024] all-reduce-done(start)")
      .Add("sum = f32[1024] add(b, done)");
  const Imported imported = Import(module);
  CHECK(WaitAt(imported, "done") == 3072 - 1024);
  CHECK(imported.program->eligible_count() == 4);  // x a b sum
  CHECK(AccessesOf(*imported.program, "start") == "update a");
  CHECK(AccessesOf(*imported.program, "done") == "update a");
  CHECK(AccessesOf(*imported.program, "sum") == "read b, read a, write sum");
}

TEST_CASE("What writes into an operand sends the first alone, and updates the second") {
  ModuleText module;
  module.Computation("main")
      .Add("x = f32[256] parameter()")
      .Add("i = s32[4] parameter()")
      .Add("at = (s32[], s32[]) parameter()")
      .Add("space = f32[1024] negate(i)")
      .Add("got = f32[1024] ragged-all-to-all(x, space, i, i, i, i)", kFour)
      .Add("start = (f32[256], f32[1024], u32[]) collective-permute-start(x, got, at, at)",
           absl::StrCat("dynamic_slice_sizes: 256 ", kFour))
      .Add("done = f32[1024] collective-permute-done(start)")
      .Add("y = f32[1024] negate(done)");
  const Imported imported = Import(module);
  CHECK(WaitAt(imported, "got") == 512);    // 1024 bytes to three others, over up to two links
  CHECK(WaitAt(imported, "done") == 1024);  // 1024 bytes over one link
  CHECK(AccessesOf(*imported.program, "got") == "read x, read i, update space");
  CHECK(AccessesOf(*imported.program, "start") == "read x, update space");
  CHECK(AccessesOf(*imported.program, "done") == "read x, update space");
  CHECK(AccessesOf(*imported.program, "y") == "read space, write y");
}

// As XLA:TPU has them on v5e: a gather goes on in the fusions between its start and its end.
ModuleText FusedGather() {
  ModuleText module;
  module.Computation("begin", true)
      .Add("p0 = f32[256] parameter()")
      .Add("g0 = f32[1024] all-gather(p0)", absl::StrCat("channel_id: 3 ", kFour))
      .Add("c0 = (f32[256], f32[1024], u32[]) custom-call(g0)",
           "custom_call_target: 'AsyncCollectiveStart'");
  module.Computation("go_on", true)
      .Add("p1 = f32[256] parameter()")
      .Add("r1 = f32[1024] parameter()")
      .Add("y1 = f32[1024] parameter()")
      .Add("g1 = f32[1024] all-gather(p1)", absl::StrCat("channel_id: 3 ", kFour))
      .Add("n1 = f32[1024] negate(y1)")
      .Add("t1 = (f32[1024], f32[256], f32[1024]) tuple(n1, p1, g1)");
  module.Computation("end", true)
      .Add("p2 = f32[256] parameter()")
      .Add("r2 = f32[1024] parameter()")
      .Add("g2 = f32[1024] all-gather(p2)", absl::StrCat("channel_id: 3 ", kFour))
      .Add("c2 = f32[1024] custom-call(p2, r2, g2)", "custom_call_target: 'AsyncCollectiveDone'");
  const auto alias = [](int output, int operand) {
    return absl::StrCat("output_operand_aliasing { output_shape_index: ", output,
                        " operand_index: ", operand, " } ");
  };
  module.Computation("main")
      .Add("x = f32[256] parameter()")
      .Add("y = f32[1024] parameter()")
      .Add("a = f32[256] negate(x)")
      .Add("start = (f32[256], f32[1024], u32[]) fusion(a)", alias(0, 0), {"begin"})
      .Add("part = f32[256] get-tuple-element(start)", "tuple_index: 0")
      .Add("whole = f32[1024] get-tuple-element(start)", "tuple_index: 1")
      .Add("both = (f32[1024], f32[256], f32[1024]) fusion(part, whole, y)",
           alias(1, 0) + alias(2, 1), {"go_on"})
      .Add("out = f32[1024] get-tuple-element(both)", "tuple_index: 0")
      .Add("part.1 = f32[256] get-tuple-element(both)", "tuple_index: 1")
      .Add("whole.1 = f32[1024] get-tuple-element(both)", "tuple_index: 2")
      .Add("done = f32[1024] fusion(part.1, whole.1)",
           "output_operand_aliasing { operand_index: 1 }", {"end"})
      .Add("sum = f32[1024] add(out, done)");
  return module;
}

TEST_CASE("A collective that goes on in fusions is one transfer, and only reads its operand") {
  const Imported imported = Import(FusedGather());
  CHECK(imported.summary.modelled_instructions == 2);
  CHECK(WaitAt(imported, "start") == 0);
  CHECK(WaitAt(imported, "both") == 0);
  CHECK(WaitAt(imported, "done") == 1536 - 1024);
  CHECK(AccessesOf(*imported.program, "start") == "read a, write start{1}");
  CHECK(AccessesOf(*imported.program, "both") == "read a, read y, update start{1}, write both{0}");
  CHECK(AccessesOf(*imported.program, "done") == "read a, update start{1}");
}

TEST_CASE("A sum in a fusion that gives a part of it is a reduce-scatter") {
  ModuleText module;
  module.Computation("fused", true)
      .Add("p = f32[1024] parameter()")
      .Add("sum = f32[1024] all-reduce(p)", kFour)
      .Add("part = f32[256] slice(sum)");
  module.Computation("main")
      .Add("x = f32[1024] parameter()")
      .Add("f = f32[256] fusion(x)", "", {"fused"});
  CHECK(WaitAt(Import(module), "f") == 1536);
}

// As on tpu7x: the start has no operands, and an update brings them.
TEST_CASE("A collective on SparseCore begins where its operands come") {
  ModuleText module;
  module.Computation("called")
      .Add("p = f32[256] parameter()")
      .Add("g = f32[1024] all-gather(p)", kFour);
  module.Computation("wrapped")
      .Add("q = f32[256] parameter()")
      .Add("c = f32[1024] custom-call(q)", "custom_call_target: 'x'", {"called"});
  module.Computation("main")
      .Add("x = f32[256] parameter()")
      .Add("start = ((), (), s32[8192]) async-start()", "", {"wrapped"})
      .Add("update = ((f32[256]), f32[1024], s32[8192]) async-update(start, x)")
      .Add("y = f32[256] negate(x)")
      .Add("done = f32[1024] async-done(update)");
  const Imported imported = Import(module);
  CHECK(imported.summary.modelled_instructions == 2);
  CHECK(WaitAt(imported, "done") == 1536 - 256);
}

TEST_CASE("A wait for links is added to the price, and no plan changes it") {
  const Imported imported = Import(OneCollective("c = f32[1024] all-reduce(x)", kFour));
  const CostModel model(imported.program, UnitHardware());
  const Price in_main = model.PriceOf(1, 0), fast = model.PriceOf(1, 3);
  CHECK(in_main.time_ps == 3072);
  CHECK(in_main.link_ps == 3072);
  CHECK(in_main.source == PriceSource::kModelled);
  CHECK(in_main.idle_ps == 0);  // 8192 bytes of main memory are read and written meanwhile
  CHECK(fast.time_ps == 3072);
  CHECK(fast.idle_ps == 3072);
}

}  // namespace
}  // namespace mallocgame
