// Moves an isolated module to another placement: its entry computation is made anew, with the
// parameters that the placement asks for, and the computations that it calls are marked.
#include "mallocgame/hlo/write/isolated_module.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/refusal.h"
#include "mallocgame/hlo/module/backend_config.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/memory_spaces.h"
#include "mallocgame/hlo/module/module.h"
#include "mallocgame/hlo/module/proto_forms.h"
#include "nlohmann/json.hpp"

namespace mallocgame::hlo {
namespace {

constexpr int32_t kMustAlias = 2;

absl::Status Invalid(absl::string_view what) {
  return Refused({.rule = "isolated"},
                 absl::InvalidArgumentError(absl::StrCat("isolated module: ", what)));
}

// The arrays of a shape, in depth-first order, with their indices.
struct ArrayAt {
  ShapeProto* shape = nullptr;
  std::vector<int64_t> index;
};

void AppendArrays(ShapeProto& shape, std::vector<int64_t>& index, std::vector<ArrayAt>& arrays) {
  if (shape.element_type() != TUPLE) {
    arrays.push_back({&shape, index});
    return;
  }
  for (int k = 0; k < shape.tuple_shapes_size(); ++k) {
    index.push_back(k);
    AppendArrays(*shape.mutable_tuple_shapes(k), index, arrays);
    index.pop_back();
  }
}

std::vector<ArrayAt> IndexedArrays(ShapeProto& shape) {
  std::vector<ArrayAt> arrays;
  std::vector<int64_t> index;
  AppendArrays(shape, index, arrays);
  return arrays;
}

absl::Status SetSpaces(absl::Span<const int64_t> spaces, absl::string_view of, ShapeProto& shape) {
  const std::vector<ArrayAt> arrays = IndexedArrays(shape);
  if (arrays.size() != spaces.size()) {
    return Invalid(
        absl::StrCat(of, " has ", arrays.size(), " arrays; the placement has ", spaces.size()));
  }
  for (size_t k = 0; k < arrays.size(); ++k)
    arrays[k].shape->mutable_layout()->set_memory_space(spaces[k]);
  return absl::OkStatus();
}

class Editor {
 public:
  Editor(HloModuleProtoWithConfig& proto, const InstructionPlacement& placement)
      : module_(*proto.mutable_hlo_module()), config_(*proto.mutable_config()),
        placement_(placement) {}

  // `isolated` is the module as it is.
  absl::Status Place(const Module& isolated) {
    MG_RETURN_IF_ERROR(ReadEntry());
    MG_RETURN_IF_ERROR(CheckPlacement());
    if (!placement_.backend_config.empty()) root_.set_backend_config(placement_.backend_config);
    MG_RETURN_IF_ERROR(SetFrontendAttributes(isolated));
    ReadLists();
    AssignParameters();
    MG_RETURN_IF_ERROR(MoveEntry());
    BuildEntry();
    MG_RETURN_IF_ERROR(SetShared());
    SpreadMemorySpaces(module_);
    SetProgramShapes();
    return absl::OkStatus();
  }

 private:
  // The operands of the root, each a bitcast of a parameter, or before libtpu 0.0.48 a parameter.
  absl::Status ReadEntry() {
    for (HloComputationProto& computation : *module_.mutable_computations()) {
      if (computation.id() == module_.entry_computation_id()) entry_ = &computation;
    }
    if (entry_ == nullptr) return Invalid("it has no entry computation");
    absl::flat_hash_map<int64_t, const HloInstructionProto*> by_id;
    for (const HloInstructionProto& instruction : entry_->instructions())
      by_id[instruction.id()] = &instruction;
    const auto found = by_id.find(entry_->root_id());
    if (found == by_id.end()) return Invalid("its entry computation has no root");
    root_ = *found->second;
    for (const int64_t operand : root_.operand_ids()) {
      const HloInstructionProto* const bitcast = by_id[operand];
      has_bitcasts_ = bitcast == nullptr || OpcodeOf(*bitcast) != kParameter;
      if (!has_bitcasts_) {
        bitcasts_.push_back(*bitcast);
        sources_.push_back(*bitcast);
        continue;
      }
      if (bitcast == nullptr || OpcodeOf(*bitcast) != kBitcast ||
          bitcast->operand_ids_size() != 1 || by_id[bitcast->operand_ids(0)] == nullptr ||
          OpcodeOf(*by_id[bitcast->operand_ids(0)]) != kParameter) {
        return Invalid(absl::StrCat("operand ", bitcasts_.size(),
                                    " of its root is not a bitcast of a parameter"));
      }
      bitcasts_.push_back(*bitcast);
      sources_.push_back(*by_id[bitcast->operand_ids(0)]);
    }
    return absl::OkStatus();
  }

