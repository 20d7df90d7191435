// A parsed and checked HloModule: the protobuf, with dense indices into it. Parse refuses
// everything that a reader could trip over (unknown ids, cycles, recursion, absurd shapes), so the
// rest of the folder may trust what it reads. Each call site has a computation of its own
// (call_graph.h). A Module never changes after Parse, so any number of threads may read it. Private
// to the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "mallocgame/hlo/module/opcodes.h"

namespace google::protobuf {
class Arena;
}

namespace mallocgame::hlo {

// Messages of hlo.proto. A source that reads their fields includes hlo.pb.h.
class HloComputationProto;
class HloInstructionProto;
class HloModuleProto;
class HloProto;
class ShapeProto;

// Means "none" in a table of indices. A single index that may be missing is a std::optional.
inline constexpr int32_t kNone = -1;

// One array of an instruction's result. The arrays of a tuple are in depth-first order; tokens and
// opaque values are arrays of zero bytes.
struct Array {
  const ShapeProto* shape = nullptr;
  int64_t size_bytes = 0;    // tiled and padded, at most kMaxArrayBytes
  int64_t memory_space = 0;  // from the layout; 0 is main memory
  bool pinned = false;       // its type is a buffer, b(f32[8]) in text
};

inline constexpr int64_t kMaxArrayBytes = int64_t{1} << 40;

struct HloInstruction {
  const HloInstructionProto* proto = nullptr;
  Opcode opcode = Opcode::kUnknown;
  int32_t computation = 0;  // index into Module::computations()
  int32_t first_operand = 0, operand_count = 0;
  int32_t first_called = 0, called_count = 0;
  int32_t first_array = 0, array_count = 0;
  int32_t first_element = 0, element_count = 0;  // elements of the result if it is a tuple
};

struct Computation {
  const HloComputationProto* proto = nullptr;
  int32_t first_instruction = 0, instruction_count = 0;  // operands come before their users
  int32_t root = 0;                                      // index into Module::instructions()
  std::vector<int32_t> parameters;                       // instructions, by parameter number
  std::vector<int32_t> schedule;                         // instructions in order of execution
  bool scheduled = false;  // the module gives that order; else they stand as in the module
};

constexpr char kScheduleRule[] = "schedule";

class Module {
 public:
  // Reads the bytes of a message of any form (proto_forms.h). InvalidArgument says what is wrong
  // and where; messages call the input `what`. It is a refusal (base/refusal.h) by kScheduleRule if
  // a schedule is none of its computation, else by "readable".
  static absl::StatusOr<std::unique_ptr<const Module>> Parse(absl::string_view bytes,
                                                             absl::string_view what);
  ~Module();

  const HloProto& proto() const { return *proto_; }
  const HloModuleProto& module() const;
  absl::Span<const HloInstruction> instructions() const { return instructions_; }
  // A computation comes after all that it calls.
  absl::Span<const Computation> computations() const { return computations_; }
  int32_t entry() const { return entry_; }

  const HloInstruction& instruction(int32_t i) const { return instructions_[i]; }
  Opcode opcode(int32_t i) const { return instructions_[i].opcode; }
  const Computation& computation(int32_t c) const { return computations_[c]; }
  // The operands (as instructions), called computations and arrays of one instruction.
  absl::Span<const int32_t> operands(int32_t i) const;
  absl::Span<const int32_t> called(int32_t i) const;
  absl::Span<const Array> arrays(int32_t i) const;
  // The number of arrays of all instructions. Instruction i has those from first_array on.
  size_t array_count() const { return arrays_.size(); }
  // The arrays of the sub-shape at `index` are [first, first + count) of arrays(i).
  // InvalidArgument if there is no such sub-shape.
  struct ArrayRange {
    int32_t first = 0, count = 0;
  };
  absl::StatusOr<ArrayRange> SubShape(int32_t i, absl::Span<const int64_t> index) const;
  // The instruction with this HLO name, or with this id in the proto.
  std::optional<int32_t> FindByName(absl::string_view name) const;
  std::optional<int32_t> FindById(int64_t id) const;
  const std::string& NameOf(int32_t i) const;
  // "instruction 'x' of computation 'y'", for messages.
  std::string Where(int32_t i) const;
  // The refusal of an instruction by the rule "readable". The message begins with Where(i).
  absl::Status InvalidAt(int32_t i, absl::string_view what) const;

 private:
  Module(std::unique_ptr<google::protobuf::Arena> arena, const HloProto* proto);
  absl::Status Index();
  absl::Status AddComputation(const HloComputationProto& proto);
  absl::Status AddInstruction(const HloInstructionProto& proto, int32_t computation);
  absl::Status AddArrays(const ShapeProto& shape, int32_t instruction);
  absl::Status IndexSchedule();
  absl::Status IndexSequence(Computation& computation, std::vector<int32_t>& position);

  std::unique_ptr<google::protobuf::Arena> arena_;  // owns *proto_
  const HloProto* proto_ = nullptr;
  std::vector<HloInstruction> instructions_;
  std::vector<Computation> computations_;
  std::vector<int32_t> depth_;  // by computation: how deep the calls below it nest
  std::vector<int32_t> operands_, called_;
  // by tuple element: where its arrays begin, counted from the instruction's first
  std::vector<int32_t> elements_;
  std::vector<Array> arrays_;
  size_t operand_arrays_ = 0;  // sum over all operands of all instructions
  absl::flat_hash_map<int64_t, int32_t> by_id_, computation_by_id_;
  absl::flat_hash_map<absl::string_view, int32_t> by_name_;
  int32_t entry_ = 0;
};

// InvalidArgument if the module was compiled for other hardware: no array lies in
// `fast_memory_space`, but some array lies in the memory space that is fast memory on other TPUs.
absl::Status CheckFastMemorySpace(const Module& module, int64_t fast_memory_space);

}  // namespace mallocgame::hlo
