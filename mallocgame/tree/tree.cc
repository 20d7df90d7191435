#include "mallocgame/tree/tree.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/tree/priors.h"

namespace mallocgame::mcts {

Tree::Tree(int max_nodes, int num_actions)
    : max_nodes_(max_nodes), num_actions_(num_actions), row_(PaddedPriors(num_actions)) {
  nodes_.resize(max_nodes);
  slots_.resize(max_nodes);
  std::iota(slots_.begin(), slots_.end(), 0);
  priors_.resize(max_nodes * row_, -1.0f);
}

float Tree::MeanValue(int i) const {
  double sum = nodes_[i].value, count = 1;
  for (int32_t child = nodes_[i].first_child; child != kNone; child = nodes_[child].next_sibling) {
    const Node& edge = nodes_[child];
    sum += static_cast<double>(edge.visits) * static_cast<double>(edge.q);
    count += edge.visits;
  }
  return static_cast<float>(sum / count);
}

int32_t Tree::Add(int32_t parent, int32_t action) {
  MG_CHECK(size_ < max_nodes_);
  Node& node = nodes_[size_];
  node = Node{};
  node.parent = parent;
  if (parent != kNone) {
    Node& above = nodes_[parent];
    float& prior = Row(parent)[action];
    node.action = action;
    node.prior = prior;
    node.next_sibling = above.first_child;
    above.first_child = size_;
    prior = -1;
    if (action == above.best_unvisited) above.ranked = false;
  }
  return size_++;
}

absl::Status Tree::Evaluate(int32_t i, const Prediction& prediction) {
  Node& node = nodes_[i];
  if (!std::isfinite(prediction.reward)) {
    return absl::InvalidArgumentError(
        absl::StrCat("reward: found ", prediction.reward, ", allowed: finite"));
  }
  if (!(prediction.discount >= -1 && prediction.discount <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("discount: found ", prediction.discount, ", allowed: -1 to 1"));
  }
  node.reward = prediction.reward;
  node.discount = prediction.discount;
  node.terminal = prediction.terminal;
  if (!node.terminal) {
    if (!std::isfinite(prediction.value)) {
      return absl::InvalidArgumentError(
          absl::StrCat("value: found ", prediction.value, ", allowed: finite"));
    }
    if (!WriteLogits(prediction.logits, prediction.legal, Row(i))) {
      return absl::InvalidArgumentError(
          "logits: found NaN, +infinity, or no legal action with a finite one; allowed: a finite "
          "one for at least one legal "
          "action, finite or -infinity for the others");
    }
    node.value = prediction.value;
  } else {
    std::fill_n(Row(i), row_, -1.0f);
  }
  node.normalised = node.terminal;
  node.evaluated = true;
  if (node.parent == kNone) {
    NeedPriors(0);
    least_ = greatest_ = node.value;
  }
  return absl::OkStatus();
}

void Tree::SetRootPriors(absl::Span<const float> priors) {
  std::copy(priors.begin(), priors.end(), Row(0));
  for (int32_t child = nodes_[0].first_child; child != kNone; child = nodes_[child].next_sibling) {
    float& prior = Row(0)[nodes_[child].action];
    nodes_[child].prior = prior;
    prior = -1;
  }
  nodes_[0].ranked = false;
}

void Tree::GetRootPriors(absl::Span<float> priors) const {
  std::copy_n(Row(0), num_actions_, priors.begin());
  for (int32_t child = nodes_[0].first_child; child != kNone; child = nodes_[child].next_sibling) {
    priors[nodes_[child].action] = nodes_[child].prior;
  }
}

void Tree::NeedPriors(int32_t i) {
  Node& node = nodes_[i];
  if (!node.normalised) Normalise(Row(i), num_actions_);
  node.normalised = true;
}

void Tree::FindBestUnvisited(int32_t i) {
  Node& node = nodes_[i];
  float* row = Row(i);
  const BestPrior best =
      node.normalised ? FindBest(row, num_actions_) : Normalise(row, num_actions_);
  node.normalised = true;
  node.best_prior = best.prior;
  node.best_unvisited = best.action;
  node.ranked = true;
}

void Tree::Pend(int32_t node) {
  while (nodes_[node].parent != kNone) {
    ++nodes_[node].pending;
    node = nodes_[node].parent;
    ++nodes_[node].total;
  }
}

void Tree::Backup(int32_t i, bool was_pending) {
  float returned = nodes_[i].value, least = least_, greatest = greatest_;
  while (nodes_[i].parent != kNone) {
    Node& edge = nodes_[i];
    returned = edge.reward + edge.discount * returned;
    ++edge.visits;
    edge.q += (returned - edge.q) / static_cast<float>(edge.visits);
    least = std::min(least, edge.q);
    greatest = std::max(greatest, edge.q);
    i = edge.parent;
    if (was_pending) {
      --edge.pending;
    } else {
      ++nodes_[i].total;
    }
  }
  least_ = least;
  greatest_ = greatest;
}

void Tree::Reroot(int32_t child) {
  MG_CHECK(child > 0 && child < size_ && nodes_[child].parent == 0);
  // Children stand behind their parents, so one pass finds who follows from `child`, and nodes move
  // towards the front only.
  std::vector<int32_t> moved_to(size_, kNone);
  std::vector<int32_t> kept_slots, freed_slots;
  int32_t kept = 0;
  least_ = greatest_ = nodes_[child].value;
  for (int32_t i = child; i < size_; ++i) {
    if (i == child || moved_to[nodes_[i].parent] != kNone) moved_to[i] = kept++;
  }
  for (int32_t i = 0; i < size_; ++i)
    (moved_to[i] != kNone ? kept_slots : freed_slots).push_back(slots_[i]);
  const auto moved = [&](int32_t i) { return i == kNone ? kNone : moved_to[i]; };
  for (int32_t i = child; i < size_; ++i) {
    const int32_t to = moved_to[i];
    if (to == kNone) continue;
    Node node = nodes_[i];
    node.first_child = moved(node.first_child);
    node.parent = i == child ? kNone : moved(node.parent);
    node.next_sibling = i == child ? kNone : moved(node.next_sibling);
    if (i != child && node.visits > 0) {
      least_ = std::min(least_, node.q);
      greatest_ = std::max(greatest_, node.q);
    }
    nodes_[to] = node;
    if (to != i) std::copy_n(Row(i), row_, Row(to));
  }
  std::copy(kept_slots.begin(), kept_slots.end(), slots_.begin());
  std::copy(freed_slots.begin(), freed_slots.end(), slots_.begin() + kept);
  size_ = kept;
  NeedPriors(0);
}

}  // namespace mallocgame::mcts
