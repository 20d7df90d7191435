// The outside of our binary files: one line of text that says what the file is, then gzip. The line
// makes a wrong file nameable ("this is a game log"); gzip's checksum makes a damaged one
// detectable.
#ifndef MALLOCGAME_REPLAY_CONTAINER_H_
#define MALLOCGAME_REPLAY_CONTAINER_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mallocgame {

enum class FileKind : uint8_t { kProgram, kGameLog };

// Same payload, same bytes (for one version of zlib): the gzip header holds no time, name or
// machine.
std::string PackFile(FileKind kind, absl::string_view payload);

// InvalidArgument says what the bytes are instead, that the version is another, or that they are
// damaged; a payload over 64 MiB is refused before it is unpacked further.
absl::StatusOr<std::string> UnpackFile(FileKind kind, absl::string_view bytes);

std::string Gzip(absl::string_view bytes);
bool IsGzip(absl::string_view bytes);
// One or several gzip members. InvalidArgument: damaged, cut short, followed by something else, or
// more than `max_bytes` when unpacked. Never holds more than about twice `max_bytes`.
absl::StatusOr<std::string> Gunzip(absl::string_view bytes, size_t max_bytes);

}  // namespace mallocgame

#endif  // MALLOCGAME_REPLAY_CONTAINER_H_
