#include "agents/muzero/observation_shape.h"

#include <memory>

#include "agents/muzero/task.h"

namespace mallocgame::muzero {

ObservationShape ShapeOf(const Config& config) {
  const std::unique_ptr<GameOptions> game = config.game_options();
  ObservationShape shape;
  for (const ObservationPart& part : game->Layout(config.observation_options())) {
    int64_t length = 1;
    for (int n : part.shape) length *= n;
    shape.size = part.offset + length;
    if (part.name == "accesses" || part.name == "candidates") {
      const bool candidates = part.name == "candidates";
      shape.items = part.offset;
      shape.num_items = part.shape[0];
      shape.item_features = part.shape[1];
      shape.first_asked = candidates ? 0 : shape.num_items / 2;
      shape.num_asked = candidates ? shape.num_items - config.observation_options().neighbours : 1;
    } else if (part.name == "units") {
      shape.units = part.offset;
      shape.num_units = part.shape[0];
      shape.unit_features = part.shape[1];
      shape.ordering = shape.num_units + 1;
    } else if (part.name == "actions") {
      shape.actions = part.offset;
      shape.num_actions = part.shape[0];
      shape.action_features = part.shape[1];
    } else if (part.name == "occupancy") {
      shape.occupancy = part.offset;
      shape.cells = part.shape[1];
    } else if (part.name == "idle") {
      shape.idle = part.offset;
      shape.columns = part.shape[0];
    } else if (part.name == "demand") {
      shape.demand = part.offset;
    } else if (part.name == "scalars") {
      shape.scalars = part.offset;
      shape.num_scalars = part.shape[0];
    } else if (part.name == "action_mask") {
      shape.mask = part.offset;
    }
  }
  shape.beside = shape.size;
  if (config.paper()) return shape;
  shape.num_beside = shape.num_actions * Baseline::kFeatures + kLeadFeatures;
  shape.size += shape.num_beside;
  return shape;
}

}  // namespace mallocgame::muzero