  absl::Status CheckPlacement() const {
    for (const auto& [what, size] : {std::pair("operands", placement_.operands.size()),
                                     std::pair("values", placement_.values.size())}) {
      if (size == bitcasts_.size()) continue;
      return Invalid(absl::StrCat("its root has ", bitcasts_.size(),
                                  " operands; the placement has ", size, " ", what));
    }
    return absl::OkStatus();
  }

  absl::Status SetFrontendAttributes(const Module& isolated) {
    if (placement_.frontend_attributes.empty()) return absl::OkStatus();
    const std::vector<int32_t> under =
        InstructionsUnder(isolated, *isolated.FindById(entry_->root_id()));
    if (under.size() != placement_.frontend_attributes.size()) {
      return Invalid(absl::StrCat("its root and what that calls are ", under.size(),
                                  " instructions; the placement has ",
                                  placement_.frontend_attributes.size()));
    }
    absl::flat_hash_map<int64_t, const std::string*> attributes;  // by id
    for (size_t k = 0; k < under.size(); ++k)
      attributes[isolated.instruction(under[k]).proto->id()] = &placement_.frontend_attributes[k];
    for (HloComputationProto& computation : *module_.mutable_computations()) {
      for (HloInstructionProto& instruction : *computation.mutable_instructions()) {
        const auto found = attributes.find(instruction.id());
        if (found != attributes.end()) instruction.set_frontend_attributes(*found->second);
      }
    }
    root_.set_frontend_attributes(placement_.frontend_attributes[0]);
    return absl::OkStatus();
  }

  void ReadLists() {
    const nlohmann::json aliasing = PartOf(root_.backend_config(), "aliasing_operands");
    if (!aliasing.is_object() || !aliasing.contains("lists")) return;
    for (const nlohmann::json& list : aliasing["lists"]) {
      if (!list.is_object() || !list.contains("indices")) continue;
      absl::flat_hash_set<int64_t>& members = lists_.emplace_back();
      for (const nlohmann::json& index : list["indices"]) {
        if (const auto number = NumberOf(index)) members.insert(*number);
      }
    }
  }

  bool ShareParameter(int64_t a, int64_t b) const {
    if (placement_.operands[a] != placement_.operands[b]) return false;
    return placement_.values[a] == placement_.values[b] ||
           std::any_of(lists_.begin(), lists_.end(),
                       [&](const auto& list) { return list.contains(a) && list.contains(b); });
  }

  void AssignParameters() {
    for (int64_t k = 0; k < std::ssize(bitcasts_); ++k) {
      int64_t number = std::ssize(parameters_);
      for (int64_t earlier = k - 1; earlier >= 0; --earlier) {
        if (ShareParameter(earlier, k)) number = parameter_of_[earlier];
      }
      parameter_of_.push_back(number);
      if (number < std::ssize(parameters_)) continue;
      HloInstructionProto& parameter = parameters_.emplace_back(sources_[k]);
      parameter.set_parameter_number(number);
      parameter.set_name(absl::StrCat("ISOLATED_PARAM__", number));
    }
  }

