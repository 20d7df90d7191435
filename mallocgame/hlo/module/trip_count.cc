// Counts trips in three ways, the cheapest first: what the compiler recorded; a counter that each
// trip moves by the same step, until a comparison with a constant fails; and running the loop's
// scalar integers until the condition fails.
//
// One evaluator serves the last two. Its numbers are linear in one element of what the loop
// carries: that is how the second way sees a condition and a step through fusions, copies and
// subtractions. In the third all elements are constants.
#include "mallocgame/hlo/module/trip_count.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "mallocgame/hlo/module/backend_config.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "nlohmann/json.hpp"

namespace mallocgame::hlo {

enum class Direction : uint8_t { kUnset, kLt, kLe, kGt, kGe, kEq, kNe };

namespace {

__extension__ using Int128 = __int128;

// The element of a loop that carries no tuple but one array.
constexpr int64_t kWhole = -1;

Direction DirectionOf(absl::string_view text) {
  if (text == "LT") return Direction::kLt;
  if (text == "LE") return Direction::kLe;
  if (text == "GT") return Direction::kGt;
  if (text == "GE") return Direction::kGe;
  if (text == "EQ") return Direction::kEq;
  if (text == "NE") return Direction::kNe;
  return Direction::kUnset;
}

Direction Not(Direction direction) {
  switch (direction) {
    case Direction::kLt: return Direction::kGe;
    case Direction::kLe: return Direction::kGt;
    case Direction::kGt: return Direction::kLe;
    case Direction::kGe: return Direction::kLt;
    case Direction::kEq: return Direction::kNe;
    case Direction::kNe: return Direction::kEq;
    case Direction::kUnset: break;
  }
  return Direction::kUnset;
}

// Whether `a` DIRECTION 0.
bool Holds(int64_t a, Direction direction) {
  switch (direction) {
    case Direction::kLt: return a < 0;
    case Direction::kLe: return a <= 0;
    case Direction::kGt: return a > 0;
    case Direction::kGe: return a >= 0;
    case Direction::kEq: return a == 0;
    case Direction::kNe: return a != 0;
    case Direction::kUnset: break;
  }
  return false;
}

// The first t >= 0 for which a + b t DIRECTION 0 fails; none if it always holds.
std::optional<Int128> FirstFailure(Int128 a, Int128 b, Direction direction) {
  switch (direction) {
    case Direction::kGt: return FirstFailure(-a, -b, Direction::kLt);
    case Direction::kGe: return FirstFailure(-a, -b, Direction::kLe);
    case Direction::kLt:
      if (a >= 0) return 0;
      return b <= 0 ? std::optional<Int128>() : (-a + b - 1) / b;
    case Direction::kLe:
      if (a > 0) return 0;
      return b <= 0 ? std::optional<Int128>() : -a / b + 1;
    case Direction::kEq:
      if (a != 0) return 0;
      return b == 0 ? std::optional<Int128>() : 1;
    case Direction::kNe:
      if (a == 0) return 0;
      if (b == 0 || -a % b != 0 || -a / b < 0) return std::nullopt;
      return -a / b;
    case Direction::kUnset: break;
  }
  return std::nullopt;
}

bool IsScalar(const ShapeProto& shape) {
  return shape.element_type() != TUPLE &&
         std::all_of(shape.dimensions().begin(), shape.dimensions().end(),
                     [](int64_t dimension) { return dimension == 1; });
}

// The bits of an integer type; 0 for others. A truth value has one.
int BitsOf(PrimitiveType type) {
  switch (type) {
    case PRED: return 1;
    case S8:
    case U8: return 8;
    case S16:
    case U16: return 16;
    case S32:
    case U32: return 32;
    case S64:
    case U64: return 64;
    default: return 0;
  }
}

bool IsSigned(PrimitiveType type) {
  return type == S8 || type == S16 || type == S32 || type == S64;
}

// Whether the type has the value. Those of U64 above the largest S64 have no place here.
bool Has(PrimitiveType type, Int128 value) {
  const int bits = BitsOf(type);
  if (IsSigned(type)) return value >= -(Int128{1} << (bits - 1)) && value < Int128{1} << (bits - 1);
  return value >= 0 && value < Int128{1} << std::min(bits, 63);
}

// The value of the type with the same last bits; none if it has no place here.
std::optional<int64_t> Wrapped(Int128 value, PrimitiveType type) {
  const int bits = BitsOf(type);
  if (bits == 0) return std::nullopt;
  Int128 wrapped = value & ((Int128{1} << bits) - 1);
  if (IsSigned(type) && wrapped >> (bits - 1) != 0) wrapped -= Int128{1} << bits;
  if (!Has(type, wrapped)) return std::nullopt;
  return static_cast<int64_t>(wrapped);
}

template <class T>
std::optional<int64_t> FirstOf(const std::string& bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));
  return static_cast<int64_t>(value);
}

