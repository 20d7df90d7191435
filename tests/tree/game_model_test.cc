// The true rules under the search: positions are the same as those of play, and the search finds
// the best play of a tiny game.
#include "mallocgame/tree/game_model.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "mallocgame/game/time/time_game.h"
#include "mallocgame/tree/search.h"
#include "mallocgame/tree/tree.h"
#include "tests/catch.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"
#include "tests/tree/tiny_game.h"

namespace mallocgame::mcts {
namespace {

// An evaluator that knows nothing: values are 0, and all actions alike. It notes what it was shown.
class Blank final : public Evaluator {
 public:
  void Begin(int rows) override { seen.assign(rows, ""); }
  void Look(int row, int root, Position& position) override {
    std::string& text = seen[row];
    text = std::to_string(root) + ":";
    for (const uint8_t action : position.actions()) text += static_cast<char>('0' + action);
    if (!position.IsTerminal()) {  // what is played on it and undone leaves no trace
      const ActionSet legal = position.legal_actions();
      if (!position.Apply(legal[legal.size() - 1]).ok()) refused = true;
      position.Undo();
    }
  }
  absl::Status Finish(absl::Span<float>, absl::Span<float>) override { return absl::OkStatus(); }

  std::vector<std::string> seen;
  // Filled by Look, which several threads call, so that it checks nothing itself.
  std::atomic<bool> refused = false;
};

std::vector<std::unique_ptr<Position>> Clones(
    const std::vector<std::unique_ptr<Position>>& positions) {
  std::vector<std::unique_ptr<Position>> clones;
  for (const auto& position : positions) clones.push_back(position->Clone());
  return clones;
}

std::vector<std::unique_ptr<Position>> StartsOf(
    std::initializer_list<std::shared_ptr<const Game>> games) {
  std::vector<std::unique_ptr<Position>> starts;
  for (const auto& game : games) starts.push_back(game->NewInitialPosition());
  return starts;
}

// Compares every node of the tree with a game played by its actions.
void CheckAgainstPlay(const Tree& tree, const Position& root) {
  for (int32_t i = 1; i < tree.size(); ++i) {
    std::vector<int32_t> path;
    for (int32_t at = i; at != 0; at = tree.node(at).parent) path.push_back(tree.node(at).action);
    const std::unique_ptr<Position> position = root.Clone();
    int64_t saved = 0;
    for (size_t step = path.size(); step-- > 0;) {
      const auto reward = position->Apply(path[step]);
      REQUIRE(reward.ok());
      saved = *reward;
    }
    CHECK(tree.node(i).reward ==
          Approx(static_cast<double>(saved) / static_cast<double>(root.game().all_main_ps()))
              .margin(1e-7));
    REQUIRE(tree.node(i).terminal == position->IsTerminal());
    for (int a = 0; a < tree.num_actions() && tree.node(i).ranked && !position->IsTerminal(); ++a) {
      const bool legal = tree.unvisited(i)[a] >= 0 || tree.Child(i, a) != Tree::kNone;
      CHECK(legal == position->legal_actions().Has(static_cast<int>(a)));
    }
  }
}

TEST_CASE("nodes of the tree are the positions of the game, with any number of threads") {
  const std::string kind = GENERATE(as<std::string>(), "time", "priority");
  Rng rng(4);
  std::vector<std::unique_ptr<Position>> starts;
  while (starts.size() < 5) {
    std::unique_ptr<Position> start = TinyGame(rng, 12, kind)->NewInitialPosition();
    if (!start->IsTerminal()) starts.push_back(std::move(start));
  }
  const int actions = starts[0]->game().num_actions();
  SearchOptions options;
  options.simulations = 60;
  options.leaves = 3;
  options.max_nodes = 200;
  std::vector<std::vector<int32_t>> visits;
  for (const int threads : {1, 4}) {
    Blank blank;
    const auto model = *GameModel::Create(Clones(starts), &blank, threads);
    const auto search = *Search::Create(options, *MakePuct({}), 5, actions);
    REQUIRE(search->Run(*model, 1).ok());
    for (int i = 0; i < 5; ++i) {
      CheckAgainstPlay(search->tree(i), *starts[i]);
      visits.emplace_back(search->visits(i).begin(), search->visits(i).end());
    }
    // Two moves later, with the subtrees kept.
    const std::vector<std::unique_ptr<Position>> now = Clones(starts);
    for (uint64_t move = 0; move < 2; ++move) {
      for (int i = 0; i < 5; ++i) {
        Position& position = *now[i];
        if (search->terminal(i)) continue;
        const int action = search->action(i);
        REQUIRE(position.Apply(action).ok());
        if (!*search->Advance(*model, i, action)) model->SetPosition(i, position.Clone());
        CHECK(model->position(i).actions() == position.actions());
      }
      REQUIRE(search->Run(*model, 2 + move).ok());
      for (int i = 0; i < 5; ++i) {
        CheckAgainstPlay(search->tree(i), *now[i]);
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
  const auto model = *GameModel::Create(StartsOf({game}), &blank);
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
    State state(game);
    if (state.IsTerminal() || game->max_decisions() > 9) continue;
    ++games;
    const int64_t best = mallocgame::testing::BestLatency(state);
    Blank blank;
    const auto model = *GameModel::Create(StartsOf({game}), &blank);
    SearchOptions options;
    options.simulations = 20000;
    options.min_range = 1e-6f;
    PuctOptions puct;
    puct.unvisited = Unvisited::kNode;
    const auto search = *Search::Create(options, gumbel ? *MakeGumbel({}) : *MakePuct(puct), 1,
                                        game->num_actions());
    while (!state.IsTerminal()) {
      model->SetPosition(0, state.Clone());
      REQUIRE(search->Run(*model, 0).ok());
      REQUIRE(state.Apply(static_cast<Action>(search->action(0))).ok());
    }
    CHECK(state.latency_ps() == best);
  }
}

TEST_CASE("roots of unlike games and bad thread counts are refused") {
  Rng rng(2);
  const auto game = TinyGame(rng, 8);
  TimeGameOptions options;
  options.TakeOver(game->options());
  options.paper_actions = true;
  const auto paper = *Game::Create(game->shared_program(), game->hardware(), options);
  Blank blank;
  CHECK_FALSE(GameModel::Create({}, &blank).ok());
  CHECK_FALSE(GameModel::Create(StartsOf({game, paper}), &blank).ok());
  CHECK_FALSE(GameModel::Create(StartsOf({game}), &blank, 0).ok());
  CHECK(GameModel::Create(StartsOf({paper}), &blank).value()->num_actions() == kPaperActions);
}

}  // namespace
}  // namespace mallocgame::mcts
