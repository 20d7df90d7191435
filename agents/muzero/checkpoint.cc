#include "agents/muzero/checkpoint.h"

#include "agents/training/bytes.h"
#include "agents/training/checkpoint_file.h"
#include "mallocgame/base/error.h"

namespace mallocgame::muzero {
namespace {

using training::ReadBytes;
using training::WriteBytes;

constexpr absl::string_view kAgent = "muzero";
constexpr int kFormatVersion = 1;

}  // namespace

std::string PackCheckpoint(const Checkpoint& checkpoint) {
  std::string out;
  WriteBytes(training::SettingsText(checkpoint.config), out);
  WriteBytes(checkpoint.seed, out);
  WriteBytes(checkpoint.iterations, out);
  WriteBytes(static_cast<uint64_t>(checkpoint.programs.size()), out);
  for (const Checkpoint::Program& program : checkpoint.programs) {
    WriteBytes(program.name, out);
    WriteBytes(program.fingerprint, out);
    WriteBytes(program.hardware, out);
  }
  WriteBytes(checkpoint.networks, out);
  WriteBytes(checkpoint.training, out);
  return training::SealCheckpoint(kAgent, kFormatVersion, out);
}

absl::StatusOr<Checkpoint> UnpackCheckpoint(absl::string_view bytes) {
  MG_ASSIGN_OR_RETURN(absl::string_view in,
                      training::OpenCheckpoint(kAgent, kFormatVersion, bytes));
  Checkpoint checkpoint;
  std::string settings;
  MG_RETURN_IF_ERROR(ReadBytes(in, settings));
  MG_RETURN_IF_ERROR(training::ReadSettings(settings, checkpoint.config));
  uint64_t programs = 0;
  MG_RETURN_IF_ERROR(ReadBytes(in, checkpoint.seed));
  MG_RETURN_IF_ERROR(ReadBytes(in, checkpoint.iterations));
  MG_RETURN_IF_ERROR(ReadBytes(in, programs));
  for (uint64_t i = 0; i < programs; ++i) {
    Checkpoint::Program program;
    MG_RETURN_IF_ERROR(ReadBytes(in, program.name));
    MG_RETURN_IF_ERROR(ReadBytes(in, program.fingerprint));
    MG_RETURN_IF_ERROR(ReadBytes(in, program.hardware));
    checkpoint.programs.push_back(std::move(program));
  }
  MG_RETURN_IF_ERROR(ReadBytes(in, checkpoint.networks));
  MG_RETURN_IF_ERROR(ReadBytes(in, checkpoint.training));
  return checkpoint;
}

}  // namespace mallocgame::muzero
