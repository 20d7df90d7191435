// What ImportHlo makes of small modules: the time axis, which arrays are one buffer, which buffers
// may move, and who accesses them when.
#include "mallocgame/hlo/import/import.h"

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/unknown_field_set.h"
#include "mallocgame/hlo/import/uses.h"
#include "tests/catch.h"
#include "tests/hlo/imported.h"
#include "tests/hlo/module_text.h"

namespace mallocgame {
namespace {

using hlo_test::AccessesOf;
using hlo_test::BufferNamed;
using hlo_test::Import;
using hlo_test::LoopModule;
using hlo_test::ModuleText;
using hlo_test::Names;
using hlo_test::UnitHardware;

TEST_CASE("a module is for one fast memory, and may ask for places there") {
  const auto refusal = [](const ModuleText& m, const Hardware& hardware) {
    const std::string bytes = m.Bytes();
    ImportInput input;
    input.module = bytes;
    return std::string(ImportHlo(input, hardware).status().message());
  };
  const Hardware vmem = *HardwarePreset("tpu_v6e"), cmem = *HardwarePreset("tpu_v4");
  const auto module = [](int64_t memory_space, const std::string& opcode) {
    const std::string fast = absl::StrCat("f32[64,64]{1,0:S(", memory_space, ")}");
    ModuleText m;
    m.Computation("main").Add("p = f32[64,64] parameter()");
    if (opcode == "copy-start") {
      m.Add(absl::StrCat("s = (", fast, ", f32[64,64], u32[]) copy-start(p)"))
          .Add(absl::StrCat("x = ", fast, " copy-done(s)"));
    } else {
      m.Add(absl::StrCat("x = ", fast, " ", opcode, "(p)"), "custom_call_target: 'any'");
    }
    m.Add("y = f32[64,64] cosine(x)");
    return m;
  };
  // An author may ask for a place, of a custom call or of a parameter.
  CHECK(refusal(module(1, "custom-call"), vmem).empty());
  CHECK(refusal(module(3, "custom-call"), cmem).empty());
  // Other hardware has other memory spaces.
  CHECK(refusal(module(3, "custom-call"), vmem) ==
        "module: arrays lie in memory space S(3), the fast memory of tpu_v4i, tpu_v4, "
        "tpu_v4_megacore, none in S(1), the hardware's fast memory: it was compiled for other "
        "hardware");
  const std::string copied = refusal(module(1, "copy-start"), cmem);
  CHECK(absl::StrContains(copied, "the fast memory of tpu_v5p, tpu_v5e, tpu_v6e, tpu7x"));
  CHECK(absl::StrContains(copied, "none in S(3)"));
}

TEST_CASE("a module without a schedule runs as it stands, and that is reported") {
  ModuleText m = LoopModule();
  const auto scheduled = Import(m);
  m.proto().mutable_hlo_module()->clear_schedule();
  ImportSummary summary;
  CHECK(Import(m, &summary)->fingerprint() == scheduled->fingerprint());
  CHECK(summary.unscheduled_computations == 3);
  const std::string bytes = m.Bytes();
  ImportInput input;
  input.module = bytes;
  ImportOptions options;
  options.requires_schedule = true;
  CHECK(absl::StrContains(ImportHlo(input, UnitHardware(), options).status().message(),
                          "has no schedule, and one is required"));
  // The other ways in take what the import takes.
  CHECK(FindUses(*scheduled, bytes).ok());
}

TEST_CASE("instructions keep what they are called in the source") {
  const auto named = [](const std::string& name) {
    hlo::OpMetadata metadata;
    metadata.set_op_name(name);
    return metadata.SerializeAsString();
  };
  ModuleText m;
  m.Computation("main").Add("p = f32[64] parameter()").Add("a = f32[64] cosine(p)");
  m.Add("b = f32[64] sine(a)").Add("c = f32[64] negate(b)");
  const auto plain = Import(m);
  auto& instructions =
      *m.proto().mutable_hlo_module()->mutable_computations(0)->mutable_instructions();
  const auto metadata_of = [&](int i) {
    return hlo::HloInstructionProto::GetReflection()->MutableUnknownFields(&instructions[i]);
  };
  metadata_of(1)->AddLengthDelimited(7, named("jit(f)/layer_3/cos"));
  metadata_of(2)->AddLengthDelimited(7, named("\xff"));  // no UTF-8
  const auto program = Import(m);
  CHECK(program->instruction(1).op_name == "jit(f)/layer_3/cos");
  for (const Tick other : {0, 2, 3}) CHECK(program->instruction(other).op_name.empty());
  CHECK(program->fingerprint() == plain->fingerprint());
}

TEST_CASE("an update is in place through fusions, bitcasts, tuples and nested fusions") {
  ModuleText m;
  m.Computation("inner", true)
      .Add("x.i = f32[8,128] parameter()")
      .Add("u.i = f32[1,128] parameter()")
      .Add("k.i = s32[] constant()")
      .Add("put.i = f32[8,128] dynamic-update-slice(x.i, u.i, k.i, k.i)");
  m.Computation("fused", true)
      .Add("u = f32[1,128] parameter()")
      .Add("x = f32[1024] parameter()")
      .Add("y = f32[8,128] parameter()")
      .Add("k = s32[] constant()")
      .Add("x2 = f32[8,128] bitcast(x)")
      .Add("put = f32[8,128] fusion(x2, u)", "", {"inner"})
      .Add("flat = f32[1024] bitcast(put)")
      .Add("twice = f32[8,128] add(y, y)")
      .Add("both = (f32[8,128], f32[1024]) tuple(twice, flat)");
  m.Computation("main")
      .Add("p = f32[1024] parameter()")
      .Add("q = f32[8,128] parameter()")
      .Add("v = f32[1,128] parameter()")
      .Add("c = f32[1024] copy(p)")
      .Add("f = (f32[8,128], f32[1024]) fusion(v, c, q)", "", {"fused"})
      .Add("f0 = f32[8,128] get-tuple-element(f)")
      .Add("f1 = f32[1024] get-tuple-element(f)", "tuple_index: 1")
      .Add("r = (f32[8,128], f32[1024]) tuple(f0, f1)");
  const auto program = Import(m);
  CHECK(AccessesOf(*program, "f") == "read v, read q, update c, write f{0}");
  CHECK(BufferNamed(*program, "c").is_output);
  CHECK(BufferNamed(*program, "f{0}").is_output);
  const InstructionCost& cost = program->cost().instructions[4];
  REQUIRE(cost.operands.size() == 3);
  REQUIRE(cost.outputs.size() == 2);
  CHECK(cost.operands[0].slot == 0);
  CHECK(cost.operands[1].slot == 2);
  CHECK(cost.operands[2].slot == 1);
  CHECK(cost.outputs[0].slot == 3);
  CHECK(cost.outputs[1].slot == 2);
}

TEST_CASE(
    "scatter and declared aliases are in place; a root that only passes an operand on is not") {
  ModuleText m;
  m.Computation("fused", true)
      .Add("x = f32[8,128] parameter()")
      .Add("same = f32[8,128] bitcast(x)");
  m.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("i = s32[8,1] parameter()")
      .Add("u = f32[8,128] parameter()")
      .Add("a = f32[8,128] negate(p)")
      .Add("s = f32[8,128] scatter(a, i, u)")
      .Add("d = (f32[8,128], f32[8,128]) custom-call(s, u)",
           "custom_call_target: 'x' output_operand_aliasing { output_shape_index: 1 operand_index: "
           "0 }")
      .Add("d1 = f32[8,128] get-tuple-element(d)", "tuple_index: 1")
      .Add("f = f32[8,128] fusion(d1)", "", {"fused"})
      .Add("r = f32[8,128] negate(f)");
  const auto program = Import(m);
  CHECK(AccessesOf(*program, "s") == "read i, read u, update a");
  CHECK(AccessesOf(*program, "d") == "read u, update a, write d{0}");
  CHECK(AccessesOf(*program, "f") == "read a, write f");
}

TEST_CASE("a donated parameter and the output in its place are one buffer") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("g = f32[8,128] parameter()")
      .Add("new = f32[8,128] subtract(p, g)")
      .Add("loss = f32[] constant()")
      .Add("r = (f32[8,128], f32[]) tuple(new, loss)")
      .Donate(0, 0);
  const auto program = Import(m);
  CHECK(AccessesOf(*program, "new") == "read g, update p");
  CHECK(BufferNamed(*program, "p").origin == BufferOrigin::kParameter);
  CHECK(BufferNamed(*program, "p").is_output);
  CHECK_FALSE(BufferNamed(*program, "g").is_output);
}

TEST_CASE("what a branch writes and leaves behind stays in main memory") {
  ModuleText m;
  m.Computation("left")
      .Add("x.l = f32[8,128] parameter()")
      .Add("t.l = f32[8,128] negate(x.l)")
      .Add("y.l = f32[8,128] negate(t.l)");
  m.Computation("right").Add("x.r = f32[8,128] parameter()").Add("y.r = f32[8,128] abs(x.r)");
  m.Computation("main")
      .Add("which = pred[] parameter()")
      .Add("p = f32[8,128] parameter()")
      .Add("c = f32[8,128] conditional(which, p, p)", "", {"left", "right"})
      .Add("r = f32[8,128] negate(c)");
  const auto program = Import(m);
  CHECK(Names(*program) == "which p x.l t.l y.l x.r y.r c r");
  CHECK(program->regions()[1] == Region{RegionKind::kBranch, 0, -1, 2, 5, 1});
  CHECK(program->regions()[2] == Region{RegionKind::kBranch, 0, -1, 5, 7, 1});
  CHECK(BufferNamed(*program, "y.l").ineligible_because == "written in a branch");
  CHECK(BufferNamed(*program, "t.l").eligible);
  CHECK(AccessesOf(*program, "t.l") == "read p, write t.l");
  CHECK(AccessesOf(*program, "y.l") == "read t.l");
  CHECK(AccessesOf(*program, "y.r") == "read p");
  CHECK(AccessesOf(*program, "c").empty());
  CHECK(AccessesOf(*program, "r") == "write r");
}

TEST_CASE("a call stands after its callee, whose parameters are its operands") {
  ModuleText m;
  m.Computation("callee").Add("a = f32[8,128] parameter()").Add("b = f32[8,128] negate(a)");
  m.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("c = f32[8,128] call(p)", "", {"callee"});
  const auto program = Import(m);
  CHECK(Names(*program) == "p a b c");
  CHECK(program->regions()[1] == Region{RegionKind::kCall, 0, -1, 1, 3, 1});
  CHECK(AccessesOf(*program, "b") == "read p, write b");
  CHECK(BufferNamed(*program, "b").is_output);
}

TEST_CASE("an asynchronous pair is two instructions, and what it touches stays where it is") {
  ModuleText m;
  m.Computation("wrapped")
      .Add("w = f32[8,128] parameter()")
      .Add("s = f32[4,128] slice(w)",
           "slice_dimensions { limit: 4 stride: 1 } slice_dimensions { limit: 128 stride: 1 }");
  m.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("start = ((f32[8,128]), f32[4,128], s32[]) async-start(p)", "", {"wrapped"})
      .Add("other = f32[8,128] negate(p)")
      .Add("done = f32[4,128] async-done(start)")
      .Add("r = (f32[4,128], f32[8,128]) tuple(done, other)");
  const auto program = Import(m);
  CHECK(Names(*program) == "p start other done r");
  CHECK(BufferNamed(*program, "p").ineligible_because == "used asynchronously");
  CHECK(BufferNamed(*program, "start{1}").ineligible_because == "used asynchronously");
  CHECK(BufferNamed(*program, "start{1}").is_output);
  CHECK(AccessesOf(*program, "other") == "write other");
}

TEST_CASE("other memory spaces, host transfers, constants and arrays of nothing") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("none = f32[0,128] parameter()")
      .Add("k = f32[8,128] constant()")
      .Add("far = f32[8,128]{1,0:T(8,128)S(5)} copy(p)")
      .Add("t = token[] after-all()")
      .Add("sent = f32[8,128] negate(k)")
      .Add("out = (f32[8,128], u32[], token[]) send(sent, t)", "is_host_transfer: true")
      .Add("r = f32[8,128] add(p, k)");
  const auto program = Import(m);
  CHECK(BufferNamed(*program, "far").ineligible_because == "other memory space");
  CHECK(BufferNamed(*program, "sent").ineligible_because == "host transfer");
  CHECK(BufferNamed(*program, "k").origin == BufferOrigin::kConstant);
  CHECK(AccessesOf(*program, "r") == "read p, read k, write r");
  for (const Buffer& buffer : program->buffers()) CHECK(buffer.name != "none");
  const InstructionCost& copy = program->cost().instructions[3];
  CHECK_FALSE(copy.outputs.at(0).in_main);
  CHECK(copy.operands.at(0).in_main);
}