template <class List>
std::optional<int64_t> FirstOfList(const List& list, PrimitiveType type) {
  if (list.empty() || !Has(type, Int128{list[0]})) return std::nullopt;
  return static_cast<int64_t>(list[0]);
}

std::optional<int64_t> LiteralValue(const LiteralProto& literal) {
  const PrimitiveType type = literal.shape().element_type();
  switch (type) {
    case PRED: return FirstOfList(literal.preds(), type);
    case S8: return FirstOf<int8_t>(literal.s8s());
    case U8: return FirstOf<uint8_t>(literal.u8s());
    case S16: return FirstOf<int16_t>(literal.s16s());
    case U16: return FirstOf<uint16_t>(literal.u16s());
    case S32: return FirstOfList(literal.s32s(), type);
    case U32: return FirstOfList(literal.u32s(), type);
    case S64: return FirstOfList(literal.s64s(), type);
    case U64: return FirstOfList(literal.u64s(), type);
    default: return std::nullopt;
  }
}

std::optional<Int128> Combine(Opcode opcode, PrimitiveType type, int64_t a, int64_t b) {
  const int bits = BitsOf(type);
  // XLA's results where C++ has none.
  const bool no_shift = b < 0 || b >= bits;
  if (opcode == kMinimum) return std::min(a, b);
  if (opcode == kMaximum) return std::max(a, b);
  if (opcode == kAnd) return a & b;
  if (opcode == kOr) return a | b;
  if (opcode == kXor) return a ^ b;
  if (opcode == kDivide) return b == 0 ? Int128{-1} : Int128{a} / b;
  if (opcode == kRemainder) return b == 0 ? Int128{a} : Int128{a} % b;
  if (opcode == kShiftLeft) return no_shift ? Int128{0} : Int128{a} << b;
  if (opcode == kShiftRightArithmetic) return Int128{a} >> (no_shift ? bits - 1 : b);
  if (opcode == kShiftRightLogical)
    return no_shift ? Int128{0} : (Int128{a} & ((Int128{1} << bits) - 1)) >> b;
  return std::nullopt;
}

bool PassesOn(Opcode opcode) {
  return opcode == kBitcast || opcode == kCopy || opcode == kConvert || opcode == kReshape ||
         opcode == kBroadcast || opcode == kOptBarrier;
}

// Whether the value is what its one computation gives for its operands.
bool IsComputed(Opcode opcode) { return opcode == kFusion || opcode == kCall; }

}  // namespace

// The integer constant + factor * (element of what the loop carries), or, with a direction, whether
// that integer DIRECTION 0.
struct TripCounter::Number {
  int64_t constant = 0, factor = 0;
  int64_t element = kWhole;  // of factor 0: of no meaning
  Direction direction = Direction::kUnset;

  bool is_constant() const { return factor == 0 && direction == Direction::kUnset; }
  friend bool operator==(const Number&, const Number&) = default;

