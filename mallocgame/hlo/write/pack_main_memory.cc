#include "mallocgame/hlo/write/pack_main_memory.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/module/buffer_assignment.h"
#include "mallocgame/hlo/module/dataflow.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/memory_spaces.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/opcodes.h"
#include "mallocgame/hlo/module/schedule.h"
#include "mallocgame/schedule/loop_homes.h"
#include "mallocgame/schedule/main_memory.h"

namespace mallocgame::hlo {
namespace {

constexpr int64_t kScalarAlignment = 512;

struct Life {
  Tick begin = kNever, end = -1;  // both included; end < begin: nothing touches it
  void Add(Tick from, Tick to) {
    begin = std::min(begin, from);
    end = std::max(end, to);
  }
};

// A module with what shares storage in it, and the time that each such place is held.
class Places {
 public:
  static absl::StatusOr<Places> Read(const std::string& bytes, absl::string_view what) {
    Places places;
    MG_ASSIGN_OR_RETURN(places.module_, Module::Parse(bytes, what));
    MG_ASSIGN_OR_RETURN(places.schedule_, Flatten(*places.module_));
    MG_ASSIGN_OR_RETURN(const Dataflow dataflow,
                        Dataflow::Build(*places.module_, places.schedule_));
    for (size_t a = 0; a < places.module_->array_count(); ++a)
      places.set_of_.push_back(dataflow.SetOf(static_cast<int32_t>(a)));
    places.FindLives();
    places.FindLoops();
    return places;
  }

  const Module& module() const { return *module_; }
  Tick last() const { return static_cast<Tick>(schedule_.ticks.size()) - 1; }
  const std::vector<Life>& lives() const { return lives_; }

  // What a logical buffer is of: a set of arrays, by its smallest array, or the table of a tuple,
  // a negative number.
  int32_t PlaceOf(const AssignedBuffer& buffer) {
    if (buffer.array != kNone) return set_of_[buffer.array];
    const auto& index = buffer.buffer->defined_at().shape_index();
    const auto next = static_cast<int32_t>(tables_.size());
    const auto [table, is_new] = table_of_.try_emplace(
        std::pair(LoopOf(buffer.instruction), std::vector<int64_t>(index.begin(), index.end())),
        next);
    if (is_new) tables_.push_back(buffer.instruction);
    return -1 - table->second;
  }

  // The tables of what loops and branches hand over lie in one place all the time; so do those of
  // computations that aren't on the time axis. Others live as long as something uses the tuple.
  Life LifeOfTable(int32_t place) const {
    const int32_t i = tables_[-1 - place];
    Life life;
    const auto always = [&] { life.Add(0, last()); };
    if (schedule_.tick_of[i] == kNone || schedule_.ticks[schedule_.tick_of[i]].region != 0) {
      always();
      return life;
    }
    life.Add(schedule_.tick_of[i], schedule_.tick_of[i]);
    if (IsHandedOver(i)) always();
    const Computation& own = module_->computation(module_->instruction(i).computation);
    for (const int32_t user : own.schedule) {
      const absl::Span<const int32_t> operands = module_->operands(user);
      if (std::find(operands.begin(), operands.end(), i) == operands.end()) continue;
      if (IsHandedOver(user)) always();
      life.Add(schedule_.tick_of[user], schedule_.tick_of[user]);
      // A start's table is that of all its transfer.
      if (module_->opcode(user) == kAsyncUpdate) always();
    }
    if (own.root == i) always();
    return life;
  }

  // The set that `i` makes or updates first of all: by instruction name and array.
  using Name = std::pair<std::string, int32_t>;
  Name NameOf(int32_t set) const {
    const auto i =
        static_cast<int32_t>(std::upper_bound(first_arrays_.begin(), first_arrays_.end(), set) -
                             first_arrays_.begin() - 1);
    return {module_->instruction(i).proto->name(), set - module_->instruction(i).first_array};
  }
  std::optional<int32_t> SetNamed(const Name& name) const {
    const std::optional<int32_t> i = module_->FindByName(name.first);
    if (!i || name.second >= module_->instruction(*i).array_count) return std::nullopt;
    return set_of_[module_->instruction(*i).first_array + name.second];
  }

