// Makes buffers of sets of arrays, and decides which are eligible.
#include "mallocgame/hlo/import/buffers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/module/collective_steps.h"
#include "mallocgame/hlo/module/dataflow.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/opcodes.h"
#include "mallocgame/hlo/module/shape_size.h"

namespace mallocgame::hlo {
namespace {

bool IsEffectiveScalar(const ShapeProto& shape) {
  return std::all_of(shape.dimensions().begin(), shape.dimensions().end(),
                     [](int64_t extent) { return extent == 1; });
}

// A transfer begins at one instruction and ends at another. What it touches must stay where it is
// between them. Collectives are no exception, but they access it at both, and no plan gains by
// moving it there and back.
class BufferBuilder {
 public:
  BufferBuilder(const Module& module, const Schedule& schedule, const Dataflow& dataflow,
                std::optional<int64_t> fast_memory_space)
      : module_(module), schedule_(schedule), dataflow_(dataflow),
        fast_memory_space_(fast_memory_space) {
    table_.of_array.assign(module.array_count(), kNone);
    buffer_of_set_.assign(module.array_count(), kNone);
  }

  BufferTable Run() {
    for (Tick tick = 0; tick < static_cast<Tick>(schedule_.ticks.size()); ++tick) {
      const Schedule::Entry& entry = schedule_.ticks[tick];
      if (entry.kind != InstructionKind::kLoopEntry) AddArraysOf(entry.instruction, tick);
    }
    for (const Schedule::Entry& entry : schedule_.ticks) {
      if (entry.kind == InstructionKind::kLoopEntry) continue;
      ExcludeByUse(entry.instruction);
      ExcludeWrittenInBranch(entry);
    }
    ForEachBuffer(module_.computation(module_.entry()).root,
                  [](Buffer& buffer) { buffer.is_output = true; });
    for (const int32_t parameter : module_.computation(module_.entry()).parameters) {
      ForEachBuffer(parameter, [](Buffer& buffer) { buffer.origin = BufferOrigin::kParameter; });
    }
    return std::move(table_);
  }

 private:
  struct Extent {
    Tick first = 0, last = 0;  // the first and the last tick that define an array of the buffer
  };

  template <class Function>
  void ForEachBuffer(int32_t i, const Function& function) {
    const HloInstruction& instruction = module_.instruction(i);
    for (int32_t k = 0; k < instruction.array_count; ++k) {
      const int32_t buffer = table_.of_array[instruction.first_array + k];
      if (buffer != kNone) function(table_.buffers[buffer]);
    }
  }

  static void Exclude(Buffer& buffer, absl::string_view reason) {
    if (!buffer.eligible) return;
    buffer.eligible = false;
    buffer.ineligible_because = std::string(reason);
  }

  void AddArraysOf(int32_t i, Tick tick) {
    const HloInstruction& instruction = module_.instruction(i);
    const absl::Span<const Array> arrays = module_.arrays(i);
    bool named = false;
    for (int32_t k = 0; k < instruction.array_count; ++k) {
      const Array& array = arrays[k];
      if (array.size_bytes == 0) continue;
      const int32_t node = instruction.first_array + k;
      int32_t& index = buffer_of_set_[dataflow_.SetOf(node)];
      if (index == kNone) {
        index = static_cast<int32_t>(table_.buffers.size());
        if (!std::exchange(named, true)) NameArraysOf(instruction);
        Buffer buffer;
        buffer.name = names_[k];
        buffer.origin = OriginOf(*instruction.proto);
        table_.buffers.push_back(std::move(buffer));
        extents_.push_back({tick, tick});
      }
      table_.of_array[node] = index;
      Buffer& buffer = table_.buffers[index];
      if (array.size_bytes > buffer.size_bytes) {
        buffer.size_bytes = array.size_bytes;
        buffer.unit_bytes = OuterUnitBytes(*array.shape, array.size_bytes);
      }
      extents_[index].last = tick;
      if (instruction.opcode == kConstant) buffer.origin = BufferOrigin::kConstant;
      // The caller has put an entry parameter there, and nobody fetches it.
      const bool given =
          instruction.computation == module_.entry() && instruction.opcode == kParameter;
      const bool fast = !given && array.memory_space == fast_memory_space_;
      if (array.memory_space != 0 && !fast) Exclude(buffer, "other memory space");
      if (IsEffectiveScalar(*array.shape) && !fast) Exclude(buffer, "effective scalar");
      // A custom call may use it for longer than it runs.
      if (array.pinned) Exclude(buffer, "pinned");
    }
  }

