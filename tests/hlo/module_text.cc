// Reads the small HLO spelling, and adds the ids and schedules that XLA's protos need.
#include "tests/hlo/module_text.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "google/protobuf/text_format.h"
#include "mallocgame/hlo/module/shape_size.h"
#include "tests/catch.h"

namespace mallocgame::hlo_test {
namespace {

const std::map<std::string, hlo::PrimitiveType>& Types() {
  static const auto* const types = new std::map<std::string, hlo::PrimitiveType>{
      {"pred", hlo::PRED},   {"s8", hlo::S8},   {"s32", hlo::S32}, {"u32", hlo::U32},
      {"s64", hlo::S64},     {"u64", hlo::U64}, {"f32", hlo::F32}, {"bf16", hlo::BF16},
      {"s4", hlo::S4},       {"u8", hlo::U8},   {"s16", hlo::S16}, {"u16", hlo::U16},
      {"token", hlo::TOKEN}, {"c64", hlo::C64}};
  return *types;
}

class ShapeReader {
 public:
  explicit ShapeReader(absl::string_view text) : text_(text) {}

  hlo::ShapeProto Read() {
    hlo::ShapeProto shape;
    if (Take("(")) {
      shape.set_element_type(hlo::TUPLE);
      while (!Take(")")) {
        *shape.add_tuple_shapes() = Read();
        Take(",");
        Take(" ");
      }
      return shape;
    }
    if (Take("b(")) {
      shape.set_element_type(hlo::BUFFER);
      *shape.add_tuple_shapes() = Read();
      REQUIRE(Take(")"));
      return shape;
    }
    const size_t bracket = text_.find('[');
    REQUIRE(bracket != absl::string_view::npos);
    shape.set_element_type(Types().at(std::string(text_.substr(0, bracket))));
    text_.remove_prefix(bracket + 1);
    for (const int64_t dimension : List("]")) shape.add_dimensions(dimension);
    hlo::LayoutProto& layout = *shape.mutable_layout();
    if (!Take("{")) {
      for (int k = shape.dimensions_size(); k > 0; --k) layout.add_minor_to_major(k - 1);
      return shape;
    }
    const bool bare = text_.find(':') > text_.find('}');
    for (const int64_t dimension : List(bare ? "}" : ":")) layout.add_minor_to_major(dimension);
    if (bare) return shape;
    Take("T");
    while (Take("(")) {
      hlo::TileProto& tile = *layout.add_tiles();
      for (const int64_t dimension : List(")")) tile.add_dimensions(dimension);
    }
    if (Take("S(")) layout.set_memory_space(List(")")[0]);
    if (Take("SC(")) {
      hlo::SplitConfigProto& split = *layout.add_split_configs();
      split.set_dimension(List(":")[0]);
      for (const int64_t end : List(")")) split.add_split_indices(end);
    }
    REQUIRE(Take("}"));
    return shape;
  }

 private:
  bool Take(absl::string_view token) { return absl::ConsumePrefix(&text_, token); }

  std::vector<int64_t> List(absl::string_view end) {
    const size_t at = text_.find(end);
    REQUIRE(at != absl::string_view::npos);
    std::vector<int64_t> numbers;
    for (const absl::string_view number :
         absl::StrSplit(text_.substr(0, at), ',', absl::SkipEmpty())) {
      REQUIRE(absl::SimpleAtoi(number, &numbers.emplace_back()));
    }
    text_.remove_prefix(at + end.size());
    return numbers;
  }