 private:
  bool IsHandedOver(int32_t i) const {
    const Opcode opcode = module_->opcode(i);
    return RunsComputations(opcode) || opcode == kTuple;
  }

  // What a loop carries has one place before it, in it and behind it, its tables too.
  void FindLoops() {
    loop_of_.assign(module_->instructions().size(), kNone);
    for (const Loop& loop : schedule_.loops) {
      const int32_t i = schedule_.ticks[loop.exit].instruction;
      loop_of_[module_->operands(i)[0]] = i;
      for (const int32_t called : module_->called(i))
        loop_of_[module_->computation(called).parameters[0]] = i;
      loop_of_[module_->computation(module_->called(i)[0]).root] = i;
    }
  }
  int32_t LoopOf(int32_t i) const {
    while (loop_of_[i] != kNone) i = loop_of_[i];
    return i;
  }

  void FindLives() {
    lives_.resize(module_->array_count());
    for (size_t i = 0; i < module_->instructions().size(); ++i)
      first_arrays_.push_back(module_->instruction(static_cast<int32_t>(i)).first_array);
    LoopHomes homes(schedule_.regions, schedule_.loops, module_->array_count());
    ForEachTouch([&](int32_t set, Tick tick) { homes.Add(set, schedule_.ticks[tick].region); });
    ForEachTouch([&](int32_t set, Tick tick) {
      const auto [begin, end] = homes.Widened(set, tick, schedule_.ticks[tick].region);
      lives_[set].Add(begin, end - 1);
    });
  }

  // All that an instruction takes and gives, but where it only names values.
  template <class Function>
  void ForEachTouch(const Function& function) const {
    for (Tick tick = 0; tick <= last(); ++tick) {
      const int32_t i = schedule_.ticks[tick].instruction;
      const Opcode opcode = module_->opcode(i);
      if (opcode == kBitcast || opcode == kGetTupleElement || opcode == kTuple ||
          opcode == kParameter) {
        continue;
      }
      // It has no content before something is written to it.
      if (SetsStorageAside(*module_->instruction(i).proto)) continue;
      const auto touch = [&](int32_t instruction) {
        const HloInstruction& one = module_->instruction(instruction);
        for (int32_t k = 0; k < one.array_count; ++k) function(set_of_[one.first_array + k], tick);
      };
      touch(i);
      for (const int32_t operand : module_->operands(i)) touch(operand);
    }
    // What a computation gives is there at its end.
    for (const Region& region : schedule_.regions) {
      const int32_t last = schedule_.ticks[region.end - 1].instruction;
      const Computation& own = module_->computation(module_->instruction(last).computation);
      const HloInstruction& root = module_->instruction(own.root);
      for (int32_t k = 0; k < root.array_count; ++k)
        function(set_of_[root.first_array + k], region.end - 1);
    }
  }

