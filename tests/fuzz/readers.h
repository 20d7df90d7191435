// Everything in the library that reads bytes from outside, as functions of one byte string: what
// libFuzzer calls, and what the ordinary tests run over the seeds. A reader may refuse its input;
// what it accepts must be usable and must survive being written and read again. Anything else ends
// the process.
#ifndef MALLOCGAME_TESTS_FUZZ_READERS_H_
#define MALLOCGAME_TESTS_FUZZ_READERS_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mallocgame::fuzz {

struct Reader {
  absl::string_view name;                 // of the fuzzer fuzz_NAME and of the folder seeds/NAME
  bool (*read)(absl::string_view bytes);  // false: refused
};

// hlo           a module priced        two parts: a module, and one after code generation profile
//               two parts: a module, and a profile's JSON text assignment    two parts: a module,
//               and one after memory space assignment program       edits of a random program
//               (edited_program.h), given to Program::Create program_file  the payload of a program
//               file; game_log: that of a game log (without compression, whose checksum would stop
//               every mutation; container.h's own tests cover it) plan          JSON text of a plan
//               of FuzzProgram() hardware      JSON text
absl::Span<const Reader> Readers();

// Several byte strings in one: each but the last stands behind its length in four bytes, least
// significant first.
std::string JoinParts(std::initializer_list<absl::string_view> parts);
// The inverse, for any bytes: a length that is too large takes what there is.
std::vector<absl::string_view> SplitParts(absl::string_view bytes, size_t count);

}  // namespace mallocgame::fuzz

#endif  // MALLOCGAME_TESTS_FUZZ_READERS_H_
