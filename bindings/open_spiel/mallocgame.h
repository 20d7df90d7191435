// The games for OpenSpiel's C++: LoadGame("mallocgame(program=resnet50_b1.tpu_v4i)") is the game
// that mallocgame.envs.openspiel registers in Python, with the same parameters:
//
//   program      a .mgp path, or the name of such a file in the folder MALLOCGAME_PROGRAMS of the
//                environment (where that is not set, that of the source tree)
//   hardware     the name of a preset or a JSON path; "" is the program's own
//   game         "time", "priority" or "schedule"
//   actions      "full" or "paper", of the time game
//   candidates   how many runs the priority game shows
//   observation  "flat" or "compact"
//   players      1, or 2 for algorithms of zero-sum games, as AlphaZero is: the second never moves,
//                and its utility is the first one's negative
//
// One player, perfect information, no chance; the utility is the return, 1 - latency / all-main
// latency. In the text of a game names are percent-encoded. What is wrong is told by
// SpielFatalError, with our words. A state belongs to one thread at a time.
#pragma once

#include <mallocgame.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "open_spiel/spiel.h"

namespace mallocgame {

namespace spiel = ::open_spiel;

// Owns what a handle of the C interface stands for.
class Owned {
 public:
  Owned() = default;
  explicit Owned(mg_handle handle) : handle_(handle) {}
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, 0)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Owned() {
    if (handle_ != 0) mg_free(handle_);
  }
  mg_handle get() const { return handle_; }

 private:
  mg_handle handle_ = 0;
};

class MallocGame final : public spiel::Game {
 public:
  explicit MallocGame(const spiel::GameParameters& parameters);

  int NumDistinctActions() const override { return info_.num_actions; }
  std::unique_ptr<spiel::State> NewInitialState() const override;
  int NumPlayers() const override { return players_; }
  // Stalls can make a play slower than all-main, but not by this much.
  double MinUtility() const override { return -100; }
  double MaxUtility() const override { return players_ == 2 ? -MinUtility() : 1; }
  absl::optional<double> UtilitySum() const override {
    return players_ == 2 ? absl::optional<double>(0) : absl::nullopt;
  }
  std::vector<int> ObservationTensorShape() const override { return {observation_size_}; }
  int MaxGameLength() const override { return info_.max_decisions; }
  std::string ActionToString(spiel::Player player, spiel::Action action) const override;

  // Plays a game again that anything of mallocGame has logged, and returns its end. A fatal error
  // unless each reward, the plan and the latency come out as they are in the log.
  std::unique_ptr<spiel::State> Replay(const std::string& log) const;

 private:
  friend class MallocState;

  Owned program_, game_, observer_;
  mg_game_info info_ = {};
  int observation_size_ = 0, players_ = 1;
};

class MallocState final : public spiel::State {
 public:
  explicit MallocState(std::shared_ptr<const spiel::Game> game);
  MallocState(const MallocState& other);

  spiel::Player CurrentPlayer() const override {
    return info_.terminal != 0 ? spiel::kTerminalPlayerId : spiel::Player{0};
  }
  std::vector<spiel::Action> LegalActions() const override;
  std::string ActionToString(spiel::Player player, spiel::Action action) const override;
  std::string ToString() const override;
  bool IsTerminal() const override { return info_.terminal != 0; }
  std::vector<double> Returns() const override;
  std::string InformationStateString(spiel::Player player) const override;
  std::string ObservationString(spiel::Player player) const override;
  void ObservationTensor(spiel::Player player, absl::Span<float> values) const override;
  std::unique_ptr<spiel::State> Clone() const override;
  void UndoAction(spiel::Player player, spiel::Action action) override;

  // With everything undecided in main memory.
  int64_t latency_ps() const { return info_.latency_ps; }
  // Of a game that is over: its plan as JSON, and its log (.mgr), which `mallocgame view` opens.
  std::string Plan() const;
  std::string Log(const std::string& player, uint64_t seed) const;

 protected:
  void DoApplyAction(spiel::Action action) override;

 private:
  const MallocGame& game() const { return static_cast<const MallocGame&>(*game_); }
  void Look();
  void CheckPlayer(spiel::Player player) const;

  Owned position_;
  mg_position_info info_ = {};
};

}  // namespace mallocgame
