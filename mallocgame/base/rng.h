// One seeded generator with our own distributions, so that the same seed gives the same stream with
// every standard library. xoshiro256**, seeded by SplitMix64 (Blackman and Vigna, public domain
// algorithms).
#pragma once

#include <bit>
#include <cstdint>

namespace mallocgame {

class Rng {
 public:
  // Streams of different (seed, stream) are independent: environment i, episode k uses stream
  // derived from both.
  explicit Rng(uint64_t seed, uint64_t stream = 0) {
    uint64_t x = seed ^ (stream * 0xD1342543DE82EF95u + 0x9E3779B97F4A7C15u);
    for (uint64_t& word : state_) {
      x += 0x9E3779B97F4A7C15u;
      uint64_t z = x;
      z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
      z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
      word = z ^ (z >> 31);
    }
  }

  uint64_t Next() {
    const uint64_t result = std::rotl(state_[1] * 5, 7) * 9, t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  // Uniform in [0, count), with 0 < count < 2^32. Unbiased (Lemire's multiplication with
  // rejection).
  uint32_t Below(uint64_t count) {
    const auto n = static_cast<uint32_t>(count);
    uint64_t m = (Next() >> 32) * n;
    if (static_cast<uint32_t>(m) < n) {
      const uint32_t threshold = -n % n;
      while (static_cast<uint32_t>(m) < threshold) m = (Next() >> 32) * n;
    }
    return static_cast<uint32_t>(m >> 32);
  }

  // One of the elements of a container that is not empty, each as likely as another.
  template <class Container>
  auto& Pick(Container& container) {
    return container[Below(container.size())];
  }

  // Uniform in [0, 1), 53 random bits.
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

 private:
  uint64_t state_[4];
};

// One seed made of two numbers: what the first draw of Rng(seed, stream) gives.
inline uint64_t MixSeeds(uint64_t seed, uint64_t stream) { return Rng(seed, stream).Next(); }

}  // namespace mallocgame
