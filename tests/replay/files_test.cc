// Reads and writes whole files on disk.
#include "mallocgame/replay/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "mallocgame/replay/container.h"
#include "tests/catch.h"

namespace mallocgame {
namespace {

using Catch::Matchers::Contains;

// A new folder. It is removed with everything in it at the end of the test.
class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "mallocgame-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return absl::StrCat(path_, "/", name); }
  int Files() const {
    int n = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_)) ++n;
    return n;
  }

 private:
  std::string path_;
};

TEST_CASE("a file holds what was written last, and nothing is left beside it") {
  const Folder folder;
  const std::string path = folder / "plan.json", text("a\0b\n", 4);
  REQUIRE(WriteFile(path, "a longer text that comes first").ok());
  REQUIRE(WriteFile(path, text).ok());
  CHECK(*ReadFile(path) == text);
  REQUIRE(WriteFile(path, "").ok());
  CHECK(ReadFile(path)->empty());
  CHECK(folder.Files() == 1);
}

TEST_CASE("gzip files are read unpacked, damaged ones not at all") {
  const Folder folder;
  const std::string path = folder / "module.pb.gz", bytes = Gzip("module");
  REQUIRE(WriteFile(path, bytes).ok());
  CHECK(*ReadFile(path) == "module");
  REQUIRE(WriteFile(path, bytes.substr(0, bytes.size() - 1)).ok());
  CHECK(ReadFile(path).status().code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(ReadFile(path).status().message()),
             Contains(path) && Contains("cut short"));
}

TEST_CASE("what can't be read or written is said with its path") {
  const Folder folder;
  const std::string missing = folder / "missing", inside = folder / "missing/plan.json",
                    itself = folder / ".";
  CHECK(ReadFile(missing).status().code() == absl::StatusCode::kNotFound);
  CHECK_THAT(std::string(ReadFile(missing).status().message()), Contains(missing));
  CHECK(ReadFile(itself).status().code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(WriteFile(inside, "x").message()), Contains(inside));
  CHECK(WriteFile(inside, "x").code() == absl::StatusCode::kNotFound);
  CHECK_THAT(std::string(WriteFile(itself, "x").message()), Contains("it is a directory"));
  CHECK(folder.Files() == 0);
}

TEST_CASE("a rewritten file keeps its mode, and a link stays a link") {
  const Folder folder;
  const std::string path = folder / "plan.json", link = folder / "link.json";
  REQUIRE(WriteFile(path, "old").ok());
  REQUIRE(chmod(path.c_str(), 0640) == 0);
  std::filesystem::create_symlink(path, link);
  REQUIRE(WriteFile(link, "new").ok());
  CHECK(std::filesystem::is_symlink(link));
  CHECK(*ReadFile(path) == "new");
  struct stat info;
  REQUIRE(stat(path.c_str(), &info) == 0);
  CHECK((info.st_mode & 0777) == 0640);
}

TEST_CASE("a device is written to, not replaced") {
  REQUIRE(WriteFile("/dev/null", "x").ok());
  CHECK(std::filesystem::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace mallocgame