  absl::Status MoveEntry() {
    for (int64_t k = 0; k < std::ssize(bitcasts_); ++k) {
      for (HloInstructionProto* moved : {&bitcasts_[k], &parameters_[parameter_of_[k]]}) {
        MG_RETURN_IF_ERROR(SetSpaces(placement_.operands[k], absl::StrCat("operand ", k),
                                     *moved->mutable_shape()));
      }
    }
    MG_RETURN_IF_ERROR(SetSpaces(placement_.results, "its root", *root_.mutable_shape()));
    if (placement_.channel_id != 0) root_.set_channel_id(placement_.channel_id);
    return absl::OkStatus();
  }

  // In the compiler's order: a parameter stands before the first bitcast of it; parameters are
  // scheduled first, then the bitcasts of each.
  void BuildEntry() {
    // Recent modules number instructions (computation id << 32) | local index.
    int64_t next = root_.id() >> 32 << 32;
    std::vector<int64_t> parameter_ids;
    std::vector<std::vector<int64_t>> bitcast_ids(parameters_.size());
    entry_->clear_instructions();
    root_.clear_operand_ids();
    for (size_t k = 0; k < bitcasts_.size(); ++k) {
      const int64_t number = parameter_of_[k];
      if (number == std::ssize(parameter_ids)) {
        parameters_[number].set_id(parameter_ids.emplace_back(next++));
        *entry_->add_instructions() = parameters_[number];
      }
      if (!has_bitcasts_) {
        root_.add_operand_ids(parameter_ids[number]);
        continue;
      }
      bitcasts_[k].set_operand_ids(0, parameter_ids[number]);
      bitcasts_[k].set_id(bitcast_ids[number].emplace_back(next++));
      root_.add_operand_ids(bitcasts_[k].id());
      *entry_->add_instructions() = bitcasts_[k];
    }
    root_.set_id(next);
    *entry_->add_instructions() = root_;
    entry_->set_root_id(next);
    HloScheduleProto::InstructionSequence sequence;
    sequence.mutable_instruction_ids()->Add(parameter_ids.begin(), parameter_ids.end());
    for (const std::vector<int64_t>& ids : bitcast_ids)
      sequence.mutable_instruction_ids()->Add(ids.begin(), ids.end());
    sequence.add_instruction_ids(next);
    (*module_.mutable_schedule()->mutable_sequences())[entry_->id()] = std::move(sequence);
  }

  absl::Status SetShared() {
    HloInputOutputAliasProto& aliases = *module_.mutable_input_output_alias();
    aliases.clear_entries();
    const std::vector<ArrayAt> results = IndexedArrays(*root_.mutable_shape());
    std::set<std::tuple<int64_t, std::vector<int64_t>, std::vector<int64_t>>> seen;
    for (const SharedArray& shared : placement_.shared) {
      if (shared.operand < 0 || shared.operand >= std::ssize(bitcasts_) ||
          shared.operand_array < 0 || shared.result_array < 0 ||
          shared.operand_array >= std::ssize(placement_.operands[shared.operand]) ||
          shared.result_array >= std::ssize(results)) {
        return Invalid(absl::StrCat("the placement shares array ", shared.operand_array,
                                    " of operand ", shared.operand, " with result ",
                                    shared.result_array, ", which there is none of"));
      }
      if (placement_.operands[shared.operand][shared.operand_array] !=
          placement_.results[shared.result_array]) {
        return Invalid(absl::StrCat("the placement shares array ", shared.operand_array,
                                    " of operand ", shared.operand, " with result ",
                                    shared.result_array, ", which lies in another memory space"));
      }
      const int64_t number = parameter_of_[shared.operand];
      const auto operand = IndexedArrays(*parameters_[number].mutable_shape());
      const std::vector<int64_t>& to = results[shared.result_array].index;
      const std::vector<int64_t>& from = operand[shared.operand_array].index;
      // Operands that share a parameter give one entry.
      if (!seen.emplace(number, from, to).second) continue;
      HloInputOutputAliasProto::AliasEntryProto& entry = *aliases.add_entries();
      entry.mutable_output_shape_index()->Add(to.begin(), to.end());
      entry.set_parameter_number(number);
      entry.mutable_parameter_shape_index()->Add(from.begin(), from.end());
      entry.set_kind(kMustAlias);
    }
    return absl::OkStatus();
  }

