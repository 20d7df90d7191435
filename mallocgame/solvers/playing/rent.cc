#include "mallocgame/solvers/playing/rent.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/playing/preference_search.h"

namespace mallocgame {
namespace {

// The scales of the uniform prices of space that are tried, greedy's first.
constexpr double kScales[] = {0, 0.03, 0.1, 0.2, 0.4, 0.7, 1, 1.5, 2.5, 5};
// The prices of the channel that are tried with the best of them.
constexpr double kChannelPrices[] = {0.2, 0.5, 1};
// The scales that are tried with prices of space by how full the best game left the memory.
constexpr double kFillScales[] = {0.1, 0.3, 1, 3};
constexpr double kEmptyPrice =
    0.05;  // at ticks with an empty memory; 1 more at those with a full one
// The best prices are tried with small buffers too, if those can save this share of the all-main
// latency.
constexpr double kLeastWorth = 1e-4;
constexpr size_t kFineGames = 3;

std::vector<double> SumsBefore(const std::vector<double>& prices) {
  std::vector<double> sums = {0};
  sums.reserve(prices.size() + 1);
  for (const double price : prices) sums.push_back(sums.back() + price);
  return sums;
}

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

// Plays games at given prices and remembers how they went, the fastest first.
class Trials {
 public:
  struct Trial {
    int64_t latency_ps;
    Prices prices;
  };
  explicit Trials(Budget& budget) : budget_(budget) {}

  // Plays a game at `prices` and returns its end; nothing if the limits are used up.
  std::optional<State> Play(const Game& game, Prices prices) {
    if (!trials_.empty() && budget_.Exhausted()) return std::nullopt;
    State state = game.InitialState();
    PlayRentFrom(state, Rent(prices));
    budget_.Finished(state);
    const auto slower = std::find_if(trials_.begin(), trials_.end(), [&](const Trial& trial) {
      return trial.latency_ps > state.latency_ps();
    });
    trials_.insert(slower, {state.latency_ps(), std::move(prices)});
    return state;
  }
  const std::vector<Trial>& best_first() const { return trials_; }

 private:
  Budget& budget_;
  std::vector<Trial> trials_;
};

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
  Trials trials(budget);
  std::optional<State> best;
  const auto play = [&](Prices prices) {
    std::optional<State> end = trials.Play(game, std::move(prices));
    if (!end.has_value()) return false;
    if (!best.has_value() || end->latency_ps() < best->latency_ps()) best = std::move(end);
    return true;
  };
  for (const double scale : kScales) {
    if (!play(UniformPrices(game, scale))) return false;
  }
  const Prices uniform = trials.best_first()[0].prices;
  for (const double price : kChannelPrices) {
    Prices prices = uniform;
    prices.channel_ps_per_ps.assign(prices.space_ps_per_byte.size(), price);
    if (!play(std::move(prices))) return false;
  }
  const std::vector<double> fill = Fill(*best);
  const std::vector<double> channel = trials.best_first()[0].prices.channel_ps_per_ps;
  for (const double scale : kFillScales) {
    Prices prices = UniformPrices(game, scale);
    for (size_t t = 0; t < fill.size(); ++t)
      prices.space_ps_per_byte[t] *= kEmptyPrice + fill[t] * fill[t];
    prices.channel_ps_per_ps = channel;
    if (!play(std::move(prices))) return false;
  }
  if (WorthOfSmallBuffers(game) < kLeastWorth) return true;
  const std::shared_ptr<const Game> fine = GameOfSmallBuffers(game);
  if (fine == nullptr) return true;
  const std::vector<Trials::Trial> coarse = trials.best_first();
  for (size_t i = 0; i < kFineGames; ++i) {
    if (!trials.Play(*fine, coarse[i].prices).has_value()) return false;
  }
  return true;
}

}  // namespace mallocgame
