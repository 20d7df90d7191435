// Reads and writes whole files as byte strings.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace mallocgame {

// The bytes of a file, unpacked if they begin as gzip does. NotFound, PermissionDenied, or
// InvalidArgument (a directory, damaged gzip, more than 1 GiB before or after unpacking). Every
// message has the path.
absl::StatusOr<std::string> ReadFile(const std::string& path);

// Writes all or nothing: the bytes go to a new file beside `path`, which then takes its place. So a
// reader never sees half a file, and a failure leaves the old one. What is not a regular file (a
// pipe, a terminal) is written directly. Of a link, the target is replaced and not the link. Errors
// name the path.
absl::Status WriteFile(const std::string& path, absl::string_view bytes);

}  // namespace mallocgame
