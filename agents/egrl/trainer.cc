#include "agents/egrl/trainer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "agents/egrl/checkpoint.h"
#include "agents/egrl/run.h"
#include "mallocgame/base/error.h"

namespace mallocgame::egrl {

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(
    std::shared_ptr<const PlacementProblem> problem, std::string name, const Config& config,
    uint64_t seed, int threads) {
  return Run::Create(std::move(problem), std::move(name), config, seed, threads, {});
}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Load(
    std::shared_ptr<const PlacementProblem> problem, absl::string_view bytes, int threads) {
  MG_ASSIGN_OR_RETURN(const Checkpoint checkpoint, UnpackCheckpoint(bytes));
  if (const std::string expected = FingerprintOf(*problem); checkpoint.fingerprint != expected) {
    return absl::InvalidArgumentError(absl::StrCat("the checkpoint is of another problem: found ",
                                                   checkpoint.name, " (", checkpoint.fingerprint,
                                                   "), expected (", expected, ")"));
  }
  MG_ASSIGN_OR_RETURN(auto run, Run::Create(std::move(problem), checkpoint.name, checkpoint.config,
                                            checkpoint.seed, threads, {}));
  MG_RETURN_IF_ERROR(run->Restore(checkpoint));
  return run;
}

}  // namespace mallocgame::egrl
