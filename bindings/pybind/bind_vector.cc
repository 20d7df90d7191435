// One environment (Environment), and many that write into the caller's NumPy arrays
// (EnvironmentBatch). mallocgame/envs/gym.py and vector.py make Gymnasium's environments of them.
#include <pybind11/stl.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "bindings/pybind/arguments.h"
#include "bindings/pybind/handles.h"
#include "bindings/pybind/observation_settings.h"
#include "bindings/pybind/pickling.h"
#include "bindings/pybind/status.h"
#include "bindings/pybind/xla.h"
#include "mallocgame/base/home_process.h"
#include "mallocgame/vector/vector_env.h"

namespace py = pybind11;

namespace mallocgame::python {
namespace {

using Seeds = std::vector<std::optional<uint64_t>>;
using GameHandles = std::vector<std::shared_ptr<GameHandle>>;

std::shared_ptr<const GameList> ListOf(const GameHandles& handles,
                                       const ObservationSettings& settings) {
  std::vector<std::shared_ptr<const Game>> games;
  games.reserve(handles.size());
  for (const auto& handle : handles) games.push_back(handle->game);
  const ObservationOptions options = OptionsOf(settings);
  return ValueOrRaise(WithoutGil([&] { return GameList::Create(games, options); }));
}

// An array over numbers that `owner` keeps alive. It is made without the checks of py::array, which
// take longer than a step of a game.
py::object View(py::handle dtype, const std::vector<Py_intptr_t>& shape, void* data,
                py::handle owner) {
  auto& numpy = py::detail::npy_api::get();
  PyObject* view = numpy.PyArray_NewFromDescr_(
      numpy.PyArray_Type_, dtype.inc_ref().ptr(), static_cast<int>(shape.size()), shape.data(),
      nullptr, data, py::detail::npy_api::NPY_ARRAY_WRITEABLE_, nullptr);
  if (view == nullptr) throw py::error_already_set();
  auto result = py::reinterpret_steal<py::object>(view);
  if (owner) numpy.PyArray_SetBaseObject_(view, owner.inc_ref().ptr());
  return result;
}

void* DataOf(const py::object& array) { return py::detail::array_proxy(array.ptr())->data; }

// A point as Python has it: (seed, episode, actions).
using PointRow = std::tuple<uint64_t, uint64_t, py::bytes>;

PointRow RowOf(const EnvironmentPoint& point) {
  return {point.seed, point.episode,
          py::bytes(reinterpret_cast<const char*>(point.actions.data()), point.actions.size())};
}

EnvironmentPoint PointOf(const PointRow& row) {
  const absl::string_view actions = ViewOf(std::get<2>(row));
  return {std::get<0>(row), std::get<1>(row), {actions.begin(), actions.end()}};
}

// One environment that returns what Gymnasium's Env does.
class PyEnvironment {
 public:
  PyEnvironment(const GameHandles& games, const ObservationSettings& settings, bool as_dict,
                const std::vector<std::string>& names)
      : handles_(games), environment_(ListOf(games, settings)), as_dict_(as_dict) {
    if (names.size() != games.size()) {
      RaiseInvalid("names: found ", names.size(), ", allowed: one for each game");
    }
    for (const std::string& name : names) names_.emplace_back(name);
    const GameList& list = environment_.games();
    size_ = {list.observation_size()};
    actions_ = {list.num_actions()};
    for (const ObservationPart& part : list.game_options().Layout(list.options())) {
      parts_.push_back({py::str(part.name), part.offset, {part.shape.begin(), part.shape.end()}});
    }
  }

  auto Reset(std::optional<uint64_t> seed) {
    environment_.Reset(seed);
    return py::make_tuple(Observation(), Info());
  }

