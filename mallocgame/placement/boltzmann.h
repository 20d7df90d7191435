// EGRL's stateless chromosome: for every tensor, a prior for each level and a temperature. A map is
// drawn tensor by tensor from softmax(prior / temperature). A plain value.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/rng.h"

namespace mallocgame {

class Boltzmann {
 public:
  // Priors are normal around 0, for the slowest level around 3, because a map with most tensors
  // there fits. Temperatures are uniform in [0.5, 1.5).
  static Boltzmann Random(size_t tensors, int levels, Rng& rng);
  // Priors come from probabilities, such as a network's: [tensors, levels], row-major, each > 0.
  // Temperatures are 1.
  static Boltzmann FromProbabilities(absl::Span<const double> probabilities, int levels);
  // From numbers such as priors() and temperatures() give. Temperatures outside their range are
  // brought into it.
  static Boltzmann FromGenes(absl::Span<const double> priors,
                             absl::Span<const double> temperatures);
  // Takes the first tensors from `a`, up to an index that is drawn, and the others from `b`.
  static Boltzmann Cross(const Boltzmann& a, const Boltzmann& b, Rng& rng);

  // Adds noise to the priors and temperatures of one tensor in fifty.
  void Mutate(Rng& rng);
  // Makes the levels of `map` so likely that about `redrawn` tensors of the next draw differ from
  // it.
  void LeanTowards(absl::Span<const uint8_t> map, double redrawn);
  // Appends a level for each tensor to `map`.
  void Draw(Rng& rng, std::vector<uint8_t>* map) const;

  size_t tensors() const { return temperature_.size(); }
  absl::Span<const double> priors() const { return priors_; }
  absl::Span<const double> temperatures() const { return temperature_; }

 private:
  Boltzmann(size_t tensors, int levels);

  size_t levels_;
  std::vector<double> priors_;       // [tensors, levels]
  std::vector<double> temperature_;  // one for each tensor, in [0.05, 2]
};

}  // namespace mallocgame
