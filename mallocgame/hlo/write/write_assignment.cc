// Sorts logical buffers into those that go, stay, move and are new.
#include "mallocgame/hlo/write/write_assignment.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/base/rounding.h"
#include "mallocgame/hlo/module/buffer_assignment.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/memory_spaces.h"
#include "mallocgame/schedule/main_memory.h"

namespace mallocgame::hlo {
namespace {

using Assigned = BufferAllocationProto::Assigned;

class AssignmentWriter {
 public:
  AssignmentWriter(const BufferAssignmentProto& unassigned, const Module& module,
                   const Schedule& schedule, const ModuleDraft& draft, int64_t fast_memory_space,
                   const ChangedPlaces& changed, bool keeps_offsets)
      : unassigned_(unassigned), module_(module), schedule_(schedule), draft_(draft),
        fast_memory_space_(fast_memory_space), changed_(changed), keeps_offsets_(keeps_offsets) {
    fast_.set_color(fast_memory_space);
  }

  absl::StatusOr<BufferAssignmentProto> Run() {
    for (const LogicalBufferProto& buffer : unassigned_.logical_buffers())
      MG_RETURN_IF_ERROR(Sort(buffer));
    CopyAllocations();
    if (keeps_offsets_) {
      for (const ProlongedValue& value : changed_.prolonged)
        MG_RETURN_IF_ERROR(CheckBytesOf(value));
    }
    for (const NewValue& value : changed_.added) AddValue(value);
    AddFlags();
    if (fast_.assigned_size() > 0) *result_.add_buffer_allocations() = fast_;
    DropEmptyAllocations();
    return std::move(result_);
  }

 private:
  // Where a value lies in main memory.
  struct Home {
    int64_t allocation = 0, offset = 0, size = 0;
  };
  // A value of the module before: an instruction, and the array of it, or the tuple that it is.
  using Value = std::pair<int32_t, std::optional<int32_t>>;

  absl::Status Sort(const LogicalBufferProto& buffer) {
    const std::optional<int32_t> i = module_.FindById(buffer.defined_at().instruction_id());
    if (!i) {
      return Refused({.rule = "readable"},
                     absl::InvalidArgumentError(absl::StrCat(
                         "buffer assignment: logical buffer ", buffer.id(), " is of instruction ",
                         buffer.defined_at().instruction_id(), ", which the module has none of")));
    }
    top_id_ = std::max(top_id_, buffer.id());
    MG_ASSIGN_OR_RETURN(const int32_t at, ArrayAt(module_, *i, buffer.defined_at().shape_index()));
    const std::optional<int32_t> array = at == kNone ? std::nullopt : std::optional(at);
    if (array || buffer.defined_at().shape_index_size() == 0)
      value_of_[buffer.id()] = Value{*i, array};
    if (draft_.IsWritten(draft_.computation(*i)) && !draft_.IsEmitted(*i)) {
      gone_.insert(buffer.id());
      return absl::OkStatus();
    }
    LogicalBufferProto& kept = *result_.add_logical_buffers();
    kept = buffer;
    if (!array || !changed_.fast_offset[*array]) return absl::OkStatus();
    kept.set_color(fast_memory_space_);
    gone_.insert(buffer.id());
    Put(fast_, buffer.id(), *changed_.fast_offset[*array], buffer.size());
    return absl::OkStatus();
  }

  void CopyAllocations() {
    for (const BufferAllocationProto& allocation : unassigned_.buffer_allocations()) {
      const int index = result_.buffer_allocations_size();
      BufferAllocationProto& copy = *result_.add_buffer_allocations();
      copy = allocation;
      copy.clear_assigned();
      for (const Assigned& assigned : allocation.assigned()) {
        const auto value = value_of_.find(assigned.logical_buffer_id());
        if (value != value_of_.end() && allocation.color() == 0)
          homes_[value->second] = Home{index, assigned.offset(), assigned.size()};
        if (!gone_.contains(assigned.logical_buffer_id())) *copy.add_assigned() = assigned;
      }
      if (IsHeap(allocation) &&
          (heap_ == kNone ||
           allocation.assigned_size() > unassigned_.buffer_allocations(heap_).assigned_size())) {
        heap_ = index;
      }
    }
    if (heap_ == kNone) {
      heap_ = result_.buffer_allocations_size();
      result_.add_buffer_allocations();
    }
  }

  // The compiler has given the bytes away after the last use that it knows: to values that are
  // there still, or are brought there from fast memory.
  absl::Status CheckBytesOf(const ProlongedValue& value) const {
    const auto found = std::find_if(homes_.begin(), homes_.end(), [&](const auto& home) {
      return home.first.second == value.array;
    });
    if (found == homes_.end()) return absl::OkStatus();
    const Home& home = found->second;
    const auto& allocation = unassigned_.buffer_allocations(static_cast<int>(home.allocation));
    for (const Assigned& assigned : allocation.assigned()) {
      if (assigned.offset() >= home.offset + home.size ||
          home.offset >= assigned.offset() + assigned.size()) {
        continue;
      }
      const auto other = value_of_.find(assigned.logical_buffer_id());
      if (other == value_of_.end() || !IsInMain(assigned.logical_buffer_id(), other->second))
        continue;
      const Tick defined = schedule_.tick_of[other->second.first];
      if (defined <= value.last_use || defined >= value.until) continue;
      const std::string& owner = module_.NameOf(other->second.first);
      return Refused(
          {.rule = "bytes-taken", .instructions = {module_.NameOf(value.instruction), owner}},
          absl::UnimplementedError(absl::StrCat(
              module_.Where(value.instruction), ": a prefetch takes its place, and is done when '",
              owner, "' has the bytes of its operand in main memory")));
    }
    return absl::OkStatus();
  }

