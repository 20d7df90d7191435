// Where the parts of an observation lie, as networks are made for it.
#ifndef AGENTS_MUZERO_OBSERVATION_SHAPE_H_
#define AGENTS_MUZERO_OBSERVATION_SHAPE_H_

#include <cstdint>

#include "agents/muzero/config.h"

namespace mallocgame::muzero {

// An offset for each part, and the sizes of its axes.
struct ObservationShape {
  int64_t size = 0;
  int64_t items = 0, num_items = 0, item_features = 0;
  int64_t first_asked = 0, num_asked = 0;  // the items that the game asks about
  // In the schedule game: the units, to each of which an action belongs, and how many actions
  // decide the order. Those come first, and the last of them belongs to no unit. 0 in other games.
  int64_t units = 0, num_units = 0, unit_features = 0, ordering = 0;
  int64_t actions = 0, num_actions = 0, action_features = 0;
  int64_t occupancy = 0, columns = 0, cells = 0;
  int64_t idle = 0, demand = -1;  // demand is -1 where there is no such part
  int64_t scalars = 0, num_scalars = 0;
  int64_t mask = 0;  // of legal actions, [num_actions]
  // What the strong agent sees beside the observation (task.h): both parts, one behind the other.
  int64_t beside = 0, num_beside = 0;
};
ObservationShape ShapeOf(const Config& config);

}  // namespace mallocgame::muzero

#endif  // AGENTS_MUZERO_OBSERVATION_SHAPE_H_
