// Checks of what Validate says of a plan.
#pragma once

#include <string>
#include <vector>

#include "mallocgame/plan/validate.h"
#include "tests/catch.h"

namespace mallocgame::testing {

// Checks that the plan breaks `rule`, and that the message names all of `parts`.
inline void CheckBroken(const Program& program, const Hardware& hardware, const Plan& plan,
                        Rule rule, const std::vector<std::string>& parts = {}) {
  const Verdict verdict = Validate(program, hardware, plan);
  INFO(verdict.message);
  CHECK(std::string(RuleName(verdict.rule)) == RuleName(rule));
  for (const std::string& part : parts) CHECK_THAT(verdict.message, Catch::Contains(part));
}

inline void CheckValid(const Program& program, const Hardware& hardware, const Plan& plan) {
  const Verdict verdict = Validate(program, hardware, plan);
  INFO(verdict.message);
  CHECK(verdict.ok());
  CHECK(verdict.message.empty());
}

}  // namespace mallocgame::testing
