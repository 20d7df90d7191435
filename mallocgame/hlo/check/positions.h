// The places within the results of instructions that can hold a value: arrays, and the tables of
// tuples. Private to the folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/value_edges.h"

namespace mallocgame::hlo {

struct Position {
  int32_t instruction = 0;
  const ShapeProto* shape = nullptr;
  bool is_tuple = false;
  int32_t span = 1;        // it and all positions inside it; they follow it
  int64_t size_bytes = 0;  // of an array; 0 of a tuple
  int64_t memory_space = 0;
};

// Positions first to first + count - 1.
struct PositionRange {
  int32_t first = 0, count = 0;
};

class Positions {
 public:
  explicit Positions(const Module& module);

  size_t size() const { return positions_.size(); }
  const Position& operator[](int32_t p) const { return positions_[p]; }

  // All positions of an instruction's result, a tuple before its elements.
  PositionRange Of(int32_t instruction) const {
    return {first_[instruction], first_[instruction + 1] - first_[instruction]};
  }
  PositionRange At(int32_t position) const { return {position, positions_[position].span}; }
  // It is in the module.
  PositionRange At(const ValuePlace& place) const {
    return At(*Find(place.instruction, place.index));
  }
  // The element of a tuple; none if there is no such element.
  std::optional<PositionRange> Element(int32_t tuple, int64_t number) const;
  // The position at a shape index; none if there is none.
  std::optional<int32_t> Find(int32_t instruction, absl::Span<const int64_t> index) const;
  // The position that holds the k-th array of an instruction.
  int32_t OfArray(int32_t instruction, int32_t k) const;

  // The name of the instruction that has the position in its result.
  const std::string& MakerOf(int32_t position) const;
  // "'name'{1,0}", for messages.
  std::string Name(int32_t position) const;

 private:
  void Add(int32_t instruction, const ShapeProto& shape, const Module& module, int32_t& array);

  const Module& module_;
  std::vector<Position> positions_;
  std::vector<int32_t> first_;     // by instruction, and one more
  std::vector<int32_t> of_array_;  // by array of the module
};

}  // namespace mallocgame::hlo
