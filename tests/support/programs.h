// Programs for tests: a builder for tiny ones by hand, and a seeded generator of random ones. With
// TestHardware a byte, a cycle and a flop take one picosecond each, so every expected number can be
// worked out on paper.
#ifndef MALLOCGAME_TESTS_SUPPORT_PROGRAMS_H_
#define MALLOCGAME_TESTS_SUPPORT_PROGRAMS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/program/program.h"

namespace mallocgame::testing {

// Main memory moves 1 byte a ps, fast memory 2; a cycle and a flop take 1 ps; up to 4 copies each
// way, 1 preload.
Hardware TestHardware(int64_t fast_bytes, int64_t alignment_bytes = 1);

// What ProgramBuilder::Add makes an instruction of. Its slots are the reads, then the updates, then
// the writes; each read and update is an operand array, each update and write an output array, of
// the buffer's whole size.
struct Op {
  std::string name;
  std::vector<BufferId> reads = {};
  std::vector<BufferId> updates = {};
  std::vector<BufferId> writes = {};
  // Profile programs. One number: the time wherever the arrays lie. 2^slots numbers: by the mask of
  // slots in fast memory. None: free.
  std::vector<int64_t> cycles = {};
  // Roofline programs.
  int64_t flops = 0;
  int64_t transcendentals = 0;

  int64_t reserved_bytes = 0;
  bool plain_copy = false;
};

// Ticks come in the order of the calls. Loop-entry accesses follow from the accesses inside: a
// buffer gets one if it is accessed inside and is a parameter, an output, or accessed outside too.
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

  // BeginLoop adds the entry tick and opens the condition, BeginBody the body, EndLoop adds the
  // exit tick and returns it. A condition or body left empty gets one free instruction.
  Tick BeginLoop(const std::string& name, int64_t trips);
  void BeginBody();
  Tick EndLoop();
  // A branch of a conditional; after the last one, Add the conditional itself.
  void BeginBranch();
  void EndBranch();
  // A called computation; after EndCall, Add the call itself.
  void BeginCall();
  void EndCall();

  // What Build hands to Program::Create, to be broken on purpose.
  ProgramData Data() const;
  // The program; ends the process if it breaks an invariant.
  std::shared_ptr<const Program> Build() const;

 private:
  BufferId AddBuffer(std::string name, int64_t size_bytes, BufferOrigin origin);
  Tick AddInstruction(const std::string& name, const std::string& opcode, InstructionKind kind);
  void Access(Tick tick, BufferId buffer, AccessKind kind);
  void OpenRegion(RegionKind kind, int32_t loop, int64_t trips);
  void CloseRegion();
  void AddLoopEntryAccesses(std::vector<std::vector<mallocgame::Access>>& accesses) const;

  ProgramData data_;
  std::vector<std::vector<mallocgame::Access>> accesses_;  // one list a tick
  int32_t region_ = 0;
  std::vector<int32_t> open_loops_;
};

struct RandomProgramOptions {
  int instructions = 12;  // about so many
  int loops = 2;          // at most; nested at most twice
  int branches = 1;       // at most
  int64_t size_unit = 1;  // buffer sizes are 1 to 8 of these
  bool plain_copies = true;
  bool undefined = true;
  bool ineligible = true;
  bool roofline = false;  // else a profile with a row for every placement
};

// Another program for every state of `rng`: parameters (some donated, so that they are written
// later), constants, undefined storage, reads, updates and writes, loops with one to four trips,
// outputs.
std::shared_ptr<const Program> RandomProgram(Rng& rng, const RandomProgramOptions& options = {});

}  // namespace mallocgame::testing

#endif  // MALLOCGAME_TESTS_SUPPORT_PROGRAMS_H_
