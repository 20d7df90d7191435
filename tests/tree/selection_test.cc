// The rules of selection, compared with what the papers say.
#include "mallocgame/tree/selection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "mallocgame/tree/search.h"
#include "tests/catch.h"
#include "tests/tree/fake_models.h"

namespace mallocgame::mcts {
namespace {

std::vector<int> Schedule(int considered, int simulations) {
  std::vector<int> visits;
  for (int i = 0; i < simulations; ++i)
    visits.push_back(HalvingAt(considered, simulations, i).visits);
  return visits;
}

// Sequential halving as in the algorithm of the paper, action by action.
std::vector<int> ScheduleByList(int considered, int simulations) {
  std::vector<int> sequence, visits(considered, 0);
  const int phases = static_cast<int>(std::ceil(std::log2(considered)));
  int now = considered;
  while (static_cast<int>(sequence.size()) < simulations) {
    const int extra = std::max(1, simulations / std::max(1, phases * now));
    for (int i = 0; i < extra; ++i) {
      for (int a = 0; a < now; ++a) sequence.push_back(visits[a]++);
    }
    now = std::max(std::min(2, considered), now / 2);
  }
  sequence.resize(simulations);
  return sequence;
}

TEST_CASE("the schedule of sequential halving") {
  CHECK(Schedule(1, 5) == std::vector<int>{0, 1, 2, 3, 4});
  CHECK(Schedule(2, 5) == std::vector<int>{0, 0, 1, 1, 2});
  CHECK(Schedule(4, 8) == std::vector<int>{0, 0, 0, 0, 1, 1, 2, 2});
  CHECK(Schedule(4, 16) == std::vector<int>{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
  CHECK(Schedule(3, 6) == std::vector<int>{0, 0, 0, 1, 1, 2});
  CHECK(Schedule(16, 4) == std::vector<int>{0, 0, 0, 0});
  for (int considered = 1; considered <= 40; ++considered) {
    for (const int simulations : {1, 2, 7, 16, 50, 199, 800}) {
      INFO(considered << " actions, " << simulations << " simulations");
      CHECK(Schedule(considered, simulations) == ScheduleByList(considered, simulations));
    }
  }
}

TEST_CASE("Gumbel's visits at the root are those of the schedule") {
  for (const int leaves : {1, 3, 50}) {
    for (const int considered : {2, 4, 5, 16}) {
      for (const int simulations : {4, 16, 50}) {
        testing::KeyModel model({.num_actions = 12});
        SearchOptions options;
        options.simulations = simulations;
        options.leaves = leaves;
        GumbelOptions gumbel;
        gumbel.considered = considered;
        const auto search = *Search::Create(options, *MakeGumbel(gumbel), 3, 12);
        REQUIRE(search->Run(model, 9).ok());
        // The number of actions that reach a number of visits, as the schedule says it.
        std::vector<int> reached(simulations + 1, 0);
        for (const int visits : Schedule(std::min(considered, 12), simulations)) ++reached[visits];
        for (int i = 0; i < 3; ++i) {
          std::vector<int> found(reached.size(), 0);
          for (const int32_t visits : search->visits(i)) {
            for (int32_t n = 0; n < visits; ++n) ++found[n];
          }
          INFO(leaves << " leaves, " << considered << " considered, " << simulations
                      << " simulations");
          CHECK(found == reached);
          const absl::Span<const int32_t> visits = search->visits(i);
          CHECK(visits[search->action(i)] == *std::max_element(visits.begin(), visits.end()));
        }
      }
    }
  }
}

// A bandit: actions with known rewards, after each of which the game ends.
class Bandit final : public Model {
 public:
  Bandit(std::vector<float> logits, std::vector<float> rewards, float value)
      : logits_(std::move(logits)), rewards_(std::move(rewards)), value_(value) {}
  int num_actions() const override { return static_cast<int>(logits_.size()); }
  absl::Status Reserve(int) override { return absl::OkStatus(); }
  absl::Status Start(absl::Span<const RootRow> rows, const Predictions& out) override {
    for (size_t i = 0; i < rows.size(); ++i) {
      std::copy(logits_.begin(), logits_.end(),
                out.logits.begin() + static_cast<ptrdiff_t>(i * logits_.size()));
      out.values[i] = value_;
    }
    return absl::OkStatus();
  }
  absl::Status Step(absl::Span<const StepRow> rows, const Predictions& out) override {
    for (size_t i = 0; i < rows.size(); ++i) {
      out.rewards[i] = rewards_[rows[i].action];
      out.terminal[i] = 1;
    }
    return absl::OkStatus();
  }

 private:
  std::vector<float> logits_, rewards_;
  float value_;
};

TEST_CASE("Gumbel's target is the improved policy of completed values") {
  const std::vector<float> logits = {0.3f, -1.0f, 2.0f, 0.0f}, rewards = {0.9f, 0.2f, 0.5f, 0.7f};
  Bandit model(logits, rewards, 0.4f);
  SearchOptions options;
  options.simulations = 2;
  options.scaling = ValueScaling::kKnown;
  GumbelOptions gumbel;
  gumbel.considered = 2;
  gumbel.noise_scale = 0;
  const auto search = *Search::Create(options, *MakeGumbel(gumbel), 1, 4);
  REQUIRE(search->Run(model, 0).ok());
  // Without noise the two actions with the greatest logits are tried, and the better one is played.
  CHECK(std::vector<int32_t>(search->visits(0).begin(), search->visits(0).end()) ==
        std::vector<int32_t>{1, 0, 1, 0});
  double prior[4], sum = 0;
  for (int a = 0; a < 4; ++a) sum += prior[a] = std::exp(static_cast<double>(logits[a]));
  for (double& p : prior) p /= sum;
  const double mixed = (0.4 + 2 * (prior[0] * 0.9 + prior[2] * 0.5) / (prior[0] + prior[2])) / 3;
  const double completed[] = {0.9, mixed, 0.5, mixed};
  double weights[4], all = 0;
  for (int a = 0; a < 4; ++a)
    all += weights[a] = prior[a] * std::exp((50 + 1) * 0.1 * completed[a]);
  for (int a = 0; a < 4; ++a) CHECK(search->policy(0)[a] == Approx(weights[a] / all).epsilon(1e-5));
  CHECK(search->action(0) == (2.0 + 5.1 * 0.5 > 0.3 + 5.1 * 0.9 ? 2 : 0));
}

TEST_CASE("with max_range a very bad action does not make the others alike") {
  SearchOptions options;
  options.simulations = 4;
  options.scaling = GENERATE(ValueScaling::kTree, ValueScaling::kNode);
  const auto target = [&] {
    Bandit model({0, 0, 0, 0}, {0.2f, 0, -50, -1000}, 0);
    const auto search = *Search::Create(options, *MakeGumbel({.noise_scale = 0}), 1, 4);
    REQUIRE(search->Run(model, 1).ok());
    return std::vector<float>(search->policy(0).begin(), search->policy(0).end());
  };
  const float sigma = (50 + 1) * 0.1f;  // of a difference of the whole range
  const auto ahead = [](const std::vector<float>& policy, int a, int b) {
    return std::log(policy[a] / policy[b]);
  };
  const std::vector<float> alike = target();
  CHECK(ahead(alike, 0, 1) == Approx(sigma * 0.2f / 1000.2f).margin(1e-5));
  options.max_range = 1;
  const std::vector<float> apart = target();
  CHECK(ahead(apart, 0, 1) == Approx(sigma * 0.2f).epsilon(1e-3));
  CHECK(ahead(apart, 0, 2) == Approx(sigma).epsilon(1e-3));
  CHECK(apart[3] == apart[2]);
  // An action without visits gets a mean of what the others count as.
  options.simulations = 3;
  const float mixed = 0.75f * (0.2f + 0.0f - 0.8f) / 3;
  CHECK(ahead(target(), 1, 3) == Approx(sigma * -mixed).epsilon(1e-3));
  // PUCT visits the better one of two actions that are otherwise alike.
  const auto visits = [&] {
    Bandit model({0, 0, 0}, {0.2f, 0, -1000}, 0);
    const auto search = *Search::Create(options, *MakePuct({.dirichlet_fraction = 0}), 1, 3);
    REQUIRE(search->Run(model, 1).ok());
    return search->visits(0)[0] - search->visits(0)[1];
  };
  options.simulations = 100;
  CHECK(visits() > 50);
  options.max_range = std::numeric_limits<float>::infinity();
  CHECK(visits() < 10);
}

TEST_CASE("the improved policy is worth more than the policy, if values are right") {
  Rng rng(5);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<float> logits, rewards;
    double prior_sum = 0, prior_worth = 0;
    for (int a = 0; a < 6; ++a) {
      logits.push_back(static_cast<float>(4 * rng.Uniform() - 2));
      rewards.push_back(static_cast<float>(rng.Uniform()));
      prior_sum += std::exp(logits.back());
      prior_worth += std::exp(logits.back()) * rewards.back();
    }
    prior_worth /= prior_sum;
    Bandit model(logits, rewards, static_cast<float>(prior_worth));
    SearchOptions options;
    options.simulations = 1 + static_cast<int>(rng.Below(12));
    const auto search = *Search::Create(options, *MakeGumbel({}), 1, 6);
    REQUIRE(search->Run(model, static_cast<uint64_t>(trial)).ok());
    double worth = 0;
    for (size_t a = 0; a < 6; ++a)
      worth += static_cast<double>(search->policy(0)[a]) * static_cast<double>(rewards[a]);
    CHECK(worth >= prior_worth - 1e-4);
  }
}

// A plain implementation of PUCT, with doubles and maps. Gives the visits of the root's actions.
class Book {
 public:
  Book(testing::KeyModel& model, int actions, Unvisited unvisited)
      : model_(model), actions_(actions), unvisited_(unvisited) {
    CHECK(model_.Reserve(2000).ok());
    nodes_.push_back(Ask([&](const Predictions& out) {
      const RootRow row = {0, 0};
      return model_.Start(absl::MakeConstSpan(&row, 1), out);
    }));
    low_ = high_ = nodes_[0].value;
  }

  std::vector<int32_t> Run(int simulations) {
    for (int i = 0; i < simulations; ++i) Visit(0);
    return nodes_[0].n;
  }

 private:
  struct Node {
    std::vector<double> prior, q;
    std::vector<int32_t> n, child;
    double value, reward, discount;
    bool terminal;
  };

  template <class Call>
  Node Ask(const Call& call) {
    std::vector<float> logits(actions_, 0);
    float value = 0, reward = 0, discount = 0.9f;
    std::vector<uint8_t> legal(actions_, 1);
    uint8_t terminal = 0;
    CHECK(call({absl::MakeSpan(logits), absl::MakeSpan(&value, 1), absl::MakeSpan(&reward, 1),
                absl::MakeSpan(&discount, 1), absl::MakeSpan(legal), absl::MakeSpan(&terminal, 1)})
              .ok());
    Node node{{},
              std::vector<double>(actions_, 0),
              std::vector<int32_t>(actions_, 0),
              std::vector<int32_t>(actions_, -1),
              static_cast<double>(terminal ? 0 : value),
              static_cast<double>(reward),
              static_cast<double>(discount),
              terminal != 0};
    double sum = 0;
    for (size_t a = 0; a < actions_; ++a) {
      node.prior.push_back(legal[a] ? std::exp(static_cast<double>(logits[a])) : -1);
      sum += std::max(0.0, node.prior.back());
    }
    for (double& p : node.prior) p = p < 0 ? p : p / sum;
    return node;
  }

  double Scaled(double q) const { return (q - low_) / std::max(high_ - low_, 0.01); }

  // Does one simulation from a node on and gives its return.
  double Visit(size_t at) {
    if (nodes_[at].terminal) return 0;
    size_t best = actions_;
    double best_score = 0, total = 1;
    for (const int32_t n : nodes_[at].n) total += n;
    for (size_t a = 0; a < actions_; ++a) {
      const Node& node = nodes_[at];
      if (node.prior[a] < 0) continue;
      const double unvisited = unvisited_ == Unvisited::kWorst ? 0 : Scaled(node.value);
      const double c = 1.25 + std::log((total + 19652 + 1) / 19652);
      const double score = (node.n[a] > 0 ? Scaled(node.q[a]) : unvisited) +
                           node.prior[a] * std::sqrt(total) / (1 + node.n[a]) * c;
      if (best == actions_ || score > best_score) {
        best = a;
        best_score = score;
      }
    }
    double returned;
    if (nodes_[at].child[best] < 0) {
      const StepRow row = {0, static_cast<int32_t>(at), static_cast<int32_t>(best),
                           static_cast<int32_t>(nodes_.size())};
      const Node node = Ask(
          [&](const Predictions& out) { return model_.Step(absl::MakeConstSpan(&row, 1), out); });
      nodes_[at].child[best] = row.slot;
      returned = node.value;
      nodes_.push_back(node);
    } else {
      returned = Visit(nodes_[at].child[best]);
    }
    const Node& child = nodes_[nodes_[at].child[best]];
    returned = child.reward + child.discount * returned;
    Node& node = nodes_[at];
    node.q[best] += (returned - node.q[best]) / ++node.n[best];
    low_ = std::min(low_, node.q[best]);
    high_ = std::max(high_, node.q[best]);
    return returned;
  }

  testing::KeyModel& model_;
  size_t actions_;
  Unvisited unvisited_;
  std::vector<Node> nodes_;
  double low_ = 0, high_ = 0;
};

TEST_CASE("PUCT visits what PUCT by the book visits") {
  const Unvisited unvisited = GENERATE(Unvisited::kWorst, Unvisited::kNode);
  for (uint32_t key = 1; key <= 40; ++key) {
    const testing::KeyModel::Shape shape = {
        .num_actions = 6, .masks = true, .ends = true, .first_key = key};
    testing::KeyModel model(shape), same(shape);
    SearchOptions options;
    options.simulations = 120;
    options.discount = 0.9f;
    PuctOptions puct;
    puct.dirichlet_fraction = 0;
    puct.unvisited = unvisited;
    const auto search = *Search::Create(options, *MakePuct(puct), 1, 6);
    REQUIRE(search->Run(model, 0).ok());
    if (search->terminal(0)) continue;
    INFO("key " << key);
    CHECK(std::vector<int32_t>(search->visits(0).begin(), search->visits(0).end()) ==
          Book(same, 6, unvisited).Run(120));
  }
}

TEST_CASE("Dirichlet noise goes to legal actions, sums to its share, and has the right spread") {
  PuctOptions options;
  options.dirichlet_fraction = 1;
  for (const float alpha : {0.1f, 0.5f, 1.0f, 3.0f}) {
    options.dirichlet_alpha = alpha;
    const auto selection = *MakePuct(options);
    double mean = 0, square = 0;
    constexpr int kDraws = 4000;
    Rng rng(1);
    for (int i = 0; i < kDraws; ++i) {
      std::vector<float> priors = {0.5f, -1, 0.25f, 0.25f}, noise(4, 0);
      selection->Begin(rng, absl::MakeSpan(priors), absl::MakeSpan(noise));
      REQUIRE(priors[1] == -1);
      REQUIRE(priors[0] + priors[2] + priors[3] == Approx(1).margin(1e-5));
      mean += static_cast<double>(priors[0]) / kDraws;
      square += static_cast<double>(priors[0]) * static_cast<double>(priors[0]) / kDraws;
    }
    CHECK(mean == Approx(1.0 / 3).margin(0.02));
    CHECK(square - mean * mean ==
          Approx(2.0 / 9 / (3 * static_cast<double>(alpha) + 1)).epsilon(0.1));
  }
}

TEST_CASE("extreme logits and values neither crash nor lose the best action") {
  const float logit = GENERATE(-1000.0f, 0.0f, 1000.0f, -std::numeric_limits<float>::infinity());
  const float reward = GENERATE(1e-30f, 1.0f, 1e30f);
  for (const bool gumbel : {false, true}) {
    Bandit model({logit, 0, 0}, {reward, 0, 0}, 0);
    SearchOptions options;
    options.simulations = 40;
    options.min_range = 1e-35f;
    const auto search = *Search::Create(options, gumbel ? *MakeGumbel({}) : *MakePuct({}), 1, 3);
    REQUIRE(search->Run(model, 0).ok());
    float sum = 0;
    for (const float share : search->policy(0)) {
      CHECK(std::isfinite(share));
      sum += share;
    }
    CHECK(sum == Approx(1).margin(1e-4));
    if (logit >= 0) CHECK(search->action(0) == 0);
  }
}

TEST_CASE("options out of range are refused by name") {
  const auto refused = [](const absl::Status& status, const char* name) {
    INFO(name);
    REQUIRE(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(std::string(status.message()).find(name) == 0);
  };
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  refused(MakePuct({.c_init = -1}).status(), "c_init");
  refused(MakePuct({.c_init = kNan}).status(), "c_init");
  refused(MakePuct({.c_base = 0}).status(), "c_base");
  refused(MakePuct({.dirichlet_fraction = 1.1f}).status(), "dirichlet_fraction");
  refused(MakePuct({.dirichlet_alpha = 0}).status(), "dirichlet_alpha");
  refused(MakeGumbel({.considered = 0}).status(), "considered");
  refused(MakeGumbel({.c_visit = -1}).status(), "c_visit");
  refused(MakeGumbel({.c_scale = kNan}).status(), "c_scale");
  refused(MakeGumbel({.noise_scale = -0.1f}).status(), "noise_scale");
}

}  // namespace
}  // namespace mallocgame::mcts