TEST_CASE("one access a buffer: read twice, or read and written") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("a = f32[8,128] multiply(p, p)")
      .Add("r = f32[8,128] add(a, p)")
      .Donate(0, 0);
  m.proto()
      .mutable_hlo_module()
      ->mutable_input_output_alias()
      ->mutable_entries(0)
      ->clear_output_shape_index();
  const auto program = Import(m);
  CHECK(AccessesOf(*program, "a") == "read p, write a");
  CHECK(AccessesOf(*program, "r") == "read a, update p");
  CHECK(program->cost().instructions[1].operands.at(0).slot == 0);
  CHECK(program->cost().instructions[1].operands.at(1).slot == 0);
}

TEST_CASE("a plain copy has the same layout in and out") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8,128]{1,0:T(8,128)} parameter()")
      .Add("same = f32[8,128]{1,0:T(8,128)} copy(p)")
      .Add("turned = f32[8,128]{0,1:T(8,128)} copy(p)")
      .Add("away = f32[8,128]{1,0:T(8,128)S(5)} copy(p)")
      .Add("r = (f32[8,128], f32[8,128], f32[8,128]) tuple(same, turned, away)");
  const auto program = Import(m);
  CHECK(program->instruction(1).plain_copy);
  CHECK_FALSE(program->instruction(2).plain_copy);
  CHECK_FALSE(program->instruction(3).plain_copy);
}

