#include "agents/muzero/checkpoint.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "agents/training/torch_runtime.h"
#include "mallocgame/base/error.h"

namespace mallocgame::muzero {
namespace {

std::string ListOf(const std::vector<Checkpoint::Program>& programs) {
  std::string text;
  for (const auto& program : programs)
    absl::StrAppend(&text, text.empty() ? "" : ", ", program.name, " (", program.fingerprint, ")");
  return text;
}

}  // namespace

std::vector<Checkpoint::Program> Describe(const std::vector<TrainingProblem>& problems) {
  std::vector<Checkpoint::Program> programs;
  for (const TrainingProblem& problem : problems) {
    programs.push_back(
        {problem.name, problem.program->fingerprint(), HardwareToJson(problem.hardware)});
  }
  return programs;
}

absl::StatusOr<Checkpoint> ReadCheckpoint(absl::string_view bytes) {
  MG_ASSIGN_OR_RETURN(Checkpoint checkpoint, training::UnpackCheckpoint<Checkpoint>(bytes));
  // Files of earlier versions say so of most hardware. With true they are of another machine.
  for (Checkpoint::Program& program : checkpoint.programs)
    absl::StrReplaceAll({{",\n  \"askable\": false", ""}}, &program.hardware);
  if (checkpoint.config.device == "cuda" && !training::HasCuda()) {
    MG_RETURN_IF_ERROR(Set(checkpoint.config, "device", "cpu"));
  }
  return checkpoint;
}

absl::Status CheckProblems(const Checkpoint& checkpoint,
                           const std::vector<TrainingProblem>& problems) {
  const std::vector<Checkpoint::Program> given = Describe(problems);
  const auto same = [](const Checkpoint::Program& a, const Checkpoint::Program& b) {
    return a.fingerprint == b.fingerprint && a.hardware == b.hardware;
  };
  if (std::equal(given.begin(), given.end(), checkpoint.programs.begin(), checkpoint.programs.end(),
                 same))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the checkpoint is of other programs or hardware: found ",
                   ListOf(checkpoint.programs), ", expected ", ListOf(given)));
}

}  // namespace mallocgame::muzero
