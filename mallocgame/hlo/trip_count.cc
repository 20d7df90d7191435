// Counts trips in three ways, the cheapest first: what the compiler recorded; an induction variable
// with a constant start, step and limit; and running the loop's scalar integers until the condition
// fails.
#include "mallocgame/hlo/trip_count.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "mallocgame/hlo/backend_config.h"
#include "mallocgame/hlo/hlo.pb.h"
#include "nlohmann/json.hpp"

namespace mallocgame::hlo {
namespace {

using Value = std::optional<int64_t>;

bool IsScalar(const ShapeProto& shape) {
  return shape.element_type() != TUPLE &&
         std::all_of(shape.dimensions().begin(), shape.dimensions().end(),
                     [](int64_t dimension) { return dimension == 1; });
}

template <class T>
Value FirstOf(const std::string& bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return static_cast<int64_t>(value);
}

Value LiteralValue(const LiteralProto& literal) {
  switch (literal.shape().element_type()) {
    case PRED: return literal.preds().empty() ? Value() : Value(literal.preds(0) ? 1 : 0);
    case S8: return FirstOf<int8_t>(literal.s8s());
    case U8: return FirstOf<uint8_t>(literal.u8s());
    case S16: return FirstOf<int16_t>(literal.s16s());
    case U16: return FirstOf<uint16_t>(literal.u16s());
    case S32: return literal.s32s().empty() ? Value() : Value(literal.s32s(0));
    case U32: return literal.u32s().empty() ? Value() : Value(literal.u32s(0));
    case S64: return literal.s64s().empty() ? Value() : Value(literal.s64s(0));
    default: return std::nullopt;
  }
}

Value Compare(absl::string_view direction, int64_t a, int64_t b) {
  if (direction == "LT") return a < b;
  if (direction == "LE") return a <= b;
  if (direction == "GT") return a > b;
  if (direction == "GE") return a >= b;
  if (direction == "EQ") return a == b;
  if (direction == "NE") return a != b;
  return std::nullopt;
}

Value Combine(absl::string_view opcode, int64_t a, int64_t b) {
  int64_t result = 0;
  if (opcode == "add") return __builtin_add_overflow(a, b, &result) ? Value() : Value(result);
  if (opcode == "subtract") return __builtin_sub_overflow(a, b, &result) ? Value() : Value(result);
  if (opcode == "multiply") return __builtin_mul_overflow(a, b, &result) ? Value() : Value(result);
  if (opcode == "minimum") return std::min(a, b);
  if (opcode == "maximum") return std::max(a, b);
  if (opcode == "and") return a & b;
  if (opcode == "or") return a | b;
  return std::nullopt;
}

bool PassesOn(absl::string_view opcode) {
  return opcode == "bitcast" || opcode == "copy" || opcode == "convert" || opcode == "reshape" ||
         opcode == "broadcast";
}

// Parameters of which nothing is known.
Value Unknown(int64_t, std::optional<int64_t>) { return std::nullopt; }

}  // namespace

// The instructions that make the tuple a while is given, the tuple its body gives, and the result
// of its condition.
struct TripCounter::Loop {
  int32_t init = 0, body_root = 0, condition_root = 0;
};

// The instruction that makes element k of a tuple, if `tuple` is where the tuple is made.
std::optional<int32_t> TripCounter::Element(int32_t tuple, int64_t k) const {
  const absl::Span<const int32_t> operands = module_.operands(tuple);
  if (module_.instruction(tuple).proto->opcode() != "tuple" || k < 0 || k >= std::ssize(operands)) {
    return std::nullopt;
  }
  return operands[k];
}

TripCounter::Value TripCounter::Evaluate(int32_t root, const ParameterValue& parameter) {
  absl::flat_hash_map<int32_t, Value> known;
  std::vector<int32_t> stack = {root};
  std::vector<Value> operands;
  while (!stack.empty()) {
    const int32_t i = stack.back();
    budget_ -= 1 + std::ssize(module_.operands(i));
    if (budget_ < 0) return std::nullopt;
    const bool is_element = module_.instruction(i).proto->opcode() == "get-tuple-element";
    operands.clear();
    bool ready = true;
    for (const int32_t operand : module_.operands(i)) {
      const auto found = known.find(operand);
      if (is_element) break;
      if (found == known.end()) {
        stack.push_back(operand);
        ready = false;
      } else {
        operands.push_back(found->second);
      }
    }
    if (!ready) continue;
    stack.pop_back();
    if (!known.contains(i)) known.emplace(i, Apply(i, operands, parameter));
  }
  return known[root];
}

TripCounter::Value TripCounter::Apply(int32_t i, const std::vector<Value>& operands,
                                      const ParameterValue& parameter) {
  const HloInstructionProto& proto = *module_.instruction(i).proto;
  const std::string& opcode = proto.opcode();
  if (opcode == "get-tuple-element") {
    const absl::Span<const int32_t> of = module_.operands(i);
    if (of.size() != 1 || !IsScalar(proto.shape())) return std::nullopt;
    const HloInstructionProto& tuple = *module_.instruction(of[0]).proto;
    return tuple.opcode() == "parameter" ? parameter(tuple.parameter_number(), proto.tuple_index())
                                         : Value();
  }
  if (!IsScalar(proto.shape())) return std::nullopt;
  if (opcode == "parameter") return parameter(proto.parameter_number(), std::nullopt);
  if (opcode == "constant") return LiteralValue(proto.literal());
  if (opcode == "fusion" && module_.called(i).size() == 1) {
    const int32_t fused = module_.computation(module_.called(i)[0]).root;
    const ParameterValue argument = [&operands](int64_t number,
                                                std::optional<int64_t> element) -> Value {
      if (element || number < 0 || number >= std::ssize(operands)) return std::nullopt;
      return operands[number];
    };
    return Evaluate(fused, argument);
  }
  if (operands.empty() || !operands[0].has_value()) return std::nullopt;
  if (PassesOn(opcode)) return operands[0];
  if (operands.size() != 2 || !operands[1].has_value()) return std::nullopt;
  if (opcode == "compare") return Compare(proto.comparison_direction(), *operands[0], *operands[1]);
  return Combine(opcode, *operands[0], *operands[1]);
}

std::optional<int64_t> TripCounter::Count(int32_t loop) {
  if (const std::optional<int64_t> recorded = Recorded(loop)) return recorded;
  const Loop parts{.init = module_.operands(loop)[0],
                   .body_root = module_.computation(module_.called(loop)[0]).root,
                   .condition_root = module_.computation(module_.called(loop)[1]).root};
  if (const std::optional<int64_t> closed = Closed(parts)) return closed;
  return Simulated(parts);
}

std::optional<int64_t> TripCounter::Recorded(int32_t loop) const {
  const nlohmann::json count =
      PartOf(module_.instruction(loop).proto->backend_config(), "known_trip_count");
  if (!count.is_object()) return std::nullopt;
  return NumberOf(count.value("n", nlohmann::json()));
}

// Applies if the condition compares element k with a limit, and the body adds a step to element k.
std::optional<int64_t> TripCounter::Closed(const Loop& loop) {
  // The element of the parameter that this instruction passes on, if it does.
  const auto carried = [this](int32_t i) -> std::optional<int64_t> {
    while (true) {
      const HloInstructionProto& proto = *module_.instruction(i).proto;
      const absl::Span<const int32_t> operands = module_.operands(i);
      if (operands.size() != 1 || --budget_ < 0) return std::nullopt;
      if (proto.opcode() == "get-tuple-element") {
        if (module_.instruction(operands[0]).proto->opcode() != "parameter") return std::nullopt;
        return proto.tuple_index();
      }
      if (!PassesOn(proto.opcode()) || !IsScalar(proto.shape())) return std::nullopt;
      i = operands[0];
    }
  };
  const absl::Span<const int32_t> compared = module_.operands(loop.condition_root);
  const HloInstructionProto& condition = *module_.instruction(loop.condition_root).proto;
  if (condition.opcode() != "compare" || compared.size() != 2 ||
      condition.comparison_direction() != "LT") {
    return std::nullopt;
  }
  const std::optional<int64_t> k = carried(compared[0]);
  if (!k) return std::nullopt;
  const std::optional<int32_t> start = Element(loop.init, *k), next = Element(loop.body_root, *k);
  if (!start || !next) return std::nullopt;
  const absl::Span<const int32_t> added = module_.operands(*next);
  if (module_.instruction(*next).proto->opcode() != "add" || added.size() != 2) return std::nullopt;
  const size_t old = carried(added[0]) == k ? 0 : 1;
  if (carried(added[old]) != k) return std::nullopt;
  const Value first = Evaluate(*start, Unknown), limit = Evaluate(compared[1], Unknown);
  const Value step = Evaluate(added[1 - old], Unknown);
  if (!first || !limit || !step || *step <= 0) return std::nullopt;
  if (*first >= *limit) return 0;
  int64_t distance = 0;
  if (__builtin_sub_overflow(*limit, *first, &distance)) return std::nullopt;
  return distance / *step + (distance % *step != 0 ? 1 : 0);
}

std::optional<int64_t> TripCounter::Simulated(const Loop& loop) {
  std::map<int64_t, Value> state;  // by element of the carried tuple, those that matter
  for (bool grown = true; grown && budget_ > 0;) {
    grown = false;
    for (auto& [k, value] : state) {
      const std::optional<int32_t> start = Element(loop.init, k);
      value = start ? Evaluate(*start, Unknown) : Value();
    }
    std::vector<int64_t> asked;
    const ParameterValue parameter = [&](int64_t, std::optional<int64_t> element) -> Value {
      if (!element) return std::nullopt;
      const auto found = state.find(*element);
      if (found != state.end()) return found->second;
      asked.push_back(*element);
      return std::nullopt;
    };
    for (int64_t trips = 0; budget_ > 0 && !grown; ++trips) {
      const Value goes_on = Evaluate(loop.condition_root, parameter);
      std::map<int64_t, Value> following;
      for (const auto& [k, value] : state) {
        const std::optional<int32_t> next = Element(loop.body_root, k);
        following[k] = next ? Evaluate(*next, parameter) : Value();
      }
      for (const int64_t k : asked) grown |= state.emplace(k, std::nullopt).second;
      if (grown) break;
      if (!goes_on.has_value()) return std::nullopt;
      if (*goes_on == 0) return trips;
      if (following == state) return std::nullopt;
      state = std::move(following);
    }
  }
  return std::nullopt;
}

}  // namespace mallocgame::hlo
