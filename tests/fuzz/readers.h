// Everything in the library that reads bytes from outside, as functions of one byte string.
// libFuzzer calls them, and the ordinary tests run them over the seeds. A reader may refuse its
// input. What it accepts must be usable, and must survive being written and read again; otherwise
// the process ends.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace mallocgame::fuzz {

struct Reader {
  absl::string_view name;                 // names the fuzzer fuzz_NAME and the folder seeds/NAME
  bool (*read)(absl::string_view bytes);  // returns false if it refuses
};

// What the bytes of each reader are:
//
//   hlo           a module
//   priced        two parts: a module, and one after code generation
//   profile       two parts: a module, and a profile's JSON text
//   assignment    two parts: a module, and one after memory space assignment
//   program       edits of a random program (edited_program.h), given to Program::Create
//   program_file  the payload of a program file
//   game_log      the payload of a game log
//   plan          JSON text of a plan of SampleProgram()
//   hardware      JSON text
//   offsets       CSV text of an offset problem
//
// A payload has no compression, because its checksum would stop every mutation. The tests of
// container.h cover that.
absl::Span<const Reader> Readers();

// Those of the agents that learn. They are a library of their own, because no source may see both
// protobuf and Torch, and are there where the agents are.
//
//   muzero        a byte for the game, and a checkpoint without its envelope
//   muzero_actor  a byte for the game, and whether what follows is an assignment or a harvest
//   egrl          a checkpoint without its envelope
//
// The envelope's checksum would stop every mutation, so that it is put around the bytes.
absl::Span<const Reader> AgentReaders();

// Joins byte strings. Each but the last has its length before it, in four bytes, least significant
// first.
std::string JoinParts(std::initializer_list<absl::string_view> parts);
// Splits any bytes the same way. A length that is too large takes what there is.
std::vector<absl::string_view> SplitParts(absl::string_view bytes, size_t count);

}  // namespace mallocgame::fuzz
