// The files of tests/golden: what belongs in the folder, made anew.
#pragma once

#include <map>
#include <string>

namespace mallocgame::golden {

// Contents by file name ("preload.txt"), recorded with the code as it is.
std::map<std::string, std::string> MakeGoldenFiles();

// Contents by file name of all .txt files in `folder`.
std::map<std::string, std::string> ReadGoldenFiles(const std::string& folder);

}  // namespace mallocgame::golden