  static Value Of(std::optional<int64_t> constant) {
    return constant ? Value(Number{.constant = *constant}) : Value();
  }
  // a + times * b
  static Value Sum(const Number& a, const Number& b, int64_t times) {
    if (a.direction != Direction::kUnset || b.direction != Direction::kUnset) return std::nullopt;
    if (a.factor != 0 && b.factor != 0 && a.element != b.element) return std::nullopt;
    Number sum;
    sum.element = a.factor != 0 ? a.element : b.element;
    int64_t constant = 0, factor = 0;
    if (__builtin_mul_overflow(b.constant, times, &constant) ||
        __builtin_mul_overflow(b.factor, times, &factor) ||
        __builtin_add_overflow(a.constant, constant, &sum.constant) ||
        __builtin_add_overflow(a.factor, factor, &sum.factor)) {
      return std::nullopt;
    }
    if (sum.factor == 0) sum.element = kWhole;
    return sum;
  }
  static Value Compare(const Number& a, const Number& b, Direction direction) {
    Value difference = Sum(a, b, -1);
    if (!difference || direction == Direction::kUnset) return std::nullopt;
    if (difference->factor == 0) return Of(Holds(difference->constant, direction) ? 1 : 0);
    difference->direction = direction;
    return difference;
  }
  // Of truth values.
  static Value Negation(const Number& a) {
    if (a.is_constant()) return Of(a.constant == 0 ? 1 : 0);
    if (a.direction == Direction::kUnset) return std::nullopt;
    Number negation = a;
    negation.direction = Not(a.direction);
    return negation;
  }
};

// The instructions that make what a while is given, what its body gives, and the result of its
// condition.
struct TripCounter::Loop {
  int32_t init = 0, body_root = 0, condition_root = 0;
};

std::optional<int32_t> TripCounter::Element(int32_t i, int64_t k) const {
  while (true) {
    const HloInstructionProto& proto = *module_.instruction(i).proto;
    const absl::Span<const int32_t> operands = module_.operands(i);
    if (k == kWhole && proto.shape().element_type() != TUPLE) return i;
    if (module_.opcode(i) == kTuple) {
      if (k < 0 || k >= std::ssize(operands)) return std::nullopt;
      return operands[k];
    }
    if (operands.size() != 1 || !PassesOn(module_.opcode(i))) return std::nullopt;
    i = operands[0];
  }
}

std::vector<int32_t> TripCounter::SourcesOf(int32_t i) const {
  const HloInstructionProto& proto = *module_.instruction(i).proto;
  const absl::Span<const int32_t> operands = module_.operands(i);
  if (!IsScalar(proto.shape())) return {};
  if (module_.opcode(i) != kGetTupleElement) return {operands.begin(), operands.end()};
  if (operands.size() != 1) return {};
  if (const std::optional<int32_t> made = Element(operands[0], proto.tuple_index())) return {*made};
  if (!IsComputed(module_.opcode(operands[0]))) return {};
  const absl::Span<const int32_t> given = module_.operands(operands[0]);
  return {given.begin(), given.end()};
}

TripCounter::Value TripCounter::Evaluate(int32_t root, const ParameterValue& parameter) {
  absl::flat_hash_map<int32_t, Value> known;
  std::vector<int32_t> stack = {root};
  std::vector<Value> values;
  while (!stack.empty()) {
    const int32_t i = stack.back();
    const std::vector<int32_t> sources = SourcesOf(i);
    budget_ -= 1 + std::ssize(sources);
    if (budget_ < 0) return std::nullopt;
    values.clear();
    bool ready = true;
    for (const int32_t source : sources) {
      const auto found = known.find(source);
      if (found == known.end()) {
        stack.push_back(source);
        ready = false;
      } else {
        values.push_back(found->second);
      }
    }
    if (!ready) continue;
    stack.pop_back();
    if (!known.contains(i)) known.emplace(i, Apply(i, values, parameter));
  }
  return known[root];
}

