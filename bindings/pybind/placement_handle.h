// Python's Placement, and maps as NumPy arrays.
#ifndef MALLOCGAME_BINDINGS_PYBIND_PLACEMENT_HANDLE_H_
#define MALLOCGAME_BINDINGS_PYBIND_PLACEMENT_HANDLE_H_

#include <pybind11/numpy.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/types/span.h"
#include "bindings/pybind/handles.h"
#include "mallocgame/placement/placement.h"

namespace mallocgame::python {

struct PlacementHandle {
  std::shared_ptr<const ProgramHandle> program;
  std::shared_ptr<const PlacementProblem> problem;
  std::shared_ptr<const GameHandle> game;  // null on a hierarchy
  std::optional<Hierarchy> hierarchy;      // none on a game
  std::optional<Plan> plan = {};           // of the baseline map on a game, if it was given

  size_t nodes() const { return problem->graph().nodes.size(); }
};

// uint8 [nodes, 2], a copy.
inline pybind11::array_t<uint8_t> ToMap(absl::Span<const uint8_t> levels) {
  pybind11::array_t<uint8_t> map(
      {static_cast<pybind11::ssize_t>(levels.size() / 2), pybind11::ssize_t{2}});
  std::copy(levels.begin(), levels.end(), map.mutable_data());
  return map;
}

}  // namespace mallocgame::python

#endif  // MALLOCGAME_BINDINGS_PYBIND_PLACEMENT_HANDLE_H_
