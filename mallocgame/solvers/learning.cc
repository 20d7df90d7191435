#include "mallocgame/solvers/learning.h"

#include "mallocgame/game/order/order_state.h"
#include "mallocgame/solvers/learned/advised_game.h"
#include "mallocgame/solvers/playing/order_preferences.h"

namespace mallocgame {

std::map<std::string, int> LearnedSizes() {
  return {{"pieces", RunGraph::kPieces},
          {"features", RunGraph::kFeatures},
          {"hidden", RunNetwork::kHidden},
          {"state", RunNetwork::kState},
          {"space_wants", RunNetwork::kSpaceWants},
          {"channel_wants", RunNetwork::kChannelWants},
          {"outputs", RunNetwork::kOutputs},
          {"weights", RunNetwork::kNumWeights},
          {"style", Style::kNumbers}};
}

struct LearningGame::Parts {
  explicit Parts(const Game& game) : advised(game) {}

  const std::vector<Run>& all() const { return advised.game().order_tables().runs; }

  AdvisedGame advised;
};

LearningGame::LearningGame(const Game& game) : parts_(std::make_unique<const Parts>(game)) {}
LearningGame::~LearningGame() = default;

int64_t LearningGame::runs() const { return parts_->advised.graph().num_runs(); }

std::vector<int64_t> LearningGame::Play(absl::Span<const float> network,
                                        absl::Span<const float> styles) const {
  const auto advice = Advise(parts_->advised.graph(), network);
  std::vector<int64_t> latencies;
  for (; !styles.empty(); styles.remove_prefix(Style::kNumbers))
    latencies.push_back(parts_->advised.Play(advice, Style::Of(styles)).latency_ps);
  return latencies;
}

std::vector<float> LearningGame::Advice(absl::Span<const float> network) const {
  std::vector<float> rows;
  for (const RunAdvice& one : Advise(parts_->advised.graph(), network))
    rows.insert(rows.end(),
                {one.importance, one.late, one.early, one.preload, one.split, one.saving});
  return rows;
}

std::vector<uint8_t> LearningGame::ServicesOf(const Plan& plan) const {
  const auto preferences = OrderPreferencesOf(parts_->advised.game(), plan);
  std::vector<uint8_t> services(preferences.size());
  for (size_t r = 0; r < preferences.size(); ++r)
    services[parts_->all()[r].id] = preferences[r].service;
  return services;
}

std::vector<int32_t> LearningGame::Parents() const {
  std::vector<int32_t> parents(runs());
  for (const Run& run : parts_->all())
    parents[run.id] = run.parent < 0 ? -1 : parts_->all()[run.parent].id;
  return parents;
}

std::vector<uint8_t> LearningGame::Services() const {
  std::vector<uint8_t> services(runs() * kServices);
  const auto can = [&services](const Run& run, Service service, bool legal) {
    services[run.id * kServices + static_cast<int>(service)] = legal ? 1 : 0;
  };
  for (const Run& run : parts_->all()) {
    can(run, Service::kSkip, true);
    can(run, Service::kLate, run.placeable);
    can(run, Service::kEarly, OrderState::HasEarly(run));
    can(run, Service::kPreload, run.preloadable);
    can(run, Service::kSplit, run.splits);
  }
  return services;
}

std::vector<float> LearningGame::Features() const { return parts_->advised.graph().features; }

std::map<std::string, std::vector<float>> LearningGame::Columns() const {
  const RunGraph& graph = parts_->advised.graph();
  return {{"begin", graph.begin},
          {"end", graph.end},
          {"fetch_begin", graph.fetch_begin},
          {"need", graph.need},
          {"bytes", graph.bytes},
          {"copy", graph.copy},
          {"log_saving", graph.log_saving},
          {"log_held", graph.log_held},
          {"log_bytes", graph.log_bytes},
          {"log_importance", graph.log_importance}};
}

}  // namespace mallocgame