TEST_CASE("a slice of whole tiles along one dimension can be replaced like a plain copy") {
  const auto replaceable = [](const std::string& from, const std::string& to,
                              const std::string& parts) {
    std::string dimensions;
    for (const absl::string_view part : absl::StrSplit(parts, ' ')) {
      const std::vector<std::string> of = absl::StrSplit(part, ':');
      absl::StrAppend(&dimensions, "slice_dimensions { start: ", of[0], " limit: ", of[1],
                      " stride: ", of[2], " }\n");
    }
    ModuleText m;
    m.Computation("main")
        .Add(absl::StrCat("p = ", from, " parameter()"))
        .Add(absl::StrCat("s = ", to, " slice(p)"), dimensions)
        .Add(absl::StrCat("r = ", to, " negate(s)"));
    return Import(m)->instruction(1).plain_copy;
  };
  const char* const from = "f32[64,512]{1,0:T(8,128)}";
  CHECK(replaceable(from, "f32[16,512]{1,0:T(8,128)}", "24:40:1 0:512:1"));
  CHECK(replaceable(from, "f32[3,512]{1,0:T(4,128)}", "8:11:1 0:512:1"));
  CHECK(replaceable(from, "f32[64,128]{1,0:T(8,128)}", "0:64:1 384:512:1"));
  CHECK(replaceable("f32[9,8,128]{2,1,0:T(8,128)}", "f32[2,8,128]{2,1,0:T(8,128)}",
                    "5:7:1 0:8:1 0:128:1"));  // no tile along the outermost dimension
  CHECK_FALSE(replaceable(from, "f32[16,512]{1,0:T(8,128)}", "20:36:1 0:512:1"));
  CHECK_FALSE(replaceable(from, "f32[64,128]{1,0:T(8,128)}", "0:64:1 100:228:1"));
  CHECK_FALSE(replaceable(from, "f32[16,128]{1,0:T(8,128)}", "0:16:1 0:128:1"));
  CHECK_FALSE(replaceable(from, "f32[32,512]{1,0:T(8,128)}", "0:64:2 0:512:1"));
  CHECK_FALSE(replaceable(from, from, "0:64:1 0:512:1"));
  CHECK_FALSE(replaceable("f32[64,32,9]{1,2,0:T(8,128)}", "f32[64,32,1]{1,2,0:T(1,128)}",
                          "0:64:1 0:32:1 8:9:1"));
  // XLA:TPU has slices that convert, but no transfer that does.
  CHECK_FALSE(replaceable(from, "bf16[16,512]{1,0:T(8,128)}", "24:40:1 0:512:1"));
}

