// ObservationOptions as Python gives them: a dict of int, by the names of the members.
#pragma once

#include <map>
#include <string>

#include "bindings/pybind/status.h"
#include "mallocgame/game/observation.h"

namespace mallocgame::python {

using ObservationSettings = std::map<std::string, int>;

// Members that are left out keep their default.
inline ObservationOptions OptionsOf(const ObservationSettings& settings) {
  ObservationOptions options;
  for (const auto& [name, value] : settings) {
    int* member = name == "neighbours"         ? &options.neighbours
                  : name == "ticks_back"       ? &options.ticks_back
                  : name == "ticks_ahead"      ? &options.ticks_ahead
                  : name == "ticks_per_column" ? &options.ticks_per_column
                  : name == "address_cells"    ? &options.address_cells
                                               : nullptr;
    if (member == nullptr) {
      RaiseInvalid(
          "observation: found the setting '", name,
          "', allowed: neighbours, ticks_back, ticks_ahead, ticks_per_column, address_cells");
    }
    *member = value;
  }
  return options;
}

inline ObservationSettings SettingsOf(const ObservationOptions& options) {
  return {{"neighbours", options.neighbours},
          {"ticks_back", options.ticks_back},
          {"ticks_ahead", options.ticks_ahead},
          {"ticks_per_column", options.ticks_per_column},
          {"address_cells", options.address_cells}};
}

}  // namespace mallocgame::python
