#include "mallocgame/hlo/write/write_copies.h"
#include "mallocgame/hlo/module/collective_steps.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/memory_spaces.h"
#include "mallocgame/hlo/module/shape_size.h"
#include "mallocgame/hlo/write/write_assignment.h"

namespace mallocgame::hlo {
namespace {

// The configurations that the compiler (libtpu 0.0.51) writes into its own copies.
constexpr char kTransferConfig[] =
    R"({"flag_configs":[],"scoped_memory_configs":[],"used_scoped_memory_configs":[],)"
    R"("dma_priority":1})";
constexpr char kSliceConfig[] =
    R"({"flag_configs":[],"scoped_memory_configs":[],"used_scoped_memory_configs":[],)"
    R"("aliasing_operands":{"lists":[]}})";
constexpr Tick kEndOfRun = kNever;

// The array that tells when a transfer is done.
void AddFlag(PrimitiveType type, ShapeProto& tuple) {
  ShapeProto& flag = *tuple.add_tuple_shapes();
  flag.set_element_type(type);
  flag.mutable_layout()->set_memory_space(kFlagSpace);
  flag.mutable_layout()->set_tail_padding_alignment_in_elements(1);
}

int64_t BytesOf(const ShapeProto& array) { return TiledBytes(array, kMaxArrayBytes).value_or(0); }

}  // namespace

CopyWriter::CopyWriter(const Program& program, const Plan& plan, const Module& module,
                       const Schedule& schedule, const ValueFlow& flow,
                       const std::vector<int32_t>& newest, ModuleDraft& draft, PlacedValues& values,
                       HloModuleProto& proto)
    : program_(program), plan_(plan), module_(module), schedule_(schedule), flow_(flow),
      newest_(newest), draft_(draft), values_(values), proto_(proto),
      all_(TransfersOf(program, plan)), is_replaced_(program.ticks(), false),
      value_(all_.transfers.size(), kNone), slices_(all_.transfers.size()) {
  for (size_t p = 0; p < all_.pieces.size(); ++p) {
    const PlanTransfer& transfer = all_.transfers[all_.pieces[p].transfer];
    if (transfer.replaces >= 0) is_replaced_[transfer.replaces] = true;
    if (!transfer.preload) beginning_.emplace(all_.pieces[p].begin, static_cast<int32_t>(p));
  }
}

// The last tick at which an instruction of the unassigned module uses a value; 0: none does. What a
// computation returns is used for ever.
Tick CopyWriter::LastUse(int32_t value) {
  if (last_use_.empty()) {
    last_use_.assign(module_.array_count(), 0);
    for (Tick t = 0; t < std::ssize(schedule_.ticks); ++t) {
      const int32_t i = schedule_.ticks[t].instruction;
      if (values_.IsEmittedWhenWanted(i)) continue;
      for (const int32_t operand : module_.operands(i)) {
        const HloInstruction& used = module_.instruction(operand);
        for (int32_t k = 0; k < used.array_count; ++k)
          last_use_[flow_.ValueOf(used.first_array + k)] = t;
      }
    }
    for (const Computation& computation : module_.computations()) {
      const HloInstruction& root = module_.instruction(computation.root);
      for (int32_t k = 0; k < root.array_count; ++k)
        last_use_[flow_.ValueOf(root.first_array + k)] = kNever;
    }
  }
  return last_use_[value];
}

// Whether the program's next access of the residence's buffer, from the tick on, reads it. What a
// transfer holds is read where that is done, of which no instruction but the transfer knows.
bool CopyWriter::IsReadFrom(ResidenceId residence, Tick tick) const {
  for (const AccessId a : program_.accesses_of(plan_.residences[residence.index()].buffer)) {
    const Access& access = program_.access(a);
    if (access.tick >= tick) return access.kind != AccessKind::kWrite;
  }
  return false;
}

// Whether a prefetch in the place of a plain copy reads the value in main memory from the tick on.
bool CopyWriter::IsFetchedFrom(int32_t value, Tick tick) const {
  return std::any_of(all_.pieces.begin(), all_.pieces.end(), [&](const Piece& piece) {
    const PlanTransfer& transfer = all_.transfers[piece.transfer];
    if (transfer.replaces < 0 || piece.begin < tick) return false;
    const int32_t operand = module_.operands(ReplacedBy(transfer))[0];
    return flow_.ValueOf(module_.instruction(operand).first_array) == value;
  });
}

// What a prefetch in the place of a plain copy reads has to stay until it is done, although the
// program uses it no more.
void CopyWriter::ProlongSource(const PlanTransfer& transfer, Tick end) {
  if (transfer.replaces < 0) return;
  const int32_t operand = module_.operands(ReplacedBy(transfer))[0];
  const int32_t source = flow_.ValueOf(module_.instruction(operand).first_array);
  if (end - 1 > LastUse(source))
    values_.Prolong({source, LastUse(source), end, ReplacedBy(transfer)});
}

Plan CopyWriter::AsWritten() const {
  Plan written = plan_;
  written.copies.clear();
  std::vector<bool> left_out(all_.transfers.size()), is_filled(plan_.residences.size());
  for (const int32_t t : left_out_) left_out[t] = true;
  for (size_t p = 0; p < all_.pieces.size(); ++p) {
    const Piece& piece = all_.pieces[p];
    if (piece.dropped || left_out[piece.transfer]) continue;
    Copy& copy = written.copies.emplace_back(plan_.copies[p]);
    copy.part_begin = piece.part_begin;
    copy.part_end = piece.part_end;
    if (!copy.preload) copy.end = piece.end;
    const size_t r = copy.residence.index();
    if (copy.kind != CopyKind::kPrefetch || is_filled[r]) continue;
    is_filled[r] = true;
    written.residences[r].begin = copy.begin;
  }
  return written;
}

// If that is in a branch, the conditional uses it where it begins.
Tick CopyWriter::FirstUse(ResidenceId residence) const {
  const auto first = std::find(plan_.served_by.begin(), plan_.served_by.end(), residence);
  if (first == plan_.served_by.end()) return 0;
  const Tick tick = program_.accesses()[first - plan_.served_by.begin()].tick;
  const absl::Span<const Region> regions = program_.regions();
  int32_t r = program_.instruction(tick).region;
  if (r == 0) return tick;
  while (regions[r].parent != 0) r = regions[r].parent;
  Tick begin = regions[r].begin;
  for (; r > 0; --r) {  // the branches before it
    if (regions[r].parent == 0 && regions[r].end == begin) begin = regions[r].begin;
  }
  return begin;
}

Tick CopyWriter::FreeFrom(const Residence& residence) const {
  const int64_t begin = residence.offset;
  const int64_t end = begin + program_.buffer(residence.buffer).size_bytes;
  Tick from = residence.end;
  for (const Residence& other : plan_.residences) {
    const int64_t other_end = other.offset + program_.buffer(other.buffer).size_bytes;
    if (other.offset < end && begin < other_end) from = std::max(from, other.end);
  }
  for (Tick t = program_.ticks(); t-- > from;) {
    if (program_.instruction(t).reserved_bytes > begin) from = t + 1;
  }
  return from;
}

absl::Status CopyWriter::BeginPreloads() {
  proto_.clear_cross_program_prefetches();
  int32_t number = 0;
  for (const PlanTransfer& transfer : all_.transfers) {
    if (transfer.preload) MG_RETURN_IF_ERROR(BeginPreload(transfer.pieces.back(), number++));
  }
  return absl::OkStatus();
}

absl::Status CopyWriter::BeginPreload(int32_t p, int32_t number) {
  const PlanTransfer& transfer = all_.transfers[all_.pieces[p].transfer];
  const Residence& residence = plan_.residences[transfer.residence.index()];
  all_.pieces[p].end = FirstUse(transfer.residence);
  MG_RETURN_IF_ERROR(Begin(p, module_.entry()));
  const int32_t value = value_[all_.pieces[p].transfer];
  const int32_t parameter = flow_.InstructionOf(value);
  draft_.instruction(live_.back().start).set_cross_program_prefetch_index(number);
  CrossProgramPrefetch& prefetch = *proto_.add_cross_program_prefetches();
  prefetch.set_parameter(module_.instruction(parameter).proto->parameter_number());
  for (const int64_t k : IndexOfArray(module_.instruction(parameter).proto->shape(),
                                      value - module_.instruction(parameter).first_array)) {
    prefetch.add_index(k);
  }
  prefetch.set_offset(values_.OffsetOf(transfer.residence.value));
  again_.push_back({p, live_.back().start, FreeFrom(residence)});
  return absl::OkStatus();
}

// Such a copy is done when the program is: nothing in this run uses it.
void CopyWriter::FetchAgain(Tick tick) {
  const auto free = [this, tick](const Again& again) {
    return again.from <= tick && std::none_of(live_.begin(), live_.end(), [&](const Live& live) {
             return live.start == again.first;
           });
  };
  for (const Again& again : again_) {
    if (!free(again)) continue;
    const int32_t start = draft_.Clone(again.first);
    draft_.instruction(start).clear_cross_program_prefetch_index();
    draft_.Emit(start);
    live_.push_back({.piece = again.piece, .start = start, .end = kEndOfRun, .again = true});
  }
  again_.erase(std::remove_if(again_.begin(), again_.end(), free), again_.end());
}

absl::Status CopyWriter::At(Tick tick, int32_t computation) {
  EndDue(tick, computation);
  const auto [first, last] = beginning_.equal_range(tick);
  std::vector<int32_t> now;
  for (auto it = first; it != last; ++it) now.push_back(it->second);
  beginning_.erase(first, last);
  for (const int32_t p : now) {
    MG_RETURN_IF_ERROR(Begin(p, computation));
    if (all_.pieces[p].end <= tick) EndDue(tick, computation);
  }
  if (computation == module_.entry()) FetchAgain(tick);
  return absl::OkStatus();
}

void CopyWriter::EndDue(Tick tick, int32_t computation) {
  for (size_t k = 0; k < live_.size();) {
    const Live live = live_[k];
    if (live.end > tick || draft_.computation(live.start) != computation) {
      ++k;
      continue;
    }
    live_.erase(live_.begin() + static_cast<std::ptrdiff_t>(k));
    End(live);
  }
}

absl::Status CopyWriter::Finish(int32_t computation) {
  EndDue(kEndOfRun, computation);
  if (computation != module_.entry()) return absl::OkStatus();
  while (!beginning_.empty()) {
    const Tick tick = beginning_.begin()->first;
    MG_RETURN_IF_ERROR(At(tick, computation));
    EndDue(kEndOfRun, computation);
  }
  FetchAgain(kEndOfRun);
  EndDue(kEndOfRun, computation);
  return absl::OkStatus();
}

int32_t CopyWriter::LocationOf(const PlanTransfer& transfer) const {
  return transfer.kind == CopyKind::kPrefetch ? transfer.residence.value : kMainMemory;
}

// Where what a loop passes through comes from.
int32_t CopyWriter::HomeOf(int32_t value) const {
  while (flow_.OutsideOf(value) != kNone) value = flow_.OutsideOf(value);
  return value;
}

const ShapeProto& CopyWriter::ShapeOf(int32_t value) const {
  const int32_t i = flow_.InstructionOf(value);
  return *module_.arrays(i)[value - module_.instruction(i).first_array].shape;
}

bool CopyWriter::SlicesOperand(const PlanTransfer& transfer) const {
  return transfer.replaces >= 0 && module_.opcode(ReplacedBy(transfer)) == kSlice;
}

absl::Status CopyWriter::Refuse(const PlanTransfer& transfer, absl::string_view rule,
                                absl::string_view what) const {
  Refusal refusal{.rule = std::string(rule)};
  for (size_t a = 0; a < plan_.served_by.size(); ++a) {
    if (plan_.served_by[a] == transfer.residence)
      refusal.accesses.push_back(static_cast<int32_t>(a));
  }
  return Refused(refusal, absl::UnimplementedError(what));
}

// Finds the value that the transfer copies, and cuts it, when its first piece begins.
absl::Status CopyWriter::FindValue(const PlanTransfer& transfer, int32_t t) {
  if (value_[t] != kNone) return absl::OkStatus();
  const BufferId buffer = plan_.residences[transfer.residence.index()].buffer;
  value_[t] = transfer.replaces >= 0 ? module_.instruction(ReplacedBy(transfer)).first_array
                                     : newest_[buffer.index()];
  if (value_[t] == kNone) {
    return Refuse(transfer, "no-value",
                  absl::StrCat("buffer '", program_.buffer(buffer).name,
                               "' is copied before it has a value"));
  }
  value_[t] = flow_.ValueOf(value_[t]);
  if (SlicesOperand(transfer)) {
    MakeWhole(all_, transfer);
  } else {
    CutAtTiles(ShapeOf(value_[t]), all_, transfer);
  }
  return absl::OkStatus();
}

absl::StatusOr<int32_t> CopyWriter::SourceOf(const PlanTransfer& transfer, int32_t t) {
  if (transfer.kind == CopyKind::kEviction)
    return values_.ArrayAt(value_[t], transfer.residence.value);
  if (transfer.replaces < 0) return values_.ArrayAt(value_[t], kMainMemory);
  const int32_t operand = module_.operands(ReplacedBy(transfer))[0];
  return values_.ArrayAt(module_.instruction(operand).first_array, kMainMemory);
}

absl::Status CopyWriter::Begin(int32_t p, int32_t computation) {
  const int32_t t = all_.pieces[p].transfer;
  const PlanTransfer& transfer = all_.transfers[t];
  MG_RETURN_IF_ERROR(FindValue(transfer, t));
  if (HandedOverBy(module_, flow_.InstructionOf(value_[t]))) {
    const Residence& residence = plan_.residences[transfer.residence.index()];
    return Refuse(
        transfer, "held",
        absl::StrCat("buffer '", program_.buffer(residence.buffer).name, "' is copied at tick ",
                     all_.pieces[p].begin, ", before the collective is done that fills it"));
  }
  const Piece& piece = all_.pieces[p];
  if (piece.dropped) return absl::OkStatus();
  // What main memory has already needs no way there, nor does what is used no more: the bytes of
  // its home may be another's by then.
  if (transfer.kind == CopyKind::kEviction &&
      (values_.IsAt(value_[t], kMainMemory) ||
       (LastUse(value_[t]) < piece.end && !IsReadFrom(transfer.residence, piece.end) &&
        !IsFetchedFrom(value_[t], piece.end)))) {
    left_out_.push_back(t);
    return absl::OkStatus();
  }
  MG_ASSIGN_OR_RETURN(const int32_t source, SourceOf(transfer, t));
  ProlongSource(transfer, piece.end);
  if (draft_.computation(source) != computation) {
    return Refuse(transfer, "other-computation",
                  absl::StrCat("copy of '", draft_.instruction(source).name(),
                               "', a value of another computation than that in which the copy "
                               "begins"));
  }
  if (piece.limit > 0 || SlicesOperand(transfer)) {
    live_.push_back(StartSlice(piece, source, computation));
  } else {
    live_.push_back({.start = StartWhole(piece, source, computation)});
  }
  live_.back().piece = p;
  live_.back().end = piece.end;
  return absl::OkStatus();
}

// The shape of all that the transfer brings.
ShapeProto CopyWriter::ResultOf(const PlanTransfer& transfer, int32_t source) const {
  ShapeProto shape = transfer.replaces >= 0
                         ? module_.instruction(ReplacedBy(transfer)).proto->shape()
                         : draft_.instruction(source).shape();
  values_.SetSpace(shape, LocationOf(transfer));
  return shape;
}

int32_t CopyWriter::StartWhole(const Piece& piece, int32_t source, int32_t computation) {
  const int32_t start = draft_.Add(computation, "copy-start");
  HloInstructionProto& proto = draft_.instruction(start);
  proto.add_operand_ids(draft_.instruction(source).id());
  proto.set_backend_config(kTransferConfig);
  ShapeProto& shape = *proto.mutable_shape();
  shape.set_element_type(TUPLE);
  *shape.add_tuple_shapes() = ResultOf(all_.transfers[piece.transfer], source);
  *shape.add_tuple_shapes() = draft_.instruction(source).shape();
  AddFlag(U32, shape);
  draft_.Emit(start);
  return start;
}

CopyWriter::Live CopyWriter::StartSlice(const Piece& piece, int32_t source, int32_t computation) {
  const PlanTransfer& transfer = all_.transfers[piece.transfer];
  const ShapeProto& from = draft_.instruction(source).shape();
  HloComputationProto& wrapped = draft_.AddComputation("async_slice");
  const int64_t first_id = draft_.FirstId(wrapped, 2);
  HloInstructionProto& parameter = *wrapped.add_instructions();
  parameter.set_id(first_id);
  parameter.set_name(absl::StrCat("param.", wrapped.name()));
  parameter.set_opcode("parameter");
  *parameter.mutable_shape() = from;
  HloInstructionProto& slice = *wrapped.add_instructions();
  slice.set_id(first_id + 1);
  slice.set_name(absl::StrCat("slice.", wrapped.name()));
  slice.set_opcode("slice");
  slice.add_operand_ids(first_id);
  slice.set_backend_config(kSliceConfig);
  *slice.mutable_shape() = ResultOf(transfer, source);
  if (SlicesOperand(transfer)) {
    *slice.mutable_slice_dimensions() =
        module_.instruction(ReplacedBy(transfer)).proto->slice_dimensions();
  } else {
    const int cut = SlicedDimension(slice.shape());
    for (int d = 0; d < from.dimensions_size(); ++d) {
      auto& range = *slice.add_slice_dimensions();
      range.set_start(d == cut ? piece.first : 0);
      range.set_limit(d == cut ? piece.limit : from.dimensions(d));
      range.set_stride(1);
    }
    slice.mutable_shape()->set_dimensions(cut, piece.limit - piece.first);
  }
  wrapped.set_root_id(slice.id());
  *wrapped.mutable_program_shape()->add_parameters() = from;
  wrapped.mutable_program_shape()->add_parameter_names(parameter.name());
  *wrapped.mutable_program_shape()->mutable_result() = slice.shape();

  const int32_t start = draft_.Add(computation, "async-start");
  HloInstructionProto& proto = draft_.instruction(start);
  proto.add_operand_ids(draft_.instruction(source).id());
  proto.add_called_computation_ids(wrapped.id());
  proto.set_backend_config(kTransferConfig);
  ShapeProto& shape = *proto.mutable_shape();
  shape.set_element_type(TUPLE);
  shape.add_tuple_shapes()->set_element_type(TUPLE);
  *shape.mutable_tuple_shapes(0)->add_tuple_shapes() = from;
  *shape.add_tuple_shapes() = slice.shape();
  AddFlag(S32, shape);
  draft_.Emit(start);
  return {.start = start, .sliced_id = slice.id(), .sliced_bytes = BytesOf(slice.shape())};
}

void CopyWriter::End(const Live& live) {
  const Piece& piece = all_.pieces[live.piece];
  const PlanTransfer& transfer = all_.transfers[piece.transfer];
  const bool sliced = live.sliced_id != 0;
  const int32_t computation = draft_.computation(live.start);
  const int32_t done = draft_.Add(computation, sliced ? "async-done" : "copy-done");
  HloInstructionProto& proto = draft_.instruction(done);
  proto.add_operand_ids(draft_.instruction(live.start).id());
  *proto.mutable_shape() = draft_.instruction(live.start).shape().tuple_shapes(sliced ? 1 : 0);
  proto.set_backend_config(kTransferConfig);
  draft_.Emit(done);
  AddPlaces(live, done);
  if (live.again) return;
  if (piece.limit == 0) {
    values_.AddCopy(value_[piece.transfer], LocationOf(transfer), done);
    return;
  }
  slices_[piece.transfer][piece.part_begin] = done;
  if (slices_[piece.transfer].size() == PiecesLeft(all_, transfer).size())
    Join(piece.transfer, computation);
}

// Says where what a transfer makes lies: its tuples, the copy itself, and its flag.
void CopyWriter::AddPlaces(const Live& live, int32_t done) {
  const Piece& piece = all_.pieces[live.piece];
  const PlanTransfer& transfer = all_.transfers[piece.transfer];
  const HloInstructionProto& start = draft_.instruction(live.start);
  const bool sliced = live.sliced_id != 0;
  NewValue tuple;
  tuple.instruction_id = start.id();
  tuple.size_bytes = kTupleBytes;
  values_.AddValue(tuple);
  if (sliced) {
    tuple.index = {0};
    values_.AddValue(tuple);
  }
  NewValue flag;
  flag.instruction_id = start.id();
  flag.index = {2};
  flag.memory_space = kFlagSpace;
  flag.size_bytes = kFlagBytes;
  flag.window = {live.start, done};
  values_.AddValue(flag);
  NewValue copy;
  copy.instruction_id = sliced ? live.sliced_id : start.id();
  if (!sliced) copy.index = {0};
  copy.size_bytes = sliced ? live.sliced_bytes : BytesOf(start.shape().tuple_shapes(0));
  if (transfer.kind == CopyKind::kPrefetch) {
    copy.memory_space = start.shape().tuple_shapes(sliced ? 1 : 0).layout().memory_space();
    copy.fast_offset =
        values_.OffsetOf(transfer.residence.value) + (piece.limit > 0 ? piece.part_begin : 0);
  } else {
    const int32_t home = HomeOf(value_[piece.transfer]);
    copy.home = flow_.InstructionOf(home);
    copy.home_array = home;
  }
  values_.AddValue(std::move(copy));
}

// Slices side by side are the whole.
void CopyWriter::Join(int32_t t, int32_t computation) {
  const PlanTransfer& transfer = all_.transfers[t];
  const int32_t whole = draft_.Add(computation, "custom-call");
  HloInstructionProto& proto = draft_.instruction(whole);
  proto.set_custom_call_target("ConcatBitcast");
  for (const auto& [offset, slice] : slices_[t])
    proto.add_operand_ids(draft_.instruction(slice).id());
  *proto.mutable_shape() = ShapeOf(value_[t]);
  values_.SetSpace(*proto.mutable_shape(), transfer.residence.value);
  proto.set_backend_config(kSliceConfig);
  proto.set_custom_call_api_version(1);
  proto.set_feature_group_count(1);
  proto.set_batch_group_count(1);
  proto.mutable_precision_config();
  draft_.Emit(whole);
  NewValue value;
  value.instruction_id = proto.id();
  value.memory_space = proto.shape().layout().memory_space();
  value.size_bytes = BytesOf(proto.shape());
  value.fast_offset = values_.OffsetOf(transfer.residence.value);
  values_.AddValue(std::move(value));
  values_.AddCopy(value_[t], transfer.residence.value, whole);
}

}  // namespace mallocgame::hlo
