#include "mallocgame/solvers/playing/rent.h"
#include "mallocgame/game/time/time_decoder.h"

#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/solvers/playing/players.h"

namespace mallocgame {
namespace {

// The scales of the uniform prices of space that are tried, greedy's first.
constexpr double kScales[] = {0, 0.03, 0.1, 0.2, 0.4, 0.7, 1.5, 2.5};
// The prices of the channel that are tried with the best of them.
constexpr double kChannelPrices[] = {0.2, 0.5, 1};
// The scales that are tried with prices of space by how full the best game left the memory.
constexpr double kFillScales[] = {0.1, 0.3, 1, 3};
// The price at ticks with an empty memory; it is 1 more at those with a full one.
constexpr double kEmptyPrice = 0.05;
// By these the best prices of space are multiplied in the end.
constexpr double kFactors[] = {0.6, 0.8, 1.25, 1.6};
// The best prices are tried with small buffers too, if those can save this share of the all-main
// latency.
constexpr double kLeastWorth = 3e-4;
constexpr size_t kFineGames = 2;

// For each tick, the share of fast memory that is taken at the end of a game.
std::vector<double> Fill(const State& end) {
  const Game& game = end.game();
  const auto ticks = static_cast<size_t>(game.program().ticks());
  std::vector<double> fill(ticks + 1);
  for (const Residence& residence : end.ToPlan().residences) {
    const auto bytes = static_cast<double>(game.program().buffer(residence.buffer).size_bytes);
    fill[residence.begin] += bytes / static_cast<double>(game.usable_bytes());
    fill[residence.end] -= bytes / static_cast<double>(game.usable_bytes());
  }
  for (size_t t = 1; t < ticks; ++t) fill[t] += fill[t - 1];
  fill.resize(ticks);
  return fill;
}

// Plays games at given prices. Each end is handed to `played`, which says whether to go on.
class Trials {
 public:
  explicit Trials(std::function<bool(const State&)> played) : played_(std::move(played)) {}

  // Plays a game; false if that is to be the last.
  bool Play(const Game& game, Prices prices) {
    State state(game);
    PlayRentFrom(state, Rent(prices));
    const auto slower = std::find_if(trials_.begin(), trials_.end(), [&](const Trial& trial) {
      return trial.latency_ps > state.latency_ps();
    });
    if (slower == trials_.begin()) best_ = state;
    trials_.insert(slower, {state.latency_ps(), std::move(prices)});
    return played_(state);
  }
  // The end of the fastest game so far. There must be one.
  const State& best() const { return *best_; }
  // The prices of the i-th fastest game.
  const Prices& prices(size_t i) const { return trials_[i].prices; }

 private:
  struct Trial {
    int64_t latency_ps;
    Prices prices;
  };
  std::function<bool(const State&)> played_;
  std::vector<Trial> trials_;  // the fastest first
  std::optional<State> best_;
};

// Plays at all prices that are tried; false if it was to stop.
bool TryPrices(const Game& game, Trials& trials) {
  for (const double scale : kScales) {
    if (!trials.Play(game, UniformPrices(game, scale))) return false;
  }
  const Prices uniform = trials.prices(0);
  for (const double price : kChannelPrices) {
    Prices prices = uniform;
    prices.channel_ps_per_ps.assign(prices.space_ps_per_byte.size(), price);
    if (!trials.Play(game, std::move(prices))) return false;
  }
  const std::vector<double> fill = Fill(trials.best()),
                            channel = trials.prices(0).channel_ps_per_ps;
  for (const double scale : kFillScales) {
    Prices prices = UniformPrices(game, scale);
    for (size_t t = 0; t < fill.size(); ++t)
      prices.space_ps_per_byte[t] *= kEmptyPrice + fill[t] * fill[t];
    prices.channel_ps_per_ps = channel;
    if (!trials.Play(game, std::move(prices))) return false;
  }
  const Prices best = trials.prices(0);
  for (const double factor : kFactors) {
    Prices prices = best;
    for (double& price : prices.space_ps_per_byte) price *= factor;
    if (!trials.Play(game, std::move(prices))) return false;
  }
  return true;
}

// Plays at the best prices again, with small buffers too if they matter; false if it was to stop.
bool TrySmallBuffers(const Game& game, Trials& trials) {
  if (WorthOfSmallBuffers(game) < kLeastWorth) return true;
  const std::shared_ptr<const Game> fine = GameOfSmallBuffers(game);
  if (fine == nullptr) return true;
  std::vector<Prices> best;
  for (size_t i = 0; i < kFineGames; ++i) best.push_back(trials.prices(i));
  return std::all_of(best.begin(), best.end(),
                     [&](const Prices& prices) { return trials.Play(*fine, prices); });
}

}  // namespace

std::array<double, kActions> Rent::Of(const State& state) const {
  const Program& program = state.game().program();
  const Access& access = program.access(state.current_access());
  const int64_t bytes = program.buffer(access.buffer).size_bytes;
  const int64_t copy_ps = state.game().hardware().CopyPs(bytes);
  const ActionSet legal = state.legal_actions();
  const StateView view = state.view();
  std::array<double, kActions> rents = {};
  for (size_t a = 1; a < rents.size(); ++a) {
    if (!legal.Has(static_cast<int>(a))) continue;
    const ActionEffect& effect = view.effects[a];
    rents[a] = prices_.OfSpace(bytes, effect.begin, effect.end);
    if (effect.transfer)
      rents[a] += prices_.OfCopy(copy_ps, effect.window.begin, effect.window.end);
    if (effect.eviction_end != 0) {
      const Tick used_until = access.kind == AccessKind::kLoopEntry
                                  ? program.loop_at(access.tick).exit
                                  : access.tick + 1;
      rents[a] += prices_.OfCopy(copy_ps, used_until, effect.eviction_end);
    }
  }
  return rents;
}

Action RentAction(State& state, const Rent& rent) { return MostProfitable(state, rent.Of(state)); }

void PlayRentFrom(State& state, const Rent& rent) {
  while (!state.IsTerminal()) MG_CHECK(state.Apply(RentAction(state, rent)).ok());
}

State BestRentGame(const Game& game, const Deadline& deadline, bool small_buffers) {
  Trials trials([&](const State&) {
    deadline.Played();
    return !deadline.Passed();
  });
  if (TryPrices(game, trials) && small_buffers) TrySmallBuffers(game, trials);
  return trials.best();
}

bool PlayRent(const Game& game, Budget& budget) {
  Trials trials([&](const State& end) {
    budget.Finished(end);
    return !budget.Exhausted();
  });
  return TryPrices(game, trials) && TrySmallBuffers(game, trials);
}

}  // namespace mallocgame
