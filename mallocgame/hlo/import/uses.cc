// Finds the operands and results that accesses were made of.
#include "mallocgame/hlo/import/uses.h"

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/hlo/cost/kernels.h"
#include "mallocgame/hlo/import/buffers.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/schedule.h"

namespace mallocgame {
namespace {

// Lists the shape index of each array of a shape, in the order of Module::arrays.
void AddIndices(const hlo::ShapeProto& shape, std::vector<int32_t>& prefix,
                std::vector<std::vector<int32_t>>& indices) {
  if (shape.element_type() != hlo::TUPLE) {
    indices.push_back(prefix);
    return;
  }
  for (int32_t k = 0; k < shape.tuple_shapes_size(); ++k) {
    prefix.push_back(k);
    AddIndices(shape.tuple_shapes(k), prefix, indices);
    prefix.pop_back();
  }
}

class UseFinder {
 public:
  UseFinder(const Program& program, const hlo::Module& module, const hlo::Schedule& schedule,
            const hlo::BufferTable& table)
      : program_(program), module_(module), schedule_(schedule), of_array_(table.of_array) {}

  std::vector<HloUse> Run() {
    for (size_t a = 0; a < program_.accesses().size(); ++a) {
      const Access& access = program_.accesses()[a];
      const int32_t instruction = schedule_.ticks[access.tick].instruction;
      if (std::exchange(user_, instruction) != instruction)
        required_ = hlo::RequiredSpacesOf(*module_.instruction(instruction).proto);
      const absl::Span<const int32_t> operands = module_.operands(instruction);
      for (size_t k = 0; k < operands.size(); ++k) Add(a, operands[k], static_cast<int32_t>(k));
      // The start of a transfer has its operands in its result too, and only reads them.
      if (access.kind == AccessKind::kUpdate || access.kind == AccessKind::kWrite)
        Add(a, instruction, std::nullopt);
    }
    return std::move(uses_);
  }

 private:
  void Add(size_t access, int32_t instruction, std::optional<int32_t> operand) {
    const size_t first = module_.instruction(instruction).first_array;
    const size_t count = module_.instruction(instruction).array_count;
    const int32_t buffer = program_.accesses()[access].buffer.value;
    std::vector<std::vector<int32_t>> indices;
    for (size_t k = 0; k < count; ++k) {
      if (of_array_[first + k] != buffer) continue;
      if (indices.empty()) {
        std::vector<int32_t> prefix;
        AddIndices(module_.instruction(instruction).proto->shape(), prefix, indices);
      }
      uses_.push_back({AccessId(access), operand, indices[k], Required(operand, indices[k])});
    }
  }

  std::optional<int64_t> Required(std::optional<int32_t> operand,
                                  const std::vector<int32_t>& index) const {
    for (const hlo::RequiredSpace& one : required_) {
      if (one.operand == operand && one.index == index) return one.memory_space;
    }
    return std::nullopt;
  }

  const Program& program_;
  const hlo::Module& module_;
  const hlo::Schedule& schedule_;
  const std::vector<int32_t>& of_array_;      // buffers, by array of the module
  int32_t user_ = -1;                         // the instruction whose accesses are looked at
  std::vector<hlo::RequiredSpace> required_;  // by it
  std::vector<HloUse> uses_;
};

}  // namespace

absl::StatusOr<std::vector<HloUse>> FindUses(const Program& program,
                                             absl::string_view module_bytes) {
  MG_ASSIGN_OR_RETURN(const std::unique_ptr<const hlo::Module> module,
                      hlo::Module::Parse(module_bytes, "module"));
  MG_ASSIGN_OR_RETURN(const hlo::Schedule schedule, hlo::Flatten(*module));
  MG_ASSIGN_OR_RETURN(const hlo::BufferTable table, hlo::BuildBuffers(*module, schedule));
  MG_RETURN_IF_ERROR(hlo::CheckMadeOf(program, *module, schedule, table));
  return UseFinder(program, *module, schedule, table).Run();
}

}  // namespace mallocgame
