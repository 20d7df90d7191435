// The envelope of an agent's checkpoint: a first line that says what it is and of which version,
// and a checksum.
#ifndef AGENTS_TRAINING_CHECKPOINT_FILE_H_
#define AGENTS_TRAINING_CHECKPOINT_FILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mallocgame::training {

// Around `body`, which is written with bytes.h. The version is that of the agent's format; that of
// the rules is added.
std::string SealCheckpoint(absl::string_view agent, int format_version, absl::string_view body);

// The body, inside `bytes`. InvalidArgument: no checkpoint of this agent, damaged, or of another
// version.
absl::StatusOr<absl::string_view> OpenCheckpoint(absl::string_view agent, int format_version,
                                                 absl::string_view bytes);

}  // namespace mallocgame::training

#endif  // AGENTS_TRAINING_CHECKPOINT_FILE_H_