// `values` are those of the sources.
TripCounter::Value TripCounter::Apply(int32_t i, const std::vector<Value>& values,
                                      const ParameterValue& parameter) {
  const HloInstructionProto& proto = *module_.instruction(i).proto;
  const Opcode opcode = module_.opcode(i);
  const absl::Span<const int32_t> operands = module_.operands(i);
  if (!IsScalar(proto.shape())) return std::nullopt;
  const ParameterValue argument = [&values](int64_t number, std::optional<int64_t> element) {
    if (element || number < 0 || number >= std::ssize(values)) return Value();
    return values[number];
  };
  if (opcode == kGetTupleElement) {
    if (operands.size() != 1) return std::nullopt;
    const int32_t tuple = operands[0];
    if (Element(tuple, proto.tuple_index())) return values[0];
    const HloInstructionProto& of = *module_.instruction(tuple).proto;
    if (module_.opcode(tuple) == kParameter)
      return parameter(of.parameter_number(), proto.tuple_index());
    if (!IsComputed(module_.opcode(tuple)) || module_.called(tuple).size() != 1)
      return std::nullopt;
    const int32_t root = module_.computation(module_.called(tuple)[0]).root;
    const std::optional<int32_t> made = Element(root, proto.tuple_index());
    return made ? Evaluate(*made, argument) : Value();
  }
  if (opcode == kParameter) return parameter(proto.parameter_number(), std::nullopt);
  if (opcode == kConstant) return Number::Of(LiteralValue(proto.literal()));
  if (IsComputed(opcode) && module_.called(i).size() == 1)
    return Evaluate(module_.computation(module_.called(i)[0]).root, argument);
  if (opcode == kSelect && values.size() == 3) {
    if (!values[0] || !values[0]->is_constant()) return std::nullopt;
    return values[0]->constant != 0 ? values[1] : values[2];
  }
  if (values.empty() || !values[0]) return std::nullopt;

  const PrimitiveType type = proto.shape().element_type();
  const Number& a = *values[0];
  Value result;
  if (PassesOn(opcode)) {
    // What is not 0 becomes true, and a comparison becomes 0 or 1.
    const bool is_truth = a.direction != Direction::kUnset;
    if (opcode == kConvert && (type == PRED || is_truth)) return std::nullopt;
    result = a;
  } else if (opcode == kNegate) {
    result = Number::Sum(Number{}, a, -1);
  } else if (opcode == kNot) {
    result = type == PRED ? Number::Negation(a) : Number::Sum(Number{.constant = -1}, a, -1);
  } else if (values.size() != 2 || !values[1]) {
    return std::nullopt;
  } else if (const Number& b = *values[1]; opcode == kCompare) {
    result = Number::Compare(a, b, DirectionOf(proto.comparison_direction()));
  } else if (opcode == kAdd || opcode == kSubtract) {
    result = Number::Sum(a, b, opcode == kAdd ? 1 : -1);
  } else if (opcode == kMultiply) {
    if (a.is_constant()) result = Number::Sum(Number{}, b, a.constant);
    if (!a.is_constant() && b.is_constant()) result = Number::Sum(Number{}, a, b.constant);
  } else if (a.is_constant() && b.is_constant()) {
    const std::optional<Int128> combined = Combine(opcode, type, a.constant, b.constant);
    if (combined) result = Number::Of(Wrapped(*combined, type));
  } else if (type == PRED && (opcode == kAnd || opcode == kOr)) {
    // Where one of two truth values is no matter, the other is the result.
    const int64_t neutral = opcode == kAnd ? 1 : 0;
    if (a.is_constant()) result = a.constant == neutral ? b : a;
    if (b.is_constant()) result = b.constant == neutral ? a : b;
  }
  if (BitsOf(type) == 0) return std::nullopt;
  if (result && result->is_constant()) return Number::Of(Wrapped(result->constant, type));
  return result;
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
  const std::optional<int64_t> n = NumberOf(count.value("n", nlohmann::json()));
  return n && *n >= 0 ? n : std::nullopt;
}

std::optional<int64_t> TripCounter::Initial(const Loop& loop, int64_t element) {
  const std::optional<int32_t> start = Element(loop.init, element);
  if (!start) return std::nullopt;
  const Value value = Evaluate(*start, [](int64_t, std::optional<int64_t>) { return Value(); });
  return value && value->is_constant() ? std::optional(value->constant) : std::nullopt;
}

