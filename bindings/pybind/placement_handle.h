// Python's Placement, and maps as NumPy arrays.
#pragma once

#include <pybind11/numpy.h>

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/types/span.h"
#include "bindings/pybind/handles.h"
#include "mallocgame/placement/placement.h"

namespace mallocgame::python {

struct PlacementHandle {
  std::shared_ptr<ProgramHandle> program;
  std::shared_ptr<const PlacementProblem> problem;
  std::shared_ptr<GameHandle> game;    // null on a hierarchy
  std::optional<Hierarchy> hierarchy;  // none on a game
  std::optional<Plan> plan = {};       // of the baseline map on a game, if it was given

  size_t nodes() const { return problem->graph().nodes.size(); }
};

// uint8 [nodes, 2], a copy.
inline pybind11::array_t<uint8_t> ToMap(absl::Span<const uint8_t> levels) {
  return ToMatrix(levels, 2);
}

}  // namespace mallocgame::python
