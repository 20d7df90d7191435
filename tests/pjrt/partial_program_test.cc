#include "mallocgame/pjrt/partial_program.h"

#include "absl/strings/match.h"
#include "tests/catch.h"

namespace mallocgame::pjrt {
namespace {

PartialProgram Example(bool compressed) {
  return {std::string(300000, 'x'), compressed, "dedup_hlo", "phase1_hlo_opts",
          {"phase2a", "phase2b"},   "1",        "opt_hlo"};
}

TEST_CASE("A partial program is read as it was written, compressed or not") {
  for (const bool compressed : {false, true}) {
    const PartialProgram written = Example(compressed);
    const std::string bytes = SerializePartialProgram(written);
    CHECK((bytes.size() < 1000) == compressed);
    const auto read = ParsePartialProgram(bytes);
    REQUIRE(read.ok());
    CHECK(read->program == written.program);
    CHECK(read->compressed == compressed);
    CHECK(read->format == written.format);
    CHECK(read->generating_phase == written.generating_phase);
    CHECK(read->next_phases == written.next_phases);
    CHECK(read->version == written.version);
    CHECK(read->name == written.name);
    CHECK(SerializePartialProgram(*read) == bytes);
  }
}

TEST_CASE("An empty program stays empty") {
  for (const bool compressed : {false, true}) {
    PartialProgram empty;
    empty.compressed = compressed;
    const auto read = ParsePartialProgram(SerializePartialProgram(empty));
    REQUIRE(read.ok());
    CHECK(read->program.empty());
  }
}

TEST_CASE("Fields of later versions are passed over") {
  std::string bytes = SerializePartialProgram(Example(false));
  bytes += std::string("\x38\x05\x9a\x06\x05later");  // 7: 5, 99: "later"
  const auto read = ParsePartialProgram(bytes);
  REQUIRE(read.ok());
  CHECK(read->name == "opt_hlo");
}

TEST_CASE("Damaged partial programs are refused") {
  const std::string bytes = SerializePartialProgram(Example(true));
  for (size_t size = 1; size < bytes.size(); ++size) {
    const auto read = ParsePartialProgram(absl::string_view(bytes).substr(0, size));
    // Where a field ends, what is left out is missing only.
    if (!read.ok()) CHECK(read.status().code() == absl::StatusCode::kInvalidArgument);
  }
  PartialProgram cut;
  cut.program = "\x28\xb5\x2f\xfd";
  const auto refusal = [&cut] {
    return std::string(ParsePartialProgram(SerializePartialProgram(cut)).status().message());
  };
  CHECK(absl::StrContains(refusal(), "has no end"));
  cut.program += std::string(20, '\xff');
  CHECK(absl::StrContains(refusal(), "its compressed program"));
}

}  // namespace
}  // namespace mallocgame::pjrt
