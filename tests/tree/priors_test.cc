// Rows of priors, and the power of e that they are made with, against the plain formulas.
#include "mallocgame/tree/priors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/tree/exponential.h"
#include "tests/catch.h"

namespace mallocgame::mcts {
namespace {

// A row for the logits, with what is behind it in the padding.
struct Row {
  Row(const std::vector<float>& logits, const std::vector<uint8_t>& legal)
      : numbers(PaddedPriors(logits.size()), 7.0F),
        allowed(WriteLogits(logits, legal, numbers.data())) {}
  std::vector<float> numbers;
  bool allowed;
};

TEST_CASE("the power of e is right to two units in the last place, and never overflows") {
  for (int i = -8700; i <= 8800; ++i) {
    const float x = static_cast<float>(i) / 100;
    REQUIRE(Exp(x) == Approx(std::exp(static_cast<double>(x))).epsilon(2.5e-7));
  }
  REQUIRE(Exp(0) == 1);
  REQUIRE(Exp(-87.1F) == 0);
  REQUIRE(Exp(-kInfinity) == 0);
  REQUIRE(Exp(1000) == Exp(88));
}

TEST_CASE("rows are padded to whole vectors") {
  REQUIRE(PaddedPriors(1) == 4);
  REQUIRE(PaddedPriors(4) == 4);
  REQUIRE(PaddedPriors(5) == 8);
}

TEST_CASE("logits are written with illegal actions and padding at minus infinity") {
  const Row row({1, 2, -kInfinity, 4, 5}, {1, 0, 1, 1, 1});
  REQUIRE(row.allowed);
  REQUIRE(row.numbers == std::vector<float>{1, -kInfinity, std::numeric_limits<float>::lowest(), 4,
                                            5, -kInfinity, -kInfinity, -kInfinity});
}

TEST_CASE("logits that cannot make a policy are refused wherever they stand") {
  for (size_t at = 0; at < 7; ++at) {
    std::vector<float> logits(7, 1.0F);
    std::vector<uint8_t> legal(7, 1);
    for (const float bad : {kInfinity, std::nanf("")}) {
      logits[at] = bad;
      legal[at] = 1;
      REQUIRE(!Row(logits, legal).allowed);
      legal[at] = 0;  // an illegal action may have any logit
      REQUIRE(Row(logits, legal).allowed);
    }
  }
  REQUIRE(!Row({-kInfinity, 1}, {1, 0}).allowed);
  REQUIRE(!Row({1, 1}, {0, 0}).allowed);
}

TEST_CASE("the policy of a row is the softmax over its legal actions") {
  Rng rng(1);
  for (size_t count : {1, 2, 4, 5, 8, 9, 33, 100}) {
    std::vector<float> logits(count);
    std::vector<uint8_t> legal(count);
    for (float& logit : logits) logit = static_cast<float>(rng.Uniform() * 20 - 10);
    for (uint8_t& one : legal) one = rng.Below(3) > 0;
    legal[rng.Below(count)] = 1;
    Row row(logits, legal);
    REQUIRE(row.allowed);
    double sum = 0;
    for (size_t a = 0; a < count; ++a) sum += legal[a] ? std::exp(double{logits[a]}) : 0;
    const BestPrior best = Normalise(row.numbers.data(), count);
    for (size_t a = 0; a < row.numbers.size(); ++a) {
      const bool is_legal = a < count && legal[a] != 0;
      INFO(count << " " << a);
      REQUIRE(row.numbers[a] ==
              (is_legal ? Approx(std::exp(double{logits[a]}) / sum).epsilon(1e-5) : Approx(-1)));
    }
    const auto most = std::max_element(row.numbers.begin(), row.numbers.end());
    REQUIRE(best.prior == *most);
    REQUIRE(best.action == most - row.numbers.begin());
    const BestPrior again = FindBest(row.numbers.data(), count);
    REQUIRE(again.prior == best.prior);
    REQUIRE(again.action == best.action);
  }
}

TEST_CASE("of equal priors the first is the best, and there may be none") {
  std::vector<float> row(40, 0.125F);
  REQUIRE(FindBest(row.data(), row.size()).action == 0);
  row[0] = -1;
  REQUIRE(FindBest(row.data(), row.size()).action == 1);
  row[37] = 0.5F;
  REQUIRE(FindBest(row.data(), row.size()).action == 37);
  std::fill(row.begin(), row.end(), -1.0F);
  REQUIRE(FindBest(row.data(), row.size()).action == -1);
}

}  // namespace
}  // namespace mallocgame::mcts
