// The MuZero agent for Python: its trainer, step by step, and the trained agent. Torch stays inside
// agents/muzero.
#include <pybind11/stl.h>

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "agents/muzero/actor.h"
#include "agents/muzero/agent.h"
#include "agents/muzero/config.h"
#include "agents/muzero/learner.h"
#include "agents/muzero/task.h"
#include "agents/muzero/trainer.h"
#include "agents/training/stopwatch.h"
#include "bindings/pybind/agents.h"
#include "bindings/pybind/handles.h"
#include "bindings/pybind/interruptibly.h"
#include "bindings/pybind/status.h"
#include "mallocgame/base/error.h"

namespace py = pybind11;

namespace mallocgame::python {

namespace {

// What is trained on, by its name: a program, on a hardware or its own, or a game; and the prices
// by which plans are compared: "both", "compiler", or none for both if the program can have them.
using Problem =
    std::tuple<std::string,
               std::variant<std::shared_ptr<ProgramHandle>, std::shared_ptr<GameHandle>>,
               std::optional<Hardware>, std::optional<std::string>>;

std::shared_ptr<ProgramHandle> ProgramOf(const Problem& problem) {
  const auto& played = std::get<1>(problem);
  if (const auto* game = std::get_if<std::shared_ptr<GameHandle>>(&played)) return (*game)->program;
  return std::get<std::shared_ptr<ProgramHandle>>(played);
}

// The program at the prices that a problem asks for.
std::shared_ptr<const Program> AtPrices(const ProgramHandle& program, const Hardware& hardware,
                                        const std::optional<std::string>& prices) {
  if (prices == "compiler" || program.program().both() != nullptr) return program.file.program;
  const auto both = BothPricesOf(program, hardware);
  return prices || both.ok() ? ValueOrRaise(both) : program.file.program;
}

std::vector<muzero::TrainingProblem> ProblemsOf(const std::vector<Problem>& problems) {
  std::vector<muzero::TrainingProblem> all;
  for (const Problem& problem : problems) {
    const auto& [name, played, own_hardware, prices] = problem;
    const std::shared_ptr<const ProgramHandle> program = ProgramOf(problem);
    const auto* game = std::get_if<std::shared_ptr<GameHandle>>(&played);
    const Hardware hardware =
        game != nullptr ? (*game)->game->hardware() : HardwareOr(*program, own_hardware);
    muzero::TrainingProblem one = {name, AtPrices(*program, hardware, prices), hardware,
                                   std::nullopt};
    if (const Plan* plan = program->XlaPlanFor(hardware); plan != nullptr) one.xla_plan = *plan;
    if (game != nullptr) one.own_game = (*game)->game->options().Clone();
    all.push_back(std::move(one));
  }
  return all;
}

class TrainerHandle {
 public:
  TrainerHandle(const std::vector<Problem>& problems, std::unique_ptr<muzero::Trainer> trainer)
      : trainer_(std::move(trainer)) {
    for (const Problem& problem : problems) programs_.push_back(ProgramOf(problem));
  }

  muzero::Trainer& trainer() { return *trainer_; }

  size_t Index(py::ssize_t i) const {
    if (i < 0 || static_cast<size_t>(i) >= programs_.size()) {
      throw py::index_error("problem " + std::to_string(i) + " of " +
                            std::to_string(programs_.size()));
    }
    return i;
  }

  ResultHandle Result(size_t i, SolveResult result) const {
    std::shared_ptr<const Game> game = result.play ? result.play->game : nullptr;
    if (game == nullptr) {
      const muzero::TrainingProblem& problem = trainer_->problems()[i];
      game = ValueOrRaise(GameOf(problem, trainer_->config()));
    }
    auto handle =
        std::make_shared<GameHandle>(GameHandle{programs_[i], std::move(game), trainer_->seed()});
    return {std::move(handle), std::move(result), "muzero", trainer_->seed(), 0};
  }

