// The whole program as a graph, for networks that look at all of it. What never changes during a
// game is made once; GraphObserver::Write gives the little that changes. Nodes are instructions
// (node t is tick t) and after them buffers (node ticks + b is buffer b). Edges go from a buffer to
// an instruction that reads it, from an instruction to a buffer that it writes, and from each tick
// to the next. Every feature lies in [-1, 1], scaled as in game/observation.h.
#ifndef MALLOCGAME_GAME_TIME_GRAPH_H_
#define MALLOCGAME_GAME_TIME_GRAPH_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/feature.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/time/state.h"

namespace mallocgame {

absl::Span<const Feature> NodeFeatures();
absl::Span<const Feature> EdgeFeatures();
absl::Span<const Feature> BufferStateFeatures();  // the columns of GraphObserver::Write

struct ProgramGraph {
  int32_t instructions = 0;          // they are the nodes [0, instructions)
  int32_t buffers = 0;               // they are the nodes [instructions, instructions + buffers)
  std::vector<float> node_features;  // [instructions + buffers, NodeFeatures().size()]
  // The nodes of each edge. Edges of accesses come first, in time order, then those from tick to
  // tick.
  std::vector<int32_t> from, to;
  std::vector<float> edge_features;  // [edges, EdgeFeatures().size()]
};

// Makes the graph of a game, and observes its states. Immutable: shared by threads, each with its
// own states.
class GraphObserver {
 public:
  explicit GraphObserver(std::shared_ptr<const Game> game);

  const ProgramGraph& graph() const { return graph_; }

  // Writes how each buffer stands: [buffers, BufferStateFeatures().size()] numbers, row-major.
  // `state` must be of this game.
  void Write(const State& state, float* out) const;

 private:
  void AddNodes();
  void AddEdges();

  std::shared_ptr<const Game> game_;
  ProgramGraph graph_;
};

}  // namespace mallocgame

#endif  // MALLOCGAME_GAME_TIME_GRAPH_H_
