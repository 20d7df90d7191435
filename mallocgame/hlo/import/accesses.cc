// Builds the accesses: what each instruction reads and writes of the buffers that may move, what
// each loop carries and uses, and in which slot the arrays of the cost model find them.
#include "mallocgame/hlo/import/accesses.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "google/protobuf/unknown_field_set.h"
#include "mallocgame/base/utf8.h"
#include "mallocgame/hlo/cost/collectives.h"
#include "mallocgame/hlo/cost/cost_bits.h"
#include "mallocgame/hlo/module/collective_steps.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/opcodes.h"
#include "mallocgame/hlo/module/shape_size.h"

namespace mallocgame::hlo {
namespace {

// An instruction has at most so many accesses, because a placement is a mask of 64 bits.
constexpr size_t kMaxAccesses = 64;

// One buffer at one instruction. At a loop it says whether the loop reads and writes it inside.
struct Touch {
  int32_t buffer = 0;
  bool reads = false, writes = false;
};

constexpr int kMetadataField = 7;

std::string OpNameOf(const HloInstructionProto& proto) {
  const google::protobuf::UnknownFieldSet& others =
      HloInstructionProto::GetReflection()->GetUnknownFields(proto);
  OpMetadata metadata;
  for (int k = 0; k < others.field_count(); ++k) {
    const google::protobuf::UnknownField& field = others.field(k);
    if (field.number() == kMetadataField &&
        field.type() == google::protobuf::UnknownField::TYPE_LENGTH_DELIMITED &&
        metadata.ParseFromString(field.length_delimited()) && IsUtf8(metadata.op_name()))
      return metadata.op_name();
  }
  return {};
}

bool SameTile(const TileProto& a, const TileProto& b) {
  return absl::c_equal(a.dimensions(), b.dimensions());
}

bool SameArray(const ShapeProto& a, const ShapeProto& b) {
  const LayoutProto &x = a.layout(), &y = b.layout();
  return a.element_type() == b.element_type() && absl::c_equal(a.dimensions(), b.dimensions()) &&
         absl::c_equal(x.minor_to_major(), y.minor_to_major()) &&
         absl::c_equal(x.tiles(), y.tiles(), SameTile) &&
         x.element_size_in_bits() == y.element_size_in_bits() &&
         x.tail_padding_alignment_in_elements() == y.tail_padding_alignment_in_elements();
}

// The slices that XLA:TPU makes asynchronous: they cut one dimension, begin where a tile does, and
// convert nothing. Parts of tiles are cut along the outermost dimension only.
bool IsSliceOfTiles(const HloInstructionProto& slice, const ShapeProto& from) {
  if (slice.slice_dimensions_size() != from.dimensions_size()) return false;
  if (slice.shape().element_type() != from.element_type()) return false;
  const auto& order = from.layout().minor_to_major();
  const bool same_tiles =
      absl::c_equal(from.layout().tiles(), slice.shape().layout().tiles(), SameTile);
  int cut = 0;
  for (int d = 0; d < from.dimensions_size(); ++d) {
    const auto& part = slice.slice_dimensions(d);
    if (part.start() == 0 && part.limit() == from.dimensions(d) && part.stride() <= 1) continue;
    if (part.stride() > 1 || part.start() % TileExtent(from, d) != 0) return false;
    if (!same_tiles && (order.empty() || order[order.size() - 1] != d)) return false;
    ++cut;
  }
  return cut == 1;
}

class AccessBuilder {
 public:
  AccessBuilder(const Module& module, const Schedule& schedule, BufferTable table,
                ProgramData& data)
      : module_(module), schedule_(schedule), of_array_(std::move(table.of_array)), data_(data) {
    data_.buffers = std::move(table.buffers);
    data_.regions = schedule.regions;
    data_.loops = schedule.loops;
    slot_.assign(data_.buffers.size(), kNone);
  }

  void Run() {
    const size_t ticks = schedule_.ticks.size();
    touches_.resize(ticks);
    for (size_t t = 0; t < ticks; ++t) CollectOrdinary(t);
    ForgetWhatNeverRuns();
    CollectLoopEntries();
    for (size_t t = 0; t < ticks; ++t) LimitAccesses(t);
    ExcludeWithoutValue();
    data_.instructions.reserve(ticks);
    data_.cost.instructions.resize(ticks);
    for (size_t t = 0; t < ticks; ++t) Emit(t);
    Hold();
  }

