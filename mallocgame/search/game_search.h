// Local search over priority games. The accepted solution is a whole game and an intent that
// led to it. A trial changes what is wanted for some segments and plays on from the first decision
// that this concerns, beside the accepted game (incumbent_trace.h).
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/game/incumbent_trace.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/search/game_moves.h"
#include "mallocgame/search/intent.h"
#include "mallocgame/search/neighbourhood.h"

namespace mallocgame {

class GameSearch final : public Neighbourhood {
 public:
  // Plays and accepts the first game. `intent` is a dense one of `game`.
  GameSearch(const PriorityGame& game, Intent intent);

  // The accepted game: the segments that it decided in order, what it chose, and its latency.
  int32_t decisions() const { return trace_->decisions(); }
  int32_t segment(int32_t i) const { return trace_->segment(i); }
  // The decision about a segment; -1: there was none.
  int32_t decision_of(int32_t segment) const { return trace_->decision_of(segment); }
  const Intent& intent() const { return intent_; }
  int64_t latency_ps() const override { return latency_; }
  // The intent that leads from the beginning to the accepted game: ranks are its order. intent()
  // itself need not, as a trial begins near its change, and that could count before.
  Intent Replayable() const;
  // Where the trial stands or ended; behind Accept the end of the accepted game.
  const PriorityState& position() const { return position_; }

  // Starts a trial at decision i, in [0, decisions()].
  const PriorityState& GoTo(int32_t i);
  // Changes what the trial wants for a segment: nothing that was decided before.
  void Want(int32_t segment, Mode mode) { Want(segment, mode, intent_[segment].rank); }
  void Want(int32_t segment, Mode mode, double rank);
  // The same by a move (game_moves.h). Returns the decision at which the trial leaves the accepted
  // game, which must have decisions.
  int32_t Move(Rng& rng) { return moves_->Propose(rng); }

  bool empty() const override { return decisions() == 0; }
  bool Propose(Rng& rng) override {
    Move(rng);
    return true;
  }
  // Plays the trial to its end. A trial whose stalls are sure to be too long
  // before its last decision, by what that decision is estimated to save, is not played to its end.
  bool Try(int64_t most) override;
  // Modes become what was really chosen: those that gave way are forgotten.
  void Accept() override;
  void Reject() override;

 private:
  bool IsHopeless(int64_t most) const;

  PriorityState position_;  // agrees with the accepted game in the first agrees_ decisions
  Intent intent_;
  std::unique_ptr<IncumbentTrace> trace_;             // the accepted game
  std::vector<std::pair<int32_t, Segment>> changed_;  // as they were before the trial
  int32_t agrees_ = 0;
  int64_t accepted_ = 0;
  int64_t latency_ = 0;
  std::unique_ptr<GameMoves> moves_;
};

}  // namespace mallocgame
