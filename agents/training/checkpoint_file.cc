#include "agents/training/checkpoint_file.h"

#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "agents/training/bytes.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/fnv.h"
#include "mallocgame/game/games.h"

namespace mallocgame::training {
namespace {

std::string KindOf(absl::string_view agent) {
  return absl::StrCat("mallocgame ", agent, " checkpoint ");
}

// How the first line names the rules of a game.
std::string RulesOf(absl::string_view game) {
  return game == kUsualGame ? ", rules " : absl::StrCat(", ", game, " rules ");
}

std::string FirstLine(absl::string_view agent, int format_version, absl::string_view game,
                      int observation_version) {
  std::string line = absl::StrCat(KindOf(agent), format_version, RulesOf(game),
                                  (*OptionsOfGame(game))->rules_version());
  if (observation_version != 0) absl::StrAppend(&line, ", observation ", observation_version);
  return absl::StrCat(line, "\n");
}

}  // namespace

std::string SealCheckpoint(absl::string_view agent, int format_version, absl::string_view body,
                           absl::string_view game, int observation_version) {
  std::string out = absl::StrCat(FirstLine(agent, format_version, game, observation_version), body);
  WriteBytes(Fnv1aOf(out), out);
  return out;
}

absl::StatusOr<OpenedCheckpoint> OpenCheckpoint(absl::string_view agent, int format_version,
                                                absl::string_view bytes, int observation_version) {
  const absl::string_view line = bytes.substr(0, bytes.find('\n'));
  if (!absl::StartsWith(line, KindOf(agent))) {
    return absl::InvalidArgumentError(absl::StrCat("not a checkpoint of the ", agent, " agent"));
  }
  std::string game = kUsualGame;
  for (const std::string& other : GameNames()) {
    if (absl::StrContains(line, RulesOf(other))) game = other;
  }
  const std::string expected = FirstLine(agent, format_version, game, observation_version);
  if (absl::StrCat(line, "\n") != expected) {
    return absl::InvalidArgumentError(absl::StrCat("the checkpoint is of another version: found '",
                                                   line, "', expected '",
                                                   absl::StripSuffix(expected, "\n"), "'"));
  }
  uint64_t checksum = 0;
  if (bytes.size() < expected.size() + sizeof(checksum)) return CutShort();
  absl::string_view end = bytes.substr(bytes.size() - sizeof(checksum));
  MG_RETURN_IF_ERROR(ReadBytes(end, checksum));
  if (checksum != Fnv1aOf(bytes.substr(0, bytes.size() - sizeof(checksum)))) return CutShort();
  return OpenedCheckpoint{
      bytes.substr(expected.size(), bytes.size() - expected.size() - sizeof(checksum)), game};
}

}  // namespace mallocgame::training
