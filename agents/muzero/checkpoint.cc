#include "agents/muzero/checkpoint.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "agents/muzero/bytes.h"
#include "mallocgame/base/error.h"

namespace mallocgame::muzero {
namespace {

constexpr absl::string_view kKind = "mallocgame muzero checkpoint ";
constexpr int kFormatVersion = 1;

// FNV-1a: tells damage, not malice.
uint64_t Checksum(absl::string_view bytes) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (char c : bytes) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3u;
  return hash;
}

std::string FirstLine() { return absl::StrCat(kKind, kFormatVersion, ", rules ", kRulesVersion, "\n"); }

absl::Status ReadText(absl::string_view& in, std::string& text) {
  absl::string_view view;
  MG_RETURN_IF_ERROR(ReadBytes(in, view));
  text = std::string(view);
  return absl::OkStatus();
}

}  // namespace

std::string PackCheckpoint(const Checkpoint& checkpoint) {
  std::string settings;
  for (const Setting& setting : Settings(checkpoint.config)) absl::StrAppend(&settings, setting.name, "=", setting.value, "\n");
  std::string out = FirstLine();
  WriteBytes(settings, out);
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
  WriteBytes(Checksum(out), out);
  return out;
}

absl::StatusOr<Checkpoint> UnpackCheckpoint(absl::string_view bytes) {
  const absl::string_view line = bytes.substr(0, bytes.find('\n'));
  if (!absl::StartsWith(line, kKind)) return absl::InvalidArgumentError("not a checkpoint of the muzero agent");
  const std::string expected = FirstLine();
  if (absl::StrCat(line, "\n") != expected) {
    return absl::InvalidArgumentError(absl::StrCat("the checkpoint is of another version: found '", line, "', expected '",
                                                   absl::StripSuffix(expected, "\n"), "'"));
  }
  uint64_t checksum = 0;
  if (bytes.size() < expected.size() + sizeof(checksum)) return CutShort();
  absl::string_view end = bytes.substr(bytes.size() - sizeof(checksum));
  MG_RETURN_IF_ERROR(ReadBytes(end, checksum));
  if (checksum != Checksum(bytes.substr(0, bytes.size() - sizeof(checksum)))) return CutShort();

  absl::string_view in = bytes.substr(expected.size(), bytes.size() - expected.size() - sizeof(checksum));
  Checkpoint checkpoint;
  std::string settings;
  MG_RETURN_IF_ERROR(ReadText(in, settings));
  for (absl::string_view setting : absl::StrSplit(settings, '\n', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(setting, absl::MaxSplits('=', 1));
    if (const absl::Status set = Set(checkpoint.config, parts.first, parts.second); !set.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("the checkpoint is of another version: ", set.message()));
    }
  }
  MG_RETURN_IF_ERROR(Check(checkpoint.config));
  uint64_t programs = 0;
  MG_RETURN_IF_ERROR(ReadBytes(in, checkpoint.seed));
  MG_RETURN_IF_ERROR(ReadBytes(in, checkpoint.iterations));
  MG_RETURN_IF_ERROR(ReadBytes(in, programs));
  for (uint64_t i = 0; i < programs; ++i) {
    Checkpoint::Program program;
    MG_RETURN_IF_ERROR(ReadText(in, program.name));
    MG_RETURN_IF_ERROR(ReadText(in, program.fingerprint));
    MG_RETURN_IF_ERROR(ReadText(in, program.hardware));
    checkpoint.programs.push_back(std::move(program));
  }
  MG_RETURN_IF_ERROR(ReadText(in, checkpoint.networks));
  MG_RETURN_IF_ERROR(ReadText(in, checkpoint.training));
  return checkpoint;
}

}  // namespace mallocgame::muzero
