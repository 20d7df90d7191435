#include "mallocgame/game/prices.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "mallocgame/base/error.h"

namespace mallocgame {
namespace {

absl::Status CheckColumn(absl::string_view name, const std::vector<double>& prices, Tick ticks) {
  if (prices.size() != static_cast<size_t>(ticks)) {
    return absl::InvalidArgumentError(absl::StrCat("prices: ", name, ": found ", prices.size(),
                                                   " numbers, the program has ", ticks, " ticks"));
  }
  for (size_t t = 0; t < prices.size(); ++t) {
    if (std::isfinite(prices[t]) && prices[t] >= 0) continue;
    return absl::InvalidArgumentError(absl::StrCat("prices: ", name, " of tick ", t, ": found ",
                                                   prices[t], ", allowed: finite, 0 and above"));
  }
  return absl::OkStatus();
}

std::vector<double> SumsBefore(const std::vector<double>& prices) {
  std::vector<double> sums = {0};
  sums.reserve(prices.size() + 1);
  for (const double price : prices) sums.push_back(sums.back() + price);
  return sums;
}

}  // namespace

PriceSums::PriceSums(const Prices& prices)
    : space_(SumsBefore(prices.space_ps_per_byte)), channel_(SumsBefore(prices.channel_ps_per_ps)) {
}

absl::Status ValidatePrices(const Program& program, const Prices& prices) {
  MG_RETURN_IF_ERROR(CheckColumn("space_ps_per_byte", prices.space_ps_per_byte, program.ticks()));
  if (prices.channel_ps_per_ps.empty()) return absl::OkStatus();
  return CheckColumn("channel_ps_per_ps", prices.channel_ps_per_ps, program.ticks());
}

Prices UniformPrices(const Game& game, double scale) {
  const auto ticks = static_cast<size_t>(game.program().ticks());
  const double price =
      scale * static_cast<double>(game.all_main_ps()) /
      (static_cast<double>(game.hardware().fast_bytes) * static_cast<double>(ticks));
  return {std::vector<double>(ticks, price), {}};
}

}  // namespace mallocgame
