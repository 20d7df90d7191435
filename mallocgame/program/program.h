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
#pragma once

#include <compare>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/program/both_prices.h"

namespace mallocgame {

// A region runs at most so often.
inline constexpr int64_t kMaxTrips = int64_t{1} << 40;

enum class RegionKind : uint8_t { kEntry, kLoopCondition, kLoopBody, kBranch, kCall };

// One computation on the time axis. Regions nest; region 0 is the entry.
struct Region {
  RegionKind kind = RegionKind::kEntry;
  int32_t parent = -1;  // index of the enclosing region; -1 for the entry
  int32_t loop = -1;    // index into loops() for kLoopCondition and kLoopBody, else -1
  // The region holds the ticks [begin, end), nested regions included.
  Tick begin = 0;
  Tick end = 0;
  // How often the region runs in one run of the program: the trips of nested loops multiply. With 0
  // it never runs, so its instructions have no accesses and cost nothing.
  int64_t trips = 1;
  friend bool operator==(const Region&, const Region&) = default;
};

struct Loop {
  // The loop's ticks of kind kLoopEntry and kLoopExit. Both lie in the enclosing region; condition
  // and body are the ticks [entry + 1, exit) between them.
  Tick entry = 0;
  Tick exit = 0;
  int64_t trips = 1;  // runs of the body for each entry
  // False if `trips` isn't what the HLO says: that can't be read, or it is more than is counted.
  bool trips_known = true;
  friend bool operator==(const Loop&, const Loop&) = default;
};

enum class InstructionKind : uint8_t { kOrdinary, kLoopEntry, kLoopExit };

struct Instruction {
  std::string name;    // HLO name without '%'; a kLoopEntry has the name of its while
  std::string opcode;  // in HLO's spelling
  InstructionKind kind = InstructionKind::kOrdinary;
  int32_t region = 0;        // index into regions() of the innermost region around it
  int32_t logical_time = 0;  // XLA's; a kLoopEntry has that of the instruction after it
  // The instruction needs bytes [0, reserved_bytes) of fast memory for itself while it runs.
  int64_t reserved_bytes = 0;
  // Its accesses are accesses()[first_access, first_access + access_count): reads, then updates,
  // then writes, at most 64. An access's position in that list is its slot.
  int32_t first_access = 0;
  int32_t access_count = 0;
  // The instruction is a `copy` that keeps the layout, or a `slice` that XLA can make asynchronous:
  // slot 0 reads, slot 1 writes. A plan may take it over: if the plan holds a Copy whose `replaces`
  // is this tick, the instruction takes no time.
  bool plain_copy = false;
  // The instruction can't write or update anything in fast memory. Copies may bring it there
  // afterwards, or take the place of a plain copy.
  bool results_in_main = false;
  // Where the source made it: XLA's op_name, such as jit(step)/layer_3/attention/dot_general.
  // Empty: not known, as of what the compiler added. The fingerprint leaves it out, because it
  // changes neither which plans are valid nor what they cost.
  std::string op_name;
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

enum class AccessKind : uint8_t {
  kRead,
  kUpdate,  // reads the old value and writes the new one in the same place
  kWrite,
  kLoopEntry,  // the loop of this tick carries the buffer and uses it
};

// The memory that serves an access in every plan, because its instruction is a kernel whose author
// pins the array there: the kernel's code is of one memory.
enum class Pin : uint8_t { kNone, kMain, kFast };

struct Access {
  Tick tick = 0;
  BufferId buffer;
  AccessKind kind = AccessKind::kRead;
  // For a kLoopEntry: whether some access inside the loop writes or updates the buffer.
  bool writes_in_loop = false;
  // The access begins a transfer, between chips or of a kernel, that holds the buffer until this
  // tick: up to then all accesses of the buffer are served by the residence that serves this one,
  // or all from main memory. 0: it begins none. Of one buffer such times don't overlap.
  Tick held_until = 0;
  Pin pin = Pin::kNone;
  friend bool operator==(const Access&, const Access&) = default;
};

enum class BufferOrigin : uint8_t {
  kInstruction,  // the buffer's first access writes it
  kParameter,    // an entry parameter: its first value is in main memory before the program starts
  kConstant,     // in main memory before the program starts, but cannot be preloaded
  kUndefined,    // AllocateBuffer: storage without a value until its first write or update
};

struct Buffer {
  // The name of the instruction that defines it, with a shape index in braces if it is part of a
  // tuple.
  std::string name;
  int64_t size_bytes = 0;  // tiled and padded; > 0
  // Copies in slices cut it at multiples of so many bytes, which are one row of tiles of its
  // outermost dimension. 0: not known. The fingerprint leaves it out, because it changes neither
  // which plans are valid nor what they cost.
  int64_t unit_bytes = 0;
  BufferOrigin origin = BufferOrigin::kInstruction;
  bool is_output = false;  // an entry output: the last value must be in main memory at the end
  // A buffer that is not eligible is always in main memory, and the program holds no accesses of
  // it. `ineligible_because` says why, in the words of the XLA reference 1.5 ("effective scalar",
  // "other memory space", "written in a branch"); it is empty for an eligible buffer.
  bool eligible = true;
  std::string ineligible_because;
  // Whether a copy may bring it to fast memory before the program starts, and for the next run at
  // the end of this one. What the program returns is written over a donated parameter, so the next
  // run starts with another value.
  bool CanBePreloaded() const { return origin == BufferOrigin::kParameter && !is_output; }
  friend bool operator==(const Buffer&, const Buffer&) = default;
};

// One operand or output array of an instruction, as its cost depends on it.
// mallocgame/program/cost_model.h turns costs into time.
struct CostArray {
  int64_t size_bytes = 0;  // tiled and padded: the most that the instruction moves of it
  // The bytes that the instruction moves of it by HloCostAnalysis, which counts only the touched
  // part of slices and updates. The roofline counts these, and a predicted price is not below
  // their time in main memory.
  int64_t accessed_bytes = 0;
  // The slot of the access that decides where the array lies; -1 if the program holds no access of
  // it, so that no plan moves it.
  int32_t slot = -1;
  // For slot -1: whether the array lies in main memory; else it lies in scalar memory or the like.
  bool in_main = true;
  friend bool operator==(const CostArray&, const CostArray&) = default;
};

// What an instruction costs, whatever the placement of its arrays.
struct InstructionCost {
  // One for each operand, at most 64. The arrays of a tuple operand are summed up in one.
  std::vector<CostArray> operands;
  std::vector<CostArray> outputs;  // one for each output array, at most 64
  // Used by the profile: index into CostData::pools; -1 if the compiler did not price the
  // instruction.
  int32_t pool = -1;
  // Used by the profile for pool -1: the bytes the instruction moves. It costs twice their transfer
  // over the main-memory bandwidth; with 0 bytes it is free.
  int64_t unpriced_bytes = 0;
  // Used by the profile for pool -1 and no unpriced bytes: the instruction is a kernel whose price
  // is the roofline's.
  bool kernel = false;
  int64_t flops = 0;            // used by the roofline
  int64_t transcendentals = 0;  // used by the roofline
  // The time that the program waits for links between chips or for the host, wherever the arrays
  // lie. It comes from a model, as the compiler prices none of it, and is added to what the fields
  // above cost.
  int64_t link_ps = 0;
  friend bool operator==(const InstructionCost&, const InstructionCost&) = default;
};

// One price that the compiler wrote: the instruction took `cycles` with its arrays where the bits
// say. Bit i of `operands` is set if operand i lay in fast memory, bit i of `outputs` if output
// array i did.
struct CostRow {
  uint64_t operands = 0;
  uint64_t outputs = 0;
  int64_t cycles = 0;
  friend bool operator==(const CostRow&, const CostRow&) = default;
};

// What kind of work an instruction does. Calibrated prices differ by it.
enum class WorkClass : uint8_t {
  kUnknown,    // the program was imported before classes were known
  kMatmul,     // a dot or convolution, alone or in a fusion
  kReduction,  // a reduction without one of those
  kCopy,       // nothing but another place or another layout
  kVector,     // all other work on elements
  kKernel,     // a custom call
};

// The rows of all instructions of one structure (opcode, shapes with layouts, fused computation),
// sorted and distinct.
struct CostPool {
  std::vector<CostRow> rows;
  // The fingerprint leaves these two out, because they change neither which plans are valid nor
  // what they cost.
  WorkClass work = WorkClass::kUnknown;
  // The bits of the widest type that a quarter of its elements has; 0: not known, or no elements.
  int32_t element_bits = 0;
  friend bool operator==(const CostPool&, const CostPool&) = default;
};

enum class CostKind : uint8_t {
  kRoofline,    // no prices
  kProfile,     // the compiler's prices
  kCalibrated,  // those prices after a law (program/calibrate.h)
};

struct CostData {
  CostKind kind = CostKind::kRoofline;
  bool has_prices() const { return kind != CostKind::kRoofline; }
  std::vector<InstructionCost> instructions;  // one for each tick; that of a kLoopEntry is empty
  std::vector<CostPool> pools;
  friend bool operator==(const CostData&, const CostData&) = default;
};

// The instruction at `before` runs before that at `after`, in every order of instructions that
// computes the same. Both stand in one region. A loop, conditional or call is named by its last
// tick, and stands for all that is inside it.
struct Dependence {
  Tick before = 0, after = 0;
  friend auto operator<=>(const Dependence&, const Dependence&) = default;
};

// The instruction at `tick` reads or writes a buffer that is not eligible, of which the program
// holds no access.
struct MainUse {
  Tick tick = 0;
  BufferId buffer;
  friend bool operator==(const MainUse&, const MainUse&) = default;
};

// Everything a Program is made of, as plain values.
struct ProgramData {
  std::string name;
  // Bytes of the entry parameters as the caller passes them: without tiles and padding.
  int64_t argument_bytes = 0;
  // XLA measures how long before its use a copy begins as if each had so many bytes; 0: its own. It
  // follows from all of the module, which a program doesn't hold. The fingerprint leaves it out,
  // because it changes neither which plans are valid nor what they cost.
  int64_t window_bytes = 0;
  std::vector<Instruction> instructions;  // one for each tick
  std::vector<Region> regions;
  std::vector<Loop> loops;
  std::vector<Buffer> buffers;
  // Sorted by tick. Within a tick by kind (kRead, kUpdate, kWrite), loop entries by buffer.
  std::vector<Access> accesses;
  CostData cost;
  // What other orders of the instructions have to keep (schedule/instruction_order.h), sorted and
  // distinct. The fingerprint leaves these three out, because they change neither which plans are
  // valid nor what they cost.
  bool has_dependences = false;  // false: nobody knows them, so no other order is legal
  std::vector<Dependence> dependences;
  std::vector<MainUse> main_uses;  // sorted by tick, then buffer, and distinct
  friend bool operator==(const ProgramData&, const ProgramData&) = default;
};

class Program {
 public:
  // Checks every invariant above. InvalidArgument names the first one that is broken, and where.
  static absl::StatusOr<std::shared_ptr<const Program>> Create(ProgramData data);
  // For a caller who knows that the data keeps them, as that of a program in another order does.
  static std::shared_ptr<const Program> OfChecked(ProgramData data);
  // The same program, with the same fingerprint: searches of it go by both sets of prices.
  static std::shared_ptr<const Program> WithBoth(const Program& program, BothPrices both);
  // The same program, with the same fingerprint, at cautious prices (cost_model.h). `caution` is at
  // least 0.
  static std::shared_ptr<const Program> WithCaution(const Program& program, double caution);

