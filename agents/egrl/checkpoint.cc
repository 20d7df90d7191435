#include "agents/egrl/checkpoint.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "agents/training/bytes.h"
#include "agents/training/checkpoint_file.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/fnv.h"

namespace mallocgame::egrl {
namespace {

using training::ReadBytes;
using training::WriteBytes;

constexpr absl::string_view kAgent = "egrl";
constexpr int kFormatVersion = 2;

}  // namespace

std::string FingerprintOf(const PlacementProblem& problem) {
  return absl::StrCat(problem.program().fingerprint(), " on ",
                      absl::StrJoin(problem.level_names(), "/"), ", 1 is ", problem.baseline_ps(),
                      " ps by map ", absl::Hex(Fnv1aOf(problem.baseline_map())));
}

std::string PackCheckpoint(const Checkpoint& checkpoint) {
  std::string out;
  WriteBytes(checkpoint.name, out);
  WriteBytes(checkpoint.fingerprint, out);
  WriteBytes(checkpoint.levels, out);
  WriteBytes(training::SettingsText(checkpoint.config), out);
  WriteBytes(checkpoint.seed, out);
  WriteBytes(checkpoint.generations, out);
  WriteBytes(checkpoint.evaluations, out);
  WriteBytes(checkpoint.actor, out);
  WriteBytes(checkpoint.champion, out);
  WriteBytes(checkpoint.training, out);
  return training::SealCheckpoint(kAgent, kFormatVersion, out);
}

absl::StatusOr<Checkpoint> UnpackCheckpoint(absl::string_view bytes) {
  MG_ASSIGN_OR_RETURN(absl::string_view in,
                      training::OpenCheckpoint(kAgent, kFormatVersion, bytes));
  Checkpoint checkpoint;
  std::string settings;
  MG_RETURN_IF_ERROR(ReadBytes(in, checkpoint.name));
  MG_RETURN_IF_ERROR(ReadBytes(in, checkpoint.fingerprint));
  MG_RETURN_IF_ERROR(ReadBytes(in, checkpoint.levels));
  MG_RETURN_IF_ERROR(ReadBytes(in, settings));
  MG_RETURN_IF_ERROR(training::ReadSettings(settings, checkpoint.config));
  MG_RETURN_IF_ERROR(ReadBytes(in, checkpoint.seed));
  MG_RETURN_IF_ERROR(ReadBytes(in, checkpoint.generations));
  MG_RETURN_IF_ERROR(ReadBytes(in, checkpoint.evaluations));
  MG_RETURN_IF_ERROR(ReadBytes(in, checkpoint.actor));
  MG_RETURN_IF_ERROR(ReadBytes(in, checkpoint.champion));
  MG_RETURN_IF_ERROR(ReadBytes(in, checkpoint.training));
  return checkpoint;
}

}  // namespace mallocgame::egrl