  auto Step(py::handle given) {
    const Position& position = environment_.position();
    if (position.IsTerminal()) {
      Raise(absl::FailedPreconditionError("step: the game is over; call reset() first"),
            Subject::kEnded);
    }
    auto saved = environment_.Step(ActionOf(given, static_cast<int>(actions_[0])));
    if (!saved.ok()) Raise(saved.status(), Subject::kAction);
    const int64_t all_main_ps = position.game().all_main_ps();
    const double reward =
        all_main_ps == 0 ? 0.0 : static_cast<double>(*saved) / static_cast<double>(all_main_ps);
    return py::make_tuple(Observation(), reward, position.IsTerminal(), false, Info());
  }

  PointRow Point() const { return RowOf(environment_.point()); }
  void Resume(const PointRow& row) {
    RaiseIfError(environment_.Resume(PointOf(row)), Subject::kAction);
  }

  py::array_t<int8_t> Mask() const {
    py::object mask = View(int8_, actions_, nullptr, {});
    environment_.WriteMask(static_cast<int8_t*>(DataOf(mask)));
    return py::reinterpret_borrow<py::array_t<int8_t>>(mask);
  }

  StateHandle CopyOfState() const {
    return StateHandle(handles_[environment_.game_index()], environment_.position().Clone());
  }
  size_t game_index() const { return environment_.game_index(); }

 private:
  struct Part {
    py::str name;
    int offset;
    std::vector<Py_intptr_t> shape;
  };

  // It has the same keys at each step, because recorders of others make a column of each.
  py::dict Info() const {
    py::dict info;
    info[mask_name_] = Mask();
    info[latency_name_] = int64_(environment_.position().latency_ps());
    info[program_name_] = names_[environment_.game_index()];
    return info;
  }

  py::object Observation() const {
    py::object whole = View(float32_, size_, nullptr, {});
    auto* numbers = static_cast<float*>(DataOf(whole));
    environment_.Observe(numbers);
    if (!as_dict_) return whole;
    py::dict parts;
    for (const Part& part : parts_)
      parts[part.name] = View(float32_, part.shape, numbers + part.offset, whole);
    return parts;
  }

  GameHandles handles_;
  Environment environment_;
  bool as_dict_;
  std::vector<Part> parts_;
  std::vector<Py_intptr_t> size_, actions_;
  py::dtype float32_ = py::dtype::of<float>(), int8_ = py::dtype::of<int8_t>();
  py::object int64_ = py::module_::import("numpy").attr("int64");  // TorchRL reads numbers of NumPy
  std::vector<py::str> names_;
  py::str mask_name_{"action_mask"}, latency_name_{"latency_ps"}, program_name_{"program"};
};

// The numbers of an array, which must have exactly this type and shape, and be writeable unless
// Element is const.
template <class Element>
Element* ElementsOf(py::handle object, const char* name, std::initializer_list<py::ssize_t> shape) {
  using T = std::remove_const_t<Element>;
  const auto fail = [&](const std::string& found) {
    std::string allowed;
    for (const py::ssize_t n : shape) allowed += (allowed.empty() ? "" : ", ") + std::to_string(n);
    RaiseInvalid(name, ": found ", found, ", allowed: a contiguous array of ",
                 std::string(py::str(py::dtype::of<T>())), " of shape (", allowed, ")");
  };
  if (!py::array_t<T, py::array::c_style>::check_(object))
    fail(std::string(py::str(py::type::handle_of(object))));
  const auto array = py::reinterpret_borrow<py::array>(object);
  bool same = array.ndim() == static_cast<py::ssize_t>(shape.size());
  for (size_t i = 0; same && i < shape.size(); ++i)
    same = array.shape(static_cast<py::ssize_t>(i)) == shape.begin()[i];
  if (!same) fail("shape " + std::string(py::str(array.attr("shape"))));
  if (!std::is_const_v<Element> && !array.writeable()) fail("a read-only array");
  return static_cast<Element*>(const_cast<void*>(array.data()));
}

Autoreset AutoresetOf(const std::string& name) {
  if (name == "NextStep") return Autoreset::kNextStep;
  if (name == "SameStep") return Autoreset::kSameStep;
  if (name == "Disabled") return Autoreset::kDisabled;
  RaiseInvalid("autoreset_mode: found '", name, "', allowed: 'NextStep', 'SameStep', 'Disabled'");
}

class EnvironmentBatch {
 public:
  EnvironmentBatch(const GameHandles& games, int count, const ObservationSettings& settings,
                   const std::string& autoreset, bool fixed, int threads)
      : handles_(games) {
    VectorEnvOptions options;
    options.autoreset = AutoresetOf(autoreset);
    options.order = fixed ? GameOrder::kFixed : GameOrder::kDrawn;
    options.threads = threads;
    batch_ = ValueOrRaise(VectorEnv::Create(ListOf(games, settings), count, options));
  }
  // Only who asks for a fork gets one, while no thread steps the other.
  // NOLINTBEGIN(google-explicit-constructor,bugprone-copy-constructor-mutates-argument)
  explicit EnvironmentBatch(const EnvironmentBatch& other)
      : handles_(other.handles_), batch_(other.Clone()) {}
  // NOLINTEND(google-explicit-constructor,bugprone-copy-constructor-mutates-argument)
  EnvironmentBatch& operator=(const EnvironmentBatch&) = delete;
  ~EnvironmentBatch() {
    if (turn_->Torn()) {  // not even fit to be destroyed
      [[maybe_unused]] const auto* const torn = batch_.release();
    }
    if (!turn_->home.IsThisOne()) {
      [[maybe_unused]] const auto* const left = turn_.release();
    }
  }

