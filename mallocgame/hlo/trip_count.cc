// Trip counts. Three ways, the cheapest first: what the compiler recorded; an induction variable
// with a constant start, step and limit; and running the loop's scalar integers until the condition
// fails.
#include "mallocgame/hlo/trip_count.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
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

Value Arithmetic(absl::string_view opcode, int64_t a, int64_t b) {
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

// What of no parameter is known.
Value Unknown(int64_t, int64_t) { return std::nullopt; }

}  // namespace

// A while, and the state its body carries: the integers that its condition depends on.
struct TripCounter::Loop {
  int32_t instruction = 0, body_root = 0, condition_root = 0;
  int32_t init = 0;

  // The instruction that gives element k of a tuple instruction; -1 if that isn't to be seen here.
  static int32_t Element(const Module& module, int32_t tuple, int64_t k) {
    const absl::Span<const int32_t> operands = module.operands(tuple);
    if (module.instruction(tuple).proto->opcode() != "tuple" || k < 0 ||
        k >= static_cast<int64_t>(operands.size())) {
      return -1;
    }
    return operands[k];
  }
};

template <class Parameter>
TripCounter::Value TripCounter::Evaluate(int32_t root, const Parameter& parameter) {
  absl::flat_hash_map<int32_t, Value> known;
  std::vector<int32_t> stack = {root};
  std::vector<Value> operands;
  while (!stack.empty()) {
    const int32_t i = stack.back();
    budget_ -= 1 + static_cast<int64_t>(module_.operands(i).size());
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

template <class Parameter>
TripCounter::Value TripCounter::Apply(int32_t i, const std::vector<Value>& operands,
                                      const Parameter& parameter) {
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
  if (opcode == "parameter") return parameter(proto.parameter_number(), -1);
  if (opcode == "constant") return LiteralValue(proto.literal());
  if (opcode == "fusion" && module_.called(i).size() == 1) {
    const int32_t fused = module_.computation(module_.called(i)[0]).root;
    const std::function<Value(int64_t, int64_t)> argument = [&operands](int64_t number,
                                                                        int64_t element) -> Value {
      if (element >= 0 || number < 0 || number >= static_cast<int64_t>(operands.size()))
        return std::nullopt;
      return operands[number];
    };
    return Evaluate(fused, argument);
  }
  if (operands.empty() || !operands[0].has_value()) return std::nullopt;
  if (PassesOn(opcode)) return operands[0];
  if (operands.size() != 2 || !operands[1].has_value()) return std::nullopt;
  if (opcode == "compare") return Compare(proto.comparison_direction(), *operands[0], *operands[1]);
  return Arithmetic(opcode, *operands[0], *operands[1]);
}

std::optional<int64_t> TripCounter::Count(int32_t instruction) {
  if (const std::optional<int64_t> recorded = Recorded(instruction)) return recorded;
  Loop loop;
  loop.instruction = instruction;
  loop.init = module_.operands(instruction)[0];
  loop.body_root = module_.computation(module_.called(instruction)[0]).root;
  loop.condition_root = module_.computation(module_.called(instruction)[1]).root;
  if (const std::optional<int64_t> closed = Closed(loop)) return closed;
  return Simulated(loop);
}

std::optional<int64_t> TripCounter::Recorded(int32_t loop) const {
  const std::string& config = module_.instruction(loop).proto->backend_config();
  if (config.find("known_trip_count") == std::string::npos) return std::nullopt;
  const nlohmann::json json = nlohmann::json::parse(config, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  const auto count = json.find("known_trip_count");
  if (count == json.end() || !count->is_object()) return std::nullopt;
  const auto n = count->find("n");
  if (n == count->end()) return std::nullopt;
  int64_t trips = -1;
  if (n->is_string()) {
    if (!absl::SimpleAtoi(n->get_ref<const std::string&>(), &trips)) return std::nullopt;
  } else if (n->is_number_unsigned() && n->get<uint64_t>() <= INT64_MAX) {
    trips = n->get<int64_t>();
  }
  return trips < 0 ? std::nullopt : std::optional<int64_t>(trips);
}

// Condition: element k against a limit; body: element k plus a step.
std::optional<int64_t> TripCounter::Closed(Loop& loop) {
  // which element of the parameter this is; -1 if none
  const auto carried = [this](int32_t i) -> int64_t {
    while (i >= 0) {
      const HloInstructionProto& proto = *module_.instruction(i).proto;
      const absl::Span<const int32_t> operands = module_.operands(i);
      if (operands.size() != 1 || --budget_ < 0) return -1;
      if (proto.opcode() == "get-tuple-element") {
        return module_.instruction(operands[0]).proto->opcode() == "parameter" ? proto.tuple_index()
                                                                               : -1;
      }
      if (!PassesOn(proto.opcode()) || !IsScalar(proto.shape())) return -1;
      i = operands[0];
    }
    return -1;
  };
  const absl::Span<const int32_t> compared = module_.operands(loop.condition_root);
  const HloInstructionProto& condition = *module_.instruction(loop.condition_root).proto;
  if (condition.opcode() != "compare" || compared.size() != 2 ||
      condition.comparison_direction() != "LT") {
    return std::nullopt;
  }
  const int64_t k = carried(compared[0]);
  const int32_t start = Loop::Element(module_, loop.init, k),
                next = Loop::Element(module_, loop.body_root, k);
  if (start < 0 || next < 0) return std::nullopt;
  const absl::Span<const int32_t> added = module_.operands(next);
  if (module_.instruction(next).proto->opcode() != "add" || added.size() != 2) return std::nullopt;
  const size_t old = carried(added[0]) == k ? 0 : 1;
  if (carried(added[old]) != k) return std::nullopt;
  const Value first = Evaluate(start, Unknown), limit = Evaluate(compared[1], Unknown);
  const Value step = Evaluate(added[1 - old], Unknown);
  if (!first || !limit || !step || *step <= 0) return std::nullopt;
  if (*first >= *limit) return 0;
  int64_t distance = 0;
  if (__builtin_sub_overflow(*limit, *first, &distance)) return std::nullopt;
  return distance / *step + (distance % *step != 0 ? 1 : 0);
}

std::optional<int64_t> TripCounter::Simulated(Loop& loop) {
  std::map<int64_t, Value> state;  // by element, those asked for
  for (bool grown = true; grown && budget_ > 0;) {
    grown = false;
    for (auto& [k, value] : state) {
      const int32_t start = Loop::Element(module_, loop.init, k);
      value = start < 0 ? Value() : Evaluate(start, Unknown);
    }
    std::vector<int64_t> asked;
    const std::function<Value(int64_t, int64_t)> parameter = [&](int64_t,
                                                                 int64_t element) -> Value {
      const auto found = state.find(element);
      if (found != state.end()) return found->second;
      asked.push_back(element);
      return std::nullopt;
    };
    for (int64_t trips = 0; budget_ > 0 && !grown; ++trips) {
      const Value goes_on = Evaluate(loop.condition_root, parameter);
      std::map<int64_t, Value> following;
      for (const auto& [k, value] : state) {
        const int32_t next = Loop::Element(module_, loop.body_root, k);
        following[k] = next < 0 ? Value() : Evaluate(next, parameter);
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
