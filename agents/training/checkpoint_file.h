// The envelope of an agent's checkpoint: a first line that names the agent and the versions, and a
// checksum at the end.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mallocgame::training {

// The game of agents that name none.
inline constexpr const char* kUsualGame = "time";

// Puts the envelope around `body`. `format_version` is that of the agent's format; the version of
// the rules of the game that the agent plays is added, and that of the observations that its
// networks see, unless it is 0: they see none.
std::string SealCheckpoint(absl::string_view agent, int format_version, absl::string_view body,
                           absl::string_view game = kUsualGame, int observation_version = 0);

struct OpenedCheckpoint {
  absl::string_view body;
  std::string game;
};
// What is inside `bytes`. InvalidArgument: the bytes are not a checkpoint of this agent, are
// damaged, or are of another version.
absl::StatusOr<OpenedCheckpoint> OpenCheckpoint(absl::string_view agent, int format_version,
                                                absl::string_view bytes,
                                                int observation_version = 0);

}  // namespace mallocgame::training
