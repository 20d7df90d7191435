// The whole program as a graph, for networks that look at all of it: what never changes during a
// game, made once, and the little that does. Nodes are instructions (node t is tick t) and, behind
// them, buffers (node ticks + b is buffer b); edges go from what is read to who reads it, from who
// writes to what is written, and from each tick to the next. Every feature lies in [-1, 1], scaled
// as in game/observation.h.
#ifndef MALLOCGAME_GAME_GRAPH_H_
#define MALLOCGAME_GAME_GRAPH_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/observation.h"
#include "mallocgame/game/state.h"

namespace mallocgame {

absl::Span<const Feature> NodeFeatures();
absl::Span<const Feature> EdgeFeatures();
absl::Span<const Feature> BufferStateFeatures();  // of GraphObserver::Write

struct ProgramGraph {
  int32_t instructions = 0;          // nodes [0, instructions)
  int32_t buffers = 0;               // nodes [instructions, instructions + buffers)
  std::vector<float> node_features;  // [instructions + buffers, NodeFeatures().size()]
  // nodes, one an edge: in time order, the edges from tick to tick at the end
  std::vector<int32_t> from, to;
  std::vector<float> edge_features;  // [edges, EdgeFeatures().size()]
};

// Immutable: shared by threads, each with its own states.
class GraphObserver {
 public:
  explicit GraphObserver(std::shared_ptr<const Game> game);

  const ProgramGraph& graph() const { return graph_; }

  // [buffers, BufferStateFeatures().size()], row-major: how each buffer stands. `state` must be of
  // this game.
  void Write(const State& state, float* out) const;

 private:
  void AddNodes();
  void AddEdges();

  std::shared_ptr<const Game> game_;
  ProgramGraph graph_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_GRAPH_H_
