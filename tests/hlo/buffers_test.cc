// Which buffers a module has, how large they are, and which of them may move.
#include "mallocgame/hlo/import/buffers.h"

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

BufferTable TableOf(const Module& module) {
  const absl::StatusOr<Schedule> schedule = Flatten(module);
  REQUIRE(schedule.ok());
  absl::StatusOr<BufferTable> table = BuildBuffers(module, *schedule);
  INFO(table.status());
  REQUIRE(table.ok());
  return *std::move(table);
}

// "p 4096; k 4 (effective scalar)": name and bytes of each buffer, and why it may not move.
std::string Buffers(const ModuleText& text) {
  const BufferTable table = TableOf(*hlo_test::Parse(text));
  return absl::StrJoin(table.buffers, "; ", [](std::string* out, const Buffer& buffer) {
    absl::StrAppend(out, buffer.name, " ", buffer.size_bytes);
    CHECK(buffer.eligible == buffer.ineligible_because.empty());
    if (!buffer.eligible) absl::StrAppend(out, " (", buffer.ineligible_because, ")");
  });
}

TEST_CASE("a buffer has the name of its first array and the size of its largest") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[8,100]{1,0:T(8,128)} parameter()")  // padded to 8 x 128
      .Add("view = f32[800] bitcast(p)")
      .Add("pair = (f32[16], (f32[4], f32[800])) custom-call(view)")
      .Add("inner = (f32[4], f32[800]) get-tuple-element(pair)", "tuple_index: 1")
      .Add("none = f32[0] parameter()")
      .Add("r = f32[4] get-tuple-element(inner)");
  CHECK(Buffers(m) == "p 4096; pair{0} 64; pair{1,0} 16; pair{1,1} 3200");

  const auto module = hlo_test::Parse(m);
  const BufferTable table = TableOf(*module);
  const auto of = [&](const std::string& name, int32_t k) {
    return table.of_array[module->instruction(hlo_test::Named(*module, name)).first_array + k];
  };
  CHECK(of("view", 0) == 0);
  CHECK(of("inner", 0) == 2);
  CHECK(of("none", 0) == kNone);
  // The result of the entry is r, which is an array of `pair`.
  CHECK(table.buffers[2].is_output);
  CHECK_FALSE(table.buffers[3].is_output);
  CHECK(table.buffers[0].origin == BufferOrigin::kParameter);
  CHECK(table.buffers[1].origin == BufferOrigin::kInstruction);
}

TEST_CASE("what is updated in place is one buffer") {
  ModuleText m;
  m.Computation("main")
      .Add("p = f32[10] parameter()")
      .Add("i = s32[4] parameter()")
      .Add("n = s32[2] parameter()")
      .Add("space = f32[20] custom-call()", "custom_call_target: 'zeros'")
      .Add("got = f32[20] ragged-all-to-all(p, space, i, i, i, i)")
      .Add("cut = f32[20] set-dimension-size(got, n)", "dimensions: 0")
      .Add("sum = f32[20] all-reduce-start(cut)")
      .Add("done = f32[20] all-reduce-done(sum)");
  CHECK(Buffers(m) == "p 40; i 16; n 8; space 80");
}

TEST_CASE("what may not move, and why") {
  ModuleText m;
  m.Computation("main")
      .Add("one = f32[1,1] parameter()")
      .Add("p = f32[8] parameter()")
      .Add("far = f32[8]{0:S(5)} copy(p)")
      .Add("sent = f32[8] negate(p)")
      .Add("t = token[] after-all()")
      .Add("out = (f32[8], u32[], token[]) send(sent, t)")
      .Add("host = f32[8] negate(p)")
      .Add("put = (f32[8], u32[], token[]) send(host, t)", "is_host_transfer: true")
      .Add("early = f32[8] negate(p)")
      .Add("copy = (f32[8], f32[8], u32[]) copy-start(early)")
      .Add("there = f32[8] copy-done(copy)")
      .Add("tied = f32[8] negate(p)")
      .Add("after = f32[8] add-dependency(tied, t)")
      .Add("free = f32[8] negate(p)");
  CHECK(Buffers(m) ==
        "one 4 (effective scalar); p 32; far 32 (other memory space); "
        "sent 32 (used asynchronously); out{0} 32 (used asynchronously); "
        "out{1} 4 (effective scalar); host 32 (host transfer); put{0} 32 (host transfer); "
        "put{1} 4 (effective scalar); early 32 (used asynchronously); "
        "copy{0} 32 (used asynchronously); copy{2} 4 (effective scalar); "
        "tied 32 (add-dependency); free 32");
}

