// What an agent is trained on.
#ifndef AGENTS_MUZERO_PROBLEM_H_
#define AGENTS_MUZERO_PROBLEM_H_

#include <memory>
#include <optional>
#include <string>

#include "mallocgame/hardware/hardware.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/program/program.h"

namespace mallocgame::muzero {

struct TrainingProblem {
  std::string name;  // as the caller knows it
  std::shared_ptr<const Program> program;
  Hardware hardware;
  std::optional<Plan> xla_plan;
};

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_PROBLEM_H_
