// A genetic algorithm over the preferred action of every access, with elites, tournaments,
// crossover at one or two points in time, and mutation of single accesses and whole buffers. It
// starts from rent's game. The settings are those of the evolutionary half of ERL (reference:
// ERL18, CERL): a population of 40, of which a tenth are elites, and tournaments of three.
#include <algorithm>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/playing/preference_search.h"
#include "mallocgame/solvers/playing/rent.h"

namespace mallocgame {
namespace {

constexpr size_t kPopulation = 40;
constexpr size_t kElites = 4;
constexpr int kTournament = 3;

struct Individual {
  Preferences preferences;
  int64_t latency_ps = 0;
};

Individual Evaluate(const Game& game, Preferences preferences, Budget& budget) {
  PreferenceSearch search(game, std::move(preferences));
  budget.Finished(search.GoTo(search.decisions()));
  return {search.preferences(), search.latency_ps()};
}

void Mutate(const Game& game, Preferences& preferences, Rng& rng) {
  const auto actions = static_cast<uint32_t>(game.num_actions());
  const Program& program = game.program();
  for (uint32_t n = 1 + rng.Below(4); n > 0; --n) {
    const auto access = AccessId(rng.Below(preferences.size()));
    const auto action = static_cast<uint8_t>(rng.Below(actions));
    if (rng.Below(2) == 0) {
      preferences[access.index()] = action;
    } else {
      for (AccessId id : program.accesses_of(program.access(access).buffer))
        preferences[id.index()] = action;
    }
  }
}

const Individual& Select(const std::vector<Individual>& population, Rng& rng) {
  const Individual* best = nullptr;
  for (int i = 0; i < kTournament; ++i) {
    const Individual& one = rng.Pick(population);
    if (best == nullptr || one.latency_ps < best->latency_ps) best = &one;
  }
  return *best;
}

}  // namespace

bool PlayEvolution(const Game& game, Budget& budget) {
  Rng rng(budget.seed(), 2);
  const size_t size = game.program().accesses().size();
  std::vector<Individual> population = {
      Evaluate(game, PreferencesOf(BestRentGame(game, budget.deadline())), budget)};
  if (size == 0) return true;
  while (population.size() < kPopulation && !budget.Exhausted()) {
    Preferences preferences = population[0].preferences;
    for (size_t n = population.size(); n > 0; --n) Mutate(game, preferences, rng);
    population.push_back(Evaluate(game, std::move(preferences), budget));
  }
  const auto faster = [](const Individual& a, const Individual& b) {
    return a.latency_ps < b.latency_ps;
  };
  while (!budget.Exhausted()) {
    std::stable_sort(population.begin(), population.end(), faster);
    std::vector<Individual> next(
        population.begin(),
        population.begin() + static_cast<ptrdiff_t>(std::min(kElites, population.size())));
    while (next.size() < kPopulation && !budget.Exhausted()) {
      Preferences child = Select(population, rng).preferences;
      if (rng.Below(2) == 0) {
        const Preferences& other = Select(population, rng).preferences;
        uint32_t begin = rng.Below(size), end = rng.Below(size + 1);
        if (begin > end) std::swap(begin, end);
        std::copy(other.begin() + begin, other.begin() + end, child.begin() + begin);
      }
      Mutate(game, child, rng);
      next.push_back(Evaluate(game, std::move(child), budget));
    }
    population = std::move(next);
  }
  return false;
}

}  // namespace mallocgame