  bool IsInMain(int64_t buffer, const Value& value) const {
    return !gone_.contains(buffer) ||
           std::any_of(changed_.added.begin(), changed_.added.end(), [&](const NewValue& added) {
             return !added.fast_offset && Value{added.home, added.home_array} == value;
           });
  }

  static bool IsHeap(const BufferAllocationProto& allocation) {
    return allocation.color() == 0 && !allocation.is_entry_computation_parameter() &&
           !allocation.maybe_live_out() && !allocation.is_thread_local() &&
           !allocation.is_constant();
  }

  static void Put(BufferAllocationProto& allocation, int64_t buffer, int64_t offset, int64_t size) {
    Assigned& assigned = *allocation.add_assigned();
    assigned.set_logical_buffer_id(buffer);
    assigned.set_offset(offset);
    assigned.set_size(size);
    allocation.set_size(std::max(allocation.size(), offset + size));
  }

  void AddValue(const NewValue& value) {
    LogicalBufferProto& buffer = *result_.add_logical_buffers();
    buffer.set_id(++top_id_);
    buffer.set_size(value.size_bytes);
    buffer.set_color(value.memory_space);
    buffer.mutable_defined_at()->set_instruction_id(value.instruction_id);
    for (const int64_t k : value.index) buffer.mutable_defined_at()->add_shape_index(k);
    if (value.memory_space == kFlagSpace) {
      flags_.emplace_back(&value, top_id_);
    } else if (value.fast_offset) {
      Put(fast_, top_id_, *value.fast_offset, value.size_bytes);
    } else {
      PutIntoMain(value);
    }
  }

  void PutIntoMain(const NewValue& value) {
    const auto home = homes_.find(Value{value.home, value.home_array});
    if (value.home != kNone && home != homes_.end() && home->second.size >= value.size_bytes) {
      Put(*result_.mutable_buffer_allocations(static_cast<int>(home->second.allocation)), top_id_,
          home->second.offset, value.size_bytes);
      return;
    }
    BufferAllocationProto& heap = *result_.mutable_buffer_allocations(heap_);
    Put(heap, top_id_, RoundUp(heap.size(), kMainAlignment), value.size_bytes);
  }

  // A flag is taken again when the copy that had it is done.
  void AddFlags() {
    if (flags_.empty()) return;
    BufferAllocationProto allocation;
    allocation.set_color(kFlagSpace);
    std::vector<int32_t> free_from;  // by flag: when it is free again
    std::vector<std::pair<int32_t, size_t>> by_start;
    const auto window = [this](size_t n) {
      const auto& taken = flags_[n].first->window;
      return taken ? std::pair(draft_.EmittedAt(taken->start), draft_.EmittedAt(taken->done))
                   : std::pair(-1, INT32_MAX);
    };
    for (size_t n = 0; n < flags_.size(); ++n) by_start.emplace_back(window(n).first, n);
    std::sort(by_start.begin(), by_start.end());
    for (const auto& [start, n] : by_start) {
      size_t flag = 0;
      while (flag < free_from.size() && free_from[flag] >= start) ++flag;
      if (flag == free_from.size()) free_from.push_back(0);
      free_from[flag] = window(n).second;
      Put(allocation, flags_[n].second, static_cast<int64_t>(flag) * kFlagBytes, kFlagBytes);
    }
    *result_.add_buffer_allocations() = std::move(allocation);
  }

  void DropEmptyAllocations() {
    auto& allocations = *result_.mutable_buffer_allocations();
    allocations.erase(std::remove_if(allocations.begin(), allocations.end(),
                                     [](const BufferAllocationProto& allocation) {
                                       return allocation.assigned_size() == 0;
                                     }),
                      allocations.end());
    for (int index = 0; index < allocations.size(); ++index) allocations[index].set_index(index);
  }

  const BufferAssignmentProto& unassigned_;
  const Module& module_;
  const Schedule& schedule_;
  const ModuleDraft& draft_;
  const int64_t fast_memory_space_;
  const ChangedPlaces& changed_;
  const bool keeps_offsets_;
  BufferAssignmentProto result_;
  BufferAllocationProto fast_;
  int64_t top_id_ = 0;
  int heap_ = kNone;  // index of the allocation that new values in main memory go to
  absl::flat_hash_map<int64_t, Value> value_of_;  // by logical buffer
  absl::flat_hash_set<int64_t> gone_;             // logical buffers that are not in main memory now
  std::map<Value, Home> homes_;
  std::vector<std::pair<const NewValue*, int64_t>> flags_;  // with their logical buffers
};

}  // namespace

absl::StatusOr<BufferAssignmentProto> WriteAssignment(
    const BufferAssignmentProto& unassigned, const Module& module, const Schedule& schedule,
    const ModuleDraft& draft, int64_t fast_memory_space, const ChangedPlaces& changed,
    bool keeps_offsets) {
  return AssignmentWriter(unassigned, module, schedule, draft, fast_memory_space, changed,
                          keeps_offsets)
      .Run();
}

}  // namespace mallocgame::hlo