  static BufferOrigin OriginOf(const HloInstructionProto& proto) {
    return SetsStorageAside(proto) ? BufferOrigin::kUndefined : BufferOrigin::kInstruction;
  }

  // Fills names_ with a name for each array: the instruction's, and the shape index in braces if
  // the shape is a tuple.
  void NameArraysOf(const HloInstruction& instruction) {
    names_.clear();
    const auto visit = [this](const auto& self, const ShapeProto& shape, const std::string& name,
                              const std::string& index) -> void {
      if (shape.element_type() != TUPLE) {
        names_.push_back(index.empty() ? name : absl::StrCat(name, "{", index, "}"));
        return;
      }
      for (int k = 0; k < shape.tuple_shapes_size(); ++k) {
        self(self, shape.tuple_shapes(k), name,
             index.empty() ? absl::StrCat(k) : absl::StrCat(index, ",", k));
      }
    };
    visit(visit, instruction.proto->shape(), instruction.proto->name(), "");
  }

  void ExcludeByUse(int32_t i) {
    const HloInstructionProto& proto = *module_.instruction(i).proto;
    absl::string_view reason;
    if (proto.is_host_transfer()) {
      reason = "host transfer";
    } else if (IsTransfer(module_.opcode(i)) && !StartsOrEndsCollective(module_, i)) {
      reason = "used asynchronously";
    } else if (module_.opcode(i) == kAddDependency) {
      reason = "add-dependency";
    } else {
      return;
    }
    const auto exclude = [reason](Buffer& buffer) { Exclude(buffer, reason); };
    ForEachBuffer(i, exclude);
    for (const int32_t operand : module_.operands(i)) ForEachBuffer(operand, exclude);
  }

  // It is not known whether a branch runs. After a write in it, it would not be known in which
  // memory the buffer's newest value is.
  void ExcludeWrittenInBranch(const Schedule::Entry& entry) {
    int32_t region = entry.region;
    while (region >= 0 && schedule_.regions[region].kind != RegionKind::kBranch) {
      region = schedule_.regions[region].parent;
    }
    if (region < 0 || MovesNothing(module_.instruction(entry.instruction))) return;
    const Region& branch = schedule_.regions[region];
    const HloInstruction& instruction = module_.instruction(entry.instruction);
    for (int32_t k = 0; k < instruction.array_count; ++k) {
      const int32_t buffer = table_.of_array[instruction.first_array + k];
      if (buffer == kNone) continue;
      const Extent& extent = extents_[buffer];
      if (extent.first < branch.begin || extent.last >= branch.end) {
        Exclude(table_.buffers[buffer], "written in a branch");
      }
    }
  }

  const Module& module_;
  const Schedule& schedule_;
  const Dataflow& dataflow_;
  const std::optional<int64_t> fast_memory_space_;
  BufferTable table_;
  std::vector<int32_t> buffer_of_set_;  // by the array that names the set
  std::vector<Extent> extents_;         // by buffer
  std::vector<std::string> names_;      // names of the arrays of one instruction
};

}  // namespace

absl::StatusOr<BufferTable> BuildBuffers(const Module& module, const Schedule& schedule,
                                         std::optional<int64_t> fast_memory_space) {
  MG_ASSIGN_OR_RETURN(const Dataflow dataflow, Dataflow::Build(module, schedule));
  return BufferBuilder(module, schedule, dataflow, fast_memory_space).Run();
}

absl::Status CheckMadeOf(const Program& program, const Module& module, const Schedule& schedule,
                         const BufferTable& table) {
  const absl::Span<const Buffer> buffers = program.buffers();
  bool same = program.instructions().size() == schedule.ticks.size() &&
              buffers.size() == table.buffers.size();
  for (size_t t = 0; same && t < schedule.ticks.size(); ++t) {
    same = program.instructions()[t].name ==
           module.instruction(schedule.ticks[t].instruction).proto->name();
  }
  for (size_t b = 0; same && b < table.buffers.size(); ++b) {
    same = buffers[b].name == table.buffers[b].name &&
           buffers[b].size_bytes == table.buffers[b].size_bytes;
  }
  if (same) return absl::OkStatus();
  return Refused({.rule = "other-program"},
                 absl::InvalidArgumentError(
                     absl::StrCat("program '", program.name(), "' was not made of this module")));
}

}  // namespace mallocgame::hlo