 private:
  absl::Span<const int32_t> BuffersOf(int32_t i) const {
    const HloInstruction& instruction = module_.instruction(i);
    return absl::MakeConstSpan(of_array_).subspan(instruction.first_array, instruction.array_count);
  }
  Buffer& buffer(int32_t index) { return data_.buffers[index]; }

  void Exclude(int32_t index, absl::string_view reason) {
    if (!buffer(index).eligible) return;
    buffer(index).eligible = false;
    buffer(index).ineligible_because = std::string(reason);
  }

  // Lists each buffer once, in the order of operands, then results.
  void CollectOrdinary(size_t t) {
    const Schedule::Entry& entry = schedule_.ticks[t];
    if (entry.kind != InstructionKind::kOrdinary) return;
    if (MovesNothing(module_.instruction(entry.instruction))) return;
    std::vector<Touch>& touches = touches_[t];
    // slot_ remembers, for this instruction only, where in `touches` a buffer stands.
    const auto touch = [&](int32_t index) -> Touch& {
      int32_t& at = slot_[index];
      if (at == kNone) {
        at = static_cast<int32_t>(touches.size());
        touches.push_back(Touch{index});
      }
      return touches[at];
    };
    for (const int32_t operand : module_.operands(entry.instruction)) {
      for (const int32_t index : BuffersOf(operand)) {
        if (index != kNone) touch(index).reads = true;
      }
    }
    const std::vector<bool> hands_on = HandsOn(module_, entry.instruction);
    const absl::Span<const int32_t> results = BuffersOf(entry.instruction);
    for (size_t k = 0; k < results.size(); ++k) {
      if (results[k] != kNone && !hands_on[k]) touch(results[k]).writes = true;
    }
    for (const Touch& seen : touches) slot_[seen.buffer] = kNone;
  }

  void ForgetWhatNeverRuns() {
    std::vector<bool> touched(data_.buffers.size(), false), runs(data_.buffers.size(), false);
    for (size_t t = 0; t < touches_.size(); ++t) {
      const bool never = schedule_.regions[schedule_.ticks[t].region].trips == 0;
      for (const Touch& touch : touches_[t]) (never ? touched : runs)[touch.buffer] = true;
      if (never) touches_[t].clear();
    }
    for (size_t b = 0; b < touched.size(); ++b) {
      if (touched[b] && !runs[b]) Exclude(static_cast<int32_t>(b), "in a loop that never runs");
    }
  }

  // A loop touches the buffers that it carries and that its body or condition touches.
  void CollectLoopEntries() {
    std::vector<std::vector<Touch>> inside(schedule_.loops.size());
    for (size_t t = 0; t < schedule_.ticks.size(); ++t) {
      for (int32_t region = schedule_.ticks[t].region; region >= 0;) {
        const Region& in = schedule_.regions[region];
        if (in.loop >= 0) {
          std::vector<Touch>& touches = inside[in.loop];
          touches.insert(touches.end(), touches_[t].begin(), touches_[t].end());
        }
        region = in.parent;
      }
    }
    std::vector<size_t> carried_by(data_.buffers.size(), inside.size());
    for (size_t loop = 0; loop < inside.size(); ++loop) {
      const size_t entry = schedule_.loops[loop].entry;
      for (const int32_t index : BuffersOf(schedule_.ticks[entry].instruction)) {
        if (index != kNone) carried_by[index] = loop;
      }
      std::vector<Touch>& touches = inside[loop];
      std::sort(touches.begin(), touches.end(),
                [](const Touch& a, const Touch& b) { return a.buffer < b.buffer; });
      for (const Touch& touch : touches) {
        if (carried_by[touch.buffer] != loop) continue;
        if (touches_[entry].empty() || touches_[entry].back().buffer != touch.buffer) {
          touches_[entry].push_back(Touch{touch.buffer});
        }
        touches_[entry].back().writes |= touch.writes;
      }
    }
  }

  void LimitAccesses(size_t t) {
    std::vector<int32_t> movable;
    for (const Touch& touch : touches_[t]) {
      if (buffer(touch.buffer).eligible) movable.push_back(touch.buffer);
    }
    if (movable.size() <= kMaxAccesses) return;
    absl::c_stable_sort(movable, [this](int32_t a, int32_t b) {
      return buffer(a).size_bytes > buffer(b).size_bytes;
    });
    for (size_t k = kMaxAccesses; k < movable.size(); ++k)
      Exclude(movable[k], "beyond 64 accesses of an instruction");
  }

