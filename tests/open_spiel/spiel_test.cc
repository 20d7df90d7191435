// OpenSpiel's own tests of a game, and its MCTS bot, on our games: spiel_test PROGRAM TIMES.
// spiel_test --play GAME prints one; spiel_test --steps N GAME makes random steps.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iomanip>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>

#include "bindings/open_spiel/mallocgame.h"
#include "open_spiel/algorithms/mcts.h"
#include "open_spiel/spiel.h"
#include "open_spiel/spiel_utils.h"
#include "open_spiel/tests/basic_tests.h"

namespace mallocgame {
namespace {

// OpenSpiel's tests print each state.
class Quiet {
 public:
  Quiet() : before_(std::cout.rdbuf(printed_.rdbuf())) {}
  ~Quiet() { std::cout.rdbuf(before_); }

 private:
  std::ostringstream printed_;
  std::streambuf* before_;
};

void Refused(const std::function<void()>& call, const std::string& words) {
  try {
    call();
  } catch (const std::runtime_error& error) {
    if (std::string(error.what()).find(words) != std::string::npos) return;
    std::cerr << "found '" << error.what() << "', expected '" << words << "'\n";
    std::exit(1);
  }
  std::cerr << "not refused: " << words << "\n";
  std::exit(1);
}

// How a game ends that a bot plays, or without one a player who draws.
std::unique_ptr<spiel::State> Play(const spiel::Game& game, spiel::Bot* bot) {
  std::mt19937 chance(0);
  std::unique_ptr<spiel::State> state = game.NewInitialState();
  while (!state->IsTerminal()) {
    const std::vector<spiel::Action> legal = state->LegalActions();
    state->ApplyAction(bot != nullptr ? bot->Step(*state) : legal[chance() % legal.size()]);
  }
  return state;
}

void TestGame(const std::string& text, int times) {
  namespace tests = spiel::testing;
  const std::shared_ptr<const spiel::Game> game = spiel::LoadGame(text);
  std::cout << game->ToString() << ": " << game->NumDistinctActions() << " actions, "
            << game->MaxGameLength() << " decisions, " << game->ObservationTensorSize()
            << " numbers\n";
  {
    const Quiet quiet;
    tests::LoadGameTest(text);
    tests::NoChanceOutcomesTest(*game);
    tests::RandomSimTest(*game, times, /*serialize=*/true, /*verbose=*/false);
    tests::RandomSimTestWithUndo(*game, times);
    tests::CheckLegalActionsAreSorted(*game, *game->NewInitialState());
  }
  std::cout << "  LoadGameTest, NoChanceOutcomesTest, RandomSimTest, RandomSimTestWithUndo, "
               "CheckLegalActionsAreSorted: passed\n";

  const std::unique_ptr<spiel::State> random = Play(*game, nullptr);
  if (game->MaxGameLength() < 200) {
    spiel::algorithms::MCTSBot bot(
        *game, std::make_shared<spiel::algorithms::RandomRolloutEvaluator>(1, 0), 0.1, 50, 100,
        /*solve=*/false, 0, /*verbose=*/false);
    const std::unique_ptr<spiel::State> searched = Play(*game, &bot);
    std::cout << "  MCTSBot: " << searched->PlayerReturn(0) << ", at random "
              << random->PlayerReturn(0) << "\n";
    SPIEL_CHECK_GT(searched->PlayerReturn(0), random->PlayerReturn(0));
  }

  // A log is the game that was played, and says so of itself.
  const auto& end = static_cast<const MallocState&>(*random);
  const std::string log = end.Log("random", 3);
  const auto& malloc_game = static_cast<const MallocGame&>(*game);
  const std::unique_ptr<spiel::State> again = malloc_game.Replay(log);
  SPIEL_CHECK_EQ(again->History(), random->History());
  SPIEL_CHECK_EQ(again->Returns(), random->Returns());
  Refused([&] { end.Clone()->ApplyAction(0); }, "over");
  Refused([&] { game->NewInitialState()->ApplyAction(1 << 20); }, "action -1");
  Refused([&] { game->NewInitialState()->ObservationTensor(2); }, "player < num_players_");
  Refused([&] { malloc_game.Replay("log"); }, "mallocgame: ");
}

void TestParameters(const std::string& program) {
  Refused([] { spiel::LoadGame("mallocgame(program=nothing)"); }, "nothing");
  Refused([] { spiel::LoadGame("mallocgame(game=chess)"); }, "priority");
  Refused([] { spiel::LoadGame("mallocgame(hardware=tpu_v99)"); }, "tpu_v5e");
  Refused([] { spiel::LoadGame("mallocgame(candidates=3)"); }, "candidates");
  Refused([] { spiel::LoadGame("mallocgame(players=3)"); }, "players: found 3, allowed: 1, 2");
  Refused([] { spiel::LoadGame("mallocgame(observation=dict)"); }, "'flat', 'compact'");
  const auto game = spiel::LoadGame("mallocgame", {{"program", spiel::GameParameter(program)},
                                                   {"actions", spiel::GameParameter("paper")},
                                                   {"hardware", spiel::GameParameter("tpu_v5e")}});
  SPIEL_CHECK_EQ(game->NumDistinctActions(), 3);
}

// Prints a game that is played at random as JSON, for same_game_test.py.
void PrintGame(const std::string& text) {
  const std::shared_ptr<const spiel::Game> game = spiel::LoadGame(text);
  const std::unique_ptr<spiel::State> end = Play(*game, nullptr);
  const std::unique_ptr<spiel::State> state = game->NewInitialState();
  nlohmann::json steps;
  for (const spiel::Action action : end->History()) {
    steps.push_back({{"legal", state->LegalActions()},
                     {"action", action},
                     {"name", state->ActionToString(action)},
                     {"observation", state->ObservationTensor()},
                     {"text", state->ToString()}});
    state->ApplyAction(action);
  }
  std::ostringstream log;
  for (const char byte : static_cast<const MallocState&>(*end).Log("random", 0)) {
    log << std::hex << std::setw(2) << std::setfill('0') << static_cast<int>(byte & 0xff);
  }
  const nlohmann::json printed = {{"game", game->ToString()},
                                  {"max_game_length", game->MaxGameLength()},
                                  {"steps", steps},
                                  {"returns", end->Returns()},
                                  {"log", log.str()}};
  std::cout << printed.dump() << "\n";
}

// Random steps, with all that can be seen after each; sometimes back and forth, or on in a clone.
void MakeSteps(int64_t steps, const std::string& text) {
  const std::shared_ptr<const spiel::Game> game = spiel::LoadGame(text);
  std::mt19937 chance(0);
  std::unique_ptr<spiel::State> state = game->NewInitialState();
  int64_t games = 0;
  for (int64_t step = 0; step < steps; ++step) {
    const std::vector<spiel::Action> legal = state->LegalActions();
    if (state->IsTerminal()) {
      SPIEL_CHECK_TRUE(legal.empty());
      SPIEL_CHECK_LT(state->PlayerReturn(0), 1);
      Refused([&] { state->ApplyAction(0); }, "over");
      if (games++ % 16 == 0) {
        const std::string log = static_cast<const MallocState&>(*state).Log("random", 0);
        SPIEL_CHECK_EQ(static_cast<const MallocGame&>(*game).Replay(log)->Returns(),
                       state->Returns());
      }
      state = game->NewInitialState();
      continue;
    }
    const spiel::Action action = legal[chance() % legal.size()];
    for (const float number : state->ObservationTensor()) SPIEL_CHECK_LE(std::abs(number), 1);
    state->ApplyAction(action);
    if (chance() % 8 == 0) {
      const std::string before = state->ToString();
      state->UndoAction(0, action);
      state->ApplyAction(action);
      state = state->Clone();
      SPIEL_CHECK_EQ(state->ToString(), before);
    }
  }
  std::cout << text << ": " << steps << " steps, " << games << " games\n";
}

int Main(int argc, char** argv) {
  if (argc == 3 && std::string(argv[1]) == "--play") return PrintGame(argv[2]), 0;
  spiel::SetErrorHandler([](const std::string& error) { throw std::runtime_error(error); });
  if (argc == 4 && std::string(argv[1]) == "--steps")
    return MakeSteps(std::atoll(argv[2]), argv[3]), 0;
  if (argc != 3) return std::cerr << "usage: spiel_test PROGRAM TIMES\n", 2;
  const std::string program = argv[1];
  const int times = std::atoi(argv[2]);
  TestParameters(program);
  TestGame("mallocgame(program=" + program + ")", times);
  TestGame("mallocgame(game=priority,candidates=8,observation=compact,program=" + program + ")",
           times);
  TestGame("mallocgame(game=schedule,observation=compact,program=" + program + ")", times);
  TestGame("mallocgame(players=2,observation=compact,program=" + program + ")", times);
  return 0;
}

}  // namespace
}  // namespace mallocgame

int main(int argc, char** argv) { return mallocgame::Main(argc, argv); }
