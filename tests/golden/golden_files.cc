#include "tests/golden/golden_files.h"

#include <filesystem>

#include "mallocgame/base/error.h"
#include "mallocgame/replay/files.h"
#include "tests/golden/examples.h"
#include "tests/golden/record.h"
#include "tests/golden/solver_plans.h"

namespace mallocgame::golden {

std::map<std::string, std::string> MakeGoldenFiles() {
  std::map<std::string, std::string> files;
  for (const Example& example : AllExamples()) {
    const bool is_new = files.emplace(example.name + ".txt", Record(example)).second;
    MG_CHECK(is_new);  // two examples of one name
  }
  files["plans.txt"] = RecordSolverPlans();
  return files;
}

std::map<std::string, std::string> ReadGoldenFiles(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::filesystem::path& path = entry.path();
    if (path.extension() != ".txt" || path.filename() == "CMakeLists.txt") continue;
    auto bytes = ReadFile(path.string());
    MG_CHECK(bytes.ok());
    files[path.filename().string()] = *std::move(bytes);
  }
  return files;
}

}  // namespace mallocgame::golden
