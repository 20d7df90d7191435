// The search with models that need no network.
#include "mallocgame/tree/search.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "mallocgame/tree/tree.h"
#include "tests/catch.h"
#include "tests/tree/fake_models.h"

namespace mallocgame::mcts {
namespace {

using testing::KeyModel;
using testing::StonesModel;

std::shared_ptr<const Selection> Puct(float noise = 0) {
  PuctOptions options;
  options.dirichlet_fraction = noise;
  return *MakePuct(options);
}
std::shared_ptr<const Selection> Gumbel(float noise = 1) {
  GumbelOptions options;
  options.noise_scale = noise;
  return *MakeGumbel(options);
}

std::unique_ptr<Search> Make(const SearchOptions& options,
                             std::shared_ptr<const Selection> selection, int roots, int actions) {
  auto search = Search::Create(options, std::move(selection), roots, actions);
  REQUIRE(search.ok());
  return *std::move(search);
}

SearchOptions Simulations(int simulations) {
  SearchOptions options;
  options.simulations = simulations;
  return options;
}

// One line for each node with its action, visits and q. Children stand indented under their
// parents, in the order of their actions.
void Draw(const Tree& tree, int32_t node, int depth, std::string& out) {
  const Node& n = tree.node(node);
  if (node == 0) {
    absl::StrAppendFormat(&out, "root %.4f\n", n.value);
  } else {
    absl::StrAppendFormat(&out, "%*s%d: %d %.4f%s\n", 2 * depth, "", n.action, n.visits, n.q,
                          n.terminal ? " end" : "");
  }
  for (int a = 0; a < tree.num_actions(); ++a) {
    if (const int32_t child = tree.Child(node, a); child != Tree::kNone)
      Draw(tree, child, depth + 1, out);
  }
}
std::string Drawn(const Tree& tree) {
  std::string out;
  Draw(tree, 0, 0, out);
  return out;
}
std::string AllTrees(const Search& search) {
  std::string out;
  for (int i = 0; i < search.roots(); ++i)
    absl::StrAppend(&out, Drawn(search.tree(i)), "plays ", search.action(i), "\n");
  return out;
}

// Checks what holds in every tree: the visits of an edge are its own and those of its children, and
// q is the mean return.
void CheckTree(const Tree& tree) {
  for (int32_t i = 0; i < tree.size(); ++i) {
    const Node& n = tree.node(i);
    REQUIRE(n.pending == 0);
    REQUIRE(n.evaluated);
    int32_t below = 0;
    double sum = n.value;
    for (int32_t c = n.first_child; c != Tree::kNone; c = tree.node(c).next_sibling) {
      const Node& child = tree.node(c);
      REQUIRE(child.parent == i);
      REQUIRE(child.visits > 0);
      below += child.visits;
      sum += child.visits * static_cast<double>(child.q);
    }
    REQUIRE(n.total == below);
    if (i == 0) continue;
    if (!n.terminal) REQUIRE(n.visits == below + 1);
    const double mean = n.reward + n.discount * (n.terminal ? 0 : sum / (below + 1));
    REQUIRE(n.q == Approx(mean).margin(1e-4));
  }
}

TEST_CASE("golden trees") {
  KeyModel model({.masks = true, .ends = true, .first_key = 20});
  const auto search = Make(Simulations(12), Puct(), 1, 3);
  REQUIRE(search->Run(model, 0).ok());
  CHECK(Drawn(search->tree(0)) == R"(root 0.7597
  1: 12 1.1908
    1: 11 1.1572
      2: 10 0.9022
        0: 6 0.6914
          2: 5 0.5785
            0: 1 0.2414 end
            1: 3 0.4961
              0: 1 0.0693
              2: 1 0.0608 end
        2: 3 0.7246
          1: 2 0.5205
            2: 1 0.1176 end
)");
  const auto gumbel = Make(Simulations(12), Gumbel(), 1, 3);
  REQUIRE(gumbel->Run(model, 0).ok());
  CHECK(Drawn(gumbel->tree(0)) == R"(root 0.7597
  1: 6 1.0329
    1: 5 0.9955
      0: 1 0.3395
      2: 3 0.8036
        0: 2 0.6206
          2: 1 0.2422
  2: 6 0.3092
    0: 5 0.1411 end
)");
}

TEST_CASE("a root's tree depends on its position and seed only") {
  const auto selection = GENERATE(Puct(0.25f), Gumbel());
  const int leaves = GENERATE(1, 4);
  SearchOptions options = Simulations(40);
  options.leaves = leaves;
  std::string expected;
  for (const int threads : {1, 3, 8}) {
    for (const int max_batch : {0, 1, 5}) {
      options.threads = threads;
      options.max_batch = max_batch;
      KeyModel model({.num_actions = 5, .masks = true, .ends = true});
      const auto search = Make(options, selection, 9, 5);
      REQUIRE(search->Run(model, 7).ok());
      for (int i = 0; i < 9; ++i) CheckTree(search->tree(i));
      if (expected.empty()) expected = AllTrees(*search);
      CHECK(AllTrees(*search) == expected);
      if (max_batch > 0) CHECK(model.largest_batch <= static_cast<size_t>(max_batch));
    }
  }
  // The same root alone in a search, with the same seed.
  std::string alone;
  std::vector<uint64_t> seeds;
  for (uint64_t i = 0; i < 9; ++i) seeds.push_back(100 + i);
  KeyModel together({.num_actions = 5, .masks = true, .ends = true});
  const auto search = Make(options, selection, 9, 5);
  REQUIRE(search->Run(together, seeds).ok());
  for (uint32_t i = 0; i < 9; ++i) {
    KeyModel model({.num_actions = 5, .masks = true, .ends = true, .first_key = 1 + i});
    const auto one = Make(options, selection, 1, 5);
    REQUIRE(one->Run(model, absl::MakeConstSpan(&seeds[i], 1)).ok());
    absl::StrAppend(&alone, AllTrees(*one));
  }
  CHECK(AllTrees(*search) == alone);
}

TEST_CASE("noise and seeds matter") {
  KeyModel model({.num_actions = 8});
  const auto selection = GENERATE(Puct(0.25f), Gumbel());
  const auto search = Make(Simulations(30), selection, 4, 8);
  REQUIRE(search->Run(model, 1).ok());
  const std::string first = AllTrees(*search);
  REQUIRE(search->Run(model, 2).ok());
  CHECK(AllTrees(*search) != first);
  REQUIRE(search->Run(model, 1).ok());
  CHECK(AllTrees(*search) == first);
}

TEST_CASE("illegal actions are never followed, at any depth") {
  const auto selection = GENERATE(Puct(0.25f), Gumbel());
  SearchOptions options = Simulations(200);
  options.leaves = GENERATE(1, 3);
  options.scaling = GENERATE(ValueScaling::kTree, ValueScaling::kNode);
  KeyModel model({.num_actions = 6, .masks = true, .ends = true});
  const auto search = Make(options, selection, 16, 6);
  for (uint64_t seed = 0; seed < 3; ++seed) {
    REQUIRE(search->Run(model, seed).ok());
    for (int i = 0; i < 16; ++i) {
      if (search->terminal(i)) continue;
      CHECK(search->simulations(i) == 200);
      float sum = 0;
      int32_t visits = 0;
      for (size_t a = 0; a < 6; ++a) {
        sum += search->policy(i)[a];
        visits += search->visits(i)[a];
        if (search->priors(i)[a] < 0) {
          CHECK(search->visits(i)[a] == 0);
          CHECK(search->policy(i)[a] == 0);
          CHECK(search->action(i) != static_cast<int>(a));
        }
      }
      CHECK(sum == Approx(1).margin(1e-5));
      CHECK(visits == 200);
    }
  }
  CHECK(model.steps > 1000);
  CHECK(model.illegal_steps == 0);
}

TEST_CASE("finds the winning move of a game with known values, for two players") {
  const auto selection = GENERATE(Puct(), Gumbel());
  std::vector<int> stones;
  for (int n = 1; n <= 11; ++n) stones.push_back(n);
  StonesModel model(stones);
  SearchOptions options = Simulations(3000);
  options.leaves = GENERATE(1, 8);
  options.scaling = ValueScaling::kKnown;
  options.min_value = -1;
  const auto search = Make(options, selection, static_cast<int>(stones.size()), 3);
  REQUIRE(search->Run(model, 0).ok());
  for (size_t i = 0; i < stones.size(); ++i) {
    const int root = static_cast<int>(i);
    INFO(stones[i] << " stones");
    if (stones[i] % 4 == 0) {
      CHECK(search->value(root) < -0.3f);
    } else {
      CHECK(search->action(root) + 1 == stones[i] % 4);
      CHECK(search->q(root)[search->action(root)] > 0.6f);
    }
  }
}

TEST_CASE("a subtree that is kept keeps its statistics") {
  const auto selection = GENERATE(Puct(0.25f), Gumbel());
  SearchOptions options = Simulations(60);
  options.max_nodes = 150;
  options.leaves = GENERATE(1, 4);
  KeyModel model({.masks = true, .ends = true});
  const auto search = Make(options, selection, 6, 3);
  REQUIRE(search->Run(model, 3).ok());
  for (uint64_t move = 0; move < 6; ++move) {
    std::vector<int> sizes;
    for (int i = 0; i < 6; ++i) {
      if (search->terminal(i)) {
        sizes.push_back(0);
        continue;
      }
      const Tree& tree = search->tree(i);
      const int32_t child = tree.Child(0, search->action(i));
      const int32_t visits = tree.node(child).visits;
      const bool terminal = tree.node(child).terminal;
      std::string before;
      Draw(tree, child, 0, before);
      const auto kept = search->Advance(model, i, search->action(i));
      REQUIRE(kept.ok());
      CHECK(*kept == !terminal);
      sizes.push_back(*kept ? tree.size() : 0);
      if (!*kept) continue;
      CHECK(tree.node(0).total == visits - 1);
      // The picture is the same, except for the line of the root itself.
      const std::string after = Drawn(tree);
      CHECK(after.substr(after.find('\n')) == before.substr(before.find('\n')));
      CheckTree(tree);
      CHECK(tree.MeanValue(0) >= tree.least() - 1e-5f);
      CHECK(tree.MeanValue(0) <= tree.greatest() + 1e-5f);
    }
    REQUIRE(search->Run(model, 10 + move).ok());
    for (int i = 0; i < 6; ++i) {
      CheckTree(search->tree(i));
      if (search->terminal(i)) continue;
      const int room = 150 - std::max(sizes[i], 1);
      CHECK(search->simulations(i) == std::min(60, room));
    }
  }
  CHECK(model.illegal_steps == 0);
}

TEST_CASE("a full tree ends a search, and forgetting begins anew") {
  KeyModel model({});
  const auto search = Make(Simulations(20), Puct(), 1, 3);
  REQUIRE(search->Run(model, 0).ok());
  const std::string first = AllTrees(*search);
  REQUIRE(*search->Advance(model, 0, search->action(0)));
  const int kept = search->tree(0).size();
  REQUIRE(kept > 1);
  REQUIRE(search->Run(model, 0).ok());
  CHECK(search->simulations(0) == 21 - kept);
  search->Forget(0);
  REQUIRE(search->Run(model, 0).ok());
  CHECK(AllTrees(*search) == first);
}

TEST_CASE("several leaves at a time visit no edge twice and all of the simulations are done") {
  KeyModel model({.num_actions = 1});  // a chain: there is only one leaf at a time
  SearchOptions options = Simulations(10);
  options.leaves = 4;
  const auto chain = Make(options, Puct(), 1, 1);
  REQUIRE(chain->Run(model, 0).ok());
  CHECK(chain->simulations(0) == 10);
  CHECK(chain->depth(0).greatest == 10);
  CHECK(chain->depth(0).mean == Approx(5.5));
  CheckTree(chain->tree(0));

  KeyModel wide({.num_actions = 8});
  const auto search = Make(options, Gumbel(), 1, 8);
  REQUIRE(search->Run(wide, 0).ok());
  CHECK(wide.largest_batch == 4);
  CHECK(wide.steps == 10);
}

// A model that gives one row a prediction that is not allowed.
class BrokenModel final : public Model {
 public:
  enum class Fault { kNone, kNanValue, kNanLogit, kNoLegal, kReward, kDiscount, kError, kRoot };
  explicit BrokenModel(Fault fault) : fault_(fault) {}
  int num_actions() const override { return 2; }
  absl::Status Reserve(int) override { return absl::OkStatus(); }
  absl::Status Start(absl::Span<const RootRow>, const Predictions& out) override {
    if (fault_ == Fault::kRoot) out.legal[2] = out.legal[3] = 0;
    return absl::OkStatus();
  }
  absl::Status Step(absl::Span<const StepRow>, const Predictions& out) override {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    if (++calls_ < 3) return absl::OkStatus();
    if (fault_ == Fault::kNanValue) out.values[1] = kNan;
    if (fault_ == Fault::kNanLogit) out.logits[3] = kNan;
    if (fault_ == Fault::kNoLegal) out.legal[2] = out.legal[3] = 0;
    if (fault_ == Fault::kReward) out.rewards[1] = std::numeric_limits<float>::infinity();
    if (fault_ == Fault::kDiscount) out.discounts[1] = 1.5f;
    return fault_ == Fault::kError ? absl::UnavailableError("the network is gone")
                                   : absl::OkStatus();
  }

