// The outside of our binary files: one line of text that says what the file is, then gzip. By the
// line a wrong file can be named ("this is a game log"); by gzip's checksum a damaged one is found.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mallocgame {

enum class FileKind : uint8_t { kProgram, kGameLog };

// Equal payloads give equal bytes (with one version of zlib), because the gzip header holds no
// time, name or machine.
std::string PackFile(FileKind kind, absl::string_view payload);

// InvalidArgument says what the bytes are instead, that they have another version, or that they are
// damaged. A payload of more than 64 MiB is refused before it is unpacked further.
absl::StatusOr<std::string> UnpackFile(FileKind kind, absl::string_view bytes);

std::string Gzip(absl::string_view bytes);
bool IsGzip(absl::string_view bytes);
// Unpacks one or several gzip members. InvalidArgument: they are damaged, cut short, followed by
// something else, or more than `max_bytes` when unpacked. Never takes more memory than about twice
// `max_bytes`.
absl::StatusOr<std::string> Gunzip(absl::string_view bytes, size_t max_bytes);

}  // namespace mallocgame
