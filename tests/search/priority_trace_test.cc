// A game that is played beside another one comes out as if it had been played alone, whatever has
// been decided in it before and whatever is preferred now.
#include <algorithm>
#include <memory>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/game/incumbent_trace.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/priority/priority_state.h"
#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::RandomProgram;
using testing::TestHardware;

std::shared_ptr<const PriorityGame> GuidedGame(Rng& rng) {
  PriorityGameOptions options;
  options.min_buffer_bytes = 0;
  options.candidates = 1 + static_cast<int>(rng.Below(12));
  Hardware hardware = TestHardware(6 + rng.Below(12));
  hardware.max_preloads = static_cast<int>(rng.Below(4));
  return *PriorityGame::Create(
      RandomProgram(rng, {.instructions = 24 + static_cast<int>(rng.Below(30)),
                          .loops = static_cast<int>(rng.Below(3))}),
      hardware, options);
}

void PlayAtRandom(PriorityState& state, int decisions, Rng& rng) {
  for (; decisions > 0 && !state.IsTerminal(); --decisions) {
    const ActionSet legal = state.legal_actions();
    REQUIRE(state.TryApply(legal[rng.Below(legal.size())]));
  }
}

// Those of a player who plays as `state` was played.
Intent IntentOf(const PriorityState& state) {
  Intent intent = state.game().OpenIntent();
  double rank = -1;
  for (const PriorityState::Decided& decided : state.decided()) {
    rank = std::max(static_cast<double>(decided.run), rank + 1e-3);
    intent[decided.run].mode = decided.mode;
    intent[decided.run].rank = rank;
  }
  return intent;
}

void RequireSame(const PriorityState& a, const PriorityState& b) {
  REQUIRE(a.actions() == b.actions());
  REQUIRE(a.latency_ps() == b.latency_ps());
  REQUIRE(a.stall_ps() == b.stall_ps());
  REQUIRE(a.ToPlan() == b.ToPlan());
}

TEST_CASE("a game beside an incumbent comes out as one that is played alone") {
  Rng rng(1);
  int followed = 0, changed = 0;
  for (int n = 0; n < 150; ++n) {
    const auto game = GuidedGame(rng);
    PriorityState played(game);
    PlayAtRandom(played, 1 << 20, rng);
    const auto trace = game->MakeTrace();
    trace->Adopt(played, 0);
    if (trace->decisions() == 0) continue;
    const Intent like = IntentOf(played);
    for (int trial = 0; trial < 12; ++trial) {
      Intent intent = like;
      for (uint32_t changes = rng.Below(4); changes > 0; --changes) {
        const auto run = static_cast<int32_t>(rng.Below(intent.size()));
        trace->Change(run);
        if (rng.Below(2) == 0)
          intent[run].mode = static_cast<Mode>(rng.Below(kActionModes));
        else
          intent[run].rank = static_cast<double>(rng.Below(intent.size())) - 0.5;
      }
      PriorityState beside(game);
      // It begins as the incumbent did, or elsewhere.
      trace->Follow(beside, static_cast<int32_t>(rng.Below(trace->decisions())));
      if (rng.Below(2) == 0) PlayAtRandom(beside, static_cast<int>(rng.Below(8)), rng);
      PriorityState alone = beside;
      trace->Begin(beside);
      while (!beside.IsTerminal()) trace->Decide(beside, intent);
      alone.PlayOn(intent);
      RequireSame(beside, alone);
      (beside.actions() == played.actions() ? followed : changed) += 1;
      trace->ForgetChanges();
    }
  }
  CHECK(followed > 200);
  CHECK(changed > 500);
}

TEST_CASE("an incumbent that is replaced from some decision on is as one that was adopted whole") {
  Rng rng(2);
  for (int n = 0; n < 100; ++n) {
    const auto game = GuidedGame(rng);
    PriorityState first(game);
    PlayAtRandom(first, 1 << 20, rng);
    const auto trace = game->MakeTrace();
    trace->Adopt(first, 0);
    if (trace->decisions() == 0) continue;
    PriorityState second(game);
    const auto agrees = static_cast<int32_t>(rng.Below(trace->decisions()));
    trace->Follow(second, agrees);
    PlayAtRandom(second, 1 << 20, rng);
    trace->Adopt(second, agrees);
    REQUIRE(trace->decisions() == second.num_decisions());
    for (size_t r = 0; r < second.tables().runs.size(); ++r) {
      const auto run = static_cast<int32_t>(r);
      const int32_t at = trace->decision_of(run);
      const auto decided = second.decided();
      if (at >= 0)
        REQUIRE(decided[at].run == run);
      else
        REQUIRE(std::none_of(decided.begin(), decided.end(),
                             [run](const auto& d) { return d.run == run; }));
    }
    PriorityState again(game);
    trace->Follow(again, trace->decisions());
    RequireSame(again, second);
  }
}

}  // namespace
}  // namespace mallocgame
