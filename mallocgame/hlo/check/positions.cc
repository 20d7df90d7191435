#include "mallocgame/hlo/check/positions.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "mallocgame/hlo/module/hlo.pb.h"

namespace mallocgame::hlo {

Positions::Positions(const Module& module) : module_(module) {
  of_array_.reserve(module.array_count());
  for (int32_t i = 0; i < std::ssize(module.instructions()); ++i) {
    first_.push_back(static_cast<int32_t>(positions_.size()));
    int32_t array = 0;
    Add(i, module.instruction(i).proto->shape(), module, array);
  }
  first_.push_back(static_cast<int32_t>(positions_.size()));
}

void Positions::Add(int32_t instruction, const ShapeProto& shape, const Module& module,
                    int32_t& array) {
  const auto own = static_cast<int32_t>(positions_.size());
  Position position;
  position.instruction = instruction;
  position.shape = &shape;
  position.is_tuple = shape.element_type() == TUPLE;
  if (!position.is_tuple) {
    const Array& of = module.arrays(instruction)[array++];
    position.size_bytes = of.size_bytes;
    position.memory_space = of.memory_space;
    of_array_.push_back(own);
  }
  positions_.push_back(position);
  if (!position.is_tuple) return;
  for (const ShapeProto& element : shape.tuple_shapes()) Add(instruction, element, module, array);
  positions_[own].span = static_cast<int32_t>(positions_.size()) - own;
}

std::optional<PositionRange> Positions::Element(int32_t tuple, int64_t number) const {
  const Position& of = positions_[tuple];
  if (!of.is_tuple || number < 0 || number >= of.shape->tuple_shapes_size()) return std::nullopt;
  int32_t p = tuple + 1;
  for (; number > 0; --number) p += positions_[p].span;
  return At(p);
}

std::optional<int32_t> Positions::Find(int32_t instruction, absl::Span<const int64_t> index) const {
  int32_t p = first_[instruction];
  for (const int64_t number : index) {
    const std::optional<PositionRange> element = Element(p, number);
    if (!element) return std::nullopt;
    p = element->first;
  }
  return p;
}

int32_t Positions::OfArray(int32_t instruction, int32_t k) const {
  return of_array_[module_.instruction(instruction).first_array + k];
}

const std::string& Positions::MakerOf(int32_t position) const {
  return module_.NameOf(positions_[position].instruction);
}

std::string Positions::Name(int32_t position) const {
  const int32_t i = positions_[position].instruction;
  std::vector<int64_t> index;
  int32_t at = first_[i];
  while (at != position) {
    int64_t number = 0;
    int32_t element = at + 1;
    for (; element + positions_[element].span <= position; ++number)
      element += positions_[element].span;
    index.push_back(number);
    at = element;
  }
  return absl::StrCat("'", module_.instruction(i).proto->name(), "'{", absl::StrJoin(index, ","),
                      "}");
}

}  // namespace mallocgame::hlo
