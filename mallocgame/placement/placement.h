// The placement problem: a single step in which every tensor of a program gets a memory level. A
// map holds the levels of all tensors, [nodes, 2] numbers (weights and activations of each node);
// level 0 is the fastest.
//
// On a Hierarchy, a map that does not fit is rectified: tensors that have no room move to slower
// levels, and the reward is minus the share of the bytes that moved. A map that fits gets the
// square of its speed-up over the compiler's map.
//
// On a Game a map is played. Every map can be played, and gets the square of its speed-up over the
// baseline. A time game has two levels, fast memory and main memory. An access to a tensor in level
// 0 is decided NoCopy where that is legal, else Copy, else Drop; an access to one in level 1 is
// decided Drop. On a priority game a node is a run. Its first number is a mode: Late, Early,
// Preload, Split or Skip. Its second one says when it has its turn: much sooner than by importance,
// sooner, later, much later, or as by importance. Of the candidates the one is taken whose turn it
// is, and served as its number says or, where that is illegal, in the nearest way that is legal.
// docs/placement.md says more.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"
#include "mallocgame/placement/hierarchy.h"
#include "mallocgame/placement/placement_graph.h"
#include "mallocgame/plan/plan.h"

namespace mallocgame {

class GameLevels;
class LevelModel;

using PlacementMap = std::vector<uint8_t>;

struct PlacementOutcome {
  int64_t latency_ps = 0;  // the latency of the map as it was carried out
  double moved = 0;  // the share of the bytes that are not where the map wants them, in [0, 1]
  double reward = 0;
  friend bool operator==(const PlacementOutcome&, const PlacementOutcome&) = default;
};

// The numbers from which the latency of a map that fits follows on a Hierarchy, for a mathematical
// program:
//   sum over nodes of trips * max(compute_ps, fixed_ps + sum of its terms' term_ps at the level of
//   the term's tensor).
// Of a staged term in the last level the part that was fetched ahead takes the time of level 0
// instead. It was fetched while earlier nodes left the last level idle: a node's time less
// fixed_ps, its terms in the last level and what is fetched ahead of the staged one. No more than
// staging_ps of the last level's time are fetched ahead at once.
// A map fits if at each node no level holds more than its capacity_bytes. A level holds all its
// weights, and those of its activations that are alive at the node (PlacedTensor::begin, end);
// these take their bytes `engines` times in all levels but the first.
struct PlacementCosts {
  std::vector<int64_t> capacity_bytes;  // [levels]
  int64_t engines = 1, staging_ps = 0;
  std::vector<int64_t> trips, compute_ps, fixed_ps;  // [nodes]
  std::vector<int32_t> staged_term;                  // [nodes]; -1 if the node has none
  std::vector<int32_t> term_node, term_tensor;       // [terms]; a tensor is an index into a map
  std::vector<int64_t> term_ps;                      // [terms, levels]
};

// The placement problem of one program. Immutable: shared by threads.
class PlacementProblem {
 public:
  // InvalidArgument: ValidateHierarchy refuses the hierarchy, its last level does not hold all
  // tensors, or the program has nothing to place.
  static absl::StatusOr<std::shared_ptr<const PlacementProblem>> Create(
      std::shared_ptr<const Program> program, const Hierarchy& hierarchy);
  // `plan`, unless it is null, is what the baseline map asks for. `baseline_ps` is the latency
  // whose speed-up counts as 1, by default that of the baseline map. InvalidArgument: it is less
  // than 1, the plan is not well formed (plan.h), or the program has nothing to place.
  static absl::StatusOr<std::shared_ptr<const PlacementProblem>> Create(
      std::shared_ptr<const Game> game, std::optional<int64_t> baseline_ps = std::nullopt,
      const Plan* plan = nullptr);
  ~PlacementProblem();

  const Program& program() const { return *program_; }
  const PlacementGraph& graph() const { return graph_; }
  const std::vector<std::string>& level_names() const { return level_names_; }
  int levels() const { return static_cast<int>(level_names_.size()); }
  size_t map_size() const { return 2 * graph_.nodes.size(); }
  // Null on a Hierarchy.
  const std::shared_ptr<const Game>& game() const { return game_; }
  // On a priority game the level of Split, and how many levels, the first ones, place a residence.
  // The parts of a run (PlacementGraph::parent) count only where its first number is Split.
  static constexpr uint8_t kSplitLevel = 3;
  static constexpr int kPlacingLevels = 3;

  // On a Hierarchy the compiler's map: each tensor is in the fastest level that has room, given
  // first to all activations in order, then to all weights. On a Game the map of the plan that
  // Create got, or the one with everything in level 0.
  const PlacementMap& baseline_map() const { return baseline_map_; }
  int64_t baseline_ps() const { return baseline_ps_; }

  // InvalidArgument: the map's length is not map_size(), or a level does not exist.
  absl::StatusOr<PlacementOutcome> Evaluate(absl::Span<const uint8_t> map) const;
  // Evaluates outcomes.size() maps, which stand one after the other, on `threads` threads, 1 to
  // 1024. The outcomes do not depend on the number of threads.
  absl::Status EvaluateMany(absl::Span<const uint8_t> maps, absl::Span<PlacementOutcome> outcomes,
                            int threads) const;

  // The outcome as a chip would measure it, whose times spread: with a latency of this relative
  // standard deviation, 0 to kMostNoise, and the reward of that.
  static constexpr double kMostNoise = 0.2;
  PlacementOutcome Measured(PlacementOutcome outcome, double noise, Rng& rng) const;

  // The map that is carried out. On a time game a tensor is in level 0 if `map` wants that and none
  // of its decisions was Drop. On a priority game runs have the mode that they got; those that
  // were never open keep their level.
  absl::StatusOr<PlacementMap> Rectify(absl::Span<const uint8_t> map) const;
  // The actions of a map that is played. FailedPrecondition on a Hierarchy.
  absl::StatusOr<std::vector<uint8_t>> Play(absl::Span<const uint8_t> map) const;
  // FailedPrecondition on a Game.
  absl::StatusOr<PlacementCosts> Costs() const;

 private:
  struct Scratch;

  PlacementProblem(std::shared_ptr<const Program> program, std::vector<std::string> level_names,
                   PlacementGraph graph);

  absl::Status Check(absl::Span<const uint8_t> maps, size_t count) const;
  PlacementOutcome EvaluateOne(absl::Span<const uint8_t> map, Scratch* scratch) const;
  // Plays `map`, which becomes the map that is carried out; returns the latency.
  int64_t PlayInto(absl::Span<uint8_t> map, Scratch* scratch, std::vector<uint8_t>* actions) const;
  double RewardOf(int64_t latency_ps, double moved) const;

  std::shared_ptr<const Program> program_;
  std::vector<std::string> level_names_;
  PlacementGraph graph_;
  std::unique_ptr<const LevelModel> model_;  // null on a Game
  std::shared_ptr<const Game> game_;
  std::unique_ptr<const GameLevels> on_game_;  // of game_
  int64_t total_bytes_ = 0;
  PlacementMap baseline_map_;
  int64_t baseline_ps_ = 0;
};

}  // namespace mallocgame