  std::unique_ptr<const Module> module_;
  Schedule schedule_;
  std::vector<int32_t> set_of_;        // by array
  std::vector<int32_t> first_arrays_;  // by instruction
  std::vector<int32_t> loop_of_;       // by instruction: the while that it hands its tuple to
  // Tables of tuples: an instruction that has it, by loop or own instruction and shape index.
  std::vector<int32_t> tables_;
  std::map<std::pair<int32_t, std::vector<int64_t>>, int32_t> table_of_;
  std::vector<Life> lives_;  // by set
};

bool IsShared(const BufferAllocationProto& allocation, int64_t fast_memory_space) {
  return allocation.color() != fast_memory_space && allocation.color() != kFlagSpace &&
         !allocation.is_thread_local() && !allocation.is_entry_computation_parameter() &&
         !allocation.maybe_live_out() && !allocation.is_constant() &&
         allocation.assigned_size() > 1;
}

// Pairs of sets, of which the second has the bytes of the first from where that ends.
using Heirs = std::vector<std::pair<Places::Name, Places::Name>>;

absl::StatusOr<Heirs> HeirsOf(Places& places, const BufferAssignmentProto& assignment,
                              int64_t fast_memory_space) {
  MG_ASSIGN_OR_RETURN(const std::vector<AssignedBuffer> all,
                      AssignedBuffers(assignment, places.module()));
  std::map<std::pair<int64_t, int64_t>, std::set<int32_t>> at;  // sets, by allocation and offset
  for (const AssignedBuffer& one : all) {
    if (!IsShared(*one.allocation, fast_memory_space)) continue;
    const int32_t place = places.PlaceOf(one);
    if (place >= 0) at[{one.allocation->index(), one.offset}].insert(place);
  }
  Heirs heirs;
  for (const auto& [where, sets] : at) {
    std::map<Tick, int32_t> by_end;
    for (const int32_t set : sets) by_end[places.lives()[set].end] = set;
    for (const int32_t set : sets) {
      const auto before = by_end.find(places.lives()[set].begin);
      if (before != by_end.end() && before->second != set)
        heirs.emplace_back(places.NameOf(before->second), places.NameOf(set));
    }
  }
  return heirs;
}

class Packer {
 public:
  Packer(const Places& own, Places& places, const Heirs& heirs)
      : own_(own), places_(places), heirs_(heirs) {}

  // `buffers` are those of the allocation, in order.
  void Pack(absl::Span<const AssignedBuffer> buffers, BufferAllocationProto& allocation) {
    FindItems(buffers);
    Place(allocation, allocation.color() == 0 ? kMainAlignment : kScalarAlignment);
  }

  // In memories that aren't packed nothing may move. Unimplemented: values that the order lets live
  // at one time share bytes there.
  absl::Status Keep(absl::Span<const AssignedBuffer> buffers,
                    const BufferAllocationProto& allocation) {
    FindItems(buffers);
    for (size_t a = 0; a < items_.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        const auto &first = allocation.assigned(items_[a].assigned[0]),
                   &second = allocation.assigned(items_[b].assigned[0]);
        if (first.offset() >= second.offset() + items_[b].size ||
            second.offset() >= first.offset() + items_[a].size || !Meet(items_[a], items_[b]) ||
            MetBefore(items_[a], items_[b]))
          continue;
        return Refused(
            {.rule = "unmovable"},
            absl::UnimplementedError(absl::StrCat(
                "in this order two values live at one time that share bytes ", first.offset(),
                " to ", first.offset() + first.size(), " of allocation ", allocation.index(),
                " of memory ", allocation.color(), ", where nothing can be moved")));
      }
    }
    return absl::OkStatus();
  }

 private:
  void FindItems(absl::Span<const AssignedBuffer> buffers) {
    items_.clear();
    item_of_.clear();
    for (size_t k = 0; k < buffers.size(); ++k) {
      const int32_t place = places_.PlaceOf(buffers[k]);
      const auto [item, is_new] = item_of_.try_emplace(place, static_cast<int32_t>(items_.size()));
      if (is_new) {
        items_.emplace_back().life = LifeOf(place);
        items_.back().place = place;
      }
      items_[item->second].assigned.push_back(static_cast<int>(k));
      items_[item->second].size = std::max(items_[item->second].size, buffers[k].size);
    }
    Inherit();
  }

  struct Item {
    int32_t place = 0;
    Life life;
    int64_t size = 0;
    std::vector<int> assigned;  // entries of the allocation
  };

  static bool Meet(const Item& a, const Item& b) {
    return a.life.begin <= b.life.end && b.life.begin <= a.life.end;
  }
  // Whether they do at the compiler's own order for longer than one ends and one begins.
  bool MetBefore(const Item& a, const Item& b) const {
    if (a.place < 0 || b.place < 0) return true;
    const std::optional<int32_t> x = own_.SetNamed(places_.NameOf(a.place)),
                                 y = own_.SetNamed(places_.NameOf(b.place));
    if (!x || !y) return true;
    const Life &first = own_.lives()[*x], &second = own_.lives()[*y];
    return first.begin < second.end && second.begin < first.end;
  }

  Life LifeOf(int32_t place) const {
    Life life = place < 0 ? places_.LifeOfTable(place) : places_.lives()[place];
    if (life.end < life.begin) life.Add(0, places_.last());
    return life;
  }