 private:
  Fault fault_;
  int calls_ = 0;
};

TEST_CASE("what a model may not say ends the search with a sentence") {
  using Fault = BrokenModel::Fault;
  const std::pair<Fault, const char*> faults[] = {
      {Fault::kNanValue, "root 1, slot"},
      {Fault::kNanLogit, "logits: found NaN"},
      {Fault::kNoLegal, "no legal action"},
      {Fault::kReward, "reward: found inf"},
      {Fault::kDiscount, "discount: found 1.5, allowed: -1 to 1"},
      {Fault::kError, "the network is gone"},
      {Fault::kRoot, "root 1, slot"}};
  for (const auto& [fault, message] : faults) {
    BrokenModel model(fault);
    const auto search = Make(Simulations(10), Puct(), 3, 2);
    const absl::Status status = search->Run(model, 0);
    INFO(status.ToString());
    REQUIRE_FALSE(status.ok());
    CHECK(std::string(status.message()).find(message) != std::string::npos);
    BrokenModel sound(Fault::kNone);
    CHECK(search->Run(sound, 0).ok());  // usable again
  }
  BrokenModel model(Fault::kNone);
  CHECK(Make(Simulations(1), Puct(), 1, 3)->Run(model, 0).code() ==
        absl::StatusCode::kInvalidArgument);
  const uint64_t seeds[] = {1, 2};
  CHECK(Make(Simulations(1), Puct(), 3, 2)->Run(model, seeds).code() ==
        absl::StatusCode::kInvalidArgument);
}

TEST_CASE("a rule that chooses what is illegal is found out") {
  class Wrong final : public Selection {
   public:
    explicit Wrong(int action) : action_(action) {}
    void Begin(Rng&, absl::Span<float>, absl::Span<float>) const override {}
    int SelectAtRoot(const RootView&) const override { return action_; }
    int Select(const NodeView&) const override { return action_; }
    int Act(const RootView&) const override { return 0; }
    void WriteTarget(const RootView&, absl::Span<float>) const override {}

   private:
    int action_;
  };
  for (const int action : {-1, -5, 3, 99}) {
    KeyModel model({});
    const absl::Status status =
        Make(Simulations(5), std::make_shared<const Wrong>(action), 1, 3)->Run(model, 0);
    CHECK(status.code() == absl::StatusCode::kInternal);
  }
}

TEST_CASE("settings out of range are refused by name") {
  const auto refused = [](const char* name, const auto& change) {
    SearchOptions options;
    change(options);
    const auto search = Search::Create(options, Puct(), 2, 3);
    INFO(name);
    REQUIRE(search.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(std::string(search.status().message()).find(name) == 0);
  };
  refused("simulations", [](SearchOptions& o) { o.simulations = -1; });
  refused("simulations", [](SearchOptions& o) { o.simulations = std::numeric_limits<int>::max(); });
  refused("max_nodes", [](SearchOptions& o) { o.max_nodes = 50; });
  refused("max_nodes", [](SearchOptions& o) { o.max_nodes = -1; });
  refused("leaves", [](SearchOptions& o) { o.leaves = 0; });
  refused("max_batch", [](SearchOptions& o) { o.max_batch = -1; });
  refused("threads", [](SearchOptions& o) { o.threads = 0; });
  refused("discount", [](SearchOptions& o) { o.discount = 1.01f; });
  refused("discount",
          [](SearchOptions& o) { o.discount = std::numeric_limits<float>::quiet_NaN(); });
  refused("min_range", [](SearchOptions& o) { o.min_range = 0; });
  refused("max_range", [](SearchOptions& o) { o.max_range = 0.001f; });
  refused("max_range",
          [](SearchOptions& o) { o.max_range = std::numeric_limits<float>::quiet_NaN(); });
  refused("min_value", [](SearchOptions& o) { o.scaling = ValueScaling::kKnown, o.min_value = 1; });
  refused("roots, nodes", [](SearchOptions& o) { o.max_nodes = 1 << 30; });
  CHECK_FALSE(Search::Create({}, Puct(), 0, 3).ok());
  CHECK_FALSE(Search::Create({}, Puct(), 1, 0).ok());
  CHECK_FALSE(Search::Create({}, nullptr, 1, 3).ok());
  const auto search = Make({}, Puct(), 2, 3);
  KeyModel model({});
  CHECK_FALSE(search->Advance(model, 2, 0).ok());
  CHECK_FALSE(search->Advance(model, 0, 3).ok());
  CHECK(*search->Advance(model, 0, 0) == false);  // nothing searched yet
}

TEST_CASE("no simulations: the model's own opinion") {
  KeyModel model({.masks = true});
  const auto search = Make(Simulations(0), GENERATE(Puct(), Gumbel(0)), 5, 3);
  REQUIRE(search->Run(model, 0).ok());
  for (int i = 0; i < 5; ++i) {
    const absl::Span<const float> policy = search->policy(i), priors = search->priors(i);
    CHECK(search->action(i) == std::max_element(priors.begin(), priors.end()) - priors.begin());
    for (size_t a = 0; a < 3; ++a)
      CHECK(policy[a] == Approx(std::max(0.0f, priors[a])).margin(1e-6));
    CHECK(search->value(i) == search->model_value(i));
    Rng rng(0);
    CHECK(search->SampleAction(i, 1, rng) == std::nullopt);
  }
}

TEST_CASE("cancelling ends the loop, and what was done can be read") {
  std::atomic<bool> cancel = true;
  SearchOptions options = Simulations(1000);
  options.cancel = &cancel;
  KeyModel model({});
  const auto search = Make(options, Gumbel(), 2, 3);
  CHECK(search->Run(model, 0).code() == absl::StatusCode::kCancelled);
  CHECK(search->simulations(0) == 0);
  CHECK(search->action(0) >= 0);
  cancel = false;
  CHECK(search->Run(model, 0).ok());
  CHECK(search->simulations(0) == 1000);
}

TEST_CASE("actions are sampled by visits") {
  KeyModel model({.num_actions = 4});
  const auto search = Make(Simulations(100), Puct(), 1, 4);
  REQUIRE(search->Run(model, 5).ok());
  const absl::Span<const int32_t> visits = search->visits(0);
  Rng rng(3);
  const int most =
      static_cast<int>(std::max_element(visits.begin(), visits.end()) - visits.begin());
  CHECK(search->SampleAction(0, 0, rng) == most);
  std::vector<int> drawn(4);
  for (int i = 0; i < 20000; ++i) ++drawn[*search->SampleAction(0, 1, rng)];
  for (size_t a = 0; a < 4; ++a)
    CHECK(drawn[a] / 20000.0 == Approx(visits[a] / 100.0).margin(0.02));
  std::vector<int> sharp(4);
  for (int i = 0; i < 20000; ++i) ++sharp[*search->SampleAction(0, 0.5, rng)];
  double squares = 0;
  for (const int32_t n : visits) squares += static_cast<double>(n) * n;
  for (size_t a = 0; a < 4; ++a)
    CHECK(sharp[a] / 20000.0 == Approx(visits[a] * visits[a] / squares).margin(0.02));
}

}  // namespace
}  // namespace mallocgame::mcts
