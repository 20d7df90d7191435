// Local search over games. Every access has a preferred action, and a game is played by these
// preferences. A trial changes some of them and plays on from the first decision that this
// concerns; accepting or rejecting it costs nothing. A preference that is illegal when its turn
// comes gives way to the next in a fixed order, so every trial is a whole, valid game.
#ifndef MALLOCGAME_SOLVERS_PLAYING_PREFERENCE_SEARCH_H_
#define MALLOCGAME_SOLVERS_PLAYING_PREFERENCE_SEARCH_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "mallocgame/base/deadline.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/position.h"
#include "mallocgame/game/state.h"

namespace mallocgame {

// A value of Action for each access, or kUndecided: the access is left to greedy.
using Preferences = std::vector<uint8_t>;
inline constexpr uint8_t kUndecided = 255;

// The action that `preference` leads to in `state`. The state must not be terminal; it comes back
// unchanged.
Action PreferredAction(State& state, uint8_t preference);

// The preferences of a player who wants to get `plan`, which must be well formed.
Preferences PreferencesOf(const Game& game, const Plan& plan);

// The preferences that lead to the end of a time game, of this program but not necessarily of the
// same options; kUndecided for accesses that it didn't ask about.
Preferences PreferencesOf(const Position& end);

// The preferences of the best game that pays rent (rent.h) or of the game most like the plan of
// XLA's heuristic, whichever is faster. `deadline` may cut both short.
Preferences GoodStart(const Game& game, const Deadline& deadline);

// Searches spend this share of their limits on the game that they were given, and the rest on the
// game of small buffers.
inline constexpr double kCoarseShare = 0.6;
// What small buffers can save: the share of the all-main latency that instructions take less if
// their small buffers, too, are in fast memory. Negative if they take more.
double WorthOfSmallBuffers(const Game& game);

class PreferenceSearch {
 public:
  // Plays and accepts the first game.
  PreferenceSearch(const Game& game, Preferences preferences);

  // The accepted game: its decisions in order, what it chose (kUndecided for accesses that the game
  // didn't ask about), and its latency.
  int32_t decisions() const { return static_cast<int32_t>(asked_.size()); }
  AccessId decision(int32_t i) const { return asked_[i]; }
  Action choice(AccessId access) const { return static_cast<Action>(preferences_[access.index()]); }
  int64_t latency_ps() const { return latency_; }
  const Preferences& preferences() const { return preferences_; }

  // Starts a trial at decision i. The state waits there, so that its legal actions can be seen.
  const State& GoTo(int32_t i);
  // Changes the trial's preference for an access at or after decision i.
  void Prefer(AccessId access, Action action);
  // Plays the trial to its end and returns the last state.
  const State& Play();
  // Accept makes the trial the accepted game, Reject forgets it.
  void Accept();
  void Reject();

 private:
  State state_;  // agrees with the accepted game in the first agrees_ decisions
  Preferences preferences_;
  std::vector<AccessId> asked_;
  std::vector<AccessId> trial_;  // the trial's decisions from agrees_ on
  std::vector<std::pair<size_t, uint8_t>>
      changed_;  // accesses, with their preferences before the trial
  int32_t agrees_ = 0;
  int64_t latency_ = 0;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_PLAYING_PREFERENCE_SEARCH_H_
