// What a player wants for a program, whoever decides it then: the one type that every search, agent
// that plays uses for it. An Intent is a list of *segments* of live ranges: accesses of one buffer
// that follow each other, with where they should be served from. Intents are read from plans and
// from games here; decoder.h plays games by them.
//
// Most intents are dense, with a segment for everything that their decoder asks about:
//
//   a time game       one segment for each access of the program, by AccessId
//   a priority game   one segment for each run, by its index in PriorityTables::runs
//   a schedule game   none: its runs depend on the order of instructions
//
// The others, such as what a game decided, name some segments in the order of their decisions.
// Accesses mean the same in all games of a program, so they say which segment is which. Games at
// other orders of instructions say it by the accesses of the program's own order (OwnSegment).
#ifndef MALLOCGAME_SEARCH_INTENT_H_
#define MALLOCGAME_SEARCH_INTENT_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/mode.h"
#include "mallocgame/game/position.h"
#include "mallocgame/plan/plan.h"

namespace mallocgame {

// What an action of the time game stands for.
Mode ModeOf(Action action);

struct Segment {
  AccessId first, last;  // `last` may be none in an OwnSegment
  Mode mode = Mode::kOpen;
  // Of what can be decided now, what has the lowest rank is decided first. Not in the time game.
  double rank = 0;

  friend bool operator==(const Segment&, const Segment&) = default;
};
using Intent = std::vector<Segment>;

// The dense intent that leaves everything to greedy. Ranks are the order of importance.
Intent OpenIntent(const Game& game);

// The dense intent of a player of `game` who wants to get `plan`, which must be well formed. Runs
// that the plan serves in several ways are split.
Intent ReadPlan(const Game& game, const Plan& plan);

// What a game decided so far, in its order; ranks count from 0.
Intent ReadGame(const Position& position);

// A run of a priority game at another order of instructions, by its index in PriorityTables::runs,
// as accesses of the program's own order: own_access[a] is access a there. What is the first and
// the last access of a buffer differs between orders, so a run of all of them is named by the first
// in the program's own order, and no last one.
Segment OwnSegment(const Game& game, int32_t run, Mode mode, absl::Span<const int32_t> own_access);

// The dense intent of a player of `game` who wants what `decided` says of its segments, one after
// the other, and leaves all else to greedy, behind these. Segments that `game` does not ask about
// are left out. With `own_access`, `decided` names its segments as OwnSegment does.
Intent IntentLike(const Game& game, absl::Span<const Segment> decided,
                  absl::Span<const int32_t> own_access = {});

// How decision `i` of a game was made, as a mode; and which segment of the game's dense intents it
// was about.
Mode DecidedMode(const Position& position, int i);
int32_t DecidedSegment(const Position& position, int i);

}  // namespace mallocgame

#endif  // MALLOCGAME_SEARCH_INTENT_H_
