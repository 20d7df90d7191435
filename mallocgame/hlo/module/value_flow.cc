#include "mallocgame/hlo/module/value_flow.h"

#include <map>

#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/hlo/module/value_edges.h"

namespace mallocgame::hlo {
bool Recasts(const Module& module, int32_t i) {
  const HloInstruction& instruction = module.instruction(i);
  return HandsOperandOn(instruction) && instruction.proto->shape().element_type() != TUPLE;
}

ValueFlow::ValueFlow(const Module& module, const Schedule& schedule)
    : module_(module), owner_(module.array_count(), kNone), before_(module.array_count(), kNone),
      outside_(module.array_count(), kNone) {
  const AsyncChains chains(module);
  for (int32_t i = 0; i < static_cast<int32_t>(module.instructions().size()); ++i) {
    const HloInstruction& instruction = module.instruction(i);
    for (int32_t k = 0; k < instruction.array_count; ++k) owner_[instruction.first_array + k] = i;
    if (schedule.tick_of[i] != kNone) Visit(i, chains);
  }
}

int32_t ValueFlow::ValueOf(int32_t array) const {
  while (before_[array] != kNone) array = before_[array];
  return array;
}

void ValueFlow::Visit(int32_t i, const AsyncChains& chains) {
  if (module_.opcode(i) == kWhile) return VisitLoop(i);
  if (module_.opcode(i) == kConditional) return VisitBranches(i);
  const auto edges = EdgesOf(module_, chains, i);
  if (!edges.ok()) return;
  for (const ValueEdge& edge : *edges) {
    if (edge.how != Handing::kName) continue;
    const auto from = *module_.SubShape(edge.from.instruction, edge.from.index),
               to = *module_.SubShape(i, edge.to.index);
    for (int32_t k = 0; k < to.count; ++k) {
      before_[module_.instruction(i).first_array + to.first + k] =
          module_.instruction(edge.from.instruction).first_array + from.first + k;
    }
  }
}

int32_t ValueFlow::PassedBy(int32_t computation, int32_t k) const {
  const Computation& own = module_.computation(computation);
  const int32_t value = ValueOf(module_.instruction(own.root).first_array + k);
  return owner_[value] == own.parameters[0] ? value : kNone;
}

void ValueFlow::VisitBranches(int32_t i) {
  const absl::Span<const int32_t> branches = module_.called(i);
  for (int32_t k = 0; k < module_.instruction(i).array_count; ++k) {
    int32_t value = kNone;
    for (size_t b = 0; b < branches.size(); ++b) {
      const int32_t passed = PassedBy(branches[b], k);
      const int32_t parameter = module_.computation(branches[b]).parameters[0];
      const int32_t operand = module_.operands(i)[b + 1];
      const int32_t given = passed == kNone
                                ? kNone
                                : ValueOf(module_.instruction(operand).first_array + passed -
                                          module_.instruction(parameter).first_array);
      if (b > 0 && given != value) value = kNone;
      if (b == 0) value = given;
      if (value == kNone) break;
    }
    before_[module_.instruction(i).first_array + k] = value;
  }
}

void ValueFlow::VisitLoop(int32_t i) {
  const HloInstruction& loop = module_.instruction(i);
  const Computation& body = module_.computation(module_.called(i)[0]);
  const int32_t parameter = module_.instruction(body.parameters[0]).first_array;
  const int32_t tested =
      module_.instruction(module_.computation(module_.called(i)[1]).parameters[0]).first_array;
  const int32_t root = module_.instruction(body.root).first_array;
  const int32_t given = module_.instruction(module_.operands(i)[0]).first_array;
  std::vector<int32_t> passed;
  for (int32_t k = 0; k < loop.array_count; ++k) {
    if (ValueOf(root + k) == parameter + k) passed.push_back(k);
  }
  std::map<int32_t, int32_t> first;  // by value outside: the first array that passes it through
  for (const int32_t k : passed) {
    before_[loop.first_array + k] = given + k;
    const int32_t value = ValueOf(given + k);
    outside_[parameter + k] = outside_[tested + k] = value;
    const int32_t same = first.emplace(value, k).first->second;
    if (same == k) continue;
    before_[parameter + k] = parameter + same;
    before_[tested + k] = tested + same;
  }
}

}  // namespace mallocgame::hlo
