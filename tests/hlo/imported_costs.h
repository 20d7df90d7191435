// What small modules cost, with the compiler's prices or without.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/hlo/import/import.h"
#include "mallocgame/program/cost_model.h"
#include "mallocgame/program/program.h"
#include "tests/catch.h"
#include "tests/hlo/module_text.h"

namespace mallocgame::hlo_test {

using Dims = std::vector<int64_t>;

inline absl::StatusOr<Imported> ImportPriced(const ModuleText& module,
                                             const std::vector<std::string>& priced = {},
                                             const std::string& profile = "") {
  const std::string bytes = module.Bytes();
  ImportInput input;
  input.module = bytes;
  input.priced.assign(priced.begin(), priced.end());
  input.profile = profile;
  return ImportHlo(input, UnitHardware());
}

inline Imported MustImport(const ModuleText& module, const std::vector<std::string>& priced = {},
                           const std::string& profile = "") {
  absl::StatusOr<Imported> imported = ImportPriced(module, priced, profile);
  INFO(imported.status());
  REQUIRE(imported.ok());
  return *std::move(imported);
}

inline Tick TickOf(const Program& program, const std::string& name) {
  for (Tick tick = 0; tick < program.ticks(); ++tick) {
    if (program.instruction(tick).name == name &&
        program.instruction(tick).kind != InstructionKind::kLoopEntry)
      return tick;
  }
  FAIL("no instruction " << name);
  return 0;
}
inline const InstructionCost& CostOf(const Program& program, const std::string& name) {
  return program.cost().instructions[TickOf(program, name)];
}
inline Dims Accessed(const std::vector<CostArray>& arrays) {
  Dims bytes;
  for (const CostArray& array : arrays) bytes.push_back(array.accessed_bytes);
  return bytes;
}
inline int64_t TotalPs(const Program& program) {
  const CostModel model(std::shared_ptr<const Program>(&program, [](const Program*) {}),
                        UnitHardware());
  int64_t total = 0;
  for (Tick tick = 0; tick < program.ticks(); ++tick)
    total += model.PriceOf(tick, 0).time_ps * program.trips(tick);
  return total;
}

}  // namespace mallocgame::hlo_test
