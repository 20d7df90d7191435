// Numbers for what values are, so that equal values of two modules have equal numbers wherever they
// lie and whatever copies they went through. Private to the folder.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "mallocgame/hlo/module/async_chains.h"
#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {

// A table of values, for any number of modules. A value is a parameter of its computation, or what
// an instruction with certain attributes makes of values. Copies, tuples and what passes values on
// make none; a bitcast of a bitcast is one; slices that are joined are the array that they are of.
class ValueTable {
 public:
  // Arrays in memory space `fast_memory_space` count as arrays in main memory.
  explicit ValueTable(int64_t fast_memory_space) : fast_memory_space_(fast_memory_space) {}

  int32_t OfParameter(int64_t number, int64_t array, const ShapeProto& shape);
  int32_t OfBitcast(int32_t of, const ShapeProto& operand, const ShapeProto& shape);
  int32_t OfSlice(int32_t of, const HloInstructionProto& slice, const ShapeProto& operand);
  // kNone: they are not the parts of one array, side by side.
  int32_t OfJoinedSlices(absl::Span<const int32_t> slices, const ShapeProto& shape);
  // The whole of an instruction's result, and an array of it.
  int32_t OfResult(const HloInstructionProto& instruction, absl::Span<const int32_t> parts);
  int32_t OfArray(int32_t result, int64_t array);
  int32_t OfComputation(absl::Span<const int32_t> parts);
  int32_t OfShape(const ShapeProto& shape);
  // Whether two shapes differ in nothing but memory spaces.
  static bool Alike(const ShapeProto& a, const ShapeProto& b);

 private:
  // A value with another shape; the value itself if the shape is its own.
  struct Bitcast {
    int32_t of = kNone;
    int32_t shape = kNone;  // of `of`
  };
  struct Slice {
    int32_t of = kNone;
    Bitcast source;  // what `of` is a bitcast of; if it is none, itself
    std::vector<int64_t> starts, limits, dimensions;
    bool strided = false;
  };
  int32_t Intern(std::string&& key);
  int32_t BitcastTo(const Bitcast& source, int32_t shape);

  int64_t fast_memory_space_;
  absl::flat_hash_map<std::string, int32_t> numbers_;
  absl::flat_hash_map<int32_t, Bitcast> bitcasts_;  // by value that is one
  absl::flat_hash_map<int32_t, Slice> slices_;      // likewise
};

// The values of a module.
class ModuleNumbers {
 public:
  ModuleNumbers(const Module& module, ValueTable& table);

  // The value of an instruction's whole result; kNone of instructions that make no value.
  int32_t OfInstruction(int32_t i) const { return result_[i]; }
  // What a computation makes of its parameters: results, and all instructions that it runs.
  int32_t OfComputation(int32_t computation) const { return computation_[computation]; }
  // The value of an instruction's k-th array.
  int32_t OfArray(int32_t i, int32_t k) const {
    return array_[module_.instruction(i).first_array + k];
  }

 private:
  void NumberComputation(int32_t computation, absl::Span<const int32_t> given = {});
  void NumberResult(int32_t i);
  std::vector<int32_t> NumberBranches(int32_t i, std::vector<int32_t>& parts);
  // False: the instruction is none that only moves values or passes them on.
  bool NumberMoved(int32_t i);
  bool NumberTransfer(int32_t i);
  // Whether a copy only moves its operand.
  bool KeepsLayout(int32_t copy) const;
  absl::Span<int32_t> Arrays(int32_t i);
  // Has `i` hold the values that its edges bring. False: it has another form than its opcode has.
  bool PassAll(int32_t i);
  // Has the arrays of `i`, from `to` on, be those of an operand.
  void Pass(int32_t operand, Module::ArrayRange from, int32_t i, int32_t to = 0);
  const ShapeProto& ShapeOf(int32_t i, int32_t k = 0) const { return *module_.arrays(i)[k].shape; }

  const Module& module_;
  ValueTable& table_;
  const AsyncChains chains_;
  std::vector<int32_t> result_, shape_, array_, computation_;  // shape_: of what is an operand
  absl::Span<const int32_t> given_;                            // NumberComputation
};

}  // namespace mallocgame::hlo
