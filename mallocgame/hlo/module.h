// A parsed and checked HloModule: the protobuf beside dense indices into it. Everything that a
// reader could trip over (unknown ids, cycles, recursion, absurd shapes) is refused here, so that
// the rest of the folder may trust what it reads. Private to the folder. Immutable after Parse, so
// any number of threads may read it.
#ifndef MALLOCGAME_HLO_MODULE_H_
#define MALLOCGAME_HLO_MODULE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "google/protobuf/arena.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/hlo/hlo.pb.h"
#include "mallocgame/hlo/import.h"
#include "mallocgame/program/program.h"

namespace mallocgame::hlo {

// One array of an instruction's result. A tuple's arrays stand in depth-first order; tokens and
// opaque values are arrays of zero bytes.
struct Array {
  const ShapeProto* shape = nullptr;
  int64_t size_bytes = 0;    // tiled and padded, at most kMaxArrayBytes
  int64_t memory_space = 0;  // of its layout; 0 is main memory
};

inline constexpr int64_t kMaxArrayBytes = int64_t{1} << 40;

struct Instruction {
  const HloInstructionProto* proto = nullptr;
  int32_t computation = 0;  // index into Module::computations()
  int32_t first_operand = 0, operand_count = 0;
  int32_t first_called = 0, called_count = 0;
  int32_t first_array = 0, array_count = 0;
  int32_t first_element = 0, element_count = 0;  // of a tuple
};

struct Computation {
  const HloComputationProto* proto = nullptr;
  int32_t first_instruction = 0, instruction_count = 0;  // operands stand before their users
  int32_t root = 0;                                      // index into Module::instructions()
  std::vector<int32_t> parameters;                       // instructions, by parameter number
  // instructions in order of execution; empty where the module gives none
  std::vector<int32_t> schedule;
};

class Module {
 public:
  // `bytes` of an HloProto. InvalidArgument says what is wrong and where; `what` names the input in
  // messages.
  static absl::StatusOr<std::unique_ptr<const Module>> Parse(absl::string_view bytes,
                                                             absl::string_view what);

  const HloProto& proto() const { return *proto_; }
  const HloModuleProto& module() const { return proto_->hlo_module(); }
  absl::Span<const Instruction> instructions() const { return instructions_; }
  // callees before callers
  absl::Span<const Computation> computations() const { return computations_; }
  int32_t entry() const { return entry_; }

  const Instruction& instruction(int32_t i) const { return instructions_[i]; }
  const Computation& computation(int32_t c) const { return computations_[c]; }
  // Of one instruction: its operands (instructions), called computations, arrays.
  absl::Span<const int32_t> operands(int32_t i) const;
  absl::Span<const int32_t> called(int32_t i) const;
  absl::Span<const Array> arrays(int32_t i) const;
  // The arrays of the sub-shape at `index` as [first, first + count) within arrays(i).
  // InvalidArgument if there is none.
  struct ArrayRange {
    int32_t first = 0, count = 0;
  };
  absl::StatusOr<ArrayRange> SubShape(int32_t i, absl::Span<const int64_t> index) const;
  // By HLO name, or by the id of the proto; -1 if there is none.
  int32_t FindByName(absl::string_view name) const;
  int32_t FindById(int64_t id) const;
  // "instruction 'x' of computation 'y'", for messages.
  std::string Where(int32_t i) const;

 private:
  Module() = default;
  absl::Status Index();
  absl::Status AddComputation(const HloComputationProto& proto);
  absl::Status AddInstruction(const HloInstructionProto& proto, int32_t computation);
  absl::Status AddArrays(const ShapeProto& shape, int32_t instruction);
  absl::Status IndexSchedule();

  google::protobuf::Arena arena_;
  const HloProto* proto_ = nullptr;
  std::vector<Instruction> instructions_;
  std::vector<Computation> computations_;
  std::vector<int32_t> depth_;  // of calls below each computation
  std::vector<int32_t> operands_, called_;
  // of a tuple: where each element's arrays begin, relative to the instruction's
  std::vector<int32_t> elements_;
  std::vector<Array> arrays_;
  size_t operand_arrays_ = 0;  // sum over all operands of all instructions
  absl::flat_hash_map<int64_t, int32_t> by_id_, computation_by_id_;
  absl::flat_hash_map<absl::string_view, int32_t> by_name_;
  int32_t entry_ = 0;
};

// InvalidArgument if the module was compiled for other hardware: nothing lies in
// `fast_memory_space`, but something in what other TPUs have for fast memory.
absl::Status CheckFastMemorySpace(const Module& module, int64_t fast_memory_space);

// True for an instruction that touches no memory that a plan decides about: it names, groups or
// passes on values (parameter, constant, tuple, get-tuple-element, bitcast, while, conditional,
// call, *-done ...), or sets storage aside (AllocateBuffer). It makes no accesses and costs
// nothing.
bool MovesNothing(const HloInstructionProto& instruction);

// The flattened schedule. ticks[t] is what Program::instruction(t) will be.
struct Timeline {
  struct Entry {
    int32_t instruction = 0;  // index into Module::instructions(); of a kLoopEntry: its while
    InstructionKind kind = InstructionKind::kOrdinary;
    int32_t region = 0;
    int32_t logical_time = 0;
  };
  std::vector<Entry> ticks;
  std::vector<Region> regions;
  std::vector<Loop> loops;
  // by instruction: its tick (of a while: its kLoopExit); -1 if it isn't on the time axis
  std::vector<Tick> tick_of;
  std::vector<int32_t> region_of;  // by computation: the region it runs in; -1 likewise
  int64_t unknown_trip_counts = 0;
};

// What BuildCost (cost_import.h) is given. When it is called, `data` is complete but for the
// prices: data.cost.instructions has one entry a tick, whose operands and outputs hold size_bytes,
// slot and in_main (memory space 0), with accessed_bytes = size_bytes. Instructions for which
// MovesNothing, and kLoopEntry ticks, have none. Which array has which place: cost_bits.h; one that
// stands for several is their sum, with slot -1.
struct CostImportContext {
  const Module& module;
  const Timeline& timeline;
  const ImportInput& input;
  const Hardware& hardware;
};

}  // namespace mallocgame::hlo

#endif  // MALLOCGAME_HLO_MODULE_H_
