// The files of tests/golden: what belongs in the folder, made anew.
#ifndef MALLOCGAME_TESTS_GOLDEN_GOLDEN_FILES_H_
#define MALLOCGAME_TESTS_GOLDEN_GOLDEN_FILES_H_

#include <map>
#include <string>

namespace mallocgame::golden {

// Contents by file name ("preload.txt"), recorded with the code as it is.
std::map<std::string, std::string> MakeGoldenFiles();

// Contents by file name of all .txt files in `folder`.
std::map<std::string, std::string> ReadGoldenFiles(const std::string& folder);

}  // namespace mallocgame::golden

#endif  // MALLOCGAME_TESTS_GOLDEN_GOLDEN_FILES_H_
