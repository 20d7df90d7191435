// What must hold for every game on every program, checked on thousands of random programs and
// random plays.
#include <string>

#include "absl/strings/str_join.h"
#include "mallocgame/game/time/state.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/simulator/simulate.h"
#include "tests/catch.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::RandomProgram;
using testing::RandomProgramOptions;
using testing::TestHardware;

Action RandomAction(const State& state, Rng& rng) {
  return static_cast<Action>(testing::RandomAction(state, rng));
}

// Returns the game of a random program, sometimes a large one, on hardware that is sometimes far
// too small, with random options.
std::shared_ptr<const Game> RandomGame(Rng& rng) {
  RandomProgramOptions options;
  options.instructions = 4 + static_cast<int>(rng.Below(rng.Below(4) == 0 ? 60 : 16));
  options.loops = static_cast<int>(rng.Below(3));
  options.branches = static_cast<int>(rng.Below(2));
  options.constrained = rng.Below(2) == 0;
  options.roofline = rng.Below(4) == 0;
  auto program = RandomProgram(rng, options);
  Hardware hardware = TestHardware(4 + rng.Below(40), rng.Below(3) == 0 ? 4 : 1);
  hardware.max_preloads = static_cast<int32_t>(rng.Below(3));
  hardware.max_outstanding_prefetches = 1 + static_cast<int32_t>(rng.Below(4));
  hardware.max_outstanding_evictions = 1 + static_cast<int32_t>(rng.Below(4));
  TimeGameOptions game_options;
  game_options.min_buffer_bytes = rng.Below(4) == 0 ? 3 : 0;
  game_options.paper_actions = rng.Below(4) == 0;
  game_options.drop_backup = rng.Below(3) == 0;
  game_options.illegal_penalty = rng.Below(4) == 0 ? 0.25 : 0.0;
  game_options.keep_free = rng.Below(4) == 0 ? 0.25 : 0.0;
  if (rng.Below(4) == 0) {
    for (size_t a = 0; a < program->accesses().size(); ++a) {
      const uint32_t kind = rng.Below(10);
      if (kind == 0) game_options.forbidden.emplace_back(a);
    }
  }
  auto game = Game::Create(program, hardware, game_options);
  REQUIRE(game.ok());
  return *game;
}

// Reads everything that can be seen of a state without changing it.
std::string Visible(const State& state) {
  return state.ToString() + absl::StrJoin(state.legal_actions(), ",") + " " +
         std::to_string(state.latency_ps()) + " " + std::to_string(state.stall_ps()) + " " +
         std::to_string(state.penalty_ps()) + " " + std::to_string(state.preloads());
}

TEST_CASE("every play ends in a valid plan whose simulated latency is what the rewards add up to") {
  Rng rng(1);
  for (int g = 0; g < 4000; ++g) {
    const auto game = RandomGame(rng);
    const auto all_main =
        Simulate(game->cost_model(), AllMainPlan(game->program(), game->hardware()));
    REQUIRE(all_main.ok());
    REQUIRE(all_main->latency_ps == game->all_main_ps());
    for (int episode = 0; episode < 4; ++episode) {
      State state(game);
      int64_t saved = 0;
      int decisions = 0;
      while (!state.IsTerminal()) {
        const auto step = state.Apply(RandomAction(state, rng));
        REQUIRE(step.ok());
        saved += *step;
        REQUIRE(++decisions <= game->max_decisions());
      }
      const Plan plan = state.ToPlan();
      const Verdict verdict = Validate(game->program(), game->hardware(), plan);
      INFO("game " << g << " episode " << episode << ": " << RuleName(verdict.rule) << ": "
                   << verdict.message << "\n"
                   << PlanToString(game->program(), plan));
      REQUIRE(verdict.ok());
      const auto report = Simulate(game->cost_model(), plan);
      REQUIRE(report.ok());
      REQUIRE(report->latency_ps == state.latency_ps());
      REQUIRE(report->stall_ps == state.stall_ps());
      REQUIRE(saved + state.penalty_ps() == game->all_main_ps() - report->latency_ps);
    }
  }
}

TEST_CASE("constraints are kept") {
  Rng rng(2);
  for (int g = 0; g < 1000; ++g) {
    const auto game = RandomGame(rng);
    State state(game);
    while (!state.IsTerminal()) REQUIRE(state.Apply(RandomAction(state, rng)).ok());
    const Plan plan = state.ToPlan();
    for (AccessId id : game->options().forbidden) REQUIRE(!plan.served_by[id.index()].valid());
    int preloads = 0;
    for (const Copy& copy : plan.copies) preloads += copy.preload;
    REQUIRE(preloads <= game->hardware().max_preloads);
    const int64_t capacity = game->hardware().fast_bytes -
                             static_cast<int64_t>(game->options().keep_free *
                                                  static_cast<double>(game->hardware().fast_bytes));
    for (const Residence& r : plan.residences) {
      REQUIRE(r.offset + game->program().buffer(r.buffer).size_bytes <= capacity);
      REQUIRE(game->program().buffer(r.buffer).size_bytes >= game->options().min_buffer_bytes);
    }
  }
}

TEST_CASE("the mask is the set that Apply accepts, and a refused action changes nothing") {
  Rng rng(3);
  for (int g = 0; g < 500; ++g) {
    const auto game = RandomGame(rng);
    State state(game);
    while (!state.IsTerminal()) {
      REQUIRE(!state.legal_actions().empty());
      for (const int action : state.legal_actions()) REQUIRE(action < game->num_actions());
      const std::string before = Visible(state);
      for (int a = 0; a < kActions + 2; ++a) {
        if (a < kActions && state.IsLegal(static_cast<Action>(a))) continue;
        REQUIRE(state.Apply(static_cast<Action>(a)).status().code() ==
                absl::StatusCode::kInvalidArgument);
        REQUIRE(Visible(state) == before);
      }
      REQUIRE(state.Apply(RandomAction(state, rng)).ok());
    }
    REQUIRE(state.legal_actions().empty());
    REQUIRE(state.Apply(Action::kDrop).status().code() == absl::StatusCode::kFailedPrecondition);
  }
}

TEST_CASE("undo and clone are exact") {
  Rng rng(4);
  for (int g = 0; g < 600; ++g) {
    const auto game = RandomGame(rng);
    State state(game);
    std::vector<std::string> history;
    for (int step = 0; step < 200; ++step) {
      if (!history.empty() && (state.IsTerminal() || rng.Below(3) == 0)) {
        state.Undo();
        REQUIRE(Visible(state) == history.back());
        history.pop_back();
        continue;
      }
      if (state.IsTerminal()) break;
      history.push_back(Visible(state));
      // A clone is played to the end and back, and the original doesn't change.
      State clone = state;
      const std::string before = Visible(clone);
      int played = 0;
      for (; !clone.IsTerminal(); ++played) REQUIRE(clone.Apply(RandomAction(clone, rng)).ok());
      const Plan plan = clone.ToPlan();
      REQUIRE(Visible(state) == history.back());
      const std::vector<uint8_t> actions(clone.actions().begin(), clone.actions().end());
      for (; played > 0; --played) clone.Undo();
      REQUIRE(Visible(clone) == before);
      for (size_t i = clone.actions().size(); i < actions.size(); ++i)
        REQUIRE(clone.Apply(static_cast<Action>(actions[i])).ok());
      REQUIRE(clone.ToPlan() == plan);
      REQUIRE(state.Apply(RandomAction(state, rng)).ok());
    }
  }
}

}  // namespace
}  // namespace mallocgame