  // Joins items of which one ends where the other begins, if they had one place before.
  void Inherit() {
    std::vector<int32_t> into(items_.size());
    std::iota(into.begin(), into.end(), 0);
    const auto find = [&](int32_t item) {
      while (into[item] != item) item = into[item];
      return item;
    };
    for (const auto& [before, after] : heirs_) {
      const std::optional<int32_t> first = places_.SetNamed(before),
                                   second = places_.SetNamed(after);
      if (!first || !second || *first == *second) continue;
      const auto a = item_of_.find(*first), b = item_of_.find(*second);
      if (a == item_of_.end() || b == item_of_.end()) continue;
      const int32_t x = find(a->second), y = find(b->second);
      if (x == y || items_[x].life.end != items_[y].life.begin) continue;
      into[y] = x;
      items_[x].life.end = items_[y].life.end;
      items_[x].size = std::max(items_[x].size, items_[y].size);
      items_[x].assigned.insert(items_[x].assigned.end(), items_[y].assigned.begin(),
                                items_[y].assigned.end());
      items_[y].assigned.clear();
    }
    std::erase_if(items_, [](const Item& item) { return item.assigned.empty(); });
  }

  void Place(BufferAllocationProto& allocation, int64_t alignment) const {
    std::vector<const Item*> order;
    for (const Item& item : items_) order.push_back(&item);
    std::stable_sort(order.begin(), order.end(), [](const Item* a, const Item* b) {
      return std::tuple(-a->size, a->life.begin - a->life.end) <
             std::tuple(-b->size, b->life.begin - b->life.end);
    });
    std::vector<BufferLife> lives;
    for (const Item* item : order)
      lives.push_back({item->life.begin, item->life.end + 1, item->size});
    const std::vector<int64_t> offsets = BestFitOffsets(lives, alignment);
    int64_t height = 0;
    for (size_t n = 0; n < order.size(); ++n) {
      for (const int k : order[n]->assigned) allocation.mutable_assigned(k)->set_offset(offsets[n]);
      height = std::max(height, offsets[n] + order[n]->size);
    }
    allocation.set_size(height);
  }

  const Places& own_;
  Places& places_;
  const Heirs& heirs_;
  std::vector<Item> items_;
  std::map<int32_t, int32_t> item_of_;  // by place
};

}  // namespace

absl::Status PackMainMemory(const PhaseModule& unassigned, PhaseModule& written,
                            int64_t fast_memory_space) {
  BufferAssignmentProto before, now;
  if (!before.ParseFromString(unassigned.buffer_assignment) ||
      !now.ParseFromString(written.buffer_assignment)) {
    return Refused({.rule = "readable"},
                   absl::InvalidArgumentError("buffer assignment: no BufferAssignmentProto"));
  }
  MG_ASSIGN_OR_RETURN(Places own, Places::Read(unassigned.module, "module"));
  MG_ASSIGN_OR_RETURN(Places places, Places::Read(written.module, "written module"));
  MG_ASSIGN_OR_RETURN(const Heirs heirs, HeirsOf(own, before, fast_memory_space));
  MG_ASSIGN_OR_RETURN(const std::vector<AssignedBuffer> all, AssignedBuffers(now, places.module()));
  absl::Span<const AssignedBuffer> left = all;
  Packer packer(own, places, heirs);
  for (BufferAllocationProto& allocation : *now.mutable_buffer_allocations()) {
    const auto buffers = left.first(allocation.assigned_size());
    left.remove_prefix(buffers.size());
    if (!IsShared(allocation, fast_memory_space)) continue;
    const bool packed = allocation.color() == 0 || allocation.color() == kSmallArraySpace ||
                        allocation.color() == kScalarSpace;
    if (packed) packer.Pack(buffers, allocation);
    if (!packed) MG_RETURN_IF_ERROR(packer.Keep(buffers, allocation));
  }
  now.SerializeToString(&written.buffer_assignment);
  return absl::OkStatus();
}

}  // namespace mallocgame::hlo
