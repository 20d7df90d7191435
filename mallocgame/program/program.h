// A scheduled program as the memory-mapping problem sees it: instructions on one time axis,
// buffers, and the accesses between them. Immutable; knows nothing of HLO, of hardware sizes or of
// games.
//
//   buffer  one storage unit after alias analysis (XLA: an alias set of HloValues; the papers: a
//           tensor)
//   access  one instruction reading or writing one buffer (XLA: a use or a definition)
//   tick    position in the flattened schedule
//
// Time axis. Instructions stand in schedule order. A `while` contributes, in this order: one tick
// of kind kLoopEntry, the ticks of its condition, the ticks of its body, and one tick of kind
// kLoopExit (the while instruction itself). A conditional contributes its branches in order and
// then itself; a call its callee and then itself. Leaving out the kLoopEntry ticks gives XLA's
// logical time (XLA reference 1.1), kept in Instruction::logical_time.
#ifndef MALLOCGAME_PROGRAM_PROGRAM_H_
#define MALLOCGAME_PROGRAM_PROGRAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/base/ids.h"

namespace mallocgame {

enum class RegionKind : uint8_t { kEntry, kLoopCondition, kLoopBody, kBranch, kCall };

// One run of a computation on the time axis. Regions nest; region 0 is the entry.
struct Region {
  RegionKind kind = RegionKind::kEntry;
  int32_t parent = -1;  // index of the enclosing region; -1 for the entry
  int32_t loop = -1;    // index into loops() for kLoopCondition and kLoopBody, else -1
  Tick begin = 0;       // ticks [begin, end), nested regions included
  Tick end = 0;
  // how often the region runs in one run of the program: nested loops multiply
  int64_t trips = 1;
  friend bool operator==(const Region&, const Region&) = default;
};

struct Loop {
  // its kLoopEntry tick; the region of the entry and exit ticks is the enclosing one
  Tick entry = 0;
  Tick exit = 0;      // its kLoopExit tick; condition and body are the ticks [entry + 1, exit)
  int64_t trips = 1;  // runs of the body for each entry
  bool trips_known = true;  // false: `trips` is the documented default
  friend bool operator==(const Loop&, const Loop&) = default;
};

enum class InstructionKind : uint8_t { kOrdinary, kLoopEntry, kLoopExit };

struct Instruction {
  std::string name;    // HLO name without '%'; a kLoopEntry has the name of its while
  std::string opcode;  // HLO spelling
  InstructionKind kind = InstructionKind::kOrdinary;
  int32_t region = 0;
  int32_t logical_time = 0;  // XLA's; a kLoopEntry has that of the instruction after it
  // bytes [0, reserved) of fast memory that the instruction needs for itself while it runs
  int64_t reserved_bytes = 0;
  // its accesses are accesses()[first_access, first_access + access_count): reads, then
  int32_t first_access = 0;
  // updates, then writes. At most 64. The position in that list is the access's slot.
  int32_t access_count = 0;
  // A `copy` with the same layout in and out, that a plan may take over: its slot 0 reads, its slot
  // 1 writes. If the plan holds a Copy with `replaces` = this tick, the instruction takes no time.
  bool plain_copy = false;
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

enum class AccessKind : uint8_t {
  kRead,
  kUpdate,  // reads the old value and writes the new one in the same place
  kWrite,
  kLoopEntry,  // the loop of this tick carries the buffer and uses it
};

struct Access {
  Tick tick = 0;
  BufferId buffer;
  AccessKind kind = AccessKind::kRead;
  // of a kLoopEntry: some access inside the loop writes or updates the buffer
  bool writes_in_loop = false;
  friend bool operator==(const Access&, const Access&) = default;
};

enum class BufferOrigin : uint8_t {
  kInstruction,  // its first access writes it
  kParameter,    // an entry parameter: its first value is in main memory before the program starts
  kConstant,     // in main memory likewise, but can't be preloaded
  // storage without a value (AllocateBuffer): nothing to fetch before the first write or update
  kUndefined,
};

struct Buffer {
  // the instruction that defines it; with a shape index in braces if it is part of a tuple
  std::string name;
  int64_t size_bytes = 0;  // tiled and padded; > 0
  BufferOrigin origin = BufferOrigin::kInstruction;
  bool is_output = false;  // an entry output: the last value must be in main memory at the end
  // False: always in main memory, and the program holds no accesses of it. `ineligible_because`
  // says why, in the words of the XLA reference 1.5 ("effective scalar", "other memory space",
  // "written in a branch").
  bool eligible = true;
  std::string ineligible_because;
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

// What an instruction costs, by the placement of its arrays. mallocgame/program/cost_model.h turns
// it into time.
struct CostArray {
  int64_t size_bytes = 0;      // tiled and padded: what the instruction moves at most
  int64_t accessed_bytes = 0;  // what it moves by HloCostAnalysis (slices, updates); roofline only
  // the access that decides where it lies; -1: no access, it never moves
  int32_t slot = -1;
  // of slot -1: it lies in main memory (false: scalar memory and the like)
  bool in_main = true;
  friend bool operator==(const CostArray&, const CostArray&) = default;
};

struct InstructionCost {
  std::vector<CostArray> operands;  // one an operand (of a tuple operand the sum), at most 64
  std::vector<CostArray> outputs;   // one an output array, at most 64
  // profile: index into CostData::pools; -1: not priced by the compiler
  int32_t pool = -1;
  // profile, pool -1: bytes moved, costs 2 x these over the main bandwidth; 0: free
  int64_t unpriced_bytes = 0;
  int64_t flops = 0;            // roofline
  int64_t transcendentals = 0;  // roofline
  friend bool operator==(const InstructionCost&, const InstructionCost&) = default;
};

// One price the compiler wrote: bit i of `operands` (`outputs`) = operand (output array) i lay in
// fast memory.
struct CostRow {
  uint64_t operands = 0;
  uint64_t outputs = 0;
  int64_t cycles = 0;
  friend bool operator==(const CostRow&, const CostRow&) = default;
};

// The rows of all instructions of one structure (opcode, shapes with layouts, fused computation),
// sorted and distinct.
struct CostPool {
  std::vector<CostRow> rows;
  friend bool operator==(const CostPool&, const CostPool&) = default;
};

enum class CostKind : uint8_t { kRoofline, kProfile };

struct CostData {
  CostKind kind = CostKind::kRoofline;
  std::vector<InstructionCost> instructions;  // one a tick
  std::vector<CostPool> pools;
  friend bool operator==(const CostData&, const CostData&) = default;
};

// Everything a Program is made of, as plain values.
struct ProgramData {
  std::string name;
  // entry parameters as the caller passes them: product of dimensions, no padding
  int64_t argument_bytes = 0;
  std::vector<Instruction> instructions;  // one a tick
  std::vector<Region> regions;
  std::vector<Loop> loops;
  std::vector<Buffer> buffers;
  // by tick; within one by kind (kRead, kUpdate, kWrite); loop entries by buffer
  std::vector<Access> accesses;
  CostData cost;
  friend bool operator==(const ProgramData&, const ProgramData&) = default;
};

class Program {
 public:
  // Checks every invariant above; InvalidArgument names the first one broken and where.
  static absl::StatusOr<std::shared_ptr<const Program>> Create(ProgramData data);