// Applies if the condition compares a linear function of one carried element with a constant, and
// the body adds a constant to that element.
std::optional<int64_t> TripCounter::Closed(const Loop& loop) {
  const auto itself = [](int64_t, std::optional<int64_t> element) {
    return Value(Number{.factor = 1, .element = element.value_or(kWhole)});
  };
  std::map<int64_t, Value> values;  // by element, of those that were asked for
  // An element that the body gives back as it was keeps the value that it begins with.
  const ParameterValue carried = [&](int64_t number, std::optional<int64_t> element) -> Value {
    const int64_t k = element.value_or(kWhole);
    const auto found = values.find(k);
    if (found != values.end()) return found->second;
    const Value symbol = itself(number, element);
    const std::optional<int32_t> next = Element(loop.body_root, k);
    Value value = symbol;
    if (next && Evaluate(*next, itself) == symbol) {
      if (const std::optional<int64_t> initial = Initial(loop, k)) value = Number::Of(initial);
    }
    return values[k] = value;
  };
  const Value goes_on = Evaluate(loop.condition_root, carried);
  if (!goes_on) return std::nullopt;
  if (goes_on->is_constant())
    return goes_on->constant == 0 ? std::optional<int64_t>(0) : std::nullopt;
  if (goes_on->direction == Direction::kUnset) return std::nullopt;

  const int64_t k = goes_on->element;
  const std::optional<int64_t> first = Initial(loop, k);
  const std::optional<int32_t> following = Element(loop.body_root, k);
  if (!first || !following) return std::nullopt;
  const Value next = Evaluate(*following, carried);
  if (!next || next->direction != Direction::kUnset || next->factor != 1 || next->element != k)
    return std::nullopt;
  const PrimitiveType type = module_.instruction(*following).proto->shape().element_type();
  const int bits = BitsOf(type);
  if (bits == 0) return std::nullopt;
  // An unsigned counter goes down by adding almost all that its type holds.
  Int128 step = next->constant;
  if (!IsSigned(type) && step >= Int128{1} << (bits - 1)) step -= Int128{1} << bits;
  const std::optional<Int128> trips =
      FirstFailure(Int128{goes_on->constant} + Int128{goes_on->factor} * *first,
                   Int128{goes_on->factor} * step, goes_on->direction);
  if (!trips || *trips > std::numeric_limits<int64_t>::max() || !Has(type, *first + *trips * step))
    return std::nullopt;
  // Where a number wraps around on its way, it is not linear. That shows at the ends.
  const auto after = [&](Int128 trip, int32_t root) -> Value {
    return Evaluate(root, [&](int64_t number, std::optional<int64_t> element) {
      if (element.value_or(kWhole) != k) return carried(number, element);
      return Number::Of(static_cast<int64_t>(*first + trip * step));
    });
  };
  const Value go = Number::Of(1), stop = Number::Of(0);
  if (after(*trips, loop.condition_root) != stop) return std::nullopt;
  if (*trips == 0) return 0;
  if (after(0, loop.condition_root) != go || after(*trips - 1, loop.condition_root) != go ||
      after(*trips - 1, *following) != Number::Of(static_cast<int64_t>(*first + *trips * step))) {
    return std::nullopt;
  }
  return static_cast<int64_t>(*trips);
}

std::optional<int64_t> TripCounter::Simulated(const Loop& loop) {
  std::map<int64_t, Value> state;  // by element of what is carried, those that matter
  const int64_t left_to_others = budget_ / 2;
  for (bool grown = true; grown && budget_ > left_to_others;) {
    grown = false;
    for (auto& [k, value] : state) value = Number::Of(Initial(loop, k));
    std::vector<int64_t> asked;
    const ParameterValue parameter = [&](int64_t, std::optional<int64_t> element) -> Value {
      const auto found = state.find(element.value_or(kWhole));
      if (found != state.end()) return found->second;
      asked.push_back(element.value_or(kWhole));
      return std::nullopt;
    };
    for (int64_t trips = 0; budget_ > left_to_others && !grown; ++trips) {
      const Value goes_on = Evaluate(loop.condition_root, parameter);
      std::map<int64_t, Value> following;
      for (const auto& [k, value] : state) {
        const std::optional<int32_t> next = Element(loop.body_root, k);
        following[k] = next ? Evaluate(*next, parameter) : Value();
      }
      for (const int64_t k : asked) grown |= state.emplace(k, std::nullopt).second;
      if (grown) break;
      if (!goes_on || !goes_on->is_constant()) return std::nullopt;
      if (goes_on->constant == 0) return trips;
      if (following == state) return std::nullopt;
      state = std::move(following);
    }
  }
  return std::nullopt;
}

}  // namespace mallocgame::hlo
