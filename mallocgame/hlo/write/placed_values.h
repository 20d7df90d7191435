// Where each value of a program lies in a draft of its module, and the instruction that is it
// there. Private to the folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/value_flow.h"
#include "mallocgame/hlo/write/module_draft.h"
#include "mallocgame/hlo/write/write_assignment.h"

namespace mallocgame::hlo {

// A location is the index of a residence of the plan, or main memory.
inline constexpr int32_t kMainMemory = -1;
// The table of a tuple on a TPU.
inline constexpr int64_t kTupleBytes = 512;

// Instructions that only name, group or recast values, constants and AllocateBuffer are not written
// where the module before has them. They are emitted when a user first wants them, and once more
// for each other location that they are wanted at. So what nothing wants any more isn't written.
class PlacedValues {
 public:
  // `offsets` are those of the residences, in the compiler's bytes.
  PlacedValues(const Module& module, const ValueFlow& flow, ModuleDraft& draft,
               int64_t fast_memory_space, std::vector<int64_t> offsets);

  // Whether the instruction is one of those that are emitted when they are wanted.
  bool IsEmittedWhenWanted(int32_t i) const;
  // An instruction makes this array of its result at the location: its shape says so from now on.
  void Define(int32_t array, int32_t location);
  // An instruction of the draft is a copy of the value `array` at the location.
  void AddCopy(int32_t array, int32_t location, int32_t instruction);

  bool IsAt(int32_t array, int32_t location) const;
  // Or it is there outside of the branch that is being written, which can be given it there too.
  bool CanBeAt(int32_t array, int32_t location) const {
    return IsAt(array, location) || IsOutsideAt(flow_.ValueOf(array), location);
  }
  // Some location of the value: main memory if it is there.
  int32_t AnyLocationOf(int32_t array) const;
  // A branch's parameter is this operand of its conditional. What the branch wants at other
  // locations than the parameter has it at, it is given as further elements of the tuple.
  void Give(int32_t parameter, int32_t operand) { given_[parameter].operand = operand; }
  // The operand with its arrays at the locations, and with such elements; none: there are none.
  absl::StatusOr<std::optional<int32_t>> Widened(int32_t parameter,
                                                 absl::Span<const int32_t> locations);
  // Where the array was made; none if nothing has made it.
  std::optional<int32_t> MadeAt(int32_t array) const;

  // The instruction of the draft that is the array at the location. Unimplemented if it isn't
  // there.
  absl::StatusOr<int32_t> ArrayAt(int32_t array, int32_t location);
  // The instruction that is the result of `i` with its arrays at the locations.
  absl::StatusOr<int32_t> ResultAt(int32_t i, absl::Span<const int32_t> locations);

  // A tuple that the module before hasn't got has a table in bytes of its own.
  void SetTableApart(int32_t tuple);

  void SetSpace(ShapeProto& array, int32_t location) const;
  int64_t OffsetOf(int32_t location) const { return offsets_[location]; }
  // Says that the draft has a value that the module before hasn't got.
  void AddValue(NewValue value) { changed_.added.push_back(std::move(value)); }
  void Prolong(ProlongedValue value) { changed_.prolonged.push_back(value); }
  // Writes down where what the module before has goes, and takes it all.
  ChangedPlaces TakeChanges();

 private:
  absl::StatusOr<int32_t> ValueAt(int32_t value, int32_t location, int32_t element);
  // Whether a branch can be given it there.
  bool IsOutsideAt(int32_t value, int32_t location) const;
  int32_t TakeAlso(int32_t value, int32_t location);
  int32_t MakeTuple(int32_t computation, absl::Span<const int32_t> elements);
  absl::StatusOr<int32_t> RecastAt(int32_t i, int32_t location);
  absl::StatusOr<int32_t> StorageAt(int32_t i, int32_t location);
  absl::StatusOr<int32_t> ElementAt(int32_t value, int32_t element);
  absl::StatusOr<int32_t> TupleAt(int32_t i, absl::Span<const int32_t> locations);
  absl::StatusOr<int32_t> Regroup(int32_t i, const ShapeProto& shape, int32_t& next,
                                  absl::Span<const int32_t> locations);
  bool AreMadeAt(int32_t i, absl::Span<const int32_t> locations) const;
  void AddTuple(int32_t instruction);
  absl::Status NotThere(int32_t value, int32_t location) const;
  int32_t FirstArray(int32_t i) const { return module_.instruction(i).first_array; }

  const Module& module_;
  const ValueFlow& flow_;
  ModuleDraft& draft_;
  const int64_t fast_memory_space_;
  const std::vector<int64_t> offsets_;           // by residence
  std::vector<std::optional<int32_t>> made_at_;  // by array
  // Instructions of the draft, by value or recast array, and location.
  std::map<std::pair<int32_t, int32_t>, int32_t> at_;
  // The locations of a tuple's arrays, and what it is with them, by instruction.
  std::map<int32_t, std::vector<std::pair<std::vector<int32_t>, int32_t>>> tuples_;
  struct Given {
    int32_t operand = 0;
    std::vector<std::pair<int32_t, int32_t>> also;  // arrays of it, and their locations
  };
  std::map<int32_t, Given> given_;  // by parameter
  ChangedPlaces changed_;
};

}  // namespace mallocgame::hlo
