#include "mallocgame/placement/boltzmann.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace mallocgame {
namespace {

constexpr double kColdest = 0.05, kHottest = 2.0;
constexpr double kShareMutated = 0.02, kPriorNoise = 1.0, kTemperatureNoise = 0.2;
constexpr double kSlowFirst = 3.0;

// The sum of twelve uniform numbers less six: it has mean 0 and deviation 1, and is the same on
// every machine.
double Normal(Rng& rng) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += rng.Uniform();
  return sum;
}

}  // namespace

Boltzmann::Boltzmann(size_t tensors, int levels)
    : levels_(levels), priors_(tensors * levels_, 0.0), temperature_(tensors, 1.0) {}

Boltzmann Boltzmann::Random(size_t tensors, int levels, Rng& rng) {
  Boltzmann made(tensors, levels);
  for (double& prior : made.priors_) prior = Normal(rng);
  for (size_t i = 0; i < tensors; ++i) made.priors_[(i + 1) * made.levels_ - 1] += kSlowFirst;
  for (double& temperature : made.temperature_) temperature = 0.5 + rng.Uniform();
  return made;
}

Boltzmann Boltzmann::FromProbabilities(absl::Span<const double> probabilities, int levels) {
  Boltzmann made(probabilities.size() / levels, levels);
  std::transform(probabilities.begin(), probabilities.end(), made.priors_.begin(),
                 [](double p) { return std::log(p); });
  return made;
}

Boltzmann Boltzmann::FromGenes(absl::Span<const double> priors,
                               absl::Span<const double> temperatures) {
  Boltzmann made(temperatures.size(), static_cast<int>(priors.size() / temperatures.size()));
  std::copy(priors.begin(), priors.end(), made.priors_.begin());
  std::transform(temperatures.begin(), temperatures.end(), made.temperature_.begin(),
                 [](double temperature) { return std::clamp(temperature, kColdest, kHottest); });
  return made;
}

Boltzmann Boltzmann::Cross(const Boltzmann& a, const Boltzmann& b, Rng& rng) {
  Boltzmann made = b;
  const auto cut = static_cast<ptrdiff_t>(rng.Below(a.tensors() + 1));
  std::copy_n(a.priors_.begin(), cut * static_cast<ptrdiff_t>(a.levels_), made.priors_.begin());
  std::copy_n(a.temperature_.begin(), cut, made.temperature_.begin());
  return made;
}

void Boltzmann::Mutate(Rng& rng) {
  for (size_t i = 0; i < tensors(); ++i) {
    if (rng.Uniform() >= kShareMutated) continue;
    for (size_t level = 0; level < levels_; ++level)
      priors_[i * levels_ + level] += kPriorNoise * Normal(rng);
    temperature_[i] =
        std::clamp(temperature_[i] + kTemperatureNoise * Normal(rng), kColdest, kHottest);
  }
}

void Boltzmann::LeanTowards(absl::Span<const uint8_t> map, double redrawn) {
  const double sure = std::log(std::max(1.0, static_cast<double>(tensors()) / redrawn - 1));
  for (size_t i = 0; i < tensors(); ++i) {
    double* const prior = priors_.data() + i * levels_;
    double others = 0;
    for (size_t level = 0; level < levels_; ++level) {
      if (level != map[i]) others += std::exp(prior[level] / temperature_[i]);
    }
    prior[map[i]] = temperature_[i] * (sure + std::log(others));
  }
}

void Boltzmann::Draw(Rng& rng, std::vector<uint8_t>* map) const {
  std::array<double, 8> weight;
  for (size_t i = 0; i < tensors(); ++i) {
    const double* const prior = priors_.data() + i * levels_;
    const double most = *std::max_element(prior, prior + levels_);
    double sum = 0;
    for (size_t level = 0; level < levels_; ++level)
      sum += weight[level] = std::exp((prior[level] - most) / temperature_[i]);
    double left = rng.Uniform() * sum;
    size_t level = 0;
    while (level + 1 < levels_ && left >= weight[level]) left -= weight[level++];
    map->push_back(static_cast<uint8_t>(level));
  }
}

}  // namespace mallocgame
