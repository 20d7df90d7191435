#include "mallocgame/pjrt/partial_program.h"

#include <zstd.h>

#include <cstddef>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/pjrt/compile.pb.h"

namespace mallocgame::pjrt {
namespace {

constexpr absl::string_view kZstdMagic = "\x28\xb5\x2f\xfd";
constexpr size_t kLargestProgram = std::numeric_limits<int>::max();  // of a message too
constexpr int kCompressionLevel = 3;                                 // zstd's default

absl::Status TooLarge() {
  return absl::ResourceExhaustedError(absl::StrCat("partial program: found more than ",
                                                   kLargestProgram, " bytes, allowed: no more"));
}

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
    if (program.size() > kLargestProgram) return TooLarge();
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

}  // namespace

absl::StatusOr<PartialProgram> ParsePartialProgram(absl::string_view bytes) {
  PartialProgramProto message;
  if (bytes.size() > kLargestProgram) return TooLarge();
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return absl::InvalidArgumentError("partial program: its message is damaged");
  PartialProgram partial;
  partial.format = message.format();
  partial.generating_phase = message.generating_phase();
  partial.next_phases.assign(message.next_phases().begin(), message.next_phases().end());
  partial.version = message.version();
  partial.name = message.name();
  const absl::string_view program = message.program();
  partial.compressed = absl::StartsWith(program, kZstdMagic);
  if (partial.compressed) {
    MG_ASSIGN_OR_RETURN(partial.program, Decompress(program));
  } else {
    partial.program = std::string(program);
  }
  return partial;
}

std::string SerializePartialProgram(const PartialProgram& partial) {
  PartialProgramProto message;
  message.set_program(partial.compressed ? Compress(partial.program) : partial.program);
  // An empty text is left out.
  if (!partial.format.empty()) message.set_format(partial.format);
  if (!partial.generating_phase.empty()) message.set_generating_phase(partial.generating_phase);
  for (const std::string& phase : partial.next_phases) message.add_next_phases(phase);
  if (!partial.version.empty()) message.set_version(partial.version);
  if (!partial.name.empty()) message.set_name(partial.name);
  return message.SerializeAsString();
}

}  // namespace mallocgame::pjrt
