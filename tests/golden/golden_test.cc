// The recorded games and the fingerprints of the solvers' plans are what the code at hand makes:
// whole files are compared, none is missing and none too many. tests/golden/README.md says how to
// read and how to remake them.
#include <algorithm>
#include <string>

#include "tests/catch.h"
#include "tests/golden/golden_files.h"

namespace mallocgame::golden {
namespace {

// The first line in which two texts differ, as each has it.
std::string FirstDifference(const std::string& found, const std::string& expected) {
  const auto [a, b] = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
  const size_t at = a - found.begin();
  const auto line = [&](const std::string& text) {
    const size_t before = at == 0 ? std::string::npos : text.rfind('\n', at - 1);
    const size_t begin = before == std::string::npos ? 0 : before + 1;
    return begin >= text.size() ? "(nothing)" : text.substr(begin, text.find('\n', at) - begin);
  };
  return "recorded: " + line(expected) + "\nnow:      " + line(found);
}

TEST_CASE("the golden files are what the code records") {
  const auto made = MakeGoldenFiles();
  const auto stored = ReadGoldenFiles(MALLOCGAME_SOURCE_DIR "/tests/golden");
  for (const auto& [name, text] : made) {
    INFO(name << " (remake with make_golden, and read the difference)");
    const auto file = stored.find(name);
    CHECK(file != stored.end());
    if (file == stored.end() || file->second == text) continue;
    FAIL_CHECK(FirstDifference(text, file->second));
  }
  for (const auto& [name, text] : stored) {
    INFO(name << " belongs to no example");
    CHECK(made.contains(name));
  }
}

TEST_CASE("every recorded game is played to its end, and its plan is valid") {
  for (const auto& [name, text] : MakeGoldenFiles()) {
    if (name == "plans.txt") continue;
    INFO(name);
    CHECK(text.find("Not over") == std::string::npos);
    CHECK(text.find("Over:") == std::string::npos);
    CHECK(text.find("refused") == std::string::npos);
    const auto count = [&](const std::string& what) {
      size_t found = 0;
      for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
        ++found;
      return found;
    };
    CHECK(count("\nGame ") > 0);
    CHECK(count("\nGame ") == count("Validate: valid"));
  }
}

}  // namespace
}  // namespace mallocgame::golden