  void SetProgramShapes() {
    for (HloComputationProto& computation : *module_.mutable_computations()) {
      ProgramShapeProto& shape = *computation.mutable_program_shape();
      if (&computation == entry_) shape.clear_parameters();
      while (shape.parameters_size() < std::ssize(parameters_) && &computation == entry_)
        shape.add_parameters();
      for (const HloInstructionProto& instruction : computation.instructions()) {
        if (OpcodeOf(instruction) == kParameter &&
            instruction.parameter_number() < shape.parameters_size()) {
          *shape.mutable_parameters(static_cast<int>(instruction.parameter_number())) =
              instruction.shape();
        }
        if (instruction.id() == computation.root_id())
          *shape.mutable_result() = instruction.shape();
      }
    }
    const ProgramShapeProto& entry = entry_->program_shape();
    for (ProgramShapeProto* const shape :
         {module_.mutable_host_program_shape(), config_.mutable_entry_computation_layout()}) {
      *shape->mutable_parameters() = entry.parameters();
      *shape->mutable_result() = entry.result();
    }
    SetParameterNames("ISOLATED_PARAM__", *entry_->mutable_program_shape());
    SetParameterNames("p", *module_.mutable_host_program_shape());
    SetParameterNames("p", *config_.mutable_entry_computation_layout());
  }

  void SetParameterNames(absl::string_view prefix, ProgramShapeProto& shape) const {
    shape.clear_parameter_names();
    for (size_t number = 0; number < parameters_.size(); ++number)
      shape.add_parameter_names(absl::StrCat(prefix, number));
  }

  HloModuleProto& module_;
  HloModuleConfigProto& config_;
  const InstructionPlacement& placement_;
  HloComputationProto* entry_ = nullptr;
  HloInstructionProto root_;
  bool has_bitcasts_ = true;
  std::vector<HloInstructionProto> bitcasts_, sources_;  // by operand; sources are parameters
  std::vector<absl::flat_hash_set<int64_t>> lists_;      // the root's aliasing_operands
  std::vector<int64_t> parameter_of_;                    // by operand
  std::vector<HloInstructionProto> parameters_;
};

}  // namespace

std::vector<int32_t> InstructionsUnder(const Module& module, int32_t instruction) {
  std::vector<int32_t> found = {instruction};
  for (const int32_t called : module.called(instruction)) {
    const Computation& computation = module.computation(called);
    for (int32_t k = 0; k < computation.instruction_count; ++k) {
      const auto under = InstructionsUnder(module, computation.first_instruction + k);
      found.insert(found.end(), under.begin(), under.end());
    }
  }
  return found;
}

absl::StatusOr<std::string> PlaceIsolatedModule(absl::string_view isolated,
                                                const InstructionPlacement& placement,
                                                absl::string_view name) {
  // It checks that ids are known, that shapes are sound, and that nothing is called in a circle.
  MG_ASSIGN_OR_RETURN(const std::unique_ptr<const Module> module,
                      Module::Parse(isolated, "isolated module"));
  HloModuleProtoWithConfig proto;
  if (!ParseMessage(isolated, proto) || proto.hlo_module().computations().empty() ||
      !proto.has_config()) {
    return Invalid("not a serialized HloModuleProtoWithConfig");
  }
  MG_RETURN_IF_ERROR(Editor(proto, placement).Place(*module));
  proto.mutable_hlo_module()->set_name(std::string(name));
  return proto.SerializeAsString();
}

}  // namespace mallocgame::hlo