  std::unique_ptr<VectorEnv> Clone() const {
    return Alone([&] { return batch_->Clone(); });
  }

  void Reset(const std::optional<Seeds>& seeds, const py::object& which,
             const py::object& observations, const py::object& masks,
             const py::object& latency_ps) {
    StepBuffers out = Outputs(observations, masks, latency_ps);
    const bool* chosen =
        which.is_none() ? nullptr
                        : ElementsOf<const bool>(which, "options['reset_mask']", {batch_->count()});
    const auto chosen_span =
        absl::MakeConstSpan(chosen, chosen == nullptr ? 0 : static_cast<size_t>(batch_->count()));
    const absl::Span<const Seeds::value_type> seed_span =
        seeds ? absl::MakeConstSpan(*seeds) : absl::Span<const Seeds::value_type>();
    RaiseIfError(Alone([&] { return batch_->Reset(seed_span, chosen_span, out); }));
  }

  void Step(const py::object& actions, const py::object& observations, const py::object& masks,
            const py::object& latency_ps, const py::object& rewards, const py::object& terminated,
            const py::object& final_observations, const py::object& final_masks) {
    StepBuffers out = Outputs(observations, masks, latency_ps);
    const py::ssize_t n = batch_->count();
    out.rewards = ElementsOf<double>(rewards, "rewards", {n});
    out.terminated = ElementsOf<bool>(terminated, "terminated", {n});
    if (!final_observations.is_none()) {
      const GameList& games = batch_->games();
      out.final_observations = ElementsOf<float>(final_observations, "final_observations",
                                                 {n, games.observation_size()});
      out.final_masks = ElementsOf<int8_t>(final_masks, "final_masks", {n, games.num_actions()});
    }
    const int64_t* chosen = ElementsOf<const int64_t>(actions, "actions", {n});
    const auto span = absl::MakeConstSpan(chosen, static_cast<size_t>(n));
    const absl::Status status = Alone([&] { return batch_->Step(span, out); });
    RaiseIfError(status, status.code() == absl::StatusCode::kFailedPrecondition ? Subject::kEnded
                                                                                : Subject::kAction);
  }

  std::vector<PointRow> Points() const {
    const std::vector<EnvironmentPoint> points = Alone([&] {
      std::vector<EnvironmentPoint> found;
      for (int i = 0; i < batch_->count(); ++i) found.push_back(batch_->environment(i).point());
      return found;
    });
    std::vector<PointRow> rows;
    for (const EnvironmentPoint& point : points) rows.push_back(RowOf(point));
    return rows;
  }

