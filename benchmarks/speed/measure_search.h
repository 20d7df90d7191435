// Measures how many simulations per second a search does with a given model, for benchmarks of the
// search alone and of networks under it.
#pragma once

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/tree/model.h"
#include "mallocgame/tree/search.h"

namespace mallocgame::mcts {

// Searches again and again, and reports simulations per CPU second and their mean depth.
inline void MeasureSearch(benchmark::State& state, Model& model,
                          std::shared_ptr<const Selection> selection, const SearchOptions& options,
                          int roots) {
  auto search = Search::Create(options, std::move(selection), roots, model.num_actions());
  MG_CHECK(search.ok());
  uint64_t seed = 0;
  int64_t simulations = 0;
  double depths = 0;
  for (auto _ : state) {
    MG_CHECK((*search)->Run(model, seed++).ok());
    for (int i = 0; i < roots; ++i) {
      simulations += (*search)->simulations(i);
      depths += (*search)->depth(i).mean * (*search)->simulations(i);
    }
  }
  state.counters["simulations"] =
      benchmark::Counter(static_cast<double>(simulations), benchmark::Counter::kIsRate);
  state.counters["depth"] = depths / static_cast<double>(simulations);
}

}  // namespace mallocgame::mcts
