// The tree search for Python, with a model written in Python. mallocgame/mcts.py says what a model
// is.
#include <pybind11/stl.h>

#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bindings/pybind/handles.h"
#include "bindings/pybind/pickling.h"
#include "bindings/pybind/status.h"
#include "mallocgame/base/home_process.h"
#include "mallocgame/tree/search.h"

namespace py = pybind11;

namespace mallocgame::python {
namespace {

using mcts::Search;

// What a model fills in. The arrays belong to Python, so that they may outlive the call.
struct Answers {
  py::array_t<float> logits, values, rewards, discounts;
  py::array_t<bool> legal, terminal;

  Answers() = default;
  Answers(const mcts::Predictions& preset, py::ssize_t actions) {
    const auto rows = static_cast<py::ssize_t>(preset.values.size());
    logits = Filled({rows, actions}, preset.logits);
    values = Filled({rows}, preset.values);
    rewards = Filled({rows}, preset.rewards);
    discounts = Filled({rows}, preset.discounts);
    legal = Flags({rows, actions}, preset.legal);
    terminal = Flags({rows}, preset.terminal);
  }

  void CopyTo(const mcts::Predictions& out) const {
    Copy(logits, out.logits);
    Copy(values, out.values);
    Copy(rewards, out.rewards);
    Copy(discounts, out.discounts);
    Copy(legal, out.legal);
    Copy(terminal, out.terminal);
  }

 private:
  template <class From, class To>
  static void Copy(const py::array_t<From>& from, absl::Span<To> to) {
    if (static_cast<size_t>(from.size()) != to.size()) {
      RaiseInvalid("predictions: an array was resized; allowed: to fill it in");
    }
    std::copy_n(from.data(), to.size(), to.begin());
  }
  static py::array_t<float> Filled(const std::vector<py::ssize_t>& shape,
                                   absl::Span<float> numbers) {
    py::array_t<float> array(shape);
    std::copy(numbers.begin(), numbers.end(), array.mutable_data());
    return array;
  }
  static py::array_t<bool> Flags(const std::vector<py::ssize_t>& shape, absl::Span<uint8_t> flags) {
    py::array_t<bool> array(shape);
    std::transform(flags.begin(), flags.end(), array.mutable_data(),
                   [](uint8_t flag) { return flag != 0; });
    return array;
  }
};

}  // namespace

template <>
inline constexpr auto kPickled<Answers> =
    std::tuple(&Answers::logits, &Answers::values, &Answers::rewards, &Answers::discounts,
               &Answers::legal, &Answers::terminal);

namespace {

// One column of the rows: rows[i].*member.
template <class Row>
py::array_t<int32_t> Column(absl::Span<const Row> rows, int32_t Row::* member) {
  py::array_t<int32_t> column(static_cast<py::ssize_t>(rows.size()));
  for (size_t i = 0; i < rows.size(); ++i) column.mutable_data()[i] = rows[i].*member;
  return column;
}

// A Python object as a Model. It is called without the GIL, and keeps what Python raises for
// RethrowIfRaised.
class PyModel final : public mcts::Model {
 public:
  explicit PyModel(py::object model)
      : model_(std::move(model)), num_actions_(model_.attr("num_actions").cast<int>()) {}

  int num_actions() const override { return num_actions_; }

  absl::Status Reserve(int slots) override {
    return Guarded([&] { model_.attr("reserve")(slots); });
  }
  absl::Status Start(absl::Span<const mcts::RootRow> rows, const mcts::Predictions& out) override {
    using mcts::RootRow;
    return Guarded([&] {
      Answer(out, [&](const py::object& answers) {
        model_.attr("start")(Column(rows, &RootRow::root), Column(rows, &RootRow::slot), answers);
      });
    });
  }
  absl::Status Step(absl::Span<const mcts::StepRow> rows, const mcts::Predictions& out) override {
    using mcts::StepRow;
    return Guarded([&] {
      Answer(out, [&](const py::object& answers) {
        model_.attr("step")(Column(rows, &StepRow::root), Column(rows, &StepRow::parent_slot),
                            Column(rows, &StepRow::action), Column(rows, &StepRow::slot), answers);
      });
    });
  }
  absl::Status Advance(int root, int slot) override {
    return Guarded([&] {
      if (py::hasattr(model_, "advance")) model_.attr("advance")(root, slot);
    });
  }

