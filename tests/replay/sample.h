// The program, plan and game that the tests of this folder write and read back.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"
#include "tests/support/programs.h"

namespace mallocgame::testing {

inline constexpr int64_t kSampleFastBytes = 64;

// Two parameters, one of them read twice, and a result that leaves the program.
inline ProgramBuilder SampleBuilder(const std::string& name = "sample") {
  ProgramBuilder builder(name);
  const BufferId weights = builder.Parameter("weights", 16), input = builder.Parameter("input", 8);
  const BufferId hidden = builder.Result("hidden", 8), output = builder.Result("output", 8);
  builder.MarkOutput(output);
  builder.Add({.name = "first", .reads = {input}, .writes = {hidden}, .cycles = {40, 30, 30, 20}});
  builder.Add({.name = "second", .reads = {weights, hidden}, .cycles = {50, 34, 42, 26}});
  builder.Add(
      {.name = "third", .reads = {weights}, .writes = {output}, .cycles = {60, 44, 52, 36}});
  return builder;
}

// The weights are fetched whole before tick 2. Nothing else is in fast memory.
inline Plan SamplePlan(const Program& program, const Hardware& hardware) {
  Plan plan = AllMainPlan(program, hardware);
  plan.residences.push_back({.buffer = BufferId(0), .offset = 4, .begin = 1, .end = 3});
  plan.copies.push_back({.kind = CopyKind::kPrefetch,
                         .residence = ResidenceId(0),
                         .begin = 1,
                         .end = 2,
                         .part_end = 16});
  plan.served_by[program.instruction(2).first_access] = ResidenceId(0);
  return plan;
}

// Replaces the first `from` in `text` by `to`. Returns "" if there is none.
inline std::string Replace(std::string text, absl::string_view from, absl::string_view to) {
  const size_t at = text.find(from.data(), 0, from.size());
  if (at == std::string::npos) return "";
  return text.replace(at, from.size(), to.data(), to.size());
}

}  // namespace mallocgame::testing