  // A buffer that an instruction defines is written first. The rules of the game cannot describe
  // any other order, so a buffer that is read first stays in main memory.
  void ExcludeWithoutValue() {
    std::vector<bool> seen(data_.buffers.size(), false);
    for (size_t t = 0; t < touches_.size(); ++t) {
      for (const Touch& touch : touches_[t]) {
        if (seen[touch.buffer]) continue;
        seen[touch.buffer] = true;
        const bool write =
            schedule_.ticks[t].kind == InstructionKind::kOrdinary && touch.writes && !touch.reads;
        if (buffer(touch.buffer).origin == BufferOrigin::kInstruction && !write) {
          Exclude(touch.buffer, "read before it is written");
        }
      }
    }
  }

  AccessKind KindOf(const Schedule::Entry& entry, const Touch& touch) const {
    if (entry.kind == InstructionKind::kLoopEntry) return AccessKind::kLoopEntry;
    if (touch.reads) return touch.writes ? AccessKind::kUpdate : AccessKind::kRead;
    return AccessKind::kWrite;
  }

  void Emit(size_t t) {
    const Schedule::Entry& entry = schedule_.ticks[t];
    const HloInstructionProto& proto = *module_.instruction(entry.instruction).proto;
    std::vector<Access> accesses;
    for (const Touch& touch : touches_[t]) {
      if (!buffer(touch.buffer).eligible) continue;
      Access access;
      access.tick = static_cast<Tick>(t);
      access.buffer = BufferId(touch.buffer);
      access.kind = KindOf(entry, touch);
      access.writes_in_loop = access.kind == AccessKind::kLoopEntry && touch.writes;
      accesses.push_back(access);
    }
    absl::c_stable_sort(accesses, [](const Access& a, const Access& b) { return a.kind < b.kind; });

    Instruction instruction;
    instruction.name = proto.name();
    instruction.opcode = proto.opcode();
    instruction.kind = entry.kind;
    instruction.region = entry.region;
    instruction.logical_time = entry.logical_time;
    instruction.first_access = static_cast<int32_t>(data_.accesses.size());
    instruction.access_count = static_cast<int32_t>(accesses.size());
    instruction.plain_copy = CanBeReplaced(entry, accesses);
    instruction.op_name = OpNameOf(proto);
    data_.instructions.push_back(std::move(instruction));

    for (size_t slot = 0; slot < accesses.size(); ++slot) {
      slot_[accesses[slot].buffer.index()] = static_cast<int32_t>(slot);
    }
    EmitCost(entry, data_.cost.instructions[t]);
    for (const Access& access : accesses) slot_[access.buffer.index()] = kNone;
    data_.accesses.insert(data_.accesses.end(), accesses.begin(), accesses.end());
  }

  // Whether a plan may have a transfer do what the instruction does.
  bool CanBeReplaced(const Schedule::Entry& entry, const std::vector<Access>& accesses) {
    if (entry.kind != InstructionKind::kOrdinary || accesses.size() != 2) return false;
    if (accesses[0].kind != AccessKind::kRead || accesses[1].kind != AccessKind::kWrite)
      return false;
    const Opcode opcode = module_.opcode(entry.instruction);
    const bool slices = opcode == kSlice;
    // A transfer that slices dynamically needs the indices, which may be computed late.
    return opcode != kDynamicSlice && IsPlainCopy(module_, entry.instruction) &&
           (slices || buffer(accesses[0].buffer.value).size_bytes ==
                          buffer(accesses[1].buffer.value).size_bytes);
  }

  CostArray CostOf(const Array& array, int32_t index) const {
    CostArray cost;
    cost.size_bytes = cost.accessed_bytes = array.size_bytes;
    cost.in_main = array.memory_space == 0;
    cost.slot = index == kNone ? kNone : slot_[index];
    return cost;
  }

  static void AddTo(CostArray& sum, const CostArray& array) {
    sum.size_bytes += array.size_bytes;
    sum.accessed_bytes += array.accessed_bytes;
    sum.in_main |= array.in_main;
    sum.slot = kNone;
  }

