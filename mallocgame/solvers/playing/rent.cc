#include "mallocgame/solvers/playing/rent.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/playing/preference_search.h"

namespace mallocgame {
namespace {

// The scales of uniform prices that are tried, greedy's first.
constexpr double kScales[] = {0, 0.03, 0.1, 0.2, 0.4, 0.7, 1, 1.5, 2.5, 5};
// Small buffers are asked about too, at the best scales, if that can save this share of the all-main
// latency.
constexpr double kLeastWorth = 1e-4;
constexpr size_t kFineGames = 3;

std::vector<double> SumsBefore(const std::vector<double>& prices) {
  std::vector<double> sums = {0};
  sums.reserve(prices.size() + 1);
  for (const double price : prices) sums.push_back(sums.back() + price);
  return sums;
}

}  // namespace

Prices UniformPrices(const Game& game, double scale) {
  const auto ticks = static_cast<size_t>(game.program().ticks());
  const double price =
      scale * static_cast<double>(game.all_main_ps()) /
      (static_cast<double>(game.hardware().fast_bytes) * static_cast<double>(ticks));
  return {std::vector<double>(ticks, price), {}};
}

Rent::Rent(const Prices& prices)
    : space_(SumsBefore(prices.space_ps_per_byte)), channel_(SumsBefore(prices.channel_ps_per_ps)) {
}

double Rent::CopyRent(double copy_ps, Tick begin, Tick end) const {
  return copy_ps * (channel_[end] - channel_[begin]) / std::max(1, end - begin);
}

std::array<double, kActions> Rent::Of(const State& state) const {
  const Program& program = state.game().program();
  const Access& access = program.access(state.current_access());
  const int64_t bytes = program.buffer(access.buffer).size_bytes;
  const bool free_channel = channel_.size() == 1;
  const auto copy_ps =
      static_cast<double>(free_channel ? 0 : state.game().hardware().TransferPs(bytes));
  const uint8_t mask = state.legal_mask();
  const StateView view = state.view();
  std::array<double, kActions> rents = {};
  for (size_t a = 1; a < rents.size(); ++a) {
    if ((mask >> a & 1) == 0) continue;
    const ActionEffect& effect = view.effects[a];
    rents[a] = static_cast<double>(bytes) * (space_[effect.end] - space_[effect.begin]);
    if (free_channel) continue;
    if (effect.transfer) rents[a] += CopyRent(copy_ps, effect.window.begin, effect.window.end);
    if (effect.write_back_end != 0) {
      const Tick used_until = access.kind == AccessKind::kLoopEntry
                                  ? program.loop_at(access.tick).exit
                                  : access.tick + 1;
      rents[a] += CopyRent(copy_ps, used_until, effect.write_back_end);
    }
  }
  return rents;
}

Action RentAction(State& state, const Rent& rent) { return MostProfitable(state, rent.Of(state)); }

void PlayRentFrom(State& state, const Rent& rent) {
  while (!state.IsTerminal()) MG_CHECK(state.Apply(RentAction(state, rent)).ok());
}

bool PlayRent(const Game& game, Budget& budget) {
  struct Played {
    int64_t latency_ps;
    double scale;
  };
  std::vector<Played> played;
  for (const double scale : kScales) {
    if (!played.empty() && budget.Exhausted()) return false;
    State state = game.InitialState();
    PlayRentFrom(state, Rent(UniformPrices(game, scale)));
    budget.Finished(state);
    played.push_back({state.latency_ps(), scale});
  }
  if (WorthOfSmallBuffers(game) < kLeastWorth) return true;
  const std::shared_ptr<const Game> fine = GameOfSmallBuffers(game);
  if (fine == nullptr) return true;
  std::stable_sort(played.begin(), played.end(),
                   [](const Played& a, const Played& b) { return a.latency_ps < b.latency_ps; });
  for (size_t i = 0; i < kFineGames; ++i) {
    if (budget.Exhausted()) return false;
    State state = fine->InitialState();
    PlayRentFrom(state, Rent(UniformPrices(*fine, played[i].scale)));
    budget.Finished(state);
  }
  return true;
}

}  // namespace mallocgame
