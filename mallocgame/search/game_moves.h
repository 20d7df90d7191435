// The moves of local search over priority games, by their names in operations research. Each
// changes what is wanted for some runs, the segments of the accepted game's intent.
//
//   Reassign          another mode for one run: a 1-flip. Reassign two: with a later one.
//   Insert            a run has its turn a few decisions earlier or later: the insertion move of
//                     permutation scheduling (Taillard 1990).
//   Coalesce          one residence for what was split: the reverse of live-range splitting, which
//                     register allocation calls coalescing (Chaitin 1982).
//   Exchange          two runs of about one size change roles. Alone, each step of that would lose.
//   CompoundExchange  a run and a few others give way to each other: an ejection chain (Glover
//                     1996). The others are served anew where it pays.
// In the words of reinforcement learning a 1-flip deviates from the incumbent's policy once, and
// follows it before and after.
#pragma once

#include <cstdint>
#include <memory>

#include "mallocgame/base/rng.h"

namespace mallocgame {

class GameSearch;

class GameMoves {
 public:
  // The moves of the search's game; `search` must outlive them.
  static std::unique_ptr<GameMoves> Create(GameSearch& search);
  virtual ~GameMoves() = default;

  // Sets up a trial of the search, which must have decisions, by a move that is drawn. Returns the
  // decision at which the trial leaves the accepted game.
  virtual int32_t Propose(Rng& rng) = 0;
  // To be called when a trial has become the accepted game.
  virtual void Accepted() = 0;
};

}  // namespace mallocgame