  void RethrowIfRaised() {
    if (raised_) std::rethrow_exception(std::exchange(raised_, nullptr));
  }

 private:
  template <class Call>
  absl::Status Guarded(const Call& call) {
    const py::gil_scoped_acquire gil;
    try {
      call();
    } catch (...) {
      raised_ = std::current_exception();
      return absl::AbortedError("the model raised");
    }
    return absl::OkStatus();
  }

  template <class Call>
  void Answer(const mcts::Predictions& out, const Call& call) {
    const py::object answers = py::cast(Answers(out, num_actions_));
    call(answers);
    answers.cast<const Answers&>().CopyTo(out);
  }

  py::object model_;
  int num_actions_;
  std::exception_ptr raised_;
};

mcts::ValueScaling ScalingOf(const std::string& name) {
  if (name == "tree") return mcts::ValueScaling::kTree;
  if (name == "node") return mcts::ValueScaling::kNode;
  if (name == "known") return mcts::ValueScaling::kKnown;
  RaiseInvalid("scaling: found '", name, "', allowed: 'tree', 'node', 'known'");
}

using RuleSettings = std::map<std::string, double>;

// The options of one rule. Settings that are left out keep their default.
template <class Options>
Options RuleOptions(const RuleSettings& settings, const std::string& rule,
                    const std::map<std::string, float Options::*>& members) {
  Options options;
  for (const auto& [name, value] : settings) {
    const auto member = members.find(name);
    if (member == members.end()) {
      std::string allowed;
      for (const auto& [known, unused] : members)
        absl::StrAppend(&allowed, allowed.empty() ? "" : ", ", known);
      RaiseInvalid("selection ", rule, ": found the setting '", name, "', allowed: ", allowed);
    }
    options.*member->second = static_cast<float>(value);
  }
  return options;
}

std::shared_ptr<const mcts::Selection> SelectionOf(const std::string& rule, RuleSettings settings) {
  if (rule == "gumbel") {
    using Options = mcts::GumbelOptions;
    std::optional<double> considered;
    if (const auto found = settings.find("considered"); found != settings.end()) {
      considered = found->second;
      settings.erase(found);
    }
    Options options = RuleOptions<Options>(settings, "gumbel",
                                           {{"c_visit", &Options::c_visit},
                                            {"c_scale", &Options::c_scale},
                                            {"noise_scale", &Options::noise_scale}});
    if (considered)
      options.considered =
          *considered >= 1 && *considered <= 1e9 ? static_cast<int>(*considered) : 0;
    return ValueOrRaise(MakeGumbel(options));
  }
  if (rule == "puct") {
    using Options = mcts::PuctOptions;
    const auto unvisited = settings.extract("unvisited_worst");
    Options options = RuleOptions<Options>(settings, "puct",
                                           {{"c_init", &Options::c_init},
                                            {"c_base", &Options::c_base},
                                            {"dirichlet_fraction", &Options::dirichlet_fraction},
                                            {"dirichlet_alpha", &Options::dirichlet_alpha}});
    if (!unvisited.empty() && unvisited.mapped() == 0) options.unvisited = mcts::Unvisited::kNode;
    return ValueOrRaise(MakePuct(options));
  }
  RaiseInvalid("selection: found '", rule, "', allowed: 'gumbel', 'puct'");
}

class PySearch {
 public:
  PySearch(int roots, int num_actions, const std::string& selection, const RuleSettings& settings,
           const mcts::SearchOptions& options)
      : search_(ValueOrRaise(
            Search::Create(options, SelectionOf(selection, settings), roots, num_actions))) {}
  PySearch(const PySearch&) = delete;
  PySearch& operator=(const PySearch&) = delete;
  ~PySearch() {
    // A forked child's, which another thread was searching: not even fit to be destroyed.
    if (busy_) {
      [[maybe_unused]] const auto* const left = search_.release();
    }
  }

  void Run(const py::object& model, const std::variant<uint64_t, std::vector<uint64_t>>& seed) {
    Call(model, [&](PyModel& called) {
      if (const auto* seeds = std::get_if<std::vector<uint64_t>>(&seed))
        return search_->Run(called, *seeds);
      return search_->Run(called, std::get<uint64_t>(seed));
    });
    searched_ = true;
  }

