// The links between chips, and the time that a collective takes on them. The compiler writes no
// price for a collective, so this is a model.
//
// The members of a group are a ring, and each has a link to both neighbours, in both directions:
// so 2 links of B bytes a second out of each member, or 1 if there are only two members. Of n
// members each transfers, in steps to the farthest, which is n / 2 links away:
//
//   all-gather, reduce-scatter   (n - 1) / n of the whole array (what all members have of it)
//   all-reduce                   both of these, one after the other
//   all-to-all                   one n-th of its array to each other, over 1 to n / 2 links
//   collective-permute           its array, over one link
//
// The time is that of the bytes or that of the steps, whichever is more. This is the model of
// "How to Scale Your Model" (jax-ml.github.io/scaling-book), chapters TPUs and Sharding, which has
// the figures too (hardware/chips.h), but none of the links of a v4i. A ring is what fits chips in
// a square of 2 x 2. Groups of more chips have more links than that.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace mallocgame {

struct Links {
  int64_t bytes_per_second = 0;  // of one link in one direction; > 0
  int64_t hop_ps = 0;            // until the first byte is over one link; >= 0
  friend bool operator==(const Links&, const Links&) = default;
};

// The links of the chip that a hardware's name begins with; none if they are not known.
std::optional<Links> LinksOf(absl::string_view hardware);

enum class CollectiveKind : uint8_t {
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kAllToAll,
  kPermute,
};

// The time of a collective in picoseconds, rounded up, at most 2^60. `bytes` are those that one
// member gives: a part of the whole array for an all-gather, the whole for the others. 0 for a
// group of one.
int64_t CollectivePs(CollectiveKind kind, int64_t bytes, int64_t members, const Links& links);

}  // namespace mallocgame
