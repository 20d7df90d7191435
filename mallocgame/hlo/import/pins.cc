#include "mallocgame/hlo/import/pins.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/cost/kernels.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/memory_spaces.h"
#include "mallocgame/hlo/module/opcodes.h"

namespace mallocgame::hlo {
namespace {

bool IsCustomCall(const Module& module, int32_t i) { return module.opcode(i) == kCustomCall; }

// Calls visit(array, memory space, operand) for each array that a kernel requires somewhere; the
// operand is none for the result.
template <class Visit>
void ForEachRequired(const Module& module, int32_t i, const Visit& visit) {
  for (const RequiredSpace& required : RequiredSpacesOf(*module.instruction(i).proto)) {
    const absl::Span<const int32_t> operands = module.operands(i);
    if (required.operand && *required.operand >= std::ssize(operands)) continue;
    const int32_t of = required.operand ? operands[*required.operand] : i;
    const std::vector<int64_t> index(required.index.begin(), required.index.end());
    const absl::StatusOr<Module::ArrayRange> range = module.SubShape(of, index);
    if (!range.ok()) continue;
    const int32_t first = module.instruction(of).first_array + range->first;
    for (int32_t array = first; array < first + range->count; ++array)
      visit(array, required.memory_space, required.operand);
  }
}

// Calls visit(array index, array) for each array of the operands and the result.
template <class Visit>
void ForEachArray(const Module& module, int32_t i, const Visit& visit) {
  const auto visit_all = [&](int32_t of) {
    for (int32_t k = 0; k < module.instruction(of).array_count; ++k)
      visit(module.instruction(of).first_array + k, module.arrays(of)[k]);
  };
  for (const int32_t operand : module.operands(i)) visit_all(operand);
  visit_all(i);
}

class Pinner {
 public:
  Pinner(const Module& module, const Schedule& schedule, absl::Span<const int32_t> of_array,
         int64_t fast_memory_space, ProgramData& data)
      : module_(module), schedule_(schedule), of_array_(of_array),
        fast_memory_space_(fast_memory_space), data_(data) {}

  absl::Status Run() {
    for (size_t t = 0; t < schedule_.ticks.size(); ++t)
      MG_RETURN_IF_ERROR(PinAt(static_cast<Tick>(t)));
    return HoldWhatKernelsTransfer();
  }

 private:
  Access* AccessAt(Tick tick, int32_t buffer) {
    const Instruction& instruction = data_.instructions[tick];
    for (int32_t a = instruction.first_access;
         a < instruction.first_access + instruction.access_count; ++a) {
      if (data_.accesses[a].buffer.value == buffer) return &data_.accesses[a];
    }
    return nullptr;
  }

  absl::Status PinAt(Tick tick) {
    if (data_.regions[data_.instructions[tick].region].trips == 0) return absl::OkStatus();
    const int32_t i = schedule_.ticks[tick].instruction;
    absl::Status status;
    const auto pin = [&](int32_t array, Pin where, const std::string& what) {
      const int32_t buffer = of_array_[array];
      if (buffer == kNone || !status.ok()) return;
      Access* access = AccessAt(tick, buffer);
      if (access != nullptr && (access->pin == Pin::kNone || access->pin == where)) {
        access->pin = where;
      } else if (access != nullptr) {
        status = module_.InvalidAt(
            i, absl::StrCat(what, " is pinned to main memory and to fast memory"));
      } else if (const std::string& why = data_.buffers[buffer].ineligible_because;
                 where == Pin::kFast && !why.empty() && why != "effective scalar" &&
                 why != "other memory space") {
        status = module_.InvalidAt(
            i,
            absl::StrCat(what, " is pinned to fast memory, and no plan can have it there: ", why));
      }
    };
    ForEachArray(module_, i, [&](int32_t array, const Array& of) {
      if (of.memory_space == fast_memory_space_) pin(array, Pin::kFast, "an array");
    });
    ForEachRequired(module_, i, [&](int32_t array, int64_t space, std::optional<int32_t> operand) {
      pin(array, space == fast_memory_space_ ? Pin::kFast : Pin::kMain,
          operand ? absl::StrCat("operand ", *operand) : "a result");
    });
    return status;
  }

  // The ticks of custom calls by the semaphores that they share.
  std::vector<std::vector<Tick>> SharedSemaphores() const {
    std::vector<std::vector<Tick>> by_buffer(data_.buffers.size());
    for (size_t t = 0; t < schedule_.ticks.size(); ++t) {
      const int32_t i = schedule_.ticks[t].instruction;
      if (!IsCustomCall(module_, i)) continue;
      ForEachArray(module_, i, [&](int32_t array, const Array& of) {
        if (of.memory_space != kFlagSpace || of_array_[array] == kNone) return;
        std::vector<Tick>& ticks = by_buffer[of_array_[array]];
        if (ticks.empty() || ticks.back() != static_cast<Tick>(t))
          ticks.push_back(static_cast<Tick>(t));
      });
    }
    std::erase_if(by_buffer, [](const std::vector<Tick>& ticks) { return ticks.size() < 2; });
    return by_buffer;
  }

