// The placement problem: one step, in which every tensor of a program gets a memory level at once.
// A map is one level a tensor, [nodes, 2] numbers (weights, activations of each node), level 0 the
// fastest.
//
// On a Hierarchy a map that doesn't fit is rectified, tensors that have no room moving to slower
// levels, and its reward is minus the share of bytes that moved; a map that fits gets the square of
// its speed-up over the compiler's map. On a Game (two levels: fast memory and main memory) a map
// is played: each access to a tensor in level 0 is decided NoCopy where that is legal, else Copy,
// else Drop; to one in level 1, Drop. Every map can be played, and gets the square of its speed-up
// over the baseline. docs/placement.md says more.
#ifndef MALLOCGAME_PLACEMENT_PLACEMENT_H_
#define MALLOCGAME_PLACEMENT_PLACEMENT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/placement/hierarchy.h"
#include "mallocgame/placement/placement_graph.h"

namespace mallocgame {

class LevelModel;

using PlacementMap = std::vector<uint8_t>;

struct PlacementOutcome {
  int64_t latency_ps = 0;  // of the map as it was carried out
  // share of the placed bytes that are not where the map wants them, in [0, 1]
  double moved = 0;
  double reward = 0;
  friend bool operator==(const PlacementOutcome&, const PlacementOutcome&) = default;
};

// What a map that fits takes on a Hierarchy, as the numbers of a programme:
//   sum over nodes of trips * max(compute_ps, fixed_ps + sum of its terms' term_ps at the level of
//   the term's tensor).
// It fits if at each node no level holds more than capacity_bytes: all its weights and those
// activations that are alive there (PlacedTensor::begin, end).
struct PlacementCosts {
  std::vector<int64_t> capacity_bytes;               // [levels]
  std::vector<int64_t> trips, compute_ps, fixed_ps;  // [nodes]
  std::vector<int32_t> term_node, term_tensor;       // [terms]; a tensor is an index of a map
  std::vector<int64_t> term_ps;                      // [terms, levels]
};

// Immutable: shared by threads.
class PlacementProblem {
 public:
  // InvalidArgument: a hierarchy ValidateHierarchy refuses, or whose last level doesn't hold all
  // tensors; a program in which there is nothing to place.
  static absl::StatusOr<std::shared_ptr<const PlacementProblem>> Create(
      std::shared_ptr<const Program> program, const Hierarchy& hierarchy);
  // baseline_ps: the latency that counts as 1; 0: that of the map with everything in fast memory.
  // InvalidArgument: negative.
  static absl::StatusOr<std::shared_ptr<const PlacementProblem>> Create(
      std::shared_ptr<const Game> game, int64_t baseline_ps);
  ~PlacementProblem();

  const Program& program() const { return *program_; }
  const PlacementGraph& graph() const { return graph_; }
  const std::vector<std::string>& level_names() const { return level_names_; }
  int levels() const { return static_cast<int>(level_names_.size()); }
  size_t map_size() const { return 2 * graph_.nodes.size(); }
  const std::shared_ptr<const Game>& game() const { return game_; }  // null on a Hierarchy

  // The compiler's map: each tensor in the fastest level that has room, all activations in order,
  // then all weights. On a Game the map with everything in level 0.
  const PlacementMap& baseline_map() const { return baseline_map_; }
  int64_t baseline_ps() const { return baseline_ps_; }

  // InvalidArgument: a map of another length than map_size(), or a level that isn't one.
  absl::StatusOr<PlacementOutcome> Evaluate(absl::Span<const uint8_t> map) const;
  // outcomes.size() maps, one behind the other, on `threads` threads (at least 1); the same for any
  // number of them.
  absl::Status EvaluateMany(absl::Span<const uint8_t> maps, absl::Span<PlacementOutcome> outcomes,
                            int threads) const;

  // The map that is carried out. On a Game: a tensor is in level 0 if none of its decisions was
  // Drop.
  absl::StatusOr<PlacementMap> Rectify(absl::Span<const uint8_t> map) const;
  // The actions of a map that is played; FailedPrecondition on a Hierarchy.
  absl::StatusOr<std::vector<Action>> Play(absl::Span<const uint8_t> map) const;
  // FailedPrecondition on a Game.
  absl::StatusOr<PlacementCosts> Costs() const;

 private:
  struct Scratch;

  PlacementProblem(std::shared_ptr<const Program> program, std::vector<std::string> level_names);

  absl::Status Check(absl::Span<const uint8_t> maps, size_t count) const;
  PlacementOutcome EvaluateOne(absl::Span<const uint8_t> map, Scratch* scratch) const;
  // Plays `map` and lowers it to what it came to; returns the latency.
  int64_t PlayInto(absl::Span<uint8_t> map, std::vector<Action>* actions) const;
  double RewardOf(int64_t latency_ps, double moved) const;

  std::shared_ptr<const Program> program_;
  std::vector<std::string> level_names_;
  PlacementGraph graph_;
  std::unique_ptr<const LevelModel> model_;  // null on a Game
  std::shared_ptr<const Game> game_;
  int64_t total_bytes_ = 0;
  PlacementMap baseline_map_;
  int64_t baseline_ps_ = 0;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_PLACEMENT_PLACEMENT_H_