TEST_CASE("on v5p only loop fusions make results in fast memory") {
  ModuleText m;
  m.Computation("f", true).Add("f.p = f32[8,128] parameter()").Add("f.r = f32[8,128] negate(f.p)");
  m.Computation("g", true).Add("g.p = f32[8,128] parameter()").Add("g.r = f32[8,128] negate(g.p)");
  m.Computation("main")
      .Add("p = f32[8,128] parameter()")
      .Add("loop = f32[8,128] fusion(p)", "fusion_kind: 'kLoop'", {"f"})
      .Add("output = f32[8,128] fusion(loop)", "fusion_kind: 'kOutput'", {"g"})
      .Add("copy = f32[8,128] copy(output)")
      .Add("r = (f32[8,128], f32[8,128], f32[8,128]) tuple(loop, output, copy)");
  for (const char* const name : {"tpu_v5p", "tpu_v5p_16mib", "tpu_v5e"}) {
    const auto program = Import(m, nullptr, *HardwarePreset(name));
    const bool v5p = name != std::string("tpu_v5e");
    std::vector<std::string> in_main;
    for (const Instruction& i : program->instructions()) {
      if (i.results_in_main) in_main.push_back(i.name);
    }
    CHECK(in_main ==
          (v5p ? std::vector<std::string>{"output", "copy"} : std::vector<std::string>{}));
    for (size_t a = 0; a < program->accesses().size(); ++a) {
      const Access& access = program->accesses()[a];
      CHECK(program->in_main_only(AccessId(a)) ==
            (v5p && access.kind == AccessKind::kWrite &&
             program->instruction(access.tick).name != "loop"));
    }
  }
}

TEST_CASE(
    "beyond 64 operands the last are one sum; beyond 64 accesses buffers stay in main memory") {
  ModuleText m;
  m.Computation("main");
  std::vector<std::string> names;
  for (int k = 0; k < 70; ++k) {
    names.push_back(absl::StrCat("p", k));
    m.Add(absl::StrCat(names.back(), " = f32[8,128] parameter()"));
  }
  m.Add(absl::StrCat("r = f32[8,128] custom-call(", absl::StrJoin(names, ", "), ")"),
        "custom_call_target: 'x'");
  const auto program = Import(m);
  const InstructionCost& cost = program->cost().instructions[70];
  REQUIRE(cost.operands.size() == 64);
  CHECK(cost.operands[62].slot == 62);
  CHECK(cost.operands[63].slot == -1);
  CHECK(cost.operands[63].size_bytes == 7 * 4096);
  CHECK(program->instruction(70).access_count == 64);
  CHECK(BufferNamed(*program, "p63").eligible);
  CHECK(BufferNamed(*program, "p64").ineligible_because == "beyond 64 accesses of an instruction");
}

}  // namespace
}  // namespace mallocgame