  absl::Status HoldWhatKernelsTransfer() {
    for (const std::vector<Tick>& ticks : SharedSemaphores()) {
      const Tick last = ticks.back();
      for (const Tick tick : ticks) {
        const Instruction& instruction = data_.instructions[tick];
        for (int32_t a = instruction.first_access;
             a < instruction.first_access + instruction.access_count; ++a) {
          MG_RETURN_IF_ERROR(Hold(data_.accesses[a], last));
        }
      }
    }
    return absl::OkStatus();
  }

  // A DMA that begins with the access may run until `last`.
  absl::Status Hold(Access& access, Tick last) {
    if (access.tick == last) return absl::OkStatus();
    const Instruction &begin = data_.instructions[access.tick], &end = data_.instructions[last];
    const bool held = begin.region == end.region && AccessAt(last, access.buffer.value) != nullptr;
    if (held) {
      Extend(access, last + 1);
    } else if (access.pin == Pin::kFast) {
      return absl::InvalidArgumentError(absl::StrCat(
          "instruction '", begin.name, "': it begins a DMA of buffer '",
          data_.buffers[access.buffer.index()].name, "', which it pins to fast memory, and '",
          end.name, "', which waits for it, is in another loop or isn't given the buffer"));
    } else {
      access.pin = Pin::kMain;
    }
    return absl::OkStatus();
  }

  // Times for which one buffer is held don't overlap.
  void Extend(Access& access, Tick until) {
    Access* holder = &access;
    for (Access& other : data_.accesses) {
      if (other.buffer != access.buffer || other.held_until == 0) continue;
      if (other.tick < holder->tick && holder->tick < other.held_until) holder = &other;
    }
    for (Access& other : data_.accesses) {
      if (&other == holder || other.buffer != access.buffer || other.tick < holder->tick ||
          other.tick >= until)
        continue;
      until = std::max(until, std::exchange(other.held_until, 0));
    }
    holder->held_until = std::max(holder->held_until, until);
  }

  const Module& module_;
  const Schedule& schedule_;
  const absl::Span<const int32_t> of_array_;
  const int64_t fast_memory_space_;
  ProgramData& data_;
};

}  // namespace

absl::Status CheckBeforeAssignment(const Module& module, const Schedule& schedule,
                                   absl::Span<const int32_t> of_array, int64_t fast_memory_space) {
  std::vector<bool> pinned(of_array.size() + 1, false);  // by buffer
  const auto pin = [&](int32_t array) {
    if (of_array[array] != kNone) pinned[of_array[array]] = true;
  };
  for (const Schedule::Entry& entry : schedule.ticks) {
    const int32_t i = entry.instruction;
    if (!IsCustomCall(module, i)) continue;
    for (int32_t k = 0; k < module.instruction(i).array_count; ++k) {
      if (module.arrays(i)[k].memory_space == fast_memory_space)
        pin(module.instruction(i).first_array + k);
    }
    ForEachRequired(module, i, [&](int32_t array, int64_t space, std::optional<int32_t>) {
      if (space == fast_memory_space) pin(array);
    });
  }
  int64_t count = 0;
  int32_t first = kNone;
  for (const Schedule::Entry& entry : schedule.ticks) {
    const int32_t i = entry.instruction;
    // The end of a transfer moves nothing, and its start makes the array.
    if (entry.kind == InstructionKind::kLoopEntry || MovesNothing(module.instruction(i))) continue;
    for (int32_t k = 0; k < module.instruction(i).array_count; ++k) {
      const int32_t buffer = of_array[module.instruction(i).first_array + k];
      if (module.arrays(i)[k].memory_space != fast_memory_space) continue;
      if (buffer != kNone && pinned[buffer]) continue;
      if (count++ == 0) first = i;
    }
  }
  if (count == 0) return absl::OkStatus();
  return Refused(
      {.rule = "assigned", .instructions = {module.NameOf(first)}},
      absl::InvalidArgumentError(absl::StrCat(
          "it is from after memory space assignment: ", count,
          " of its arrays lie in fast memory, S(", fast_memory_space, "), first that of ",
          module.Where(first),
          ". Wanted is the module from before, which XLA dumps as "
          "*.after_optimizations_before_buffer_assignment.hlo.pb; this one may go with it as the "
          "assigned module")));
}

absl::Status PinAccesses(const Module& module, const Schedule& schedule,
                         absl::Span<const int32_t> of_array, int64_t fast_memory_space,
                         ProgramData& data) {
  return Pinner(module, schedule, of_array, fast_memory_space, data).Run();
}

}  // namespace mallocgame::hlo
