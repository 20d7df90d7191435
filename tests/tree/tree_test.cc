// A tree of a few nodes, with numbers worked out by hand.
#include "mallocgame/tree/tree.h"

#include <vector>

#include "mallocgame/tree/exponential.h"
#include "tests/catch.h"

namespace mallocgame::mcts {
namespace {

// A position of three actions, all legal, with even priors.
Prediction Position(float value, float reward = 0) {
  static constexpr float kLogits[] = {0, 0, 0};
  static constexpr uint8_t kLegal[] = {1, 1, 1};
  Prediction prediction;
  prediction.logits = kLogits;
  prediction.legal = kLegal;
  prediction.value = value;
  prediction.reward = reward;
  return prediction;
}

// Adds a node, evaluates it, and backs its value up.
int32_t Visit(Tree& tree, int32_t parent, int32_t action, float value, float reward = 0) {
  const int32_t node = tree.Add(parent, action);
  REQUIRE(tree.Evaluate(node, Position(value, reward)).ok());
  if (parent != Tree::kNone) tree.Backup(node, /*was_pending=*/false);
  return node;
}

TEST_CASE("a visit's return is added to every edge above it") {
  Tree tree(8, 3);
  Visit(tree, Tree::kNone, Tree::kNone, 10);
  const int32_t a = Visit(tree, 0, 1, 4, 1);  // returns 1 + 4
  const int32_t b = Visit(tree, a, 2, 2, 3);  // returns 3 + 2, and 1 + 5 above
  REQUIRE(tree.Child(0, 1) == a);
  REQUIRE(tree.Child(0, 0) == Tree::kNone);
  REQUIRE(tree.node(b).q == 5);
  REQUIRE(tree.node(a).visits == 2);
  REQUIRE(tree.node(a).q == Approx(5.5));
  REQUIRE(tree.node(0).total == 2);
  REQUIRE(tree.node(a).total == 1);
  REQUIRE(tree.MeanValue(0) == Approx((10 + 2 * 5.5) / 3));
  REQUIRE(tree.least() == 5);
  REQUIRE(tree.greatest() == 10);
}

TEST_CASE("pending visits count until they are finished") {
  Tree tree(8, 3);
  Visit(tree, Tree::kNone, Tree::kNone, 0);
  const int32_t a = tree.Add(0, 0);
  tree.Pend(a);
  REQUIRE(tree.node(a).pending == 1);
  REQUIRE(tree.node(a).visits == 0);
  REQUIRE(tree.node(0).total == 1);
  REQUIRE(tree.Evaluate(a, Position(2)).ok());
  tree.Backup(a, /*was_pending=*/true);
  REQUIRE(tree.node(a).pending == 0);
  REQUIRE(tree.node(a).visits == 1);
  REQUIRE(tree.node(0).total == 1);
}

TEST_CASE("a followed edge leaves the row of priors, and the best of the rest is found") {
  Tree tree(8, 3);
  const float logits[] = {0, 2, 1};
  Prediction root = Position(0);
  root.logits = logits;
  tree.Add(Tree::kNone, Tree::kNone);
  REQUIRE(tree.Evaluate(0, root).ok());
  tree.Rank(0);
  REQUIRE(tree.node(0).best_unvisited == 1);
  const float prior = tree.unvisited(0)[1];
  const int32_t child = Visit(tree, 0, 1, 0);
  tree.Rank(0);
  REQUIRE(tree.node(child).prior == prior);
  REQUIRE(tree.unvisited(0)[1] == -1);
  REQUIRE(tree.node(0).best_unvisited == 2);
  std::vector<float> priors(3);
  tree.GetRootPriors(absl::MakeSpan(priors));
  REQUIRE(priors[1] == prior);
  tree.SetRootPriors(std::vector<float>{0.5F, 0.25F, -1});
  tree.Rank(0);
  REQUIRE(tree.node(child).prior == 0.25F);
  REQUIRE(tree.node(0).best_unvisited == 0);
}

TEST_CASE("a new root keeps its subtree, its slots and its statistics, and frees the rest") {
  Tree tree(8, 3);
  Visit(tree, Tree::kNone, Tree::kNone, 0);
  const int32_t a = Visit(tree, 0, 0, 1), b = Visit(tree, 0, 2, 7);
  const int32_t c = Visit(tree, b, 1, 3);
  const int32_t slot_b = tree.slot(b), slot_c = tree.slot(c);
  const float q_c = tree.node(c).q;
  REQUIRE(a != b);
  tree.Reroot(b);
  REQUIRE(tree.size() == 2);
  REQUIRE(tree.node(0).parent == Tree::kNone);
  REQUIRE(tree.slot(0) == slot_b);
  REQUIRE(tree.Child(0, 1) == 1);
  REQUIRE(tree.slot(1) == slot_c);
  REQUIRE(tree.node(1).q == q_c);
  REQUIRE(tree.least() == 3);
  REQUIRE(tree.greatest() == 7);
  std::vector<bool> used(8, false);  // slots stay a permutation
  while (tree.size() < 8) tree.Add(0, 0);
  for (int i = 0; i < 8; ++i) used[tree.slot(i)] = true;
  REQUIRE(used == std::vector<bool>(8, true));
}

TEST_CASE("predictions that are not allowed are refused by name") {
  Tree tree(8, 3);
  tree.Add(Tree::kNone, Tree::kNone);
  const auto refusal = [&](const Prediction& prediction) {
    return std::string(tree.Evaluate(0, prediction).message());
  };
  REQUIRE(refusal(Position(kInfinity)).find("value: found inf") == 0);
  REQUIRE(refusal(Position(0, -kInfinity)).find("reward: found -inf") == 0);
  Prediction discount = Position(0);
  discount.discount = 1.5F;
  REQUIRE(refusal(discount).find("discount: found 1.5") == 0);
  Prediction illegal = Position(0);
  const uint8_t none[] = {0, 0, 0};
  illegal.legal = none;
  REQUIRE(refusal(illegal).find("logits: ") == 0);
  illegal.terminal = true;  // where the game is over nothing is legal, and no value is needed
  illegal.value = kInfinity;
  REQUIRE(tree.Evaluate(0, illegal).ok());
  REQUIRE(tree.node(0).value == 0);
}

}  // namespace
}  // namespace mallocgame::mcts