  const std::string& name() const { return data_.name; }
  absl::Span<const Instruction> instructions() const { return data_.instructions; }
  absl::Span<const Region> regions() const { return data_.regions; }
  absl::Span<const Loop> loops() const { return data_.loops; }
  absl::Span<const Buffer> buffers() const { return data_.buffers; }
  absl::Span<const Access> accesses() const { return data_.accesses; }
  const CostData& cost() const { return data_.cost; }
  const ProgramData& data() const { return data_; }

  Tick ticks() const { return static_cast<Tick>(data_.instructions.size()); }
  // as HLO counts: without kLoopEntry ticks
  int64_t instruction_count() const { return instruction_count_; }
  int64_t eligible_count() const { return eligible_count_; }

  const Instruction& instruction(Tick tick) const { return data_.instructions[tick]; }
  const Buffer& buffer(BufferId id) const { return data_.buffers[id.index()]; }
  const Access& access(AccessId id) const { return data_.accesses[id.index()]; }
  int32_t slot(AccessId id) const { return id.value - instruction(access(id).tick).first_access; }
  int64_t trips(Tick tick) const { return data_.regions[instruction(tick).region].trips; }
  // Index into regions() of the innermost region around `tick`. ticks(), the end of the program, lies
  // in the entry.
  int32_t region_at(Tick tick) const { return tick < ticks() ? instruction(tick).region : 0; }
  // The end of the innermost loop condition, loop body or branch around `tick`, else of the program:
  // a residence that begins at `tick` ends at or before it.
  Tick scope_end(Tick tick) const { return scope_end_[region_at(tick)]; }
  // The accesses of one buffer in time order.
  absl::Span<const AccessId> accesses_of(BufferId id) const;
  // The loop whose entry or exit tick this is. `tick` must be one.
  const Loop& loop_at(Tick tick) const { return data_.loops[loop_at_[tick]]; }

  // Segments: maximal runs of ticks that no copy window may leave. They end where a region begins
  // or ends; a loop's entry tick is the last of its segment, the exit tick the first.
  // segment_begin(t) <= t < segment_end(t).
  Tick segment_begin(Tick tick) const { return segment_begin_[tick]; }
  Tick segment_end(Tick tick) const { return segment_end_[tick]; }

  // 16 hex digits over everything the program is made of; equal data, equal fingerprint, on every
  // machine.
  const std::string& fingerprint() const { return fingerprint_; }

 private:
  explicit Program(ProgramData data);

  ProgramData data_;
  int64_t instruction_count_ = 0;
  int64_t eligible_count_ = 0;
  std::vector<AccessId> by_buffer_;    // accesses sorted by buffer, then time
  std::vector<int32_t> buffer_first_;  // by_buffer_[buffer_first_[b], buffer_first_[b + 1])
  std::vector<int32_t> loop_at_;
  std::vector<Tick> scope_end_;  // one for each region
  std::vector<Tick> segment_begin_, segment_end_;
  std::string fingerprint_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_PROGRAM_PROGRAM_H_
