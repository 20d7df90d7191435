// Small modules before and after assignment, and the plan that ReadAssignment makes of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo_test {

inline constexpr const char* kMain = "f32[8,128]";
inline constexpr const char* kFast = "f32[8,128]{1,0:S(1)}";
inline constexpr const char* kRows = "f32[4,128]";
inline constexpr const char* kFastRows = "f32[4,128]{1,0:S(1)}";
inline constexpr const char* kLow = R"(slice_dimensions { limit: 4 stride: 1 }
                            slice_dimensions { limit: 128 stride: 1 })";
inline constexpr const char* kHigh = R"(slice_dimensions { start: 4 limit: 8 stride: 1 }
                             slice_dimensions { limit: 128 stride: 1 })";

// A program, and XLA's own plan of it.
struct Read {
  std::shared_ptr<const Program> program;
  Plan plan;

  // The offset of the residence that serves the access of `buffer` by `instruction`; -1 if main
  // memory serves it.
  int64_t OffsetOf(const std::string& instruction, const std::string& buffer) const;
};

absl::StatusOr<Plan> TryRead(const ModuleText& before, const ModuleText& after,
                             std::shared_ptr<const Program>* program,
                             const Hardware& hardware = UnitHardware());
// The test fails if there is no plan, or an invalid one.
Read ReadPlan(const ModuleText& before, const ModuleText& after,
              const Hardware& hardware = UnitHardware());

// a = -p; b = |q|; r = a + b
ModuleText Straight();
// The same, with `q` brought in by a copy to an array of shape `to` at `offset`.
ModuleText WithPrefetch(const char* to, int64_t offset);

// Lines of a ModuleText: any instruction, and the begin of a copy.
std::string Line(const std::string& name, const char* shape, const std::string& call);
std::string Start(const std::string& name, const char* to, const char* from,
                  const std::string& operand);

// The computation that an asynchronous slice wraps, which must come before its caller; its begin,
// and its end as a line.
void Wrap(ModuleText& m, const std::string& name, const char* part);
void StartSlice(ModuleText& m, const std::string& name, const std::string& operand);
std::string DoneSlice(const std::string& name);

// A loop of four trips that carries `state`, a tuple's elements. Each part lists its instructions;
// bodies end in the elements carried on, and `main` starts with its parameters.
struct LoopParts {
  std::string state;                              // shapes: "f32[8,128], f32[8,128]"
  std::vector<std::string> body, before, behind;  // instructions
  std::string initial, carried_on;                // "s, t"
  std::vector<std::string> tail = {};             // of the body, right before its tuple
};
ModuleText LoopOf(const LoopParts& parts);
void LoopInto(const LoopParts& parts, ModuleText& m);

// A loop that carries a state, which it changes, and a table, which it may fetch before.
ModuleText LoopText(const char* table, const char* state, bool fetched);

}  // namespace mallocgame::hlo_test
