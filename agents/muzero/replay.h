// Games that the agent learns from, and how: which decisions are replayed, and what their targets
// are. A game is kept as its actions and what its searches said; observations are made again when
// it is replayed.
#ifndef AGENTS_MUZERO_REPLAY_H_
#define AGENTS_MUZERO_REPLAY_H_

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "agents/muzero/config.h"
#include "agents/muzero/learner.h"
#include "agents/muzero/task.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"

namespace mallocgame::muzero {

// A decision with several legal actions.
struct Step {
  int32_t decision = 0;  // index of its action in the game's
  float lead = 0;        // before it
  // the search's: the lead still to be gained; where `searched`
  float value = 0;
  std::array<float, kActions> policy = {};  // to learn; where `has_policy`
  // PriorityOf the value error when last replayed; < 0: not yet
  float priority = -1;
  uint8_t searched = 0;
  uint8_t has_policy = 0;
};

inline constexpr float kNewPriority = 4;     // of a step that was not replayed yet
inline constexpr float kLeastError = 0.02F;  // units, added to every error: no step is forgotten
float PriorityOf(const Config& config, float value_error);

void WriteStep(const Step& step, std::string& out);
absl::Status ReadStep(absl::string_view& in, Step& step);

struct PlayedGame {
  int32_t task = 0;
  std::vector<uint8_t> actions;
  std::vector<Step> steps;  // from the first decision that is to be learned from to the end
  float final_lead = 0;
  int64_t latency_ps = 0;
};

// The steps of a whole game from decision `first` on. With `imitate`, each one's policy to learn is
// what was played.
PlayedGame GameOf(const Task& task, int32_t index, const State& end, int first, bool imitate);

// The value target of step t (units): what was gained over the next n steps, and what a search
// expected then; what was gained to the end where that is nearer, or where no search was made.
float ValueTarget(const PlayedGame& game, size_t t, int n_step);

enum class Source : uint8_t { kRecent, kBest, kDemonstration };
inline constexpr int kSources = 3;

// A step of a game in the replay.
struct Position {
  Source source = Source::kRecent;
  int32_t game = 0;  // index in its source
  int32_t step = 0;
};

class Replay {
 public:
  Replay(const Config& config, size_t tasks) : config_(config), best_(tasks) {}

  // Drops the oldest games while there are more than config.capacity steps.
  void Add(PlayedGame game);
  void AddDemonstration(PlayedGame game);
  // Keeps the game if it is among the best config.best_games of its task, all different. True if it
  // is the very best.
  bool Offer(const PlayedGame& game);

  // Of a task, best first; never empty after the first Offer.
  const std::vector<PlayedGame>& best(size_t task) const { return best_[task]; }
  int64_t recent_steps() const { return recent_steps_; }

  PlayedGame& game(const Position& position);
  const PlayedGame& game(const Position& position) const;

  // `count` positions, several of each game drawn so that a game is played again once for all of
  // them; and the weight of each that corrects for the choice. Empty only if nothing can be learned
  // from.
  struct Sample {
    std::vector<Position> positions;
    std::vector<float> importance;
  };
  Sample Draw(int count, Rng& rng) const;
  // Likewise without regard to priorities, for reanalysis.
  std::vector<Position> DrawEvenly(int count, Rng& rng) const;

  // Everything that is kept, as bytes and back. InvalidArgument for bytes that are none of ours.
  void Write(std::string& out) const;
  absl::Status Read(absl::string_view& in, absl::Span<const Task> tasks);

 private:
  // The games to draw from, with weights.
  struct Pool {
    std::vector<const PlayedGame*> games;
    std::vector<float> weights;
    float weight = 0;
    int64_t steps = 0;
  };
  struct Sources {
    std::array<Pool, kSources> pools;
    std::array<float, kSources> shares = {};
    float share = 0;
  };
  std::vector<const PlayedGame*> Games(Source source) const;
  Sources Prepare(bool by_priority) const;
  std::vector<Position> DrawFrom(const Sources& sources, int count, bool by_priority,
                                 Rng& rng) const;

  Config config_;
  std::deque<PlayedGame> recent_;
  std::vector<std::vector<PlayedGame>> best_;  // by task
  std::vector<PlayedGame> demonstrations_;
  int64_t recent_steps_ = 0;
};

// What an update learns from at `positions`.
Batch MakeBatch(const Config& config, absl::Span<const Task> tasks, const Replay& replay,
                const Replay::Sample& sample);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_REPLAY_H_
