// The trace of a game that was played to its end: the incumbent of a search. Other games of the
// same kind are played beside it, and take over from it whatever must come out the same. In the
// priority game that is which run is decided next where the same ones are open, and where a
// residence lies if the same others lie around it: to look for a place is what most of the time of
// a game is spent on.
#pragma once

#include <cstdint>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/game/intent.h"
#include "mallocgame/game/position.h"

namespace mallocgame {

class IncumbentTrace {
 public:
  // Has no decisions at first. All positions are of one game, which has so many segments. Game::
  // MakeTrace makes the trace that suits a game.
  explicit IncumbentTrace(size_t segments) : decision_of_(segments, -1) {}
  virtual ~IncumbentTrace() = default;

  // Makes the game of `end`, which is over, the incumbent. It agrees with the incumbent before in
  // the first `agrees` decisions. Changes are forgotten.
  void Adopt(const Position& end, int32_t agrees);

  // The incumbent's decisions: the segments (intent.h) in order, and where it decided a segment;
  // -1: it did not.
  int32_t decisions() const { return static_cast<int32_t>(segments_.size()); }
  int32_t segment(int32_t i) const { return segments_[i]; }
  int32_t decision_of(int32_t segment) const { return decision_of_[segment]; }

  // Names a segment of which something else is wanted than what led to the incumbent.
  void Change(int32_t segment) { changed_.push_back(segment); }
  void ForgetChanges() { changed_.clear(); }

  // Plays the incumbent's decisions on a position that agrees with it so far, up to decision `end`.
  virtual void Follow(Position& position, int32_t end) const;

  // Begins to play beside the incumbent, in a position that agrees with it in `agrees` decisions
  // and has no others; or in any position.
  virtual void Begin(int32_t agrees);
  virtual void Begin(const Position& position);
  // Takes one decision of the position that play began in, as Position::Decide does if the
  // intent led to the incumbent but for the segments that Change named. Where the same runs are
  // open it is the incumbent's decision also if a change would have come earlier.
  virtual void Decide(Position& position, const Intent& intent);

  // The perturbation of iterated local search (Lourenço, Martin and Stützle 2003) of the incumbent,
  // which must have decisions and to which `intent` led: any modes for a few successive decisions;
  // in the priority game also an insertion, or a coalescing (search/game_moves.h).
  void Kick(Intent& intent, Rng& rng);

 protected:
  virtual void AdoptPlaces(const Position& end, int32_t agrees);
  // A kick of decision `at` that only this game has, by one of four kinds; false: it has none.
  virtual bool KickOwn(uint32_t at, uint32_t kind, Intent& intent, Rng& rng);

  // For each decision of the incumbent: the action and the segment.
  std::vector<uint8_t> actions_;
  std::vector<int32_t> segments_;
  std::vector<int32_t> decision_of_;  // by segment
  std::vector<int32_t> changed_;
};

}  // namespace mallocgame
