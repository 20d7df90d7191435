// Distinct index types, so that a buffer can't be passed where an access is meant, and the one
// integer that is a position in time. All are dense indices from 0.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace mallocgame {

template <class Tag>
struct Id {
  int32_t value = -1;  // -1: none

  constexpr Id() = default;
  constexpr explicit Id(int64_t v) : value(static_cast<int32_t>(v)) {}
  constexpr bool valid() const { return value >= 0; }
  constexpr size_t index() const { return static_cast<size_t>(value); }
  friend constexpr auto operator<=>(const Id&, const Id&) = default;
};

using BufferId = Id<struct BufferTag>;  // index into Program::buffers()
using AccessId = Id<struct AccessTag>;  // index into Program::accesses()
// index into Plan::residences; none = served from main memory
using ResidenceId = Id<struct ResidenceTag>;

// Position in the flattened schedule: an index into Program::instructions(). Arithmetic on it is
// all the library does, so it is a plain integer. Intervals of ticks are half-open, [begin, end).
using Tick = int32_t;
// A tick that never comes: later than all others.
inline constexpr Tick kNever = INT32_MAX;

}  // namespace mallocgame
