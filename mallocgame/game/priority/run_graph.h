// What a network reads of a whole priority game at once: the runs, what each one is by itself, and
// where in time they meet. Those of EGRL do.
#pragma once

#include <cstdint>
#include <iterator>
#include <vector>

#include "mallocgame/game/feature.h"
#include "mallocgame/game/priority/priority_tables.h"

namespace mallocgame {

// Shares of time are shares of the all-main time. Whole lives are runs that are no part of another.
// "More important" ones come before the run in the order of importance. Each number is about 1
// large.
inline constexpr Feature kRunFeatures[] = {
    {"one", "1"},
    {"saving", "2 + ln(share of time that it saves, as estimated) / 4"},
    {"bytes", "1 + ln(share of the bytes that residences may use) / 4"},
    {"held", "2 + ln(share of time that it is held, and of one transfer) / 4"},
    {"copy", "2 + ln(share of time of one transfer, if it needs one) / 4"},
    {"held_before", "ln(shares of bytes times time of more important whole lives) / 2"},
    {"copies_before", "ln(shares of time of one transfer each of more important whole lives) / 2"},
    {"saving_before", "share of all savings of whole lives that more important ones have, - 1/2"},
    {"load", "the mean share of bytes that more important whole lives want while it is held"},
    {"most_load", "the largest such share in any piece of time while it is held"},
    {"idle_per_copy", "ln(idle time of the channel for its prefetch / one transfer) / 4"},
    {"contention", "copies that more important whole lives want in that time / it and its copy"},
    {"fetched", "1 if a prefetch fills it"},
    {"written", "1 if it is evicted"},
    {"preloadable", "1 if it may be filled before the program starts"},
    {"splits", "1 if it can be split"},
    {"placeable", "1 if some valid plan serves it by one residence"},
    {"whole", "1 if it is a whole life"},
    {"accesses", "log2(its accesses) / 4"},
    {"trips", "log10(how often its last access runs) / 3"},
    {"best_part", "ln(importance of its most important part / its own) / 4; 0: it has no parts"},
    {"worst_part", "ln(importance of its least important part / its own) / 4"},
    {"parts_saving", "what its parts save / what it saves"},
    {"parent", "ln(importance of what it is a part of / its own) / 4; 0: it is a whole life"},
    {"window", "share of time in which its prefetch may run"},
    {"begin", "share of time before it begins, - 1/2"},
    {"all_held", "ln(shares of bytes times time of all whole lives) / 2"},
    {"all_copies", "ln(one transfer of each whole life / all idle time of the channel) / 2"},
    {"all_saving", "shares of time that all whole lives save"},
    {"share", "share of the bytes that residences may use"},
};

struct RunGraph {
  // Equal pieces of the all-main time of one run of the program.
  static constexpr int kPieces = 128;
  static constexpr int kFeatures = static_cast<int>(std::size(kRunFeatures));

  explicit RunGraph(const PriorityTables& tables);

  int32_t num_runs() const { return static_cast<int32_t>(bytes.size()); }

  // Everything that follows has an entry for each run, in the order of Run::id.
  std::vector<float> features;  // [num_runs, kFeatures]: kRunFeatures
  // The time that a late residence is held, and that in which its prefetch may run, in pieces from
  // the program's start.
  std::vector<float> begin, end, fetch_begin, need;
  std::vector<float> bytes;  // the share of the bytes that residences may use
  std::vector<float> copy;   // one transfer's share of the all-main time; 0: none is needed
  // Natural logarithms of the shares of the all-main time that it saves, as estimated, and that it
  // is held; of its bytes; and of its importance: what it saves for each byte and time held.
  std::vector<float> log_saving, log_held, log_bytes, log_importance;
};

}  // namespace mallocgame
