// Follows values into fused computations, up to what defines them and down to what uses them.
#include "mallocgame/hlo/module/memory_spaces.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "mallocgame/hlo/module/hlo.pb.h"

namespace mallocgame::hlo {
namespace {

void AddArrays(ShapeProto& shape, std::vector<ShapeProto*>& arrays) {
  if (shape.element_type() != TUPLE) return arrays.push_back(&shape);
  for (ShapeProto& element : *shape.mutable_tuple_shapes()) AddArrays(element, arrays);
}

void AddArrays(const ShapeProto& shape, std::vector<const ShapeProto*>& arrays) {
  if (shape.element_type() != TUPLE) return arrays.push_back(&shape);
  for (const ShapeProto& element : shape.tuple_shapes()) AddArrays(element, arrays);
}

int64_t ArrayCount(const ShapeProto& shape) { return static_cast<int64_t>(ArraysOf(shape).size()); }

// How many arrays the elements before `element` have.
int64_t ArraysBefore(const ShapeProto& tuple, int64_t element) {
  int64_t count = 0;
  for (int64_t k = 0; k < element; ++k)
    count += ArrayCount(tuple.tuple_shapes(static_cast<int>(k)));
  return count;
}

class Spreader {
 public:
  explicit Spreader(HloModuleProto& module) : module_(module) {
    for (HloComputationProto& computation : *module.mutable_computations()) {
      computations_[computation.id()] = &computation;
      for (HloInstructionProto& instruction : *computation.mutable_instructions()) {
        instructions_[instruction.id()] = &instruction;
        for (int k = 0; k < instruction.operand_ids_size(); ++k)
          users_[instruction.operand_ids(k)].push_back({&instruction, k});
      }
    }
  }

  void Run() {
    for (HloComputationProto& computation : *module_.mutable_computations()) {
      if (!module_.schedule().sequences().contains(computation.id())) continue;
      for (HloInstructionProto& instruction : *computation.mutable_instructions())
        SpreadInto(instruction);
    }
    for (HloComputationProto& computation : *module_.mutable_computations()) {
      if (computation.id() != module_.entry_computation_id()) SetProgramShape(computation);
    }
  }

 private:
  struct User {
    HloInstructionProto* instruction = nullptr;
    int operand = 0;
  };

  HloInstructionProto* ParameterOf(const HloInstructionProto& fusion, int64_t number) {
    const HloComputationProto& fused = *computations_.at(fusion.called_computation_ids(0));
    for (const HloInstructionProto& instruction : fused.instructions()) {
      if (OpcodeOf(instruction) == kParameter && instruction.parameter_number() == number)
        return instructions_.at(instruction.id());
    }
    return nullptr;
  }
  HloInstructionProto& RootOf(const HloInstructionProto& fusion) {
    return *instructions_.at(computations_.at(fusion.called_computation_ids(0))->root_id());
  }

  void SpreadInto(HloInstructionProto& fusion) {
    if (OpcodeOf(fusion) != kFusion) return;
    for (int k = 0; k < fusion.operand_ids_size(); ++k) {
      HloInstructionProto* const parameter = ParameterOf(fusion, k);
      if (parameter != nullptr)
        Compare(instructions_.at(fusion.operand_ids(k))->shape(), *parameter);
    }
    Compare(fusion.shape(), RootOf(fusion));
  }

  void Compare(const ShapeProto& outside, HloInstructionProto& inside) {
    const std::vector<const ShapeProto*> wanted = ArraysOf(outside);
    const std::vector<ShapeProto*> found = ArraysOf(*inside.mutable_shape());
    for (size_t k = 0; k < std::min(wanted.size(), found.size()); ++k) {
      if (wanted[k]->layout().memory_space() != found[k]->layout().memory_space())
        Mark(inside, static_cast<int64_t>(k), wanted[k]->layout().memory_space());
    }
  }

  void Mark(HloInstructionProto& first, int64_t first_array, int64_t space) {
    std::vector<std::pair<HloInstructionProto*, int64_t>> left = {{&first, first_array}};
    std::set<std::pair<int64_t, int64_t>> seen;
    while (!left.empty()) {
      const auto [instruction, array] = left.back();
      left.pop_back();
      if (!seen.insert({instruction->id(), array}).second) continue;
      ArraysOf(*instruction->mutable_shape())[array]->mutable_layout()->set_memory_space(space);
      AddDefinition(*instruction, array, left);
      for (const User& user : users_[instruction->id()]) AddUser(user, array, left);
    }
  }

  using Left = std::vector<std::pair<HloInstructionProto*, int64_t>>;

