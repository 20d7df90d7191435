// How late the copy channel is at worst in each segment, kept up to date tick by tick. A segment is
// all of a program without loops, so what one tick changes must not cost a walk over its segment:
// it costs the tick's block and the logarithm of the number of blocks.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/ids.h"

namespace mallocgame {

class ChannelSlack {
 public:
  // Segment s is the ticks [segment_begin[s], segment_begin[s + 1]). `segment_begin` must outlive
  // this. The slack of each tick is 0.
  explicit ChannelSlack(const std::vector<Tick>& segment_begin) : begin_(&segment_begin) {
    size_t nodes = 0;
    for (size_t s = 0; s + 1 < segment_begin.size(); ++s) {
      const Tick blocks = (segment_begin[s + 1] - segment_begin[s] + kBlock - 1) / kBlock;
      uint32_t leaves = 1;
      while (leaves < static_cast<uint32_t>(blocks)) leaves *= 2;
      trees_.push_back({nodes, leaves});
      nodes += 2 * leaves;
    }
    nodes_.resize(nodes);
  }

  // Sums up anew behind a change of the slack of a tick, which lies in segment s. slack(t): the
  // time that tick t leaves to the channel, less the time of the copies that are due behind it.
  template <class Slack>
  void Update(int32_t s, Tick tick, const Slack& slack) {
    const Tick begin = (*begin_)[s], end = (*begin_)[s + 1];
    const auto [first, leaves] = trees_[s];
    const auto block = static_cast<uint32_t>((tick - begin) / kBlock);
    const Tick from = begin + static_cast<Tick>(block) * kBlock;
    Node* const tree = &nodes_[first];
    uint32_t n = leaves + block;
    tree[n] = Leaf(from, end, slack);
    while (n > 1) {
      n /= 2;
      tree[n] = Joined(tree[2 * n], tree[2 * n + 1]);
    }
  }

  // The most by which the copies due behind some tick of segment s exceed the time that the channel
  // had in the segment until then; 0 if they never do.
  int64_t Late(int32_t s) const { return -nodes_[trees_[s].first + 1].least; }

  // By how much the slack of a tick would be another.
  struct Change {
    Tick tick;
    int64_t slack;
  };
  // What Late(s) would be with these changes of ticks of segment s, which are in their order.
  template <class Slack>
  int64_t LateWith(int32_t s, absl::Span<const Change> changes, const Slack& slack) const {
    const auto [first, leaves] = trees_[s];
    const Range all = {(*begin_)[s], static_cast<Tick>(leaves) * kBlock, (*begin_)[s + 1]};
    return -NodeWith(first, 1, all, changes, slack).least;
  }

  // The sum of the slack of the ticks [from, to) of segment s.
  template <class Slack>
  int64_t Sum(int32_t s, Tick from, Tick to, const Slack& slack) const {
    const Tick begin = (*begin_)[s];
    int64_t sum = 0;
    while (from < to && (from - begin) % kBlock != 0) sum += slack(from++);
    while (from < to && (to - begin) % kBlock != 0) sum += slack(--to);
    const auto [first, leaves] = trees_[s];
    uint32_t low = leaves + static_cast<uint32_t>((from - begin) / kBlock);
    uint32_t high = leaves + static_cast<uint32_t>((to - begin) / kBlock);
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) sum += nodes_[first + low++].sum;
      if (high % 2 == 1) sum += nodes_[first + --high].sum;
    }
    return sum;
  }

  struct Stretch {
    int64_t sum = 0;    // of the slack of its ticks
    int64_t least = 0;  // the least sum of its first ticks, of at least one
  };
  // Of the ticks [from, to) of segment s, of which there must be some.
  template <class Slack>
  Stretch Over(int32_t s, Tick from, Tick to, const Slack& slack) const {
    const Tick begin = (*begin_)[s];
    Stretch over = {slack(from), slack(from)};
    const auto add = [&over](int64_t sum, int64_t least) {
      over.least = std::min(over.least, over.sum + least);
      over.sum += sum;
    };
    const auto add_ticks_to = [&](Tick end) {
      for (; from < end; ++from) add(slack(from), slack(from));
    };
    const auto [first, leaves] = trees_[s];
    const auto end_of_block = [&](Tick t) { return begin + ((t - begin) / kBlock + 1) * kBlock; };
    add_ticks_to(std::min(to, end_of_block(from++)));
    uint32_t low = leaves + static_cast<uint32_t>((from - begin) / kBlock);
    uint32_t high = leaves + static_cast<uint32_t>((to - begin) / kBlock);
    std::array<uint32_t, 32> behind;  // nodes from the last one on
    size_t count = 0;
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) {
        const Node& node = nodes_[first + low++];
        add(node.sum, node.least);
      }
      if (high % 2 == 1) behind[count++] = --high;
    }
    while (count > 0) {
      const Node& node = nodes_[first + behind[--count]];
      add(node.sum, node.least);
    }
    from = std::max(from, to - (to - begin) % kBlock);
    add_ticks_to(to);
    return over;
  }

  static constexpr Tick kBlock = 16;  // ticks that are summed up one by one

 private:
  struct Node {
    int64_t sum = 0;    // of the slack of its ticks
    int64_t least = 0;  // the least sum of its first ticks, of none too
  };
  struct Tree {
    size_t first;     // of its nodes; node 1 is the root, the children of n are 2 n and 2 n + 1
    uint32_t leaves;  // a power of two; leaf n is node leaves + n
  };
  // The ticks that a node covers, and the end of its segment, which may come before theirs.
  struct Range {
    Tick begin, ticks, segment_end;
    Tick middle() const { return begin + ticks / 2; }
    Range Left() const { return {begin, ticks / 2, segment_end}; }
    Range Right() const { return {middle(), ticks / 2, segment_end}; }
  };

  template <class Slack>
  static Node Leaf(Tick from, Tick end, const Slack& slack) {
    Node leaf;
    for (Tick t = from; t < std::min(end, from + kBlock); ++t) {
      leaf.sum += slack(t);
      leaf.least = std::min(leaf.least, leaf.sum);
    }
    return leaf;
  }
  static Node Joined(const Node& left, const Node& right) {
    return {left.sum + right.sum, std::min(left.least, left.sum + right.least)};
  }
  // What node n of the tree whose nodes begin at `first` would be.
  template <class Slack>
  Node NodeWith(size_t first, uint32_t n, const Range& range, absl::Span<const Change> changes,
                const Slack& slack) const {
    if (range.ticks == kBlock) {
      auto change = changes.begin();
      return Leaf(range.begin, range.segment_end, [&](Tick t) {
        int64_t sum = slack(t);
        for (; change != changes.end() && change->tick == t; ++change) sum += change->slack;
        return sum;
      });
    }
    size_t left = 0;
    while (left < changes.size() && changes[left].tick < range.middle()) ++left;
    const auto child = [&](uint32_t m, const Range& its, absl::Span<const Change> own) {
      return own.empty() ? nodes_[first + m] : NodeWith(first, m, its, own, slack);
    };
    return Joined(child(2 * n, range.Left(), changes.subspan(0, left)),
                  child(2 * n + 1, range.Right(), changes.subspan(left)));
  }

  const std::vector<Tick>* begin_;
  std::vector<Tree> trees_;
  std::vector<Node> nodes_;
};

}  // namespace mallocgame
