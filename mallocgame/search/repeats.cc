#include "mallocgame/search/repeats.h"

#include <cstdint>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/hash/hash.h"
#include "absl/types/span.h"
#include "mallocgame/game/tables.h"

namespace mallocgame {
namespace {

constexpr Tick kAround = 8;  // ticks on either side that must be the same too

// What is known of the instruction at each tick.
std::vector<uint64_t> Signatures(const Game& game) {
  const GameTables& tables = game.tables();
  std::vector<uint64_t> signatures;
  for (Tick t = 0; t < game.program().ticks(); ++t) {
    const auto price = [&](uint64_t placement) {
      const TimeAndIdle at = tables.PriceAt(game.cost_model(), t, placement);
      return std::pair(at.time_ps, at.idle_ps);
    };
    size_t hash = absl::HashOf(tables.instructions[t].bits, tables.instructions[t].trips, price(0),
                               price(tables.AllFast(t)));
    for (int32_t d = tables.first_decision[t]; d < tables.first_decision[t + 1]; ++d) {
      const Decision& decision = tables.decisions[d];
      hash = absl::HashOf(hash, static_cast<int>(decision.kind), decision.bit, decision.forbidden,
                          tables.buffers[decision.buffer].size_bytes,
                          price(uint64_t{1} << decision.bit));
    }
    signatures.push_back(hash);
  }
  return signatures;
}

}  // namespace

Repeats::Repeats(const Game& game) {
  const std::vector<uint64_t> signatures = Signatures(game);
  const auto ticks = static_cast<Tick>(signatures.size());
  representative_.resize(ticks);
  std::iota(representative_.begin(), representative_.end(), 0);
  // By what stands around a tick: all such ticks.
  absl::flat_hash_map<uint64_t, std::vector<Tick>> same;
  for (Tick t = kAround; t + kAround < ticks; ++t)
    same[absl::HashOf(absl::MakeConstSpan(&signatures[t - kAround], 2 * kAround + 1))].push_back(t);
  for (const auto& [_, of] : same) {
    for (const Tick t : of) representative_[t] = of[of.size() / 2];
    empty_ &= of.size() == 1;
  }
}

}  // namespace mallocgame
