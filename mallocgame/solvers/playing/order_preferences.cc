#include "mallocgame/solvers/playing/order_preferences.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "mallocgame/base/error.h"
#include "mallocgame/game/order/services.h"
#include "mallocgame/solvers/game_variants.h"

namespace mallocgame {
namespace {

constexpr std::array kPlacing = {Service::kLate, Service::kEarly, Service::kPreload};

// The action that serves a candidate from fast memory and saves most; -1: none saves anything.
int MostSaving(OrderState& state, int candidate) {
  int best = -1;
  int64_t most = 0;
  const int64_t before = state.latency_ps();
  for (const Service service : kPlacing) {
    const int action = OrderAction(candidate, service);
    if (!state.TryApply(action)) continue;
    const int64_t saved = before - state.latency_ps();
    state.Undo();
    if (saved <= most) continue;
    most = saved;
    best = action;
  }
  return best;
}

void PlayGreedy(OrderState& state, int candidate) {
  if (const int best = MostSaving(state, candidate); best >= 0) {
    MG_CHECK(state.TryApply(best));
    return;
  }
  for (const Service service :
       {Service::kSplit, Service::kSkip, Service::kLate, Service::kEarly, Service::kPreload}) {
    if (state.TryApply(OrderAction(candidate, service))) return;
  }
  MG_CHECK(false);
}

void PlayPaying(OrderState& state, int candidate) {
  if (const int best = MostSaving(state, candidate); best >= 0) {
    MG_CHECK(state.TryApply(best));
  } else {
    ServeAs(state, candidate, Service::kSkip);
  }
}

}  // namespace

OrderPreferences OrderUndecided(const Game& game) {
  OrderPreferences preferences(game.order_tables().runs.size());
  for (size_t r = 0; r < preferences.size(); ++r)
    preferences[r] = {kUndecidedService, static_cast<double>(r)};
  return preferences;
}

OrderPreferences OrderPreferencesOf(const Game& game, const Plan& plan) {
  OrderPreferences preferences = OrderUndecided(game);
  const std::vector<Service> services = ServicesOf(game, plan);
  for (size_t r = 0; r < preferences.size(); ++r)
    preferences[r].service = static_cast<uint8_t>(services[r]);
  return preferences;
}

OrderPreferences OrderPreferencesLike(const Game& game, absl::Span<const ServedRun> served) {
  const OrderTables& tables = game.order_tables();
  std::map<std::pair<AccessId, AccessId>, int32_t> runs;
  OrderPreferences preferences = OrderUndecided(game);
  for (size_t r = 0; r < preferences.size(); ++r) {
    runs[AccessesOf(tables, static_cast<int32_t>(r))] = static_cast<int32_t>(r);
    preferences[r].rank += static_cast<double>(served.size());
  }
  double rank = 0;
  for (const ServedRun& run : served) {
    const auto found = runs.find({run.first, run.last});
    if (found != runs.end()) preferences[found->second] = {run.service, rank++};
  }
  return preferences;
}

int PreferredCandidate(const OrderState& state, const OrderPreferences& preferences) {
  const auto candidates = state.candidates();
  size_t best = 0;
  for (size_t i = 1; i < candidates.size() && candidates[i] >= 0; ++i) {
    if (preferences[candidates[i]].rank < preferences[candidates[best]].rank) best = i;
  }
  return static_cast<int>(best);
}

void ServePreferred(OrderState& state, int candidate, const OrderPreferences& preferences) {
  const uint8_t service = preferences[state.candidates()[candidate]].service;
  if (service == kUndecidedService) return PlayGreedy(state, candidate);
  if (service == kPayingService) return PlayPaying(state, candidate);
  ServeAs(state, candidate, static_cast<Service>(service));
}

void PlayPreferred(OrderState& state, const OrderPreferences& preferences) {
  ServePreferred(state, PreferredCandidate(state, preferences), preferences);
}

void PlayOrderOn(OrderState& state, const OrderPreferences& preferences) {
  while (!state.IsTerminal()) PlayPreferred(state, preferences);
}

std::vector<OrderStart> OrderStarts(const Game& game, const FollowedPlan* followed,
                                    const Deadline& deadline) {
  std::vector<std::pair<double, double>> weights = {{1, 1},     {0, 0},   {0, 1},
                                                    {0.5, 0.5}, {0.5, 1}, {1, 0}};
  const std::pair own(game.options().bytes_weight, game.options().time_weight);
  std::erase(weights, own);
  weights.insert(weights.begin(), own);
  std::vector<OrderStart> starts;
  const auto play = [&starts](const std::shared_ptr<const Game>& in, OrderPreferences preferences,
                              bool follows) {
    OrderState state(in);
    PlayOrderOn(state, preferences);
    for (const OrderState::Decided& decided : state.decided())
      preferences[decided.run].service = static_cast<uint8_t>(decided.service);
    starts.push_back({in, std::move(preferences), follows, state.latency_ps()});
  };
  const auto add = [&](const GameOptions& options) {
    const auto in = GameWith(game, options);
    play(in, OrderUndecided(*in), false);
    if (followed == nullptr) return;
    play(in, OrderPreferencesOf(*in, followed->plan), true);
    if (!followed->served.empty()) play(in, OrderPreferencesLike(*in, followed->served), true);
  };
  GameOptions options = game.options();
  options.kind = GameKind::kOrder;
  const bool small = options.min_buffer_bytes > kSmallBufferBytes;
  const auto without = GameWithoutLargest(game);
  for (const auto& [bytes, time] : weights) {
    if (!starts.empty() && deadline.Passed()) break;
    options.bytes_weight = bytes;
    options.time_weight = time;
    options.min_buffer_bytes = game.options().min_buffer_bytes;
    add(options);
    if (small && !deadline.Passed()) {
      options.min_buffer_bytes = kSmallBufferBytes;
      add(options);
    }
    if (without == nullptr || deadline.Passed()) continue;
    options.forbidden = without->options().forbidden;
    add(options);
    options.forbidden = game.options().forbidden;
  }
  std::stable_sort(starts.begin(), starts.end(), [](const OrderStart& a, const OrderStart& b) {
    return a.latency_ps < b.latency_ps;
  });
  return starts;
}

}  // namespace mallocgame
