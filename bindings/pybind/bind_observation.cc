// Observations of states.
#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "bindings/pybind/handles.h"
#include "bindings/pybind/observation_settings.h"
#include "bindings/pybind/status.h"
#include "mallocgame/game/observation.h"

namespace py = pybind11;

namespace mallocgame::python {
namespace {

using Part = typing::Tuple<py::str, py::int_, typing::Tuple<py::int_, py::ellipsis>>;

std::vector<ObservationPart> PartsOf(const ObservationSettings& settings, const GameOrName& game) {
  return OptionsOf(ChosenGame(game))->Layout(OptionsOf(settings));
}

typing::List<Part> Layout(const ObservationSettings& settings, const GameOrName& game) {
  typing::List<Part> parts;
  for (const ObservationPart& part : PartsOf(settings, game))
    parts.append(py::make_tuple(part.name, part.offset, py::tuple(py::cast(part.shape))));
  return parts;
}

typing::List<NameAndMeaning> Describe(absl::Span<const Feature> features) {
  typing::List<NameAndMeaning> rows;
  for (const Feature& feature : features)
    rows.append(py::make_tuple(feature.name, feature.meaning));
  return rows;
}

// The columns of a part of a game's observations.
typing::List<NameAndMeaning> DescribePart(const char* part, const GameOrName& game) {
  return Describe(PartOf(PartsOf({}, game), part).columns);
}

void CheckGame(const Game& game, const StateHandle& state) {
  if (&state.position->game() != &game)
    RaiseInvalid("state: found one of another Game, allowed: of this one");
}

struct PyObserver {
  std::shared_ptr<GameHandle> game;
  Observer observer;
  std::optional<Prices> prices;  // that the observer was made with

  py::array_t<float> Observe(const StateHandle& state) const {
    CheckGame(observer.game(), state);
    py::array_t<float> numbers(observer.size());
    observer.Write(*state.position, numbers.mutable_data());
    return numbers;
  }
};

PyObserver MakeObserver(std::shared_ptr<GameHandle> game, const ObservationSettings& settings,
                        const std::optional<Prices>& prices) {
  Observer observer =
      ValueOrRaise(Observer::Create(game->game, OptionsOf(settings), prices ? &*prices : nullptr));
  return {std::move(game), std::move(observer), prices};
}

}  // namespace

void BindObservation(py::module_& module) {
  module.attr("OBSERVATION_VERSION") = kObservationVersion;
  module.def("observation_layout", &Layout, py::arg("settings"), py::arg("game") = "time",
             "The parts of an observation, as [(name, offset, shape)]. settings: a dict of ints, "
             "see mallocgame.observation. game: as Game takes it.");
  module.def(
      "access_features", [] { return DescribePart("accesses", py::str("time")); },
      "The columns of a row of the part `accesses` of the time game, as [(name, meaning)].");
  module.def(
      "candidate_features", [] { return DescribePart("candidates", py::str("priority")); },
      "The columns of a row of the part `candidates` of the priority game, as [(name, meaning)].");
  module.def(
      "unit_features", [] { return DescribePart("units", py::str("schedule")); },
      "The columns of a row of the part `units` of the schedule game, as [(name, meaning)].");
  module.def(
      "action_features", [](const GameOrName& game) { return DescribePart("actions", game); },
      py::arg("game") = "time",
      "The columns of a row of the part `actions`, as [(name, meaning)].");
  module.def(
      "scalar_features", [](const GameOrName& game) { return DescribePart("scalars", game); },
      py::arg("game") = "time", "The columns of the part `scalars`, as [(name, meaning)].");

  py::class_<PyObserver>(module, "Observer", "Writes observations of the states of one game.")
      .def(py::init(&MakeObserver), py::arg("game").none(false),
           py::arg("settings") = ObservationSettings{}, py::arg("prices") = py::none(),
           "Observes the positions of a game.\n\nsettings: as MallocGameEnv's. prices: "
           "observations say what each action would pay at them; without, these columns are 0. "
           "InvalidInputError: a setting is out of range, or the prices are not of the program's "
           "ticks.")
      .def("observe", &PyObserver::Observe, py::arg("state"),
           "The observation as a flat float32 array; observation_layout says where its parts lie. "
           "InvalidInputError if the state is of another game.")
      .def_property_readonly(
          "size", [](const PyObserver& o) { return o.observer.size(); },
          "The number of float32 numbers in an observation.")
      .def(py::pickle(
          [](const PyObserver& o) {
            return py::make_tuple(o.game, SettingsOf(o.observer.options()), o.prices);
          },
          [](const py::tuple& saved) {
            return MakeObserver(saved[0].cast<std::shared_ptr<GameHandle>>(),
                                saved[1].cast<ObservationSettings>(),
                                saved[2].cast<std::optional<Prices>>());
          }));
}

}  // namespace mallocgame::python
