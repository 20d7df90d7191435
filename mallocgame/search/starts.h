// Where searches of the priority game start: *multi-start*. A priority game may weigh importance in
// several ways, and may ask about small buffers or not; in each, greedy plays, and a player who
// follows a plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "mallocgame/base/deadline.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/search/found_plan.h"
#include "mallocgame/search/intent.h"

namespace mallocgame {

// A game, a dense intent for it, and the latency that this leads to.
struct GameStart {
  std::shared_ptr<const PriorityGame> game;
  Intent intent;
  bool follows = false;  // it follows a plan, and is not greedy's
  int64_t latency_ps = 0;
};

// The games that greedy plays of `game`'s program, in priority games of several weights of
// importance, with small buffers and without, and without those that fill most of fast memory; and,
// unless null, those that follow `followed`. The best comes first. Of fewer games, but one at
// least, if `deadline` passes.
std::vector<GameStart> PriorityStarts(const PriorityGame& game, const FoundPlan* followed,
                                      const Deadline& deadline);

// Keeps the best `count` of the starts for `game`, of those with the same latency one. If there are
// any that do without the largest buffers, the last is of these: it takes long before they show
// what they are worth.
void KeepBest(const Game& game, size_t count, std::vector<GameStart>& starts);

}  // namespace mallocgame
