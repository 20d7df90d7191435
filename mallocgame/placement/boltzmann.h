// EGRL's stateless chromosome: for every tensor a prior for each level and a temperature; a map is
// drawn tensor by tensor from softmax(prior / temperature). A plain value.
#ifndef MALLOCGAME_PLACEMENT_BOLTZMANN_H_
#define MALLOCGAME_PLACEMENT_BOLTZMANN_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/rng.h"

namespace mallocgame {

class Boltzmann {
 public:
  // Priors that are normal around 0, of the slowest level around 3, because a map with most of it
  // there fits; temperatures uniform in [0.5, 1.5).
  static Boltzmann Random(size_t tensors, int levels, Rng& rng);
  // Priors from probabilities ([tensors, levels], row-major, each > 0), such as a network's;
  // temperature 1.
  static Boltzmann FromProbabilities(absl::Span<const double> probabilities, int levels);
  // As priors() and temperatures() gave them; what lies outside their ranges is brought into them.
  static Boltzmann FromGenes(absl::Span<const double> priors,
                             absl::Span<const double> temperatures);
  // The first tensors of `a`, up to a place that is drawn, and the others of `b`.
  static Boltzmann Cross(const Boltzmann& a, const Boltzmann& b, Rng& rng);

  // Adds noise to the priors and temperatures of one tensor in fifty.
  void Mutate(Rng& rng);
  // Makes the levels of `map` so likely that about `redrawn` tensors of the next draw differ from
  // it.
  void LeanTowards(absl::Span<const uint8_t> map, double redrawn);
  // Appends one level a tensor.
  void Draw(Rng& rng, std::vector<uint8_t>* map) const;

  size_t tensors() const { return temperature_.size(); }
  absl::Span<const double> priors() const { return priors_; }
  absl::Span<const double> temperatures() const { return temperature_; }

 private:
  Boltzmann(size_t tensors, int levels);

  size_t levels_;
  std::vector<double> priors_;       // [tensors, levels]
  std::vector<double> temperature_;  // one a tensor, in [0.05, 2]
};

}  // namespace mallocgame

#endif  // MALLOCGAME_PLACEMENT_BOLTZMANN_H_
