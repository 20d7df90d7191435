// What each number says that is observed of a position of the priority game: the columns of its
// tables, in their order.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>

#include "mallocgame/game/feature.h"
#include "mallocgame/game/observation.h"

namespace mallocgame {

// The four kinds of accesses stand in the order of AccessKind; what changes during a game comes
// last.
inline constexpr Feature kCandidateFeatures[] = {
    {"present", "1; 0 if there is no such segment, and then all else is 0"},
    {"reads", "log2(1 + its accesses that read the buffer) / 16"},
    {"updates", "log2(1 + its accesses that update the buffer in place) / 16"},
    {"writes", "log2(1 + its accesses that write the buffer) / 16"},
    {"loop_entries", "log2(1 + its accesses that are entries of loops that carry the buffer) / 16"},
    {"share", "size of the buffer / capacity of fast memory"},
    {"bytes", "bytes(size of the buffer)"},
    {"copy_time", "time(one transfer of the buffer)"},
    {"trips", "log2(how often its first access runs) / 16"},
    {"saving", "time(an estimate of what fast memory saves, alone)"},
    {"saving_per_copy", "s / (|s| + c), where s is the saving and c one transfer"},
    {"rank", "its place among all segments of the game by importance, from 0, the first, to 1"},
    {"begin", "share of the all-main time that lies before its first access"},
    {"end", "share of the all-main time that lies before the end of its residence"},
    {"held", "time(all-main time from its first access to the end of its residence)"},
    {"ticks", "ticks(from its first access to the end of its residence)"},
    {"late_lead", "ticks(by which a Late residence begins before the first tick that needs it)"},
    {"early_lead", "ticks(by which an Early residence begins before the first tick that needs it)"},
    {"early_stay", "ticks(by which an Early residence ends later, for the eviction)"},
    {"fetched", "1 if a prefetch fills its residence, unless that is preloaded"},
    {"eviction", "1 if its residence is evicted"},
    {"replaces", "1 if its prefetch takes the place of a plain copy"},
    {"placeable", "1 if some valid plan serves it by one residence"},
    {"preloadable", "1 if its residence may be filled before the program starts"},
    {"splits", "1 if it can be split"},
    {"free", "0: a column that is kept free, so that observations keep their size"},
    {"is_output", "1 if the buffer's last value must be in main memory at the end"},
    {"accesses_before", "log2(1 + accesses of the buffer before it) / 16"},
    {"accesses_after", "log2(1 + accesses of the buffer after it) / 16"},
    {"fast_before", "1 if the access of the buffer before it is served from fast memory"},
    {"fast_after", "1 if the access of the buffer after it is served from fast memory"},
};

inline constexpr Feature kPriorityActionFeatures[] = {
    {"legal", "1; 0 if the action is illegal, and then all else is 0"},
    {"places", "1 if it places a residence; else what follows is 0"},
    {"saved",
     "time(what the action saves, all trips, less the stalls as far as they are known), which is "
     "its reward, but at the end of the game, where the other stalls show"},
    {"saved_share", "s / (|s| + m / 256), where s is that time and m the all-main latency"},
    {"space",
     "log2(1 + 2^32 x) / 32, where x is the share of its residence in all bytes of fast memory "
     "over all of the all-main time"},
    {"saved_per_space", "y / (y + 1), where y is saved / the all-main latency / x, at least 0"},
    {"lead", "ticks(by which its residence begins before the first tick that needs it)"},
    {"copies", "time(its prefetch and its eviction, all trips)"},
    {"slack",
     "x / (x + c), where c is its prefetch and x the time that the channel has left for it, before "
     "it is needed, without delaying others: below 1/2 the program stalls; 1 without a prefetch"},
    {"full", "the mean share of fast memory that is taken while it is there"},
    {"demand",
     "x / (x + 1), where x is the mean share of fast memory that open segments, its own too, "
     "demand while it is there"},
    {"excess",
     "x / (x + 1), where x is the mean of the part above 1 of the shares that are taken and "
     "demanded, added up"},
    {"contention",
     "x / (x + y), where x is the time of the prefetches that open segments, its own too, demand "
     "from the start of the residence to the first tick that needs it, and y the idle time there, "
     "less the copies that are due; 0 without a prefetch"},
    {"space_rent", "time(the price of the bytes and ticks that it takes); 0 if prices are unknown"},
    {"channel_rent", "time(the price of its copies); 0 if prices are unknown"},
    {"profit",
     "(s - r) / (|s| + r), where s is what the action saves and r the sum of both rents; 0 if "
     "prices are unknown"},
};

inline constexpr Feature kPriorityScalarFeatures[] = {
    {"progress", "decisions made / the most there can be"},
    {"return", "1 - latency so far / all-main latency"},
    {"stalled", "stalls so far / all-main latency"},
    {"taken", "the mean share of fast memory that is taken over the all-main time"},
    {"residences", "log2(1 + residences placed) / 16"},
    {"open", "log2(1 + open segments) / 16"},
    {"rank", "the place of the first candidate among all segments of the game; 1: there is none"},
    {"preloads_left", "share of the preloads that are left"},
    {"capacity", "bytes(capacity of fast memory)"},
    {"runs", "log2(1 + segments of the game) / 16"},
    {"all_main", "time(all-main latency)"},
    {"priced", "1 if prices are known"},
};

consteval size_t CandidateColumn(std::string_view name) {
  return ColumnOf(kCandidateFeatures, name);
}
consteval size_t PriorityActionColumn(std::string_view name) {
  return ColumnOf(kPriorityActionFeatures, name);
}
consteval size_t PriorityScalarColumn(std::string_view name) {
  return ColumnOf(kPriorityScalarFeatures, name);
}
static_assert(PriorityActionColumn("legal") == kLegalColumn);
inline constexpr int kCandidateColumns = std::size(kCandidateFeatures);
inline constexpr int kPriorityActionColumns = std::size(kPriorityActionFeatures);
inline constexpr int kPriorityScalarColumns = std::size(kPriorityScalarFeatures);

}  // namespace mallocgame
