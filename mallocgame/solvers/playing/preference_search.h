// Local search over games: every access has a preferred action, and a game is played by them. A
// trial changes some preferences and plays on from the first decision it concerns; accepting or
// rejecting it costs nothing. A preference that is illegal when its turn comes gives way to the
// next best in a fixed order, so every trial is a whole, valid game.
#ifndef MALLOCGAME_SOLVERS_PLAYING_PREFERENCE_SEARCH_H_
#define MALLOCGAME_SOLVERS_PLAYING_PREFERENCE_SEARCH_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "mallocgame/base/deadline.h"
#include "mallocgame/base/ids.h"
#include "mallocgame/game/state.h"

namespace mallocgame {

// Preferences are values of Action, one an access; kUndecided: what greedy would do.
using Preferences = std::vector<uint8_t>;
inline constexpr uint8_t kUndecided = 255;

// What is played in `state`, which must not be terminal and comes back unchanged, by one who
// prefers `preference`.
Action PreferredAction(State& state, uint8_t preference);

// What a player who wants `plan` would prefer. The plan must be well formed.
Preferences PreferencesOf(const Game& game, const Plan& plan);

// The better of greedy's game and the game most like the plan of XLA's heuristic, which
// `deadline` may cut short.
Preferences GoodStart(const Game& game, const Deadline& deadline);

// Searches spend this share of their limits on the game as it is asked for, the rest on the game of
// small buffers.
inline constexpr double kCoarseShare = 0.6;
// The same game with small buffers asked about too: there are many of them and they rarely matter,
// but on some chips (v5e, v6e) an instruction waits for its smallest operand. Null if the game asks
// about them already.
std::shared_ptr<const Game> GameOfSmallBuffers(const Game& game);

class PreferenceSearch {
 public:
  // Plays the first game; it is accepted.
  PreferenceSearch(const Game& game, Preferences preferences);

  // The accepted game: its decisions in order, its latency, and what it chose (kUndecided for
  // accesses that weren't asked).
  int32_t decisions() const { return static_cast<int32_t>(asked_.size()); }
  AccessId decision(int32_t i) const { return asked_[i]; }
  Action choice(AccessId access) const { return static_cast<Action>(preferences_[access.index()]); }
  int64_t latency_ps() const { return latency_; }
  const Preferences& preferences() const { return preferences_; }

  // Starts a trial at decision i: the state waits there, so that its legal actions can be seen.
  const State& GoTo(int32_t i);
  // Changes a preference of the trial, of an access at or after decision i.
  void Prefer(AccessId access, Action action);
  // Plays the trial to its end and returns that.
  const State& Play();
  // The trial becomes the accepted game, or is forgotten.
  void Accept();
  void Reject();

 private:
  State state_;  // agrees with the accepted game in its first agrees_ decisions
  Preferences preferences_;
  std::vector<AccessId> asked_;
  std::vector<AccessId> trial_;                      // decisions of the trial from agrees_ on
  std::vector<std::pair<size_t, uint8_t>> changed_;  // access and its preference before
  int32_t agrees_ = 0;
  int64_t latency_ = 0;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_SOLVERS_PLAYING_PREFERENCE_SEARCH_H_
