// Uses POSIX files. An errno becomes a Status with the path in it.
#include "mallocgame/replay/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/replay/container.h"

namespace mallocgame {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 30;
// Names tried before giving up. Other writers of the same path, and killed ones, may hold some.
constexpr int kTemporaryNames = 100;

absl::Status ErrnoStatus(absl::string_view what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(what, " ", path));
}

// A file descriptor that is closed on every way out.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int fd() const { return fd_; }
  bool Close() {
    const int fd = fd_;
    fd_ = -1;
    return close(fd) == 0;
  }

 private:
  int fd_;
};

bool WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    bytes.remove_prefix(n);
  }
  return true;
}

absl::Status WriteDirectly(const std::string& path, absl::string_view bytes) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (file.fd() < 0 || !WriteAll(file.fd(), bytes) || !file.Close())
    return ErrnoStatus("cannot write", path);
  return absl::OkStatus();
}

// Makes a renamed file outlast a loss of power. Not every file system can, and the file is there
// already, so a failure is no error.
void SyncFolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  const Descriptor opened(
      open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (opened.fd() >= 0) fsync(opened.fd());
}

absl::Status ReplaceFile(const std::string& path, absl::string_view bytes, const struct stat* old) {
  std::string temporary;
  int fd = -1;
  for (int i = 0; i < kTemporaryNames && fd < 0; ++i) {
    temporary = absl::StrCat(path, ".", getpid(), ".", i, ".tmp");
    fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST) break;
  }
  if (fd < 0) return ErrnoStatus("cannot write", path);
  Descriptor file(fd);
  const bool done = (old == nullptr || fchmod(fd, old->st_mode & 07777) == 0) &&
                    WriteAll(fd, bytes) && fsync(fd) == 0 && file.Close() &&
                    rename(temporary.c_str(), path.c_str()) == 0;
  if (done) {
    SyncFolderOf(path);
    return absl::OkStatus();
  }
  const absl::Status status = ErrnoStatus("cannot write", path);
  unlink(temporary.c_str());
  return status;
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd() < 0) return ErrnoStatus("cannot read", path);
  struct stat info;
  if (fstat(file.fd(), &info) != 0) return ErrnoStatus("cannot read", path);
  if (S_ISDIR(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat("cannot read ", path, ": it is a directory"));
  std::string bytes;
  char block[1 << 16];
  for (;;) {
    const ssize_t n = read(file.fd(), block, sizeof(block));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("cannot read", path);
    if (n == 0) break;
    bytes.append(block, n);
    if (bytes.size() > kMaxFileBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": more than ", kMaxFileBytes, " bytes"));
    }
  }
  if (!IsGzip(bytes)) return bytes;
  absl::StatusOr<std::string> unpacked = Gunzip(bytes, kMaxFileBytes);
  if (unpacked.ok()) return unpacked;
  return absl::Status(unpacked.status().code(),
                      absl::StrCat(path, ": ", unpacked.status().message()));
}

absl::Status WriteFile(const std::string& path, absl::string_view bytes) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    if (errno != ENOENT) return ErrnoStatus("cannot write", path);
    return ReplaceFile(path, bytes, nullptr);
  }
  if (S_ISDIR(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": it is a directory"));
  if (access(path.c_str(), W_OK) != 0) return ErrnoStatus("cannot write", path);
  if (!S_ISREG(info.st_mode)) return WriteDirectly(path, bytes);
  std::error_code error;
  const std::filesystem::path target = std::filesystem::canonical(path, error);
  if (error)
    return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": ", error.message()));
  return ReplaceFile(target.string(), bytes, &info);
}

}  // namespace mallocgame