  void Resume(const std::vector<PointRow>& rows, const py::object& observations,
              const py::object& masks, const py::object& latency_ps) {
    StepBuffers out = Outputs(observations, masks, latency_ps);
    std::vector<EnvironmentPoint> points;
    for (const PointRow& row : rows) points.push_back(PointOf(row));
    RaiseIfError(Alone([&] { return batch_->Resume(points, out); }), Subject::kAction);
  }

  StateHandle CopyOfState(int i) const {
    if (i < 0 || i >= batch_->count()) {
      throw py::index_error("environment " + std::to_string(i) + " of " +
                            std::to_string(batch_->count()));
    }
    return Alone([&] {
      const Environment& environment = batch_->environment(i);
      return StateHandle(handles_[environment.game_index()], environment.position().Clone());
    });
  }

  py::array_t<int32_t> GameIndices() const {
    const std::vector<int32_t> indices = Alone([&] {
      std::vector<int32_t> found;
      for (int i = 0; i < batch_->count(); ++i)
        found.push_back(static_cast<int32_t>(batch_->environment(i).game_index()));
      return found;
    });
    return py::array_t<int32_t>(static_cast<py::ssize_t>(indices.size()), indices.data());
  }

  int threads() const { return batch_->threads(); }

 private:
  // Python's threads may call at the same time; the batch works for one of them at a time.
  struct Turn {
    // Whether this is a forked child, and a thread that is not here was at work then.
    bool Torn() const { return taken && !home.IsThisOne(); }

    HomeProcess home;
    std::mutex mutex;
    std::atomic<bool> taken{false};
  };

  template <class Call>
  std::invoke_result_t<Call> Alone(const Call& call) const {
    if (turn_->Torn()) {
      RaiseInvalid(
          "VectorEnv: another thread was at work with it when this process was forked, so that it "
          "is of no use here; make a new one, or fork between two steps");
    }
    if (!turn_->home.IsThisOne()) {
      // Its mutex may be held by a thread that is not here.
      [[maybe_unused]] const auto* const left = turn_.release();
      turn_ = std::make_unique<Turn>();
    }
    return WithoutGil([&] {
      const std::lock_guard<std::mutex> lock(turn_->mutex);
      const struct Taken {
        explicit Taken(Turn& of) : turn(of) { turn.taken = true; }
        ~Taken() { turn.taken = false; }
        Turn& turn;
      } taken(*turn_);
      return call();
    });
  }

  StepBuffers Outputs(const py::object& observations, const py::object& masks,
                      const py::object& latency_ps) const {
    const py::ssize_t n = batch_->count();
    StepBuffers out;
    out.observations =
        ElementsOf<float>(observations, "observations", {n, batch_->games().observation_size()});
    out.masks = ElementsOf<int8_t>(masks, "masks", {n, batch_->games().num_actions()});
    out.latency_ps = ElementsOf<int64_t>(latency_ps, "latency_ps", {n});
    return out;
  }

