#include "mallocgame/pjrt/partial_program.h"

#include <zstd.h>

#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/pjrt/wire.h"

namespace mallocgame::pjrt {
namespace {

// The fields of PjRtPartialProgramProto.
enum Field {
  kProgram = 1,
  kFormat = 2,
  kGeneratingPhase = 3,
  kNextPhases = 4,
  kVersion = 5,
  kName = 6
};

constexpr absl::string_view kZstdMagic = "\x28\xb5\x2f\xfd";
constexpr size_t kLargestProgram = size_t{1} << 31;
constexpr int kCompressionLevel = 3;  // zstd's default

absl::StatusOr<std::string> Decompress(absl::string_view bytes) {
  const std::unique_ptr<ZSTD_DCtx, size_t (*)(ZSTD_DCtx*)> context(ZSTD_createDCtx(),
                                                                   &ZSTD_freeDCtx);
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  std::string part(ZSTD_DStreamOutSize(), '\0');
  std::string program;
  size_t left = 1;  // 0: a frame has come to its end
  while (in.pos < in.size || left != 0) {
    ZSTD_outBuffer out{part.data(), part.size(), 0};
    const size_t read = in.pos;
    left = ZSTD_decompressStream(context.get(), &out, &in);
    if (ZSTD_isError(left)) {
      return absl::InvalidArgumentError(
          absl::StrCat("partial program: its compressed program: ", ZSTD_getErrorName(left)));
    }
    program.append(part.data(), out.pos);
    if (program.size() > kLargestProgram) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "partial program: found more than ", kLargestProgram, " bytes, allowed: no more"));
    }
    if (left != 0 && in.pos == read && out.pos == 0)
      return absl::InvalidArgumentError("partial program: its compressed program has no end");
  }
  return program;
}

std::string Compress(absl::string_view program) {
  std::string bytes(ZSTD_compressBound(program.size()), '\0');
  const size_t size =
      ZSTD_compress(bytes.data(), bytes.size(), program.data(), program.size(), kCompressionLevel);
  MG_CHECK(!ZSTD_isError(size));
  bytes.resize(size);
  return bytes;
}

// An empty text is left out, as Protobuf does.
void AppendText(Field field, const std::string& text, std::string* message) {
  if (!text.empty()) AppendBytes(field, text, message);
}

}  // namespace

absl::StatusOr<PartialProgram> ParsePartialProgram(absl::string_view bytes) {
  PartialProgram partial;
  absl::string_view program;
  while (!bytes.empty()) {
    WireField field;
    if (const absl::Status status = TakeField(&bytes, &field); !status.ok())
      return absl::InvalidArgumentError(absl::StrCat("partial program: ", status.message()));
    if (!field.has_bytes) continue;
    switch (field.number) {
      case kProgram: program = field.bytes; break;
      case kFormat: partial.format = std::string(field.bytes); break;
      case kGeneratingPhase: partial.generating_phase = std::string(field.bytes); break;
      case kNextPhases: partial.next_phases.emplace_back(field.bytes); break;
      case kVersion: partial.version = std::string(field.bytes); break;
      case kName: partial.name = std::string(field.bytes); break;
      default: break;
    }
  }
  partial.compressed = absl::StartsWith(program, kZstdMagic);
  if (partial.compressed) {
    MG_ASSIGN_OR_RETURN(partial.program, Decompress(program));
  } else {
    partial.program = std::string(program);
  }
  return partial;
}

std::string SerializePartialProgram(const PartialProgram& partial) {
  std::string bytes;
  AppendBytes(kProgram, partial.compressed ? Compress(partial.program) : partial.program, &bytes);
  AppendText(kFormat, partial.format, &bytes);
  AppendText(kGeneratingPhase, partial.generating_phase, &bytes);
  for (const std::string& phase : partial.next_phases) AppendBytes(kNextPhases, phase, &bytes);
  AppendText(kVersion, partial.version, &bytes);
  AppendText(kName, partial.name, &bytes);
  return bytes;
}

}  // namespace mallocgame::pjrt