 private:
  std::vector<std::shared_ptr<ProgramHandle>> programs_;
  std::unique_ptr<muzero::Trainer> trainer_;
};

typing::Dict<py::str, py::float_> ToDict(const muzero::Progress& p) {
  using py::literals::operator""_a;
  return py::dict("iteration"_a = p.iteration, "best_ps"_a = p.best_ps,
                  "mean_return"_a = p.mean_return, "games"_a = p.games, "varied"_a = p.varied,
                  "searches"_a = p.searches, "evaluations"_a = p.evaluations, "depth"_a = p.depth,
                  "entropy"_a = p.entropy, "updates"_a = p.updates,
                  "replay_steps"_a = p.replay_steps, "policy_loss"_a = p.policy_loss,
                  "value_loss"_a = p.value_loss, "reward_loss"_a = p.reward_loss,
                  "value_error"_a = p.value_error, "policy_entropy"_a = p.policy_entropy,
                  "gradient_norm"_a = p.gradient_norm, "learning_rate"_a = p.learning_rate,
                  "staleness"_a = p.staleness, "stale"_a = p.stale,
                  "play_seconds"_a = p.play_seconds, "learn_seconds"_a = p.learn_seconds);
}

void BindMuZeroTrainer(py::module_& module) {
  py::class_<TrainerHandle>(
      module, "MuZeroTrainer",
      "The training of one agent on several problems; mallocgame.agents.MuZero wraps it.")
      .def("__reduce_ex__", RefusePickling("save() it, and load() it where it goes on"))
      .def(
          py::init([](const std::vector<Problem>& problems, const AgentSettings& settings,
                      uint64_t seed, int threads, const py::bytes& tuned_from) {
            const muzero::Config config = ConfigOf<muzero::Config>(settings);
            auto all = ProblemsOf(problems);
            const absl::string_view begin = ViewOf(tuned_from);
            return TrainerHandle(problems, ValueOrRaise(WithoutGil([&] {
                                   return muzero::Trainer::Create(std::move(all), config, seed,
                                                                  threads, begin);
                                 })));
          }),
          py::arg("problems"), py::arg("settings"), py::arg("seed"), py::arg("threads"),
          py::arg("tuned_from"),
          "problems: (name, program, hardware or None for the program's own, prices). threads 0: "
          "one a core.\n\ntuned_from: the bytes of save(), with whose networks the training "
          "begins; none if empty.\n\nInvalidInputError: a setting that is none, or a game in which "
          "nothing is to be decided.")
      .def_static(
          "load",
          [](const std::vector<Problem>& problems, const py::bytes& checkpoint, int threads) {
            auto all = ProblemsOf(problems);
            const absl::string_view bytes = ViewOf(checkpoint);
            return TrainerHandle(problems, ValueOrRaise(WithoutGil([&] {
                                   return muzero::Trainer::Load(std::move(all), bytes, threads);
                                 })));
          },
          py::arg("problems"), py::arg("checkpoint"), py::arg("threads"),
          "Goes on with a checkpoint of save(), with the very same stream.\n\nInvalidInputError: "
          "another version, other problems, or damaged bytes.")
      .def(
          "step",
          [](TrainerHandle& t) {
            return ToDict(Interruptibly(
                [&](const std::atomic<bool>* cancel) { return t.trainer().Step(cancel); }));
          },
          "One iteration; the first collects demonstrations. Ctrl-C ends it; then only results can "
          "be asked for.")
      .def(
          "take_demonstrations",
          [](TrainerHandle& t, const std::vector<py::bytes>& demonstrations) {
            const std::vector<std::string> played(demonstrations.begin(), demonstrations.end());
            return ToDict(
                ValueOrRaise(WithoutGil([&] { return t.trainer().TakeDemonstrations(played); })));
          },
          py::arg("demonstrations"),
          "The first step, of what muzero_demonstrations gave for each problem.")
      .def(
          "introduction",
          [](TrainerHandle& t) { return py::bytes(ValueOrRaise(t.trainer().Introduction())); },
          "What a MuZeroActor is made of, after the first step.")
      .def(
          "weights",
          [](TrainerHandle& t) {
            return py::bytes(ValueOrRaise(WithoutGil([&] { return t.trainer().Weights(); })));
          },
          "The networks as they are now, for MuZeroActor.play.")
      .def(
          "assign",
          [](TrainerHandle& t, int group) {
            return py::bytes(ValueOrRaise(WithoutGil([&] { return t.trainer().Assign(group); })));
          },
          py::arg("group"),
          "What a group is to play next, for MuZeroActor.play. It is out until it is taken.")
      .def(
          "take",
          [](TrainerHandle& t, int group, const py::bytes& harvest,
             std::optional<int64_t> most_stale) {
            const absl::string_view bytes = ViewOf(harvest);
            RaiseIfError(WithoutGil([&] { return t.trainer().Take(group, bytes, most_stale); }));
          },
          py::arg("group"), py::arg("harvest"), py::arg("most_stale"),
          "Takes what MuZeroActor.play gave. Games of networks older than that are dropped.")
      .def(
          "learn",
          [](TrainerHandle& t, int updates) {
            Interruptibly([&](const std::atomic<bool>* cancel) -> absl::StatusOr<bool> {
              MG_RETURN_IF_ERROR(t.trainer().Learn(updates, cancel));
              return true;
            });
          },
          py::arg("updates"), "Learns from the games that were taken.")
      .def(
          "end_step", [](TrainerHandle& t) { return ToDict(ValueOrRaise(t.trainer().EndStep())); },
          "Ends a step of assign, learn and take; returns what step() does.")
      .def(
          "save",
          [](TrainerHandle& t) {
            return py::bytes(ValueOrRaise(WithoutGil([&] { return t.trainer().Save(); })));
          },
          "Returns the bytes of a checkpoint.")
      .def(
          "best",
          [](TrainerHandle& t, py::ssize_t i) {
            return t.Result(t.Index(i), ValueOrRaise(t.trainer().Best(t.Index(i))));
          },
          py::arg("problem"), "The best plan known of a problem.")
      .def(
          "best_game",
          [](TrainerHandle& t, py::ssize_t i) {
            return t.Result(t.Index(i), ValueOrRaise(t.trainer().BestGame(t.Index(i))));
          },
          py::arg("problem"), "The best game known of a problem: its actions make its plan.")
      .def(
          "polish",
          [](TrainerHandle& t, py::ssize_t i, double seconds) {
            const size_t index = t.Index(i);
            return t.Result(index, Interruptibly([&](const std::atomic<bool>* cancel) {
                              return t.trainer().Polish(index, seconds, cancel);
                            }));
          },
          py::arg("problem"), py::arg("seconds"),
          "Improves best() by annealing its residences, and returns it.")
      .def_property_readonly(
          "settings", [](TrainerHandle& t) { return SettingsOf(t.trainer().config()); },
          "All settings as text, by name.")
      .def_property_readonly(
          "seed", [](TrainerHandle& t) { return t.trainer().seed(); },
          "The seed that the training was begun with.")
      .def_property_readonly(
          "iterations", [](TrainerHandle& t) { return t.trainer().iterations(); }, "Steps done.")
      .def_property_readonly(
          "parameters", [](TrainerHandle& t) { return t.trainer().parameters(); },
          "The number of weights of the networks that play.");
}

void BindMuZeroActor(py::module_& module) {
  py::class_<muzero::Actor>(module, "MuZeroActor",
                            "Plays for a MuZeroTrainer elsewhere. See agents/muzero/actor.h.")
      .def("__reduce_ex__",
           RefusePickling("pickle the introduction of its trainer, and make another of it"))
      .def(py::init([](const std::vector<Problem>& problems, const py::bytes& introduction) {
             const auto all = ProblemsOf(problems);
             const absl::string_view bytes = ViewOf(introduction);
             return ValueOrRaise(WithoutGil([&] { return muzero::Actor::Create(all, bytes); }));
           }),
           py::arg("problems"), py::arg("introduction"),
           "InvalidInputError: the introduction is damaged, or of other problems.")
      .def(
          "play",
          [](const muzero::Actor& actor, const py::bytes& weights, const py::bytes& assignment) {
            const absl::string_view networks = ViewOf(weights), assigned = ViewOf(assignment);
            return py::bytes(Interruptibly([&](const std::atomic<bool>* cancel) {
              return actor.Play(networks, assigned, cancel);
            }));
          },
          py::arg("weights"), py::arg("assignment"),
          "Returns a harvest. It depends on both only. InvalidInputError: one is damaged.");
  module.def(
      "muzero_demonstrations",
      [](const Problem& problem, const AgentSettings& settings, uint64_t seed) {
        const muzero::Config config = ConfigOf<muzero::Config>(settings);
        const auto all = ProblemsOf({problem});
        return py::bytes(Interruptibly([&](const std::atomic<bool>* cancel) {
          return muzero::PlayDemonstrations(all[0], config, seed, cancel);
        }));
      },
      py::arg("problem"), py::arg("settings"), py::arg("seed"),
      "The demonstrations of a problem, for MuZeroTrainer.take_demonstrations.");
}

void BindMuZeroAgent(py::module_& module) {
  BindAgentClass<muzero::Agent>(
      module, "MuZeroAgent",
      "A trained agent that plays any program; mallocgame.agents.MuZeroAgent wraps it.", "muzero")
      .def(
          "game_to_play",
          [](const AgentHandle<muzero::Agent>& handle, const std::shared_ptr<GameHandle>& asked) {
            auto game = Interruptibly([&](const std::atomic<bool>* cancel) {
              return handle.agent->GameToPlay(asked->game, cancel);
            });
            return GameHandle{asked->program, std::move(game), asked->seed};
          },
          py::arg("game").none(false),
          "Returns the game that promises most for the program and hardware of a "
          "game.\n\nInvalidInputError: the agent plays another game.")
      .def(
          "baseline",
          [](const AgentHandle<muzero::Agent>& handle, const std::shared_ptr<GameHandle>& game) {
            const training::Stopwatch watch;
            auto result = Interruptibly([&](const std::atomic<bool>* cancel) {
              return handle.agent->Baseline(game->game, cancel);
            });
            const std::string player = result.found_by;
            return ResultHandle{PlayedGame(game, result), std::move(result), player, 0,
                                watch.seconds()};
          },
          py::arg("game").none(false),
          "Returns the game over which the agent counts its returns.\n\nInvalidInputError: the "
          "agent plays another game.")
      .def(
          "play",
          [](const AgentHandle<muzero::Agent>& handle, const std::shared_ptr<GameHandle>& game,
             const AgentSettings& settings) {
            const muzero::Config config = ConfigOf(settings, handle.agent->config());
            const training::Stopwatch watch;
            auto result = Interruptibly([&](const std::atomic<bool>* cancel) {
              return handle.agent->Play(game->game, config, cancel);
            });
            return ResultHandle{PlayedGame(game, result), std::move(result), "muzero", 0,
                                watch.seconds()};
          },
          py::arg("game").none(false), py::arg("config"),
          "Plays one game, each decision by a search. See MuZeroAgent.play.\n\nconfig: settings of "
          "the search; those left out are the agent's. InvalidInputError: the agent plays another "
          "game, or a setting is none.")
      .def(
          "act",
          [](const AgentHandle<muzero::Agent>& handle, const StateHandle& state) {
            const bool ended = state.position->IsTerminal();
            const muzero::Advice advice = Interruptibly(
                [&](const std::atomic<bool>* cancel) {
                  return handle.agent->Act(*state.position, cancel);
                },
                ended ? Subject::kEnded : Subject::kInput);
            return py::make_tuple(advice.action, ToArray(advice.policy), advice.value);
          },
          py::arg("state"),
          "Returns the action to play, the policy float32 [actions], and the expected "
          "return.\n\nGameOverError: nothing is to be decided any more. InvalidInputError: the "
          "state is not of the game that the agent was trained in.")
      .def_property_readonly(
          "iterations",
          [](const AgentHandle<muzero::Agent>& handle) { return handle.agent->iterations(); },
          "Steps of training.")
      .def_property_readonly(
          "programs",
          [](const AgentHandle<muzero::Agent>& handle) { return handle.agent->programs(); },
          "The names of the programs that it was trained on.");
}

}  // namespace

void BindMuZero(py::module_& module) {
  BindMuZeroTrainer(module);
  BindMuZeroActor(module);
  BindMuZeroAgent(module);
  BindSettings<muzero::Config>(module, "muzero_settings");
  module.def(
      "muzero_count_of_decision",
      [](const std::shared_ptr<GameHandle>& one) { return one->game->options().decision_cost(); },
      py::arg("game"), "As how many a decision of this game counts where decisions are limited.");
}

}  // namespace mallocgame::python