  bool Advance(const py::object& model, int root, int action) {
    bool kept = false;
    Call(model, [&](PyModel& called) -> absl::Status {
      const absl::StatusOr<bool> result = search_->Advance(called, root, action);
      if (result.ok()) kept = *result;
      return result.status();
    });
    return kept;
  }

  void Forget(const std::optional<int>& root) {
    CheckIdle();
    if (!root) return search_->ForgetAll();
    if (*root < 0 || *root >= search_->roots()) {
      RaiseInvalid("root: found ", *root, ", allowed: 0 to ", search_->roots() - 1);
    }
    search_->Forget(*root);
  }

  // An array with one number for each root.
  template <class T, class Get>
  py::array_t<T> PerRoot(const Get& get) const {
    CheckSearched();
    py::array_t<T> array(search_->roots());
    for (int i = 0; i < search_->roots(); ++i)
      array.mutable_data()[i] = static_cast<T>(get(*search_, i));
    return array;
  }

  // An array with one number for each root and action.
  template <class T, class Get>
  py::array_t<T> PerAction(const Get& get) const {
    CheckSearched();
    py::array_t<T> array({search_->roots(), search_->num_actions()});
    T* out = array.mutable_data();
    for (int i = 0; i < search_->roots(); ++i) {
      const absl::Span<const T> row = get(*search_, i);
      out = std::copy(row.begin(), row.end(), out);
    }
    return array;
  }

  py::array_t<int32_t> SampleActions(double temperature, uint64_t seed) const {
    if (!(temperature >= 0))
      RaiseInvalid("temperature: found ", std::to_string(temperature), ", allowed: 0 or more");
    return PerRoot<int32_t>([&](const Search& search, int i) {
      Rng rng(seed, static_cast<uint64_t>(i));
      return search.terminal(i) ? -1 : search.SampleAction(i, temperature, rng).value_or(-1);
    });
  }

  const Search& search() const { return *search_; }

 private:
  template <class Action>
  void Call(const py::object& model, const Action& action) {
    CheckIdle();
    PyModel called(model);
    busy_ = true;
    const absl::Status status = WithoutGil([&] { return action(called); });
    busy_ = false;
    if (!status.ok()) searched_ = false;
    called.RethrowIfRaised();
    RaiseIfError(status);
  }

  // Other Python threads, and the model itself, may call while a search runs.
  void CheckIdle() const {
    if (busy_ && !home_.IsThisOne()) {
      RaiseInvalid(
          "search: it was running in another thread when this process was forked, so that it is of "
          "no use here; make a new one");
    }
    if (busy_) {
      RaiseInvalid("search: it is running; nothing else can be asked of it until it ends");
    }
  }
  void CheckSearched() const {
    CheckIdle();
    if (!searched_)
      RaiseInvalid(
          "search: nothing has been searched yet, or the last run failed; call run() first");
  }

