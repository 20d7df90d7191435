// Runs the fuzzers' entry functions over their seeds and over a fixed set of mutations of them, in
// every ordinary test run. So what a fuzzer would find at once is found here, and the entry
// functions keep working.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/replay/files.h"
#include "tests/catch.h"
#include "tests/fuzz/bear_seeds.h"
#include "tests/fuzz/readers.h"

namespace mallocgame::fuzz {
namespace {

constexpr int kMutations = 1000;  // of each seed

std::vector<std::string> SeedsOf(absl::string_view reader) {
  const std::filesystem::path folder =
      std::filesystem::path(MALLOCGAME_SOURCE_DIR) / "tests/fuzz/seeds" / std::string(reader);
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> seeds;
  for (const auto& path : paths) {
    auto bytes = ReadFile(path.string());
    REQUIRE(bytes.ok());
    seeds.push_back(*std::move(bytes));
  }
  return seeds;
}

std::string Mutate(std::string bytes, Rng& rng) {
  const auto place = [&] { return rng.Below(bytes.size()); };
  for (uint32_t n = 1 + rng.Below(4); n > 0 && !bytes.empty(); --n) {
    switch (rng.Below(5)) {
      case 0: bytes.resize(place()); break;
      case 1: {
        char& c = bytes[place()];
        c = static_cast<char>(c ^ (1 << rng.Below(8)));
        break;
      }
      case 2: bytes[place()] = static_cast<char>(rng.Below(256)); break;
      case 3: {
        const size_t at = place();
        bytes.insert(at, bytes.substr(at, 1 + rng.Below(16)));
        break;
      }
      case 4: bytes.erase(place(), 1 + rng.Below(8)); break;
    }
  }
  return bytes;
}

}  // namespace

void CheckBearsSeeds(const Reader& reader, int mutations) {
  const std::vector<std::string> seeds = SeedsOf(reader.name);
  INFO(reader.name);
  REQUIRE_FALSE(seeds.empty());
  reader.read("");
  Rng rng(1);
  int accepted = 0;
  for (const std::string& seed : seeds) {
    accepted += reader.read(seed);
    for (int i = 0; i < mutations; ++i) reader.read(Mutate(seed, rng));
  }
  CHECK(accepted > 0);
}

namespace {

TEST_CASE("every reader bears its seeds and mutations of them") {
  for (const Reader& reader : Readers()) CheckBearsSeeds(reader, kMutations);
}

TEST_CASE("parts that are joined come apart again, and any bytes come apart") {
  const std::string joined = JoinParts({"ab", "", "c"});
  const auto parts = SplitParts(joined, 3);
  CHECK(parts == std::vector<absl::string_view>{"ab", "", "c"});
  CHECK(SplitParts("", 2) == std::vector<absl::string_view>{"", ""});
  CHECK(SplitParts("\xff\xff\xff\xffx", 2) == std::vector<absl::string_view>{"x", ""});
}

}  // namespace
}  // namespace mallocgame::fuzz
