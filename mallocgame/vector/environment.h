// What reinforcement learning calls an environment: one game after the other, with observations.
// Each episode draws its game from a list. That draw is the only chance in it: episode k of seed s
// plays the same game everywhere. An Environment belongs to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/observation.h"
#include "mallocgame/game/position.h"

namespace mallocgame {

// The games that environments draw from, and the observers and positions that their episodes start
// from. They are all of one name. Immutable: shared by environments.
class GameList {
 public:
  // InvalidArgument: there is no game, a game has no decision, the games have different names or
  // different numbers of actions, or Observer refuses the options.
  static absl::StatusOr<std::shared_ptr<const GameList>> Create(
      absl::Span<const std::shared_ptr<const Game>> games, const ObservationOptions& options);

  size_t size() const { return starts_.size(); }
  // Of one of the games; the others have them alike but for what asks about more or less.
  const GameOptions& game_options() const { return starts_[0].position().game().options(); }
  int num_actions() const { return starts_[0].position().game().num_actions(); }
  int observation_size() const { return starts_[0].observer().size(); }
  const ObservationOptions& options() const { return starts_[0].observer().options(); }

 private:
  friend class Environment;

  class Start {
   public:
    Start(Observer observer, std::unique_ptr<const Position> position)
        : observer_(std::move(observer)), position_(std::move(position)) {}
    const Observer& observer() const { return observer_; }
    const Position& position() const { return *position_; }

   private:
    Observer observer_;
    std::unique_ptr<const Position> position_;
  };
  explicit GameList(std::vector<Start> starts) : starts_(std::move(starts)) {}

  std::vector<Start> starts_;
};

// Where an environment is. Of the same games another one goes on from there (Environment::Resume).
struct EnvironmentPoint {
  uint64_t seed = 0;
  uint64_t episode = 0;          // of that seed, from 0
  std::vector<uint8_t> actions;  // of that episode, so far
};

class Environment {
 public:
  // Begins as Reset(0) does. With `fixed` it plays only that game of the list.
  explicit Environment(std::shared_ptr<const GameList> games,
                       std::optional<size_t> fixed = std::nullopt);
  // A fork: it goes on from where `other` is, and shares the games.
  Environment(const Environment& other);
  Environment(Environment&&) = default;
  Environment& operator=(Environment&&) = default;

  // Begins an episode: the first one of `seed`, or without `seed` the next one of the seed it has.
  void Reset(std::optional<uint64_t> seed = std::nullopt);
  EnvironmentPoint point() const;
  // InvalidArgument: an action is illegal there. Then the environment is as it was.
  absl::Status Resume(const EnvironmentPoint& point);
  // As Position::Apply: the picoseconds saved, or the error.
  absl::StatusOr<int64_t> Step(int action) { return position_->Apply(action); }
  // `out` has room for games().observation_size() numbers.
  void Observe(float* out) const { games_->starts_[index_].observer().Write(*position_, out); }
  // Writes one number for each action: 1 if it is legal, else 0.
  void WriteMask(int8_t* out) const;

  const GameList& games() const { return *games_; }
  const Position& position() const { return *position_; }
  // The index in the list of the game that is played.
  size_t game_index() const { return index_; }

 private:
  // The index of the game that an episode plays.
  size_t GameOf(uint64_t seed, uint64_t episode) const;

  std::shared_ptr<const GameList> games_;
  std::optional<size_t> fixed_;
  uint64_t seed_ = 0;
  uint64_t episode_ = 0;  // the next one
  size_t index_ = 0;
  std::unique_ptr<Position> position_;
};

}  // namespace mallocgame
