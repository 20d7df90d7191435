#include "mallocgame/tree/priors.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "mallocgame/tree/exponential.h"

namespace mallocgame::mcts {
namespace {

constexpr size_t kLanes = kPriorLanes;

using Floats = float __attribute__((vector_size(16)));
using Integers = int32_t __attribute__((vector_size(16)));
using Bytes = uint8_t __attribute__((vector_size(4)));

int32_t Least(Integers lanes) {
  return std::min(std::min(lanes[0], lanes[1]), std::min(lanes[2], lanes[3]));
}
bool Any(Integers lanes) { return (lanes[0] | lanes[1] | lanes[2] | lanes[3]) != 0; }

Floats Load(const float* numbers) {
  Floats lanes;
  std::memcpy(&lanes, numbers, sizeof lanes);
  return lanes;
}

// The greatest of numbers that are padded to whole vectors.
float Greatest(const float* numbers, size_t count) {
  const auto greater = [](Floats a, Floats b) { return a > b ? a : b; };
  Floats most = Load(numbers), other = most;
  size_t i = kLanes;
  // Two chains of maxima do not wait for each other.
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    most = greater(Load(numbers + i), most);
    other = greater(Load(numbers + i + kLanes), other);
  }
  if (i < count) most = greater(Load(numbers + i), most);
  most = greater(other, most);
  return std::max(std::max(most[0], most[1]), std::max(most[2], most[3]));
}

// The index of the first number that equals `value`; there must be one. The numbers are padded.
int32_t FirstAt(const float* numbers, size_t count, float value) {
  constexpr size_t kBlock = 8 * kLanes;
  size_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    Integers found = {};
    for (size_t j = 0; j < kBlock; j += kLanes) found |= Load(numbers + i + j) == value;
    if (Any(found)) break;
  }
  const Integers none = Integers{} + std::numeric_limits<int32_t>::max();
  Integers index = Integers{0, 1, 2, 3} + static_cast<int32_t>(i), first = none;
  for (count = std::min(count, i + kBlock); i < count; i += kLanes) {
    const Integers here = Load(numbers + i) == value ? index : none;
    first = here < first ? here : first;
    index += static_cast<int32_t>(kLanes);
  }
  return Least(first);
}

// The sum of the positive numbers. It is taken in eight lanes of its own, so that the order, and
// with it the sum, is the same whatever a vector is.
float Sum(const float* numbers, size_t count) {
  constexpr size_t kSums = 8;
  const auto positive = [](float number) { return number > 0 ? number : 0; };
  float sum = 0;
  size_t i = 0;
  if (count >= kSums) {
    float lanes[kSums] = {};
    for (; i + kSums <= count; i += kSums) {
      for (size_t j = 0; j < kSums; ++j) lanes[j] += positive(numbers[i + j]);
    }
    for (const float lane : lanes) sum += lane;
  }
  for (; i < count; ++i) sum += positive(numbers[i]);
  return sum;
}

}  // namespace

bool WriteLogits(absl::Span<const float> logits, absl::Span<const uint8_t> legal, float* row) {
  constexpr Floats kNone = Floats{} - kInfinity,
                   kLowest = Floats{} + std::numeric_limits<float>::lowest();
  Integers bad = {}, finite = {};
  const auto write = [&](const float* given, const uint8_t* allowed, float* to) {
    Bytes bytes;
    std::memcpy(&bytes, allowed, sizeof bytes);
    const Integers is_legal = __builtin_convertvector(bytes, Integers) != 0;
    const Floats logit = is_legal ? Load(given) : kNone, least = is_legal ? kLowest : kNone;
    bad |= ~(logit < kInfinity);
    finite |= logit > kNone;
    const Floats written = logit > least ? logit : least;
    std::memcpy(to, &written, sizeof written);
  };
  const size_t whole = logits.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) write(&logits[i], &legal[i], row + i);
  if (whole < logits.size()) {
    float given[kLanes] = {};
    uint8_t allowed[kLanes] = {};
    std::copy(logits.begin() + static_cast<ptrdiff_t>(whole), logits.end(), given);
    std::copy(legal.begin() + static_cast<ptrdiff_t>(whole), legal.end(), allowed);
    write(given, allowed, row + whole);
  }
  return !Any(bad) && Any(finite);
}

BestPrior Normalise(float* row, size_t count) {
  const size_t padded = PaddedPriors(count);
  const float greatest = Greatest(row, padded);
  for (size_t i = 0; i < padded; ++i) {
    const float logit = row[i], weight = Exp(logit - greatest);
    row[i] = logit > -kInfinity ? weight : -1.0f;
  }
  const float factor = 1 / Sum(row, count);  // it is the greatest prior, whose weight was e^0
  const Integers none = Integers{} + std::numeric_limits<int32_t>::max();
  Integers index = {0, 1, 2, 3}, first = none;
  for (size_t i = 0; i < padded; i += kLanes) {
    const Floats weight = Load(row + i), prior = weight < 0 ? Floats{} - 1 : weight * factor;
    const Integers here = prior == factor ? index : none;
    first = here < first ? here : first;
    index += static_cast<int32_t>(kLanes);
    std::memcpy(row + i, &prior, sizeof prior);
  }
  return {factor, Least(first)};
}

BestPrior FindBest(const float* row, size_t count) {
  const size_t padded = PaddedPriors(count);
  const float prior = Greatest(row, padded);
  return {prior, prior < 0 ? -1 : FirstAt(row, padded, prior)};
}

}  // namespace mallocgame::mcts