  std::unique_ptr<Search> search_;
  HomeProcess home_;
  bool busy_ = false;
  bool searched_ = false;
};

}  // namespace

void BindSearch(py::module_& module) {
  py::class_<Answers>(
      module, "Predictions",
      "What a model says of a batch of positions: arrays to be filled in. See mallocgame.mcts.")
      .def_readonly("logits", &Answers::logits, "float32 [rows, actions], set to 0.")
      .def_readonly("values", &Answers::values, "float32 [rows], set to 0.")
      .def_readonly("rewards", &Answers::rewards, "float32 [rows], set to 0.")
      .def_readonly("discounts", &Answers::discounts,
                    "float32 [rows], set to the search's discount.")
      .def_readonly("legal", &Answers::legal, "bool [rows, actions], set to True.")
      .def_readonly("terminal", &Answers::terminal, "bool [rows], set to False.")
      .def(Pickled<Answers>());

  py::class_<PySearch>(module, "Search",
                       "Monte Carlo tree search over many roots. See mallocgame.mcts.")
      .def("__reduce_ex__",
           RefusePickling("make another with mallocgame.mcts.search(); its results are arrays"))
      .def(py::init([](int roots, int num_actions, const std::string& selection, int simulations,
                       int max_nodes, int leaves, int max_batch, int threads, float discount,
                       const std::string& scaling, float min_value, float max_value,
                       float min_range, float max_range, const RuleSettings& settings) {
             mcts::SearchOptions options;
             options.simulations = simulations;
             options.max_nodes = max_nodes;
             options.leaves = leaves;
             options.max_batch = max_batch;
             options.threads = threads;
             options.discount = discount;
             options.scaling = ScalingOf(scaling);
             options.min_value = min_value;
             options.max_value = max_value;
             options.min_range = min_range;
             options.max_range = max_range;
             return std::make_unique<PySearch>(roots, num_actions, selection, settings, options);
           }),
           py::arg("roots"), py::arg("num_actions"), py::arg("selection"), py::arg("simulations"),
           py::arg("max_nodes"), py::arg("leaves"), py::arg("max_batch"), py::arg("threads"),
           py::arg("discount"), py::arg("scaling"), py::arg("min_value"), py::arg("max_value"),
           py::arg("min_range"), py::arg("max_range"), py::arg("settings"),
           "mallocgame.mcts.search says what each means. InvalidInputError: one is out of range.")
      .def("run", &PySearch::Run, py::arg("model"), py::arg("seed") = 0,
           "Searches every root. seed is one number, or one for each root. What the model raises "
           "comes through, and all trees are then forgotten.")
      .def("advance", &PySearch::Advance, py::arg("model"), py::arg("root"), py::arg("action"),
           "Says that the action was played: the next run starts from its subtree.\n\nReturns "
           "False if there is none, and then the root starts anew.")
      .def("forget", &PySearch::Forget, py::arg("root") = py::none(),
           "Makes the next run start the root anew; None means all of them.")
      .def("sample_actions", &PySearch::SampleActions, py::arg("temperature") = 1.0,
           py::arg("seed") = 0,
           "int32 [roots]: drawn with probability proportional to visits**(1/temperature); -1 "
           "where nothing was visited.")
      .def_property_readonly(
          "actions",
          [](const PySearch& s) {
            return s.PerRoot<int32_t>([](const Search& search, int i) {
              return search.terminal(i) ? -1 : search.action(i);
            });
          },
          "int32 [roots]: what to play; -1 where the game is over.")
      .def_property_readonly(
          "policy",
          [](const PySearch& s) {
            return s.PerAction<float>([](const Search& search, int i) { return search.policy(i); });
          },
          "float32 [roots, actions]: the improved policy, what a network should learn.")
      .def_property_readonly(
          "visits",
          [](const PySearch& s) {
            return s.PerAction<int32_t>(
                [](const Search& search, int i) { return search.visits(i); });
          },
          "int32 [roots, actions].")
      .def_property_readonly(
          "q",
          [](const PySearch& s) {
            return s.PerAction<float>([](const Search& search, int i) { return search.q(i); });
          },
          "float32 [roots, actions]: mean return of each action; 0 without visits.")
      .def_property_readonly(
          "priors",
          [](const PySearch& s) {
            return s.PerAction<float>([](const Search& search, int i) { return search.priors(i); });
          },
          "float32 [roots, actions]: the model's policy, noise included; -1 where illegal.")
      .def_property_readonly(
          "values",
          [](const PySearch& s) {
            return s.PerRoot<float>([](const Search& search, int i) { return search.value(i); });
          },
          "float32 [roots]: mean return over all visits.")
      .def_property_readonly(
          "model_values",
          [](const PySearch& s) {
            return s.PerRoot<float>(
                [](const Search& search, int i) { return search.model_value(i); });
          },
          "float32 [roots]: the model's own value.")
      .def_property_readonly(
          "terminal",
          [](const PySearch& s) {
            return s.PerRoot<bool>([](const Search& search, int i) { return search.terminal(i); });
          },
          "bool [roots].")
      .def_property_readonly(
          "simulations",
          [](const PySearch& s) {
            return s.PerRoot<int32_t>(
                [](const Search& search, int i) { return search.simulations(i); });
          },
          "int32 [roots]: simulations that the last run did.")
      .def_property_readonly(
          "depths",
          [](const PySearch& s) {
            return s.PerRoot<int32_t>(
                [](const Search& search, int i) { return search.depth(i).greatest; });
          },
          "int32 [roots]: greatest depth of a simulation of the last run.")
      .def_property_readonly(
          "roots", [](const PySearch& s) { return s.search().roots(); }, "The number of roots.")
      .def_property_readonly(
          "num_actions", [](const PySearch& s) { return s.search().num_actions(); },
          "The number of actions.")
      .def_property_readonly(
          "slots", [](const PySearch& s) { return s.search().slots(); },
          "The number of slots that a model is handed.");
}

}  // namespace mallocgame::python
