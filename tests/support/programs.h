// Programs for tests: a builder for tiny ones made by hand, and a seeded generator of random ones.
// With TestHardware a byte, a cycle and a flop take one picosecond each, so that every expected
// number can be worked out on paper.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/program/program.h"

namespace mallocgame::testing {

// Main memory moves 1 byte in a picosecond, fast memory 2; a cycle and a flop take 1 ps. Up to 4
// prefetches, 4 evictions and 1 preload are allowed.
Hardware TestHardware(int64_t fast_bytes, int64_t alignment_bytes = 1);

// A speed of one byte, or one operation, a picosecond, in the units of Hardware and Hierarchy.
inline constexpr int64_t kBytePerPs = 1'000'000'000'000;

// What ProgramBuilder::Add makes an instruction from. Its slots are the reads, then the updates,
// then the writes. Each read and update is an operand array and each update and write an output
// array, of the buffer's whole size.
struct Op {
  std::string name;
  std::vector<BufferId> reads = {};
  std::vector<BufferId> updates = {};
  std::vector<BufferId> writes = {};
  // For profile programs. One number is the time wherever the arrays lie; 2^slots numbers are the
  // times by the mask of slots in fast memory; without a number the instruction is free.
  std::vector<int64_t> cycles = {};
  // For roofline programs.
  int64_t flops = 0;
  int64_t transcendentals = 0;

  int64_t reserved_bytes = 0;
  bool plain_copy = false;
  bool results_in_main = false;
};

// Ticks come in the order of the calls. Loop-entry accesses are made by Data and Build: a buffer
// gets one if it is accessed inside the loop and is a parameter, an output, or accessed outside
// too.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string name = "tiny", CostKind kind = CostKind::kProfile);

  BufferId Parameter(std::string name, int64_t size_bytes);
  BufferId Constant(std::string name, int64_t size_bytes);
  BufferId Undefined(std::string name, int64_t size_bytes);
  BufferId Result(std::string name, int64_t size_bytes);  // its first access must be a write
  void MarkOutput(BufferId buffer);
  void MarkIneligible(BufferId buffer, std::string because);

  Tick Add(const Op& op);

  // BeginLoop adds the entry tick, opens the condition and returns the tick; BeginBody opens the
  // body; EndLoop adds the exit tick and returns it. A condition or body that is left empty gets
  // one free instruction.
  Tick BeginLoop(const std::string& name, int64_t trips);
  void BeginBody();
  Tick EndLoop();
  // The buffer's access at `begin` begins a transfer that the instruction at `end` ends, which
  // accesses it too.
  void Hold(BufferId buffer, Tick begin, Tick end);
  // Opens and closes a branch of a conditional. After the last one, Add the conditional itself.
  void BeginBranch();
  void EndBranch();
  // Opens and closes a called computation. After EndCall, Add the call itself.
  void BeginCall();
  void EndCall();

  // Returns what Build hands to Program::Create, for tests that break it on purpose.
  ProgramData Data() const;
  // Returns the program. The process ends if it breaks an invariant.
  std::shared_ptr<const Program> Build() const;

 private:
  BufferId AddBuffer(std::string name, int64_t size_bytes, BufferOrigin origin);
  Tick AddInstruction(const std::string& name, const std::string& opcode, InstructionKind kind);
  void Access(Tick tick, BufferId buffer, AccessKind kind);
  void OpenRegion(RegionKind kind, int32_t loop, int64_t trips);
  void CloseRegion();
  void AddLoopEntryAccesses(std::vector<std::vector<mallocgame::Access>>& accesses) const;

  ProgramData data_;
  std::vector<std::vector<mallocgame::Access>> accesses_;  // one list for each tick
  int32_t region_ = 0;
  std::vector<int32_t> open_loops_;
};

// Three instructions of 10 ps, the last of which reads a parameter of 4 bytes and takes 3 ps if
// that is in fast memory. At that read Drop, Copy, NoCopy and CopyEarly are legal.
ProgramBuilder ReadAtTheEnd();

struct RandomProgramOptions {
  int instructions = 12;  // about this many
  int loops = 2;          // at most this many, nested at most twice
  int branches = 1;       // at most this many
  int64_t size_unit = 1;  // buffers have 1 to 8 times this size
  bool plain_copies = true;
  bool undefined = true;
  bool ineligible = true;
  // Of the ordinary instructions a quarter reserve fast memory, and as many make what they write in
  // main memory; of the accesses some begin transfers, which hold their buffers.
  bool constrained = false;
  // Of the accesses an eighth are pinned to a memory, where a program may.
  bool pinned = false;
  bool roofline = false;  // otherwise a profile with a row for every placement
};

// Returns another program for every state of `rng`. It has parameters (some are donated, so that
// they are written later), constants, undefined storage, reads, updates and writes, loops with one
// to four trips, and outputs.
std::shared_ptr<const Program> RandomProgram(Rng& rng, const RandomProgramOptions& options = {});

// The same program, which has other prices too, of a slower copy channel.
std::shared_ptr<const Program> WithOtherPrices(const Program& program, Rng& rng);

}  // namespace mallocgame::testing