  const std::string& name() const { return data_.name; }
  absl::Span<const Instruction> instructions() const { return data_.instructions; }
  absl::Span<const Region> regions() const { return data_.regions; }
  absl::Span<const Loop> loops() const { return data_.loops; }
  absl::Span<const Buffer> buffers() const { return data_.buffers; }
  absl::Span<const Access> accesses() const { return data_.accesses; }
  const CostData& cost() const { return data_.cost; }
  const ProgramData& data() const { return data_; }

  Tick ticks() const { return static_cast<Tick>(data_.instructions.size()); }
  // The number of instructions as HLO counts them: without kLoopEntry ticks.
  int64_t instruction_count() const { return instruction_count_; }
  // The number of eligible buffers.
  int64_t eligible_count() const { return eligible_count_; }

  const Instruction& instruction(Tick tick) const { return data_.instructions[tick]; }
  const Buffer& buffer(BufferId id) const { return data_.buffers[id.index()]; }
  const Access& access(AccessId id) const { return data_.accesses[id.index()]; }
  // The access's position among those of its instruction.
  int32_t slot(AccessId id) const { return id.value - instruction(access(id).tick).first_access; }
  // Whether main memory serves the access in every plan in which the instruction runs, because it
  // can't make results elsewhere or is a kernel that pins the array there.
  bool in_main_only(AccessId id) const {
    const Access& a = access(id);
    const bool changes = a.kind == AccessKind::kUpdate || a.kind == AccessKind::kWrite;
    return a.pin == Pin::kMain ||
           (a.pin == Pin::kNone && changes && instruction(a.tick).results_in_main);
  }
  // Whether fast memory serves some access of the buffer in every plan, because a kernel pins it
  // there. No player decides about such a buffer (plan/pinned.h).
  bool pinned(BufferId id) const { return !pinned_.empty() && pinned_[id.index()]; }
  bool any_pinned() const { return !pinned_.empty(); }
  // How often the instruction at `tick` runs in one run of the program.
  int64_t trips(Tick tick) const { return data_.regions[instruction(tick).region].trips; }
  // Index into regions() of the innermost region around `tick`. ticks(), the end of the program,
  // lies in the entry.
  int32_t region_at(Tick tick) const { return tick < ticks() ? instruction(tick).region : 0; }
  // Index into regions() of the innermost loop condition, loop body or branch around `tick`, else
  // of the entry.
  int32_t scope_at(Tick tick) const { return scope_of_[region_at(tick)]; }
  // Its end: a residence that begins at `tick` ends at or before it.
  Tick scope_end(Tick tick) const { return data_.regions[scope_at(tick)].end; }
  // The accesses of one buffer in time order.
  absl::Span<const AccessId> accesses_of(BufferId id) const;
  // The loop whose entry or exit tick `tick` is. It must be one.
  const Loop& loop_at(Tick tick) const { return data_.loops[loop_at_[tick]]; }