TEST_CASE("what is pinned stays where it is, under whatever name") {
  const std::string in_place = "output_operand_aliasing { operand_index: 0 } custom_call_target: ";
  ModuleText m;
  m.Computation("body")
      .Add("b = (s32[2], b(f32[8])) parameter()")
      .Add("bi = s32[2] get-tuple-element(b)")
      .Add("bx = b(f32[8]) get-tuple-element(b)", "tuple_index: 1")
      .Add("by = b(f32[8]) custom-call(bx)", in_place + "'add_one'")
      .Add("br = (s32[2], b(f32[8])) tuple(bi, by)");
  m.Computation("condition")
      .Add("c = (s32[2], b(f32[8])) parameter()")
      .Add("go = pred[2] custom-call(c)", "custom_call_target: 'ask'");
  m.Computation("main")
      .Add("n = s32[2] parameter()")
      .Add("p = f32[8] parameter()")
      .Add("q = f32[8] negate(p)")
      .Add("pinned = b(f32[8]) custom-call(q)", in_place + "'Pin'")
      .Add("empty = b(f32[8]) custom-call()", "custom_call_target: 'CreateBuffer'")
      .Add("full = b(f32[8]) custom-call(empty)", in_place + "'fill'")
      .Add("t = (s32[2], b(f32[8])) tuple(n, pinned)")
      .Add("loop = (s32[2], b(f32[8])) while(t)", "", {"body", "condition"})
      .Add("x = b(f32[8]) get-tuple-element(loop)", "tuple_index: 1")
      .Add("y = f32[8] custom-call(x)", in_place + "'Unpin'")
      .Add("z = f32[8] custom-call(full)", in_place + "'Unpin'")
      .Add("r = f32[8] add(y, z)");
  CHECK(Buffers(m) == "n 8; p 32; q 32 (pinned); empty 32 (pinned); go 2; r 32");
}

TEST_CASE("a buffer that a branch writes may move only if it lives in that branch alone") {
  ModuleText m;
  m.Computation("left")
      .Add("xl = f32[8] parameter()")
      .Add("tl = f32[8] negate(xl)")
      .Add("yl = f32[8] negate(tl)");
  m.Computation("right").Add("xr = f32[8] parameter()").Add("yr = f32[8] abs(xr)");
  m.Computation("main")
      .Add("which = pred[2] parameter()")
      .Add("p = f32[8] parameter()")
      .Add("c = f32[8] conditional(which, p, p)", "", {"left", "right"});
  // yl, yr and c are one buffer, which is read after the branch; tl is gone by then.
  CHECK(Buffers(m) == "which 2; p 32; tl 32; yl 32 (written in a branch)");
}

TEST_CASE("a buffer that begins in a branch and is read after it may not move") {
  ModuleText m;
  m.Computation("only")
      .Add("x = f32[8] parameter()")
      .Add("t = f32[8] negate(x)")
      .Add("y = f32[8] negate(t)");
  m.Computation("main")
      .Add("which = s32[2] parameter()")
      .Add("p = f32[8] parameter()")
      .Add("c = f32[8] conditional(which, p)", "", {"only"})
      .Add("r = f32[8] negate(c)");
  CHECK(Buffers(m) == "which 8; p 32; t 32; y 32 (written in a branch); r 32");
}

TEST_CASE("constants and storage that is set aside have their own origins") {
  ModuleText m;
  m.Computation("main")
      .Add("k = f32[8] constant()")
      .Add("space = f32[8] custom-call()", "custom_call_target: 'AllocateBuffer'")
      .Add("r = f32[8] add(k, space)");
  const BufferTable table = TableOf(*hlo_test::Parse(m));
  REQUIRE(table.buffers.size() == 3);
  CHECK(table.buffers[0].origin == BufferOrigin::kConstant);
  CHECK(table.buffers[1].origin == BufferOrigin::kUndefined);
  CHECK(table.buffers[2].origin == BufferOrigin::kInstruction);
}

TEST_CASE("a program is recognized as made of a module by its ticks and buffers") {
  ModuleText m;
  m.Computation("main").Add("p = f32[8] parameter()").Add("r = f32[8] negate(p)");
  const auto module = hlo_test::Parse(m);
  const Schedule schedule = *Flatten(*module);
  ProgramData data;
  data.name = "made";
  data.regions = schedule.regions;
  const BufferTable table = TableOf(*module);
  data.buffers = table.buffers;
  for (const char* name : {"p", "r"}) {
    Instruction instruction;
    instruction.name = name;
    instruction.logical_time = static_cast<int32_t>(data.instructions.size());
    data.instructions.push_back(instruction);
  }
  data.cost.instructions.resize(2);
  for (Buffer& buffer : data.buffers) {
    buffer.eligible = false;
    buffer.ineligible_because = "this test";
  }
  const auto program = Program::Create(data);
  INFO(program.status());
  REQUIRE(program.ok());
  CHECK(CheckMadeOf(**program, *module, schedule, table).ok());
  BufferTable larger = table;
  larger.buffers[1].size_bytes += 4;
  CHECK(CheckMadeOf(**program, *module, schedule, larger).message() ==
        "program 'made' was not made of this module");
}

}  // namespace
}  // namespace mallocgame::hlo