  absl::string_view text_;
};

}  // namespace

hlo::ShapeProto ParseShape(const std::string& text) { return ShapeReader(text).Read(); }

ModuleText& ModuleText::Computation(const std::string& name, bool fused) {
  hlo::HloModuleProto& module = *proto_.mutable_hlo_module();
  computation_ = module.add_computations();
  computation_->set_name(name);
  computation_->set_id(module.computations_size());
  computation_->set_is_fusion_computation(fused);
  module.set_entry_computation_id(computation_->id());
  computations_[name] = computation_->id();
  parameters_ = 0;
  return *this;
}

ModuleText& ModuleText::Add(const std::string& line, const std::string& extra,
                            const std::vector<std::string>& called) {
  hlo::HloInstructionProto& instruction = *computation_->add_instructions();
  REQUIRE(google::protobuf::TextFormat::ParseFromString(extra, &instruction));
  const std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(" = ", 1));
  const size_t open = parts.second.rfind('('), space = parts.second.rfind(' ', open);
  REQUIRE((open != std::string::npos && space != std::string::npos));
  instruction.set_name(parts.first);
  instruction.set_opcode(parts.second.substr(space + 1, open - space - 1));
  *instruction.mutable_shape() = ParseShape(parts.second.substr(0, space));
  instruction.set_id(computation_->id() << 32 | computation_->instructions_size());
  const std::string operands = parts.second.substr(open + 1, parts.second.size() - open - 2);
  for (const absl::string_view operand : absl::StrSplit(operands, ", ", absl::SkipEmpty())) {
    instruction.add_operand_ids(ids_.at(std::string(operand)));
  }
  for (const std::string& callee : called)
    instruction.add_called_computation_ids(computations_.at(callee));
  if (instruction.opcode() == "parameter") instruction.set_parameter_number(parameters_++);
  ids_[instruction.name()] = instruction.id();
  computation_->set_root_id(instruction.id());
  if (!computation_->is_fusion_computation()) {
    auto& sequences = *proto_.mutable_hlo_module()->mutable_schedule()->mutable_sequences();
    sequences[computation_->id()].add_instruction_ids(instruction.id());
  }
  return *this;
}

ModuleText& ModuleText::Donate(int64_t output_index, int64_t parameter) {
  auto& entry = *proto_.mutable_hlo_module()->mutable_input_output_alias()->add_entries();
  entry.add_output_shape_index(output_index);
  entry.set_parameter_number(parameter);
  entry.set_kind(1);
  return *this;
}

ModuleText& ModuleText::Place(const std::string& name, const std::vector<int64_t>& index,
                              int64_t offset, int64_t color) {
  hlo::BufferAssignmentProto& assignment = *proto_.mutable_buffer_assignment();
  hlo::LogicalBufferProto& buffer = *assignment.add_logical_buffers();
  buffer.set_id(assignment.logical_buffers_size());
  buffer.set_color(color);
  buffer.mutable_defined_at()->set_instruction_id(ids_.at(name));
  for (const int64_t k : index) buffer.mutable_defined_at()->add_shape_index(k);
  hlo::BufferAllocationProto& allocation = *assignment.add_buffer_allocations();
  allocation.set_color(color);
  auto& assigned = *allocation.add_assigned();
  assigned.set_logical_buffer_id(buffer.id());
  assigned.set_offset(offset);
  const hlo::ShapeProto* shape = &at(name).shape();
  for (const int64_t k : index) shape = &shape->tuple_shapes(static_cast<int>(k));
  const int64_t parts = shape->layout().split_configs().empty() ? 1 : 2;
  assigned.set_size(*hlo::TiledBytes(*shape, int64_t{1} << 40) / parts);
  return *this;
}

ModuleText& ModuleText::Call(const std::string& name, const std::string& computation) {
  at(name).add_called_computation_ids(computations_.at(computation));
  return *this;
}

hlo::HloInstructionProto& ModuleText::at(const std::string& name) {
  for (auto& computation : *proto_.mutable_hlo_module()->mutable_computations()) {
    for (auto& instruction : *computation.mutable_instructions()) {
      if (instruction.name() == name) return instruction;
    }
  }
  FAIL("no instruction " << name);
  throw;
}

std::unique_ptr<const hlo::Module> Parse(const ModuleText& text) {
  auto module = hlo::Module::Parse(text.Bytes(), "m");
  INFO(module.status());
  REQUIRE(module.ok());
  return *std::move(module);
}

int32_t Named(const hlo::Module& module, const std::string& name) {
  const std::optional<int32_t> instruction = module.FindByName(name);
  INFO(name);
  REQUIRE(instruction.has_value());
  return *instruction;
}

std::string Literal(int64_t value) {
  return absl::StrCat("literal { shape { element_type: S32 } s32s: ", value, " }");
}

Hardware UnitHardware() {
  Hardware hardware = *HardwarePreset("tpu_v5e");
  hardware.name = "unit";
  hardware.fast_bytes = 1 << 20;
  hardware.alignment_bytes = 256;
  hardware.main_bytes_per_second = hardware.fast_read_bytes_per_second =
      hardware.fast_write_bytes_per_second = hardware.flops_per_second =
          hardware.transcendentals_per_second = hardware.clock_hz = 1'000'000'000'000;
  return hardware;
}

}  // namespace mallocgame::hlo_test
