// Packs and unpacks gzip with zlib, and writes and checks the line before it.
#include "mallocgame/replay/container.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "mallocgame/base/error.h"

namespace mallocgame {
namespace {

constexpr size_t kMaxPayloadBytes = size_t{64} << 20;
constexpr int kGzipWindowBits = 15 + 16;  // zlib's way of saying "gzip, largest window"
constexpr char kVersion[] = "1";

struct Kind {
  absl::string_view first_words;
  absl::string_view name;
};
constexpr Kind kKinds[] = {{"mallocgame program ", "a program file"},
                           {"mallocgame log ", "a game log"}};

std::string Describe(absl::string_view bytes) {
  for (const Kind& kind : kKinds) {
    if (absl::StartsWith(bytes, kind.first_words)) return std::string(kind.name);
  }
  if (bytes.empty()) return "empty";
  if (IsGzip(bytes)) return "a gzip file (a compressed HLO module?)";
  return absl::StrCat("something that begins with \"", absl::CHexEscape(bytes.substr(0, 16)), "\"");
}

// zlib counts in 32 bits, so input is handed over in pieces.
void Feed(z_stream& stream, absl::string_view& rest) {
  if (stream.avail_in != 0) return;
  const size_t piece = std::min(rest.size(), size_t{1} << 30);
  // zlib's interface is older than const; it does not write there.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest.data()));
  stream.avail_in = static_cast<uInt>(piece);
  rest.remove_prefix(piece);
}

// Unpacks until the input ends. The caller owns the state of inflate.
absl::StatusOr<std::string> Inflate(z_stream& stream, absl::string_view rest, size_t max_bytes) {
  std::string out;
  char block[1 << 16];
  for (;;) {
    Feed(stream, rest);
    stream.next_out = reinterpret_cast<Bytef*>(block);
    stream.avail_out = sizeof(block);
    const int code = inflate(&stream, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END) {
      if (code == Z_MEM_ERROR) return absl::ResourceExhaustedError("gzip: out of memory");
      return absl::InvalidArgumentError(
          absl::StrCat("gzip: damaged or cut short after ", out.size(), " unpacked bytes",
                       stream.msg == nullptr ? "" : ": ", stream.msg == nullptr ? "" : stream.msg));
    }
    const size_t produced = sizeof(block) - stream.avail_out;
    if (produced > max_bytes - out.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("gzip: more than ", max_bytes, " bytes when unpacked"));
    }
    out.append(block, produced);
    if (code == Z_STREAM_END) {
      if (stream.avail_in == 0 && rest.empty()) return out;
      inflateReset(&stream);
    }
  }
}

}  // namespace

std::string Gzip(absl::string_view bytes) {
  z_stream stream = {};
  MG_CHECK(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindowBits, 9,
                        Z_DEFAULT_STRATEGY) == Z_OK);
  gz_header header = {};
  header.os = 255;  // means "unknown", so that the bytes do not tell the machine
  MG_CHECK(deflateSetHeader(&stream, &header) == Z_OK);
  std::string out;
  char block[1 << 16];
  int code = Z_OK;
  while (code != Z_STREAM_END) {
    Feed(stream, bytes);
    stream.next_out = reinterpret_cast<Bytef*>(block);
    stream.avail_out = sizeof(block);
    code = deflate(&stream, bytes.empty() ? Z_FINISH : Z_NO_FLUSH);
    MG_CHECK(code == Z_OK || code == Z_STREAM_END);
    out.append(block, sizeof(block) - stream.avail_out);
  }
  deflateEnd(&stream);
  return out;
}

bool IsGzip(absl::string_view bytes) { return absl::StartsWith(bytes, "\x1f\x8b"); }

absl::StatusOr<std::string> Gunzip(absl::string_view bytes, size_t max_bytes) {
  z_stream stream = {};
  if (inflateInit2(&stream, kGzipWindowBits) != Z_OK)
    return absl::ResourceExhaustedError("gzip: out of memory");
  absl::StatusOr<std::string> out = Inflate(stream, bytes, max_bytes);
  inflateEnd(&stream);
  return out;
}

std::string PackFile(FileKind kind, absl::string_view payload) {
  return absl::StrCat(kKinds[static_cast<size_t>(kind)].first_words, kVersion, "\n", Gzip(payload));
}

absl::StatusOr<std::string> UnpackFile(FileKind kind, absl::string_view bytes) {
  const Kind& wanted = kKinds[static_cast<size_t>(kind)];
  absl::string_view rest = bytes;
  if (!absl::ConsumePrefix(&rest, wanted.first_words)) {
    return absl::InvalidArgumentError(
        absl::StrCat("not ", wanted.name, ": it is ", Describe(bytes)));
  }
  const size_t line_end = std::min(rest.find('\n'), size_t{20});
  const absl::string_view version = rest.substr(0, line_end);
  if (version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat(wanted.name, " of version \"",
                                                   absl::CHexEscape(version),
                                                   "\"; this build reads version ", kVersion));
  }
  if (rest.size() <= line_end + 1)
    return absl::InvalidArgumentError(absl::StrCat(wanted.name, " that is cut short"));
  absl::StatusOr<std::string> payload = Gunzip(rest.substr(line_end + 1), kMaxPayloadBytes);
  if (payload.ok()) return payload;
  return absl::Status(payload.status().code(),
                      absl::StrCat(wanted.name, ", ", payload.status().message()));
}

}  // namespace mallocgame
