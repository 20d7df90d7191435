// The gzip and the first line of our binary files.
#include "mallocgame/replay/container.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/rng.h"
#include "tests/catch.h"

namespace mallocgame {
namespace {

using Catch::Matchers::Contains;

std::string Message(const absl::StatusOr<std::string>& result) {
  return std::string(result.status().message());
}

std::string Noise(size_t bytes) {
  Rng rng(1);
  std::string text(bytes, '\0');
  for (char& c : text) c = static_cast<char>(rng.Below(256));
  return text;
}

TEST_CASE("what is packed is unpacked") {
  for (const std::string& payload :
       {std::string(), std::string("a"), Noise(1 << 16), Noise(200001), std::string(300000, 'x')}) {
    REQUIRE(*Gunzip(Gzip(payload), payload.size()) == payload);
    REQUIRE(*UnpackFile(FileKind::kProgram, PackFile(FileKind::kProgram, payload)) == payload);
  }
}

TEST_CASE("the gzip header tells neither time nor machine") {
  const std::string bytes = Gzip("text");
  CHECK(bytes.substr(0, 4) == std::string("\x1f\x8b\x08\x00", 4));
  CHECK(bytes.substr(4, 4) == std::string(4, '\0'));  // modification time
  CHECK(bytes[9] == '\xff');                          // operating system: unknown
}

TEST_CASE("several gzip members are one text") {
  CHECK(*Gunzip(absl::StrCat(Gzip("ab"), Gzip(""), Gzip("c")), 10) == "abc");
}

TEST_CASE("a text that unpacks to too much is refused") {
  const std::string bomb = Gzip(std::string(1 << 20, '\0'));
  CHECK(bomb.size() < 2000);
  CHECK(Gunzip(bomb, 1 << 20).ok());
  CHECK_THAT(Message(Gunzip(bomb, (1 << 20) - 1)), Contains("more than 1048575 bytes"));
  CHECK_THAT(Message(Gunzip(absl::StrCat(Gzip("ab"), Gzip("c")), 2)),
             Contains("more than 2 bytes"));
}

TEST_CASE(
    "a file that is cut anywhere is refused, and a changed byte never gives another payload") {
  const std::string text = "some actions and rewards", bytes = PackFile(FileKind::kGameLog, text);
  for (size_t n = 0; n < bytes.size(); ++n) {
    INFO(n);
    CHECK(UnpackFile(FileKind::kGameLog, bytes.substr(0, n)).status().code() ==
          absl::StatusCode::kInvalidArgument);
  }
  CHECK_FALSE(UnpackFile(FileKind::kGameLog, bytes + "x").ok());
  // Gzip's own header has bytes that do not matter (flags, system).
  const size_t text_begin = bytes.find('\n') + 11;
  for (size_t i = text_begin; i < bytes.size(); ++i) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    INFO(i);
    const absl::StatusOr<std::string> payload = UnpackFile(FileKind::kGameLog, damaged);
    // The last byte of the packed text has bits that mean nothing.
    CHECK((!payload.ok() || *payload == text));
  }
}

TEST_CASE("a wrong file is named") {
  CHECK_THAT(Message(UnpackFile(FileKind::kProgram, PackFile(FileKind::kGameLog, ""))),
             Contains("not a program file: it is a game log"));
  CHECK_THAT(Message(UnpackFile(FileKind::kGameLog, PackFile(FileKind::kProgram, ""))),
             Contains("not a game log: it is a program file"));
  CHECK_THAT(Message(UnpackFile(FileKind::kProgram, Gzip("module"))),
             Contains("it is a gzip file"));
  CHECK_THAT(Message(UnpackFile(FileKind::kProgram, "")), Contains("it is empty"));
  CHECK_THAT(Message(UnpackFile(FileKind::kProgram, "{\n\"x\"")),
             Contains("begins with \"{\\n\\\"x\\\"\""));
}

TEST_CASE("another version is named, and both are said") {
  std::string bytes = PackFile(FileKind::kProgram, "");
  bytes[bytes.find('\n') - 1] = '2';
  CHECK_THAT(Message(UnpackFile(FileKind::kProgram, bytes)),
             Contains("of version \"2\"; this build reads version 1"));
  CHECK_FALSE(UnpackFile(FileKind::kProgram, "mallocgame program 1").ok());
  CHECK_FALSE(
      UnpackFile(FileKind::kProgram, "mallocgame program 1111111111111111111111111111111111111")
          .ok());
}

}  // namespace
}  // namespace mallocgame
