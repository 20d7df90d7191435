// Intents (game/intent.h) that are read from games, of any order of instructions. Games say what
// theirs are (Game::OpenIntent, Game::ReadPlan, Position::DecidedSegment).
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/intent.h"
#include "mallocgame/game/position.h"
#include "mallocgame/game/priority/priority_game.h"

namespace mallocgame {

// What a game decided so far, in its order; ranks count from 0.
Intent ReadGame(const Position& position);

// The dense intent of a player of `game` who wants what `decided` says of its segments, one after
// the other, and leaves all else to greedy, behind these. Segments that `game` does not ask about
// are left out.
Intent IntentLike(const Game& game, absl::Span<const Segment> decided);
// The same of a game at another order of instructions. `decided` names its segments as
// PriorityGame::OwnSegment does.
Intent IntentLike(const PriorityGame& game, absl::Span<const Segment> decided,
                  absl::Span<const int32_t> own_access);

}  // namespace mallocgame
