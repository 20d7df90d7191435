// The true rules under the search: positions are the same as those of play, and the search finds
// the best play of a tiny game.
#include "agents/mcts/game_model.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "agents/mcts/search.h"
#include "agents/mcts/tree.h"
#include "tests/agents/mcts/tiny_game.h"
#include "tests/catch.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame::mcts {
namespace {

// An evaluator that knows nothing: values are 0, and all actions alike. It notes what it was shown.
class Blank final : public Evaluator {
 public:
  void Begin(int rows) override { seen.assign(rows, ""); }
  void Look(int row, int root, State& state) override {
    std::string& text = seen[row];
    text = std::to_string(root) + ":";
    for (const uint8_t action : state.actions()) text += static_cast<char>('0' + action);
    if (!state.IsTerminal()) {  // what is played on the state and undone leaves no trace
      if (!state.Apply(state.LegalActions().back()).ok()) refused = true;
      state.Undo();
    }
  }
  absl::Status Finish(absl::Span<float>, absl::Span<float>) override { return absl::OkStatus(); }

  std::vector<std::string> seen;
  // Filled by Look, which several threads call, so that it checks nothing itself.
  std::atomic<bool> refused = false;
};

// Compares every node of the tree with a game played by its actions.
void CheckAgainstPlay(const Tree& tree, const State& root) {
  for (int32_t i = 1; i < tree.size(); ++i) {
    std::vector<int32_t> path;
    for (int32_t at = i; at != 0; at = tree.node(at).parent) path.push_back(tree.node(at).action);
    State state = root;
    int64_t saved = 0;
    for (size_t step = path.size(); step-- > 0;) {
      const auto reward = state.Apply(static_cast<Action>(path[step]));
      REQUIRE(reward.ok());
      saved = *reward;
    }
    CHECK(tree.node(i).reward ==
          Approx(static_cast<double>(saved) / static_cast<double>(state.game().all_main_ps()))
              .margin(1e-7));
    REQUIRE(tree.node(i).terminal == state.IsTerminal());
    for (int a = 0; a < tree.num_actions() && tree.node(i).ranked && !state.IsTerminal(); ++a) {
      const bool legal = tree.unvisited(i)[a] >= 0 || tree.Child(i, a) != Tree::kNone;
      CHECK(legal == state.IsLegal(static_cast<Action>(a)));
    }
  }
}

TEST_CASE("nodes of the tree are the positions of the game, with any number of threads") {
  Rng rng(4);
  std::vector<State> starts;
  while (starts.size() < 5) {
    State state = TinyGame(rng, 12)->InitialState();
    if (!state.IsTerminal()) starts.push_back(std::move(state));
  }
  SearchOptions options;
  options.simulations = 60;
  options.leaves = 3;
  options.max_nodes = 200;
  std::vector<std::vector<int32_t>> visits;
  for (const int threads : {1, 4}) {
    Blank blank;
    const auto model = *GameModel::Create(starts, &blank, threads);
    const auto search = *Search::Create(options, *MakePuct({}), 5, kActions);
    REQUIRE(search->Run(*model, 1).ok());
    for (int i = 0; i < 5; ++i) {
      CheckAgainstPlay(search->tree(i), starts[i]);
      visits.emplace_back(search->visits(i).begin(), search->visits(i).end());
    }
    // Two moves later, with the subtrees kept.
    std::vector<State> now = starts;
    for (uint64_t move = 0; move < 2; ++move) {
      for (int i = 0; i < 5; ++i) {
        State& state = now[i];
        if (search->terminal(i)) continue;
        const int action = search->action(i);
        REQUIRE(state.Apply(static_cast<Action>(action)).ok());
        if (!*search->Advance(*model, i, action)) model->SetState(i, state);
        CHECK(model->state(i).actions() == state.actions());
      }
      REQUIRE(search->Run(*model, 2 + move).ok());
      for (int i = 0; i < 5; ++i) {
        CheckAgainstPlay(search->tree(i), now[i]);
        visits.emplace_back(search->visits(i).begin(), search->visits(i).end());
      }
    }
    CHECK_FALSE(blank.refused);
  }
  const size_t half = visits.size() / 2;
  CHECK(std::equal(visits.begin(), visits.begin() + static_cast<ptrdiff_t>(half),
                   visits.begin() + static_cast<ptrdiff_t>(half)));
}

TEST_CASE("an evaluator is shown each position once, the root's first") {
  Rng rng(9);
  Blank blank;
  const auto game = TinyGame(rng, 10);
  const auto model = *GameModel::Create({game->InitialState()}, &blank);
  const auto search = *Search::Create({.simulations = 0}, *MakePuct({}), 1, kActions);
  REQUIRE(search->Run(*model, 0).ok());
  CHECK(blank.seen == std::vector<std::string>{"0:"});
}

TEST_CASE("enough simulations find the best play of a tiny game, without any knowledge") {
  const bool gumbel = GENERATE(false, true);
  Rng rng(11);
  int games = 0;
  while (games < 15) {
    const auto game = TinyGame(rng, 4);
    State state = game->InitialState();
    if (state.IsTerminal() || game->max_decisions() > 9) continue;
    ++games;
    const int64_t best = mallocgame::testing::BestLatency(state);
    Blank blank;
    const auto model = *GameModel::Create({state}, &blank);
    SearchOptions options;
    options.simulations = 20000;
    options.min_range = 1e-6f;
    PuctOptions puct;
    puct.unvisited = Unvisited::kNode;
    const auto search = *Search::Create(options, gumbel ? *MakeGumbel({}) : *MakePuct(puct), 1,
                                        game->num_actions());
    while (!state.IsTerminal()) {
      model->SetState(0, state);
      REQUIRE(search->Run(*model, 0).ok());
      REQUIRE(state.Apply(static_cast<Action>(search->action(0))).ok());
    }
    CHECK(state.latency_ps() == best);
  }
}

TEST_CASE("roots of unlike games and bad thread counts are refused") {
  Rng rng(2);
  const auto game = TinyGame(rng, 8);
  GameOptions options = game->options();
  options.paper_actions = true;
  const auto paper = *Game::Create(game->shared_program(), game->hardware(), options);
  Blank blank;
  CHECK_FALSE(GameModel::Create({}, &blank).ok());
  CHECK_FALSE(GameModel::Create({game->InitialState(), paper->InitialState()}, &blank).ok());
  CHECK_FALSE(GameModel::Create({game->InitialState()}, &blank, 0).ok());
  CHECK(GameModel::Create({paper->InitialState()}, &blank).value()->num_actions() == kPaperActions);
}

}  // namespace
}  // namespace mallocgame::mcts