  GameHandles handles_;
  std::unique_ptr<VectorEnv> batch_;
  mutable std::unique_ptr<Turn> turn_ = std::make_unique<Turn>();
};

}  // namespace

void BindVector(py::module_& module) {
  py::class_<PyEnvironment>(
      module, "Environment",
      "One game after the other, with observations; mallocgame.MallocGameEnv wraps it.")
      .def("__reduce_ex__", RefusePickling("pickle the MallocGameEnv that has it"))
      .def(
          "fork", [](const PyEnvironment& e) { return std::make_unique<PyEnvironment>(e); },
          "Another one, which goes on from here and shares the games.")
      .def(py::init<const GameHandles&, const ObservationSettings&, bool,
                    const std::vector<std::string>&>(),
           py::arg("games"), py::arg("settings"), py::arg("as_dict"), py::arg("names"),
           "games: each episode draws one of them. settings: those of the observation. as_dict: an "
           "observation is a dict of its parts, else one flat array. names: what infos call the "
           "games.")
      .def("reset", &PyEnvironment::Reset, py::arg("seed") = py::none(),
           "Begins the first episode of a seed, or without a seed the next one; returns "
           "(observation, info).")
      .def("step", &PyEnvironment::Step, py::arg("action"),
           "Carries out an action; returns (observation, reward, terminated, False, info). "
           "InvalidActionError if it is illegal, GameOverError after the end; neither changes "
           "anything.")
      .def("mask", &PyEnvironment::Mask, "An int8 array: for each action 1 if it is legal, else 0.")
      .def("state", &PyEnvironment::CopyOfState, "A copy of the State.")
      .def("point", &PyEnvironment::Point,
           "Where it is: (seed, episode of that seed, its actions so far).")
      .def("resume", &PyEnvironment::Resume, py::arg("point"),
           "Goes on from a point of an environment with the same games. InvalidActionError if an "
           "action is illegal there; then nothing changes.")
      .def_property_readonly("game_index", &PyEnvironment::game_index,
                             "The index of the game that is played.");

  py::class_<EnvironmentBatch>(module, "EnvironmentBatch",
                               "Environments that are stepped together and write into the caller's "
                               "arrays; mallocgame.VectorEnv wraps it.")
      .def("__reduce_ex__", RefusePickling("pickle the VectorEnv that has it"))
      .def(
          "fork", [](const EnvironmentBatch& b) { return std::make_unique<EnvironmentBatch>(b); },
          "Another one, which goes on from here and shares the games.")
      .def(
          "xla", [](const EnvironmentBatch& b) { return MakeXlaEnvironments(b.Clone()); },
          "A fork that XLA steps, an XlaEnvironments. InvalidInputError: the build had no jaxlib.")
      .def(py::init<const GameHandles&, int, const ObservationSettings&, const std::string&, bool,
                    int>(),
           py::arg("games"), py::arg("num_envs"), py::arg("settings"), py::arg("autoreset_mode"),
           py::arg("fixed"), py::arg("threads"),
           "autoreset_mode: 'NextStep', 'SameStep' or 'Disabled', as in Gymnasium. fixed: "
           "environment i plays game i modulo their number, else each episode draws its game. "
           "threads: 0 chooses by num_envs.")
      .def("reset", &EnvironmentBatch::Reset, py::arg("seeds"), py::arg("which"),
           py::arg("observations"), py::arg("masks"), py::arg("latency_ps"),
           "Begins an episode where `which` is True, or everywhere, and fills the arrays "
           "there.\n\nseeds: one for each environment; None goes on.")
      .def("step", &EnvironmentBatch::Step, py::arg("actions"), py::arg("observations"),
           py::arg("masks"), py::arg("latency_ps"), py::arg("rewards"), py::arg("terminated"),
           py::arg("final_observations"), py::arg("final_masks"),
           "Makes one step of each environment. InvalidActionError or GameOverError names the "
           "first environment that cannot make it; then none has moved.")
      .def("state", &EnvironmentBatch::CopyOfState, py::arg("index"),
           "A copy of the State of one environment.")
      .def("game_indices", &EnvironmentBatch::GameIndices,
           "An int32 array: for each environment the index of the game that it plays.")
      .def("points", &EnvironmentBatch::Points,
           "Where the environments are: (seed, episode of that seed, its actions so far) of each.")
      .def("resume", &EnvironmentBatch::Resume, py::arg("points"), py::arg("observations"),
           py::arg("masks"), py::arg("latency_ps"),
           "Goes on from the points of a batch with the same games, and writes as reset does. "
           "InvalidActionError names the first environment with an illegal action.")
      .def_property_readonly("threads", &EnvironmentBatch::threads,
                             "The number of threads beside the caller's.");
}

}  // namespace mallocgame::python
