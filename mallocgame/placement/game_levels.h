// What a placement map says on a game: what its levels mean, and which of its numbers a segment of
// the game's dense intents takes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/placement/placement_graph.h"
#include "mallocgame/search/intent.h"

namespace mallocgame {

// Immutable: shared by threads.
class GameLevels {
 public:
  // Of a game that does not decide the order of instructions, which must outlive it.
  static std::unique_ptr<const GameLevels> Of(const Game& game);
  virtual ~GameLevels() = default;

  const PlacementGraph& graph() const { return graph_; }
  virtual std::vector<std::string> names() const = 0;
  // The map of a player who wants what a dense intent says.
  std::vector<uint8_t> Read(const Intent& intent) const;
  // What a map wants. `intent` is a dense one of the game.
  virtual void Write(absl::Span<const uint8_t> map, Intent& intent) const = 0;
  // Notes in a map that is played how a segment was decided.
  virtual void Decided(int32_t segment, Mode mode, absl::Span<uint8_t> map) const = 0;

 protected:
  explicit GameLevels(PlacementGraph graph) : graph_(std::move(graph)) {}
  // Notes in a map, all of whose numbers are those of the last level at first, what is wanted.
  virtual void Want(int32_t segment, Mode mode, absl::Span<uint8_t> map) const = 0;

  PlacementGraph graph_;
};

}  // namespace mallocgame