  void AddDefinition(const HloInstructionProto& instruction, int64_t array, Left& left) {
    if (OpcodeOf(instruction) == kTuple) {
      int element = 0;
      while (array >= ArrayCount(instruction.shape().tuple_shapes(element)))
        array -= ArrayCount(instruction.shape().tuple_shapes(element++));
      left.emplace_back(instructions_.at(instruction.operand_ids(element)), array);
    } else if (OpcodeOf(instruction) == kGetTupleElement) {
      HloInstructionProto* const tuple = instructions_.at(instruction.operand_ids(0));
      left.emplace_back(tuple, array + ArraysBefore(tuple->shape(), instruction.tuple_index()));
    } else if (OpcodeOf(instruction) == kFusion) {
      left.emplace_back(&RootOf(instruction), array);
    } else if (OpcodeOf(instruction) == kDynamicUpdateSlice) {
      HloInstructionProto* const updated = instructions_.at(instruction.operand_ids(0));
      // A parameter has the space of its operand outside.
      if (OpcodeOf(*updated) != kParameter) left.emplace_back(updated, 0);
    }
  }

  void AddUser(const User& user, int64_t array, Left& left) {
    const HloInstructionProto& instruction = *user.instruction;
    if (OpcodeOf(instruction) == kTuple) {
      left.emplace_back(user.instruction, array + ArraysBefore(instruction.shape(), user.operand));
    } else if (OpcodeOf(instruction) == kGetTupleElement) {
      const ShapeProto& tuple = instructions_.at(instruction.operand_ids(0))->shape();
      const int64_t first = ArraysBefore(tuple, instruction.tuple_index());
      if (array >= first && array < first + ArrayCount(instruction.shape()))
        left.emplace_back(user.instruction, array - first);
    } else if (OpcodeOf(instruction) == kFusion) {
      HloInstructionProto* const parameter = ParameterOf(instruction, user.operand);
      if (parameter != nullptr) left.emplace_back(parameter, array);
    }
  }

  static void CopySpaces(const ShapeProto& from, ShapeProto& to) {
    const std::vector<const ShapeProto*> given = ArraysOf(from);
    const std::vector<ShapeProto*> taken = ArraysOf(to);
    for (size_t k = 0; k < std::min(given.size(), taken.size()); ++k) {
      if (given[k]->layout().memory_space() != taken[k]->layout().memory_space())
        taken[k]->mutable_layout()->set_memory_space(given[k]->layout().memory_space());
    }
  }

  void SetProgramShape(HloComputationProto& computation) {
    ProgramShapeProto& shape = *computation.mutable_program_shape();
    for (const HloInstructionProto& instruction : computation.instructions()) {
      const int64_t number = instruction.parameter_number();
      if (OpcodeOf(instruction) != kParameter || number >= shape.parameters_size()) continue;
      ShapeProto& declared = *shape.mutable_parameters(static_cast<int>(number));
      if (declared.tuple_shapes_size() != instruction.shape().tuple_shapes_size())
        declared = instruction.shape();
      CopySpaces(instruction.shape(), declared);
    }
    CopySpaces(instructions_.at(computation.root_id())->shape(), *shape.mutable_result());
  }

  HloModuleProto& module_;
  absl::flat_hash_map<int64_t, HloComputationProto*> computations_;
  absl::flat_hash_map<int64_t, HloInstructionProto*> instructions_;
  absl::flat_hash_map<int64_t, std::vector<User>> users_;
};

}  // namespace

std::vector<ShapeProto*> ArraysOf(ShapeProto& shape) {
  std::vector<ShapeProto*> arrays;
  AddArrays(shape, arrays);
  return arrays;
}

std::vector<const ShapeProto*> ArraysOf(const ShapeProto& shape) {
  std::vector<const ShapeProto*> arrays;
  AddArrays(shape, arrays);
  return arrays;
}

std::vector<int64_t> IndexOfArray(const ShapeProto& whole, int64_t k) {
  std::vector<int64_t> index;
  const ShapeProto* shape = &whole;
  while (shape->element_type() == TUPLE) {
    int element = 0;
    for (;; ++element) {
      const auto count = static_cast<int64_t>(ArraysOf(shape->tuple_shapes(element)).size());
      if (k < count) break;
      k -= count;
    }
    index.push_back(element);
    shape = &shape->tuple_shapes(element);
  }
  return index;
}

std::string ArrayWithoutSpace(const ShapeProto& shape) {
  ShapeProto copy = shape;
  copy.mutable_layout()->clear_memory_space();
  return copy.SerializeAsString();
}

void SpreadMemorySpaces(HloModuleProto& module) { Spreader(module).Run(); }

}  // namespace mallocgame::hlo
