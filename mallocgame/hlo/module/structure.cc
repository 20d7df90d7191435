// Describes instructions and computations as byte strings. Every part has its length before it or
// is of fixed size, so two different structures never have the same description.
#include "mallocgame/hlo/module/structure.h"

#include <utility>

#include "absl/strings/string_view.h"
#include "google/protobuf/message_lite.h"
#include "mallocgame/hlo/module/hlo.pb.h"

namespace mallocgame::hlo {
namespace {

class Key {
 public:
  void Add(int64_t value) { text_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void Add(absl::string_view bytes) {
    Add(bytes.size());
    text_.append(bytes.data(), bytes.size());
  }
  template <class Repeated>
  void AddAll(const Repeated& values) {
    Add(values.size());
    for (const int64_t value : values) Add(value);
  }
  void AddMessage(const google::protobuf::MessageLite& message) {
    Add(message.ByteSizeLong());
    message.AppendToString(&text_);
  }
  template <class Repeated>
  void AddMessages(const Repeated& messages) {
    Add(messages.size());
    for (const auto& message : messages) AddMessage(message);
  }
  std::string Take() { return std::move(text_); }

 private:
  std::string text_;
};

void AddShape(const ShapeProto& shape, Key& key) {
  key.Add(shape.element_type());
  key.AddAll(shape.dimensions());
  const LayoutProto& layout = shape.layout();
  key.AddAll(layout.minor_to_major());
  key.AddMessages(layout.tiles());
  key.Add(layout.element_size_in_bits());
  key.Add(layout.tail_padding_alignment_in_elements());
}

void AddAttributes(const HloInstructionProto& p, Key& key) {
  key.Add(p.opcode());
  key.Add(p.parameter_number());
  key.Add(p.fusion_kind());
  key.Add(p.tuple_index());
  key.AddAll(p.dimensions());
  key.AddMessage(p.window());
  key.AddMessage(p.convolution_dimension_numbers());
  key.AddMessages(p.slice_dimensions());
  key.AddAll(p.dynamic_slice_sizes());
  key.AddMessage(p.padding_config());
  key.Add(p.custom_call_target());
  key.AddMessage(p.dot_dimension_numbers());
  key.AddMessage(p.ragged_dot_dimension_numbers());
  key.Add(p.fft_type());
  key.AddAll(p.fft_length());
  key.AddMessage(p.gather_dimension_numbers());
  key.AddAll(p.gather_slice_sizes());
  key.AddMessage(p.scatter_dimension_numbers());
  key.Add(p.feature_group_count());
  key.Add(p.batch_group_count());
  key.Add(p.comparison_direction());
  key.AddMessages(p.output_operand_aliasing());
}

}  // namespace

Structures::Structures(const Module& module)
    : module_(module), computation_(module.computations().size()),
      result_(module.instructions().size()) {
  // Callees stand before callers, so one pass describes every computation by those it calls.
  for (size_t c = 0; c < computation_.size(); ++c) {
    const Computation& computation = module.computation(static_cast<int32_t>(c));
    Key key;
    const int32_t first = computation.first_instruction;
    for (int32_t i = first; i < first + computation.instruction_count; ++i) {
      AddAttributes(*module.instruction(i).proto, key);
      key.Add(Result(i));
      key.Add(module.operands(i).size());
      for (const int32_t operand : module.operands(i)) key.Add(operand - first);
      key.Add(module.called(i).size());
      for (const int32_t callee : module.called(i)) key.Add(computation_[callee]);
    }
    key.Add(computation.root - first);
    computation_[c] = Intern(key.Take());
  }
}

int32_t Structures::Of(int32_t instruction) {
  Key key;
  AddAttributes(*module_.instruction(instruction).proto, key);
  key.Add(Result(instruction));
  const absl::Span<const int32_t> operands = module_.operands(instruction);
  key.Add(operands.size());
  absl::flat_hash_map<int32_t, int64_t> first_seen;
  for (size_t k = 0; k < operands.size(); ++k) {
    key.Add(first_seen.try_emplace(operands[k], k).first->second);
    key.Add(Result(operands[k]));
  }
  const absl::Span<const int32_t> called = module_.called(instruction);
  key.Add(called.size());
  for (const int32_t callee : called) key.Add(computation_[callee]);
  return Intern(key.Take());
}

// Describes the arrays of a tuple in order; how they nest has no bearing on the work. The result is
// a number, so that many uses of a large tuple do not make large descriptions.
int32_t Structures::Result(int32_t instruction) {
  std::optional<int32_t>& result = result_[instruction];
  if (result) return *result;
  Key key;
  key.Add("result");
  for (const Array& array : module_.arrays(instruction)) AddShape(*array.shape, key);
  result = Intern(key.Take());
  return *result;
}

int32_t Structures::Intern(std::string&& key) {
  return numbers_.try_emplace(std::move(key), static_cast<int32_t>(numbers_.size())).first->second;
}

}  // namespace mallocgame::hlo
