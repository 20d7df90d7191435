// Which instruction makes the value at each position of a module's results, and which values a loop
// joins. Unlike Dataflow, which unites all that shares storage, it keeps values apart that only may
// lie at one place, such as an array and its update. Private to the folder.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "mallocgame/hlo/check/positions.h"
#include "mallocgame/hlo/module/module.h"

namespace mallocgame::hlo {

// What a loop carries at one position of its tuple: five values, of which one follows the other.
struct LoopLeaf {
  int32_t loop = 0;  // the while
  // positions that hold them; those of init and next are where the values are made
  int32_t init = 0, condition_parameter = 0, body_parameter = 0, next = 0, result = 0;
};

class ValueSources {
 public:
  // InvalidArgument (kShape): what is handed on has another number of arrays on the other side, or
  // a form that is not known.
  static absl::StatusOr<ValueSources> Build(const Module& module, const Positions& positions);

  // The position at which the value at `position` is made. kNone in computations that only say what
  // an instruction does, such as fused ones.
  int32_t SourceOf(int32_t position) const { return source_[position]; }
  bool IsMade(int32_t position) const { return source_[position] == position; }
  // What loops carry and change. What a loop passes on unchanged is the value from before it.
  const std::vector<LoopLeaf>& loop_leaves() const { return loop_leaves_; }
  // By instruction: the async-start, or async-update, that begins the computation it stands in.
  // kNone of others.
  int32_t WrappedBy(int32_t instruction) const { return wrapped_by_[instruction]; }
  // Whether an instruction runs as one of the program's: it stands on the time axis, or is wrapped.
  bool Runs(int32_t instruction) const { return runs_[instruction]; }

 private:
  class Builder;
  std::vector<int32_t> source_;  // by position
  std::vector<LoopLeaf> loop_leaves_;
  std::vector<int32_t> wrapped_by_;
  std::vector<bool> runs_;
};

}  // namespace mallocgame::hlo
