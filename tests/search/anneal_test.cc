// The annealer against a neighbourhood that can be worked out: integers, of which the trial is one
// more or one less, and the latency the number itself.
#include "mallocgame/search/anneal.h"

#include <cmath>
#include <cstdint>

#include "tests/catch.h"

namespace mallocgame {
namespace {

class Integers final : public Neighbourhood {
 public:
  Integers(int64_t start, int64_t least) : at_(start), least_(least) {}

  bool empty() const override { return false; }
  bool Propose(Rng& rng) override {
    trial_ = at_ + (rng.Below(2) == 0 ? 1 : -1);
    return true;
  }
  bool Try(int64_t most) override { return least_ <= trial_ && trial_ <= most; }
  void Accept() override { at_ = trial_; }
  void Reject() override {}
  int64_t latency_ps() const override { return at_; }

 private:
  int64_t at_, least_, trial_ = 0;
};

AnnealOptions Options(double first, double last, int64_t trials) {
  AnnealOptions options;
  options.cooling = {first, last};
  options.used = [trials](int64_t done) {
    return static_cast<double>(done) / static_cast<double>(trials);
  };
  return options;
}

TEST_CASE("a cold search goes down only, and tells of each better one") {
  Integers search(1000, 900);
  Rng rng(1);
  AnnealOptions options = Options(1e-9, 1e-9, 4000);
  int64_t better = 0, tried = 0, accepted = 0;
  options.better = [&] { ++better; };
  options.tried = [&](bool was) {
    ++tried;
    accepted += was;
    return true;
  };
  Anneal(search, options, rng);
  CHECK(search.latency_ps() == 900);
  CHECK(better == 100);
  CHECK(accepted == 100);
  CHECK(tried == 4000);
}

TEST_CASE("worse ones are accepted as often as Metropolis has it") {
  // From any number, up is accepted with probability exp(-1 / T), down always.
  Integers search(1 << 20, 0);
  Rng rng(2);
  const double temperature = 2;
  AnnealOptions options = Options(temperature / (1 << 20), temperature / (1 << 20), 200'000);
  int64_t accepted = 0, tried = 0;
  options.tried = [&](bool was) {
    accepted += was;
    return ++tried < 100'000;
  };
  Anneal(search, options, rng);
  CHECK(tried == 100'000);
  const double expected = 0.5 * (1 + std::exp(-1 / temperature));
  CHECK(std::abs(static_cast<double>(accepted) / 100'000 - expected) < 0.01);
}

}  // namespace
}  // namespace mallocgame
