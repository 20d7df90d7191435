#include "agents/egrl/population.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "agents/training/bytes.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/noise.h"

namespace mallocgame::egrl {
namespace {

using training::CutShort;
using training::ReadBytes;
using training::WriteBytes;

// The rare mutations of ERL, and how much less often a block that is no matrix is changed.
constexpr double kSuperShare = 0.05, kSuperFactor = 10, kResetShare = 0.05, kVectorRate = 0.04;
constexpr float kLeastProbability = 1e-6F;

// The index of the map for which the critics expect the greatest reward; the first without critics.
absl::StatusOr<size_t> BestExpected(const std::vector<uint8_t>& maps,
                                    const BreedingContext& context) {
  if (context.critics == nullptr || maps.size() <= static_cast<size_t>(context.graph.map_size()))
    return 0;
  MG_ASSIGN_OR_RETURN(const std::vector<float> values, context.critics->Values(maps));
  return std::max_element(values.begin(), values.end()) - values.begin();
}

// Makes the genes lean towards the map, so that a draw differs from it in about config.redrawn of
// the decisions that place something; unless that is 0.
void Lean(const BreedingContext& context, const PlacementMap& map, Boltzmann& genes) {
  if (context.config.redrawn == 0) return;
  genes.LeanTowards(
      map, context.config.redrawn * static_cast<double>(map.size()) / context.graph.decisions);
}

// A Boltzmann chromosome with a map drawn from its genes. It may then lean towards the map, so that
// its next draws look around it.
absl::StatusOr<Member> Drawn(Boltzmann genes, const BreedingContext& context) {
  Member member;
  MG_ASSIGN_OR_RETURN(member.map, ChooseMap(context, [&] {
                        PlacementMap map;
                        genes.Draw(context.rng, &map);
                        return Settled(std::move(map), context);
                      }));
  Lean(context, member.map, genes);
  member.genes = std::move(genes);
  return member;
}

// Of several mutants with new maps, the one for which the critics expect the greatest reward;
// without critics, the first with a new map.
absl::StatusOr<Member> Mutated(const std::vector<float>& weights, const BreedingContext& context) {
  std::vector<Member> mutants;
  std::vector<uint8_t> fresh;
  Member known;  // the last mutant whose map is not new: mutated again until one is
  for (int attempt = 0; attempt < context.config.attempts; ++attempt) {
    std::vector<float> mutated = attempt > 0 && mutants.empty() ? known.weights : weights;
    MutateWeights(context.config, context.policy.blocks(), context.rng, mutated);
    MG_ASSIGN_OR_RETURN(Member mutant, NetworkMember(mutated, context));
    if (context.known.Holds(mutant.map)) {
      known = std::move(mutant);
      continue;
    }
    fresh.insert(fresh.end(), mutant.map.begin(), mutant.map.end());
    mutants.push_back(std::move(mutant));
    if (context.critics == nullptr) break;
  }
  if (mutants.empty()) return known;
  MG_ASSIGN_OR_RETURN(const size_t best, BestExpected(fresh, context));
  return std::move(mutants[best]);
}

// Mutates a Boltzmann chromosome: that of the parent, or of two parents crossed. `other` may be
// null.
absl::StatusOr<Member> BredBoltzmann(const Member& one, const Member* other,
                                     const BreedingContext& context) {
  Boltzmann genes = GenesOf(one, context);
  if (other != nullptr) genes = Boltzmann::Cross(genes, GenesOf(*other, context), context.rng);
  genes.Mutate(context.rng);
  return Drawn(std::move(genes), context);
}

// The same for networks. A network that has nothing new to say seeds a chromosome.
absl::StatusOr<Member> BredNetwork(const Member& one, const Member* other,
                                   const BreedingContext& context) {
  const std::vector<float> weights =
      other == nullptr ? one.weights : CrossWeights(one.weights, other->weights, context.rng);
  MG_ASSIGN_OR_RETURN(Member member, Mutated(weights, context));
  if (context.config.boltzmann_share == 0 || !context.known.Holds(member.map)) return member;
  return BredBoltzmann(member, nullptr, context);
}

}  // namespace

PlacementMap Settled(PlacementMap map, const BreedingContext& context) {
  if (context.problem.game() == nullptr && !context.config.penalty)
    map = *context.problem.Rectify(map);
  const std::vector<uint8_t> open = OpenDecisions(context.graph, map);
  for (size_t i = 0; i < map.size(); ++i) {
    const auto slowest = static_cast<uint8_t>(context.graph.levels - 1);
    if (open[i] == 0) map[i] = i % 2 == 0 ? 0 : slowest;
    if (context.graph.real[i] == 0) map[i] = slowest;
  }
  return map;
}

absl::StatusOr<Member> NetworkMember(std::vector<float> weights, const BreedingContext& context) {
  Member member;
  MG_ASSIGN_OR_RETURN(member.probabilities, context.policy.Probabilities(weights));
  member.map = Settled(MostLikelyMap(member.probabilities, context.graph), context);
  member.weights = std::move(weights);
  return member;
}

Member ChromosomeAt(PlacementMap map, const BreedingContext& context) {
  Member member;
  member.map = Settled(std::move(map), context);
  member.genes = Boltzmann::Random(member.map.size(), context.graph.levels, context.rng);
  Lean(context, member.map, *member.genes);
  return member;
}

PlacementMap MostLikelyMap(const std::vector<float>& probabilities, const ProblemGraph& graph) {
  PlacementMap map;
  for (int64_t i = 0; i < graph.map_size(); ++i) {
    const auto row = probabilities.begin() + i * graph.levels;
    map.push_back(static_cast<uint8_t>(std::max_element(row, row + graph.levels) - row));
  }
  return map;
}

PlacementMap DrawMap(const std::vector<float>& probabilities, const ProblemGraph& graph, Rng& rng) {
  PlacementMap map;
  for (int64_t i = 0; i < graph.map_size(); ++i) {
    const float* const row = probabilities.data() + i * graph.levels;
    auto left = static_cast<float>(rng.Uniform());
    int level = 0;
    while (level + 1 < graph.levels && left >= row[level]) left -= row[level++];
    map.push_back(static_cast<uint8_t>(level));
  }
  return map;
}

PlacementMap Redrawn(PlacementMap map, double count, const BreedingContext& context) {
  const std::vector<uint8_t> open = OpenDecisions(context.graph, map);
  int decisions = 0;
  for (size_t i = 0; i < map.size(); ++i) decisions += open[i] != 0 && context.graph.real[i] > 0;
  const double share = std::min(1.0, count / std::max(1, decisions));
  for (size_t i = 0; i < map.size(); ++i) {
    if (open[i] == 0 || context.graph.real[i] == 0 || context.rng.Uniform() >= share) continue;
    map[i] = static_cast<uint8_t>(context.rng.Below(context.graph.levels));
  }
  return Settled(std::move(map), context);
}

absl::StatusOr<PlacementMap> Climbed(const PlacementMap& from, int climbs,
                                     const BreedingContext& context) {
  const double redrawn = context.config.redrawn;
  if (context.critics == nullptr)
    return ChooseMap(context, [&] { return Redrawn(from, redrawn, context); });
  PlacementMap best = from;
  const size_t size = from.size();
  float expected = -std::numeric_limits<float>::infinity();
  for (int climb = 0; climb < climbs; ++climb) {
    std::vector<uint8_t> fresh;
    for (int i = 0; i < context.config.candidates; ++i) {
      const PlacementMap map = Redrawn(best, redrawn, context);
      if (!context.known.Holds(map)) fresh.insert(fresh.end(), map.begin(), map.end());
    }
    if (fresh.empty()) break;
    MG_ASSIGN_OR_RETURN(const std::vector<float> values, context.critics->Values(fresh));
    const auto most = std::max_element(values.begin(), values.end());
    if (*most <= expected) break;
    expected = *most;
    const auto begin = fresh.begin() + (most - values.begin()) * static_cast<ptrdiff_t>(size);
    best.assign(begin, begin + static_cast<ptrdiff_t>(size));
  }
  return best;
}

Boltzmann GenesOf(const Member& member, const BreedingContext& context) {
  if (member.genes) return *member.genes;
  std::vector<double> probabilities;
  for (const float p : member.probabilities)
    probabilities.push_back(std::max(p, kLeastProbability));
  Boltzmann genes = Boltzmann::FromProbabilities(probabilities, context.graph.levels);
  Lean(context, member.map, genes);
  return genes;
}

absl::StatusOr<PlacementMap> ChooseMap(const BreedingContext& context,
                                       const std::function<PlacementMap()>& draw) {
  PlacementMap map;
  std::vector<uint8_t> fresh;
  for (int i = 0; i < context.config.candidates; ++i) {
    map = draw();
    if (context.known.Holds(map)) continue;
    fresh.insert(fresh.end(), map.begin(), map.end());
    if (context.critics == nullptr) break;
  }
  if (fresh.empty()) return map;
  MG_ASSIGN_OR_RETURN(const size_t best, BestExpected(fresh, context));
  const auto begin = fresh.begin() + static_cast<ptrdiff_t>(best * map.size());
  return PlacementMap(begin, begin + static_cast<ptrdiff_t>(map.size()));
}

std::vector<float> CrossWeights(const std::vector<float>& a, const std::vector<float>& b,
                                Rng& rng) {
  std::vector<float> crossed = b;
  const auto cut = static_cast<ptrdiff_t>(rng.Below(a.size() + 1));
  std::copy_n(a.begin(), cut, crossed.begin());
  return crossed;
}

void MutateWeights(const Config& config, const std::vector<WeightBlock>& blocks, Rng& rng,
                   std::vector<float>& weights) {
  for (const WeightBlock& block : blocks) {
    const double rate = 2 * rng.Uniform() * (block.matrix ? 1 : kVectorRate);
    if (rng.Uniform() >= rate) continue;
    const auto most =
        static_cast<uint32_t>(std::ceil(config.mutated_share * static_cast<double>(block.size)));
    for (uint32_t touched = rng.Below(most + 1); touched > 0; --touched) {
      float& weight = weights[block.begin + rng.Below(block.size)];
      const double kind = rng.Uniform();
      if (kind < kSuperShare) {
        weight += static_cast<float>(kSuperFactor * config.mutation_noise) * Noise(rng) * weight;
      } else if (kind < kSuperShare + kResetShare) {
        weight = Noise(rng) / std::sqrt(static_cast<float>(config.hidden));
      } else {
        weight += static_cast<float>(config.mutation_noise) * Noise(rng) * weight;
      }
    }
  }
}

std::vector<Birth> Population::FirstBirths(Rng& rng) const {
  const int boltzmann = static_cast<int>(std::lround(config_.boltzmann_share * config_.population));
  std::vector<Birth> births;
  for (int i = 0; i < config_.population; ++i) {
    if (i < boltzmann) {
      births.emplace_back([](const BreedingContext& context) {
        const size_t tensors = context.graph.map_size();
        return Drawn(Boltzmann::Random(tensors, context.graph.levels, context.rng), context);
      });
    } else if (const size_t a = i - boltzmann; a < ancestors_.size()) {
      births.emplace_back([this, a](const BreedingContext& context) {
        return NetworkMember(ancestors_[a], context);
      });
    } else {
      births.emplace_back(
          [seed = rng.Next()](const BreedingContext& context) -> absl::StatusOr<Member> {
            MG_ASSIGN_OR_RETURN(std::vector<float> weights, context.policy.Initial(seed));
            return NetworkMember(std::move(weights), context);
          });
    }
  }
  return births;
}

std::vector<size_t> Population::Candidates(bool network) const {
  std::vector<size_t> candidates;
  for (size_t i = 0; i < members_.size(); ++i) {
    if (!network || members_[i].network()) candidates.push_back(i);
  }
  return candidates;
}

size_t Population::Tournament(const std::vector<size_t>& candidates, Rng& rng) const {
  size_t best = candidates.size();
  const auto count = static_cast<uint32_t>(candidates.size());
  for (int i = 0; i < config_.tournament; ++i) best = std::min<size_t>(best, rng.Below(count));
  return candidates[best];
}

std::vector<Birth> Population::Breed(Rng& rng, const std::vector<float>* migrant) {
  elite_.assign(members_.size(), 0);
  if (members_.empty()) return FirstBirths(rng);
  const auto elites = [this] { return std::count(elite_.begin(), elite_.end(), 1); };
  // The elites are the best of each kind, as far as that leaves a place, and then the best of all.
  for (const bool network : {false, true}) {
    const auto best = std::find_if(members_.begin(), members_.end(),
                                   [=](const Member& m) { return m.network() == network; });
    if (best != members_.end() && elites() + 1 < config_.population)
      elite_[best - members_.begin()] = 1;
  }
  for (size_t i = 0; i < members_.size() && elites() < config_.elites; ++i) elite_[i] = 1;
  std::vector<Birth> births;
  std::vector<uint8_t> selected(members_.size(), 0);
  const auto places = config_.population - elites();
  if (migrant != nullptr && places > 0) {
    ++migrations_.arrived;
    births.emplace_back(
        [weights = *migrant](const BreedingContext& context) -> absl::StatusOr<Member> {
          MG_ASSIGN_OR_RETURN(Member member, NetworkMember(weights, context));
          member.migrant = true;
          return member;
        });
  }
  const bool has_network = !Candidates(true).empty();
  while (static_cast<int64_t>(births.size()) < places) {
    // A chromosome has parents of either kind, a network has only networks.
    const bool network = rng.Uniform() >= config_.boltzmann_share && has_network;
    const std::vector<size_t> candidates = Candidates(network);
    const size_t one = Tournament(candidates, rng);
    const bool crossed = rng.Uniform() < config_.crossover;
    const size_t other = crossed ? Tournament(candidates, rng) : one;
    selected[one] = selected[other] = 1;
    births.emplace_back([this, one, other, crossed, network](const BreedingContext& context) {
      return (network ? BredNetwork : BredBoltzmann)(members_[one],
                                                     crossed ? &members_[other] : nullptr, context);
    });
  }
  for (size_t i = 0; i < members_.size(); ++i) {
    if (!members_[i].migrant) continue;
    migrations_.elite += elite_[i];
    migrations_.selected += !elite_[i] && selected[i];
  }
  return births;
}

void Population::Admit(std::vector<Member> children, std::vector<Member> guests) {
  // Children stand before the elites that they only equal, so that the population moves on.
  std::vector<Member> next = std::move(children);
  for (size_t i = 0; i < members_.size(); ++i) {
    if (!elite_[i]) continue;
    members_[i].migrant = false;
    next.push_back(std::move(members_[i]));
  }
  const size_t places = next.size();
  std::move(guests.begin(), guests.end(), std::back_inserter(next));
  members_ = std::move(next);
  std::stable_sort(members_.begin(), members_.end(),
                   [](const Member& a, const Member& b) { return a.reward > b.reward; });
  // Guests, who are chromosomes, do not push the last network out.
  const auto end = members_.begin() + static_cast<ptrdiff_t>(places);
  const auto network =
      std::find_if(members_.begin(), members_.end(), [](const Member& m) { return m.network(); });
  if (network >= end && network != members_.end() && places > 0) std::iter_swap(end - 1, network);
  members_.erase(end, members_.end());
}

void WriteMember(const Member& member, std::string& out) {
  WriteBytes(member.weights, out);
  WriteBytes(member.probabilities, out);
  std::vector<double> priors, temperatures;  // empty for a network
  if (member.genes) {
    priors.assign(member.genes->priors().begin(), member.genes->priors().end());
    temperatures.assign(member.genes->temperatures().begin(), member.genes->temperatures().end());
  }
  WriteBytes(priors, out);
  WriteBytes(temperatures, out);
  WriteBytes(static_cast<uint8_t>(member.migrant), out);
  WriteBytes(member.map, out);
  WriteBytes(member.reward, out);
}

absl::Status ReadMember(absl::string_view& in, const ProblemGraph& graph, size_t num_weights,
                        Member& member) {
  const size_t size = graph.map_size(), levels = graph.levels;
  std::vector<double> priors, temperatures;
  uint8_t migrant = 0;
  MG_RETURN_IF_ERROR(ReadBytes(in, member.weights));
  MG_RETURN_IF_ERROR(ReadBytes(in, member.probabilities));
  MG_RETURN_IF_ERROR(ReadBytes(in, priors));
  MG_RETURN_IF_ERROR(ReadBytes(in, temperatures));
  MG_RETURN_IF_ERROR(ReadBytes(in, migrant));
  MG_RETURN_IF_ERROR(ReadBytes(in, member.map));
  MG_RETURN_IF_ERROR(ReadBytes(in, member.reward));
  const bool network = member.weights.size() == num_weights &&
                       member.probabilities.size() == size * levels && priors.empty();
  const bool boltzmann =
      member.weights.empty() && temperatures.size() == size && priors.size() == size * levels;
  const bool map_fits =
      member.map.size() == size && std::all_of(member.map.begin(), member.map.end(),
                                               [levels](uint8_t level) { return level < levels; });
  if (network == boltzmann || !map_fits || !std::isfinite(member.reward)) return CutShort();
  if (boltzmann) member.genes = Boltzmann::FromGenes(priors, temperatures);
  member.migrant = migrant != 0;
  return absl::OkStatus();
}

void Population::Write(std::string& out) const {
  for (const int64_t count : {migrations_.arrived, migrations_.elite, migrations_.selected})
    WriteBytes(count, out);
  WriteBytes(static_cast<uint64_t>(members_.size()), out);
  for (const Member& member : members_) WriteMember(member, out);
}

absl::Status Population::Read(absl::string_view& in, const ProblemGraph& graph,
                              size_t num_weights) {
  for (int64_t* counted : {&migrations_.arrived, &migrations_.elite, &migrations_.selected}) {
    MG_RETURN_IF_ERROR(ReadBytes(in, *counted));
  }
  uint64_t count = 0;
  MG_RETURN_IF_ERROR(ReadBytes(in, count));
  members_.clear();
  for (uint64_t i = 0; i < count; ++i) {
    Member member;
    MG_RETURN_IF_ERROR(ReadMember(in, graph, num_weights, member));
    members_.push_back(std::move(member));
  }
  return absl::OkStatus();
}

}  // namespace mallocgame::egrl