  // A segment is a maximal sequence of ticks that no copy window may leave. Segments end where a
  // region begins or ends: a loop's entry tick is the last of its segment, its exit tick the first.
  // segment_begin(t) <= t < segment_end(t).
  Tick segment_begin(Tick tick) const { return segment_begin_[tick]; }
  Tick segment_end(Tick tick) const { return segment_end_[tick]; }

  // For each buffer the tick of the instruction that it is named after; -1: there is none. It is
  // worked out when it is asked for first.
  absl::Span<const Tick> named_after() const;

  // A hash of everything the program is made of, as 16 hexadecimal digits. Equal data has an equal
  // fingerprint, on every machine. It is worked out when it is asked for first.
  const std::string& fingerprint() const;

  // What searches go by beside these prices; null: nothing. No file has it, nor has the program in
  // another order.
  const BothPrices* both() const { return both_.get(); }
  // By what share a placement without a price is dearer than one that has a price; 0: prices are
  // predicted. No file has it, nor has the program in another order.
  double caution() const { return caution_; }

 private:
  explicit Program(ProgramData data);

  ProgramData data_;
  std::shared_ptr<const BothPrices> both_;
  double caution_ = 0;
  int64_t instruction_count_ = 0;
  int64_t eligible_count_ = 0;
  // All accesses, sorted by buffer, then time. Those of buffer b are
  // by_buffer_[buffer_first_[b], buffer_first_[b + 1]).
  std::vector<AccessId> by_buffer_;
  std::vector<int32_t> buffer_first_;
  std::vector<bool> pinned_;      // by buffer; empty if none is
  std::vector<int32_t> loop_at_;  // one for each tick; -1 unless it is a loop's entry or exit
  // One for each region: itself, or of a call the innermost region around it that is none.
  std::vector<int32_t> scope_of_;
  std::vector<Tick> segment_begin_, segment_end_;
  mutable std::once_flag has_names_;
  mutable std::vector<Tick> named_after_;
  mutable std::once_flag has_fingerprint_;
  mutable std::string fingerprint_;
};

}  // namespace mallocgame