  // The cost array of an operand. The arrays of a tuple are added up; the sum has no slot unless
  // there is one array only.
  CostArray CostOfOperand(int32_t operand) const {
    const absl::Span<const Array> arrays = module_.arrays(operand);
    if (arrays.empty()) return CostArray{};
    CostArray cost = CostOf(arrays[0], BuffersOf(operand)[0]);
    for (size_t k = 1; k < arrays.size(); ++k)
      AddTo(cost, CostOf(arrays[k], BuffersOf(operand)[k]));
    return cost;
  }

  // Places the arrays where OperandBits or OutputBits say; `cost_of(k)` is the k-th.
  template <class CostOfArray>
  static std::vector<CostArray> Gather(const CostBits& bits, const CostOfArray& cost_of) {
    std::vector<CostArray> arrays(std::min(bits.of.size(), kCostBits));
    for (CostArray& array : arrays) array.in_main = false;
    for (size_t k = 0; k < bits.of.size(); ++k) {
      if (bits.shared(k)) {
        AddTo(arrays[bits.of[k]], cost_of(k));
      } else {
        arrays[bits.of[k]] = cost_of(k);
      }
    }
    return arrays;
  }

  void EmitCost(const Schedule::Entry& entry, InstructionCost& cost) const {
    if (entry.kind != InstructionKind::kOrdinary) return;
    if (MovesNothing(module_.instruction(entry.instruction))) return;
    const absl::Span<const int32_t> operands = module_.operands(entry.instruction);
    cost.operands = Gather(OperandBits(module_, entry.instruction),
                           [&](size_t k) { return CostOfOperand(operands[k]); });
    const absl::Span<const Array> outputs = module_.arrays(entry.instruction);
    const absl::Span<const int32_t> buffers = BuffersOf(entry.instruction);
    cost.outputs = Gather(OutputBits(module_, entry.instruction),
                          [&](size_t k) { return CostOf(outputs[k], buffers[k]); });
  }

  Access* AccessAt(Tick tick, BufferId buffer) {
    const Instruction& instruction = data_.instructions[tick];
    const auto begin = data_.accesses.begin() + instruction.first_access,
               end = begin + instruction.access_count;
    const auto found =
        std::find_if(begin, end, [buffer](const Access& a) { return a.buffer == buffer; });
    return found == end ? nullptr : &*found;
  }

  // What the instruction that begins a transfer and the one that ends it both access is held
  // meanwhile. Transfers of one buffer that overlap hold it as one.
  void Hold() {
    std::vector<Access*> held_by(data_.buffers.size(), nullptr);
    for (const auto& [begin, end] : Collectives(module_, schedule_).Spans()) {
      const Instruction& first = data_.instructions[begin];
      if (first.region != data_.instructions[end].region) continue;
      for (int32_t a = first.first_access; a < first.first_access + first.access_count; ++a) {
        Access* access = &data_.accesses[a];
        if (AccessAt(end, access->buffer) == nullptr) continue;
        Access*& before = held_by[access->buffer.index()];
        if (before == nullptr || before->held_until <= begin) before = access;
        before->held_until = std::max(before->held_until, end + 1);
      }
    }
  }

  const Module& module_;
  const Schedule& schedule_;
  const std::vector<int32_t> of_array_;
  ProgramData& data_;
  // by buffer: its place among those of the instruction at hand, or kNone
  std::vector<int32_t> slot_;
  std::vector<std::vector<Touch>> touches_;  // by tick
};

}  // namespace

// IsAsyncConversionCandidate in xla/service/memory_space_assignment/algorithm.cc.
bool IsPlainCopy(const Module& module, int32_t i) {
  const HloInstructionProto& proto = *module.instruction(i).proto;
  const absl::Span<const int32_t> operands = module.operands(i);
  if (operands.empty() || module.arrays(operands[0]).size() != 1) return false;
  if (module.arrays(i).size() != 1) return false;
  const ShapeProto& from = *module.arrays(operands[0])[0].shape;
  if (module.opcode(i) == kSlice) return IsSliceOfTiles(proto, from);
  if (module.opcode(i) == kDynamicSlice) return proto.shape().element_type() == from.element_type();
  return module.opcode(i) == kCopy && operands.size() == 1 &&
         SameArray(from, *module.arrays(i)[0].shape);
}

void BuildAccesses(const Module& module, const Schedule& schedule, BufferTable table,
                   ProgramData& data) {
  AccessBuilder(module, schedule, std::move(table), data).Run();
}

}  // namespace mallocgame::hlo
