// Measures the tree search alone, with a model that costs nearly nothing: simulations per CPU
// second for several numbers of actions, with 64 roots and 50 simulations unless the name says
// otherwise.
#include <benchmark/benchmark.h>

#include "benchmarks/speed/measure_search.h"
#include "benchmarks/speed/table_model.h"
#include "mallocgame/tree/selection.h"

namespace mallocgame::mcts {
namespace {

// The noise is left out, because it is drawn once for each search and is no work of the tree. In
// the Gumbel rule the noise is part of the method.
std::shared_ptr<const Selection> Puct(Unvisited unvisited) {
  PuctOptions options;
  options.dirichlet_fraction = 0;
  options.unvisited = unvisited;
  return *MakePuct(options);
}

// range(0) is the number of actions, range(1) of roots, range(2) of leaves evaluated together.
void Measure(benchmark::State& state, std::shared_ptr<const Selection> selection) {
  TableModel model(static_cast<int>(state.range(0)));
  SearchOptions options;
  options.simulations = 50;
  options.discount = 0.997f;
  options.leaves = static_cast<int>(state.range(2));
  MeasureSearch(state, model, std::move(selection), options, static_cast<int>(state.range(1)));
}

void PuctTree(benchmark::State& state) { Measure(state, Puct(Unvisited::kWorst)); }
void PuctNodeTree(benchmark::State& state) { Measure(state, Puct(Unvisited::kNode)); }
void GumbelTree(benchmark::State& state) { Measure(state, *MakeGumbel({})); }

void Cases(benchmark::internal::Benchmark* b) {
  b->ArgNames({"actions", "roots", "leaves"});
  for (const int actions : {3, 4, 18, 362}) b->Args({actions, 64, 1});
  b->Args({4, 64, 4});
  b->Args({4, 1, 1});
}
BENCHMARK(PuctTree)->Apply(Cases);
BENCHMARK(PuctNodeTree)->Apply(Cases);
BENCHMARK(GumbelTree)->Apply(Cases);

}  // namespace
}  // namespace mallocgame::mcts

BENCHMARK_MAIN();
