// Intents of both games: what is read from a plan or a game leads to one like it, and what is
// illegal gives way.
#include "mallocgame/search/intent.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/time/time_decoder.h"
#include "mallocgame/game/time/time_game.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/time/state.h"
#include "mallocgame/schedule/instruction_order.h"
#include "mallocgame/search/game_variants.h"
#include "tests/catch.h"
#include "tests/support/dependences.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::MakeGame;
using testing::ProgramBuilder;
using testing::RandomProgram;
using testing::ReadAtTheEnd;
using testing::TestHardware;

TEST_CASE("a legal mode is played, an illegal one gives way in a fixed order") {
  const auto game = MakeGame(ReadAtTheEnd().Build(), TestHardware(8));
  State state(game);
  for (const Action action : {Action::kDrop, Action::kCopy, Action::kNoCopy, Action::kCopyEarly})
    CHECK(ActionOf(state, ModeOf(action)) == action);
  CHECK(ActionOf(state, Mode::kPreload) == Action::kNoCopy);

  // A constant without time before it: Drop and Copy are all there is.
  ProgramBuilder b;
  b.Add({.name = "use", .reads = {b.Constant("c", 4)}, .cycles = {10, 3}});
  State narrow(MakeGame(b.Build(), TestHardware(8)));
  CHECK(ActionOf(narrow, Mode::kKeep) == Action::kCopy);
  CHECK(ActionOf(narrow, Mode::kEarly) == Action::kCopy);

  // What nobody wants anything for is played as greedy plays.
  CHECK(ActionOf(state, Mode::kOpen) == GreedyAction(state));
  CHECK(state.num_decisions() == 0);
}

TEST_CASE("the intent of a plan plays a game like it") {
  Rng rng(1);
  int alike = 0;
  for (int i = 0; i < 100; ++i) {
    const auto game = MakeGame(RandomProgram(rng, {.plain_copies = false}), TestHardware(16));
    State greedy(game), again = State(game);
    greedy.PlayOn(game->OpenIntent());
    const Intent intent = game->ReadPlan(greedy.ToPlan());
    REQUIRE(intent.size() == game->program().accesses().size());
    again.PlayOn(intent);
    alike += again.latency_ps() == greedy.latency_ps();
  }
  CHECK(alike > 60);  // CopyEarly instead of Copy makes others
  const auto game = MakeGame(ReadAtTheEnd().Build(), TestHardware(8));
  const Intent intent = game->ReadPlan(AllMainPlan(game->program(), game->hardware()));
  REQUIRE(intent.size() == 1);
  CHECK(intent[0].mode == Mode::kSkip);
}

TEST_CASE("what a time game decided is decided again, also where it asks about more") {
  Rng rng(2);
  for (int i = 0; i < 40; ++i) {
    const auto program = RandomProgram(rng, {.instructions = 20});
    const auto game = MakeGame(program, TestHardware(16));
    const State played = testing::PlayAtRandom(*game, rng);
    State again(game);
    again.PlayOn(IntentLike(*game, ReadGame(played)));
    REQUIRE(std::ranges::equal(again.actions(), played.actions()));
    const auto order = PriorityGameOf(*game);
    for (const Segment& segment : IntentLike(*order, ReadGame(played)))
      REQUIRE((segment.first == segment.last || segment.mode == Mode::kOpen));
  }
}

TEST_CASE("runs have names of their own at each order, and whole lives the same at all") {
  Rng rng(6);
  int moved = 0;
  for (int i = 0; i < 60; ++i) {
    const auto program = testing::WithDependences(*RandomProgram(rng));
    const auto own = PriorityGameOf(*MakeGame(program, TestHardware(16)));
    const std::vector<Tick> order = testing::RandomOrder(program, rng);
    const ReorderedProgram made = ReorderedLegally(*program, order);
    const auto other = own->InOrder(made.program, order, made.access_of);
    std::vector<int32_t> same(program->accesses().size()), own_access(same.size());
    std::iota(same.begin(), same.end(), 0);
    for (const int32_t access : same) own_access[made.access_of[access]] = access;
    moved += own_access != same;

    const auto names = [](const PriorityGame& game, const std::vector<int32_t>& own_accesses) {
      std::set<std::pair<AccessId, AccessId>> named, whole;
      for (size_t run = 0; run < game.priority_tables().runs.size(); ++run) {
        const Segment segment =
            game.OwnSegment(static_cast<int32_t>(run), Mode::kOpen, own_accesses);
        REQUIRE(named.emplace(segment.first, segment.last).second);
        if (!segment.last.valid()) whole.emplace(segment.first, segment.last);
      }
      return whole;
    };
    REQUIRE(names(*own, same) == names(*other, own_access));

    Intent decided;
    for (const int32_t root : own->priority_tables().roots)
      decided.push_back(own->OwnSegment(root, Mode::kSkip, same));
    const Intent intent = IntentLike(*other, decided, own_access);
    for (const int32_t root : other->priority_tables().roots)
      REQUIRE(intent[root].mode == Mode::kSkip);
  }
  CHECK(moved > 20);
}

}  // namespace
}  // namespace mallocgame
