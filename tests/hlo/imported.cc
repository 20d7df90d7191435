// Imports small modules for tests.
#include "tests/hlo/imported.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/catch.h"

namespace mallocgame::hlo_test {

std::shared_ptr<const Program> Import(const ModuleText& module, ImportSummary* summary,
                                      const Hardware& hardware) {
  const std::string bytes = module.Bytes();
  ImportInput input;
  input.module = bytes;
  const absl::StatusOr<Imported> imported = ImportHlo(input, hardware);
  INFO(imported.status());
  REQUIRE(imported.ok());
  if (summary != nullptr) *summary = imported->summary;
  return imported->program;
}

const Buffer& BufferNamed(const Program& program, const std::string& name) {
  for (const Buffer& buffer : program.buffers()) {
    if (buffer.name == name) return buffer;
  }
  FAIL("no buffer " << name);
  throw;
}

std::string AccessesAt(const Program& program, Tick tick) {
  static constexpr const char* kKinds[] = {"read", "update", "write", "enter"};
  const Instruction& instruction = program.instruction(tick);
  std::vector<std::string> parts;
  for (int32_t k = 0; k < instruction.access_count; ++k) {
    const Access& access = program.access(AccessId(instruction.first_access + k));
    parts.push_back(absl::StrCat(kKinds[static_cast<int>(access.kind)],
                                 access.writes_in_loop ? "* " : " ",
                                 program.buffer(access.buffer).name));
  }
  return absl::StrJoin(parts, ", ");
}

std::string AccessesOf(const Program& program, const std::string& name, InstructionKind kind) {
  for (Tick t = 0; t < program.ticks(); ++t) {
    if (program.instruction(t).name == name && program.instruction(t).kind == kind)
      return AccessesAt(program, t);
  }
  FAIL("no instruction " << name);
  throw;
}

std::string Names(const Program& program) {
  return absl::StrJoin(program.instructions(), " ", [](std::string* out, const Instruction& i) {
    absl::StrAppend(out, i.name,
                    i.kind == InstructionKind::kLoopEntry  ? "<"
                    : i.kind == InstructionKind::kLoopExit ? ">"
                                                           : "");
  });
}

ModuleText LoopModule() {
  ModuleText m;
  m.Computation("condition")
      .Add("state.c = (s32[], f32[16,128], f32[16,128]) parameter()")
      .Add("i.c = s32[] get-tuple-element(state.c)")
      .Add("limit = s32[] constant()", "literal { shape { element_type: S32 } s32s: 16 }")
      .Add("less = pred[] compare(i.c, limit)", "comparison_direction: 'LT'");
  m.Computation("body")
      .Add("state.b = (s32[], f32[16,128], f32[16,128]) parameter()")
      .Add("i.b = s32[] get-tuple-element(state.b)")
      .Add("sum.b = f32[16,128] get-tuple-element(state.b)", "tuple_index: 1")
      .Add("table.b = f32[16,128] get-tuple-element(state.b)", "tuple_index: 2")
      .Add("one = s32[] constant()", "literal { shape { element_type: S32 } s32s: 1 }")
      .Add("row = f32[1,128] dynamic-slice(table.b, i.b, one)",
           "dynamic_slice_sizes: 1 dynamic_slice_sizes: 128")
      .Add("put = f32[16,128] dynamic-update-slice(sum.b, row, i.b, one)")
      .Add("next = s32[] add(i.b, one)")
      .Add("state.r = (s32[], f32[16,128], f32[16,128]) tuple(next, put, table.b)");
  m.Computation("main")
      .Add("table = f32[16,128] parameter()")
      .Add("zero = s32[] constant()", "literal { shape { element_type: S32 } s32s: 0 }")
      .Add("start = s32[] copy(zero)")
      .Add("space = f32[16,128] custom-call()", "custom_call_target: 'AllocateBuffer'")
      .Add("init = (s32[], f32[16,128], f32[16,128]) tuple(start, space, table)")
      .Add("loop = (s32[], f32[16,128], f32[16,128]) while(init)", "", {"body", "condition"})
      .Add("sum = f32[16,128] get-tuple-element(loop)", "tuple_index: 1")
      .Add("result = f32[16,128] negate(sum)");
  return m;
}

}  // namespace mallocgame::hlo_test
