// Writes the golden files anew, and removes those that no example makes any more.
//
//   make_golden [FOLDER]    FOLDER is tests/golden of the source tree unless given
#include <cstdio>
#include <filesystem>
#include <string>

#include "mallocgame/replay/files.h"
#include "tests/golden/golden_files.h"

int main(int argc, char** argv) {
  namespace golden = mallocgame::golden;
  if (argc > 2) {
    std::fprintf(stderr, "usage: make_golden [FOLDER]\n");
    return 2;
  }
  const std::string folder = argc == 2 ? argv[1] : MALLOCGAME_SOURCE_DIR "/tests/golden";
  std::filesystem::create_directories(folder);
  const auto made = golden::MakeGoldenFiles();
  for (const auto& [name, text] : golden::ReadGoldenFiles(folder)) {
    if (made.contains(name)) continue;
    std::filesystem::remove(std::filesystem::path(folder) / name);
    std::printf("removed %s\n", name.c_str());
  }
  for (const auto& [name, text] : made) {
    const absl::Status status =
        mallocgame::WriteFile((std::filesystem::path(folder) / name).string(), text);
    if (!status.ok()) {
      std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
      return 1;
    }
  }
  std::printf("%zu files in %s\n", made.size(), folder.c_str());
  return 0;
}
