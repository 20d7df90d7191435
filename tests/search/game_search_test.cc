// A trial of the local search over games is the game that its intent leads to, whatever was
// accepted and rejected before.
#include "mallocgame/search/game_search.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mallocgame/game/play_actions.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/search/starts.h"
#include "mallocgame/solvers/playing/players.h"
#include "mallocgame/solvers/registry.h"
#include "tests/catch.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::Op;
using testing::RandomProgram;
using testing::TestHardware;

std::shared_ptr<const PriorityGame> RandomPriorityGame(Rng& rng) {
  PriorityGameOptions options;
  options.min_buffer_bytes = 0;
  return *PriorityGame::Create(
      RandomProgram(rng, {.instructions = 20, .loops = static_cast<int>(rng.Below(2))}),
      TestHardware(6 + rng.Below(12)), options);
}

int64_t LatencyOf(const Game& game, const Intent& intent) {
  const auto position = game.NewInitialPosition();
  position->PlayOn(intent);
  return position->latency_ps();
}

TEST_CASE("an accepted game is the one that its intent leads to") {
  Rng rng(1);
  int accepted = 0, rejected = 0;
  for (int n = 0; n < 40; ++n) {
    const auto game = RandomPriorityGame(rng);
    GameSearch search(*game, game->OpenIntent());
    REQUIRE(search.latency_ps() == LatencyOf(*game, game->OpenIntent()));
    if (search.decisions() == 0) continue;
    for (int trial = 0; trial < 60; ++trial) {
      const auto at = static_cast<int32_t>(rng.Below(search.decisions()));
      const int32_t run = search.segment(at);
      REQUIRE(search.decision_of(run) == at);
      const Intent before = search.intent();
      const int64_t latency_ps = search.latency_ps();
      search.GoTo(at);
      search.Want(run, static_cast<Mode>(rng.Below(kActionModes)));
      if (search.Try(rng.Below(2) == 0 ? latency_ps : std::numeric_limits<int64_t>::max())) {
        search.Accept();
        ++accepted;
        REQUIRE(search.latency_ps() == LatencyOf(*game, search.intent()));
        REQUIRE(search.latency_ps() == search.position().latency_ps());
      } else {
        search.Reject();
        ++rejected;
        REQUIRE(search.latency_ps() == latency_ps);
        REQUIRE(search.intent() == before);
      }
    }
  }
  CHECK(accepted > 300);
  CHECK(rejected > 100);
}

TEST_CASE("a replayable intent leads to the accepted game, whatever was moved in its order") {
  Rng rng(3);
  int differ = 0;
  for (int n = 0; n < 20; ++n) {
    const auto game = RandomPriorityGame(rng);
    GameSearch search(*game, game->OpenIntent());
    if (search.decisions() == 0) continue;
    for (int trial = 0; trial < 400; ++trial) {
      search.Move(rng);
      if (!search.Try(rng.Below(8) == 0 ? std::numeric_limits<int64_t>::max()
                                        : search.latency_ps())) {
        search.Reject();
        continue;
      }
      search.Accept();
      if (LatencyOf(*game, search.intent()) != search.latency_ps()) ++differ;
      PriorityState again(game);
      again.PlayOn(search.Replayable());
      REQUIRE(std::ranges::equal(again.actions(), search.position().actions()));
    }
  }
  CHECK(differ > 20);  // else the intent itself would do
}

TEST_CASE("annealing lets runs of about one size change places") {
  Rng rng(2);
  int exchanges = 0;
  for (int n = 0; n < 20; ++n) {
    const auto game = RandomPriorityGame(rng);
    const PriorityTables& tables = game->priority_tables();
    const auto bytes = [&](size_t run) {
      return tables.arrangement.tables.buffers[tables.runs[run].buffer].size_bytes;
    };
    GameSearch search(*game, game->OpenIntent());
    if (search.decisions() == 0) continue;
    for (int trial = 0; trial < 200; ++trial) {
      const Intent before = search.intent();
      const int32_t from = search.Move(rng);
      REQUIRE((from >= 0 && from < search.decisions()));
      const Intent& after = search.intent();
      std::vector<size_t> moved;
      bool gives_way = false;
      for (size_t r = 0; r < before.size(); ++r) {
        if (before[r].rank != after[r].rank) moved.push_back(r);
        gives_way |= after[r].mode == Mode::kPaying;
      }
      REQUIRE((moved.size() <= 2 || gives_way));
      if (moved.size() == 2 && !gives_way) {
        ++exchanges;
        const auto [a, b] = std::pair(moved[0], moved[1]);
        REQUIRE(before[a].rank == after[b].rank);
        REQUIRE(before[b].rank == after[a].rank);
        REQUIRE(before[a].mode == after[b].mode);
        REQUIRE(before[b].mode == after[a].mode);
        REQUIRE(bytes(a) <= 2 * bytes(b));
        REQUIRE(bytes(b) <= 2 * bytes(a));
      }
      if (search.Try(search.latency_ps())) {
        search.Accept();
      } else {
        search.Reject();
      }
    }
  }
  CHECK(exchanges > 50);
}

TEST_CASE("a game of another order is played again, run by run") {
  Rng rng(4);
  for (int n = 0; n < 40; ++n) {
    const auto game = RandomPriorityGame(rng);
    PriorityGameOptions options = game->options();
    options.bytes_weight = 0;
    options.time_weight = rng.Uniform();
    const auto other = *PriorityGame::Create(game->shared_program(), game->hardware(), options);
    PriorityState played(other);
    while (!played.IsTerminal()) {
      const ActionSet legal = played.legal_actions();
      REQUIRE(played.TryApply(legal[rng.Below(legal.size())]));
    }
    // The game shows all runs that are open.
    options = game->options();
    options.candidates = kMaxCandidates;
    const auto shown = *PriorityGame::Create(game->shared_program(), game->hardware(), options);
    PriorityState again(shown);
    again.PlayOn(IntentLike(*shown, ReadGame(played)));
    REQUIRE(again.ToPlan() == played.ToPlan());
  }
}

TEST_CASE("what stands first is the best of greedy's priority games") {
  Rng rng(2);
  for (int n = 0; n < 20; ++n) {
    const auto game = RandomPriorityGame(rng);
    const auto starts = PriorityStarts(*game, nullptr, Deadline());
    REQUIRE(starts.size() >= 6);
    for (const GameStart& start : starts) {
      REQUIRE(start.latency_ps >= starts[0].latency_ps);
      REQUIRE(start.latency_ps == LatencyOf(*start.game, start.intent));
    }
    REQUIRE(starts[0].latency_ps <= LatencyOf(*game, game->OpenIntent()));
    const FoundPlan followed = StartingPlan(*game, Deadline());
    int following = 0;
    for (const GameStart& start : PriorityStarts(*game, &followed, Deadline()))
      following += start.follows;
    REQUIRE(following >= 6);
  }
}

// Results that one instruction reads: which of them does it find in fast memory? A knapsack. What
// each one saves is a small part of the latency.
struct Knapsack {
  std::vector<int64_t> bytes, savings;
  int64_t capacity = 0;
  static constexpr int64_t kRest = 40'000;  // ps of the read if all lie in main memory

  std::shared_ptr<const PriorityGame> MakeGame() const {
    testing::ProgramBuilder b;
    std::vector<BufferId> buffers;
    for (size_t i = 0; i < bytes.size(); ++i) {
      buffers.push_back(b.Result(absl::StrCat("result", i), bytes[i]));
      b.Add({.name = absl::StrCat("write", i), .writes = {buffers[i]}, .cycles = {1, 1}});
    }
    Op read = {.name = "read", .reads = buffers};
    for (uint32_t held = 0; held < 1U << bytes.size(); ++held)
      read.cycles.push_back(kRest - Of(savings, held));
    b.Add(read);
    PriorityGameOptions options;
    options.min_buffer_bytes = 0;
    return *PriorityGame::Create(b.Build(), TestHardware(capacity), options);
  }
  // The least latency: one picosecond for each write, and the read with the best choice.
  int64_t BestLatency() const {
    int64_t best = 0;
    for (uint32_t held = 0; held < 1U << bytes.size(); ++held) {
      if (Of(bytes, held) <= capacity) best = std::max(best, Of(savings, held));
    }
    return static_cast<int64_t>(bytes.size()) + kRest - best;
  }
  static int64_t Of(const std::vector<int64_t>& numbers, uint32_t held) {
    int64_t sum = 0;
    for (size_t i = 0; i < numbers.size(); ++i) sum += (held >> i & 1) != 0 ? numbers[i] : 0;
    return sum;
  }
};

TEST_CASE("a run that is served where that pays is served as greedy does, or from main memory") {
  Rng rng(6);
  int placed = 0, skipped = 0;
  for (int n = 0; n < 40; ++n) {
    const auto game = RandomPriorityGame(rng);
    Intent intent = game->OpenIntent();
    for (Segment& segment : intent) segment.mode = Mode::kPaying;
    PriorityState state(game), greedy(game);
    while (!state.IsTerminal() && !greedy.IsTerminal()) {
      const int64_t before = state.latency_ps();
      state.Decide(intent);
      greedy.Decide(game->OpenIntent());
      const Mode mode = state.decided().back().mode;
      REQUIRE(mode != Mode::kSplit);
      if (mode == Mode::kSkip) {
        ++skipped;
        if (greedy.decided().back().mode != Mode::kSkip) break;
        continue;
      }
      ++placed;
      REQUIRE((state.IsTerminal() || state.latency_ps() < before));
      REQUIRE(mode == greedy.decided().back().mode);
    }
  }
  CHECK(placed > 50);
  CHECK(skipped > 50);
}

// The latency after trials that begin with the `first` buffers of a knapsack in fast memory, and
// accept nothing that is worse.
int64_t LatencyAfterTrials(const Knapsack& knapsack, size_t first, int trials, Rng& rng) {
  const auto game = knapsack.MakeGame();
  const PriorityTables& tables = game->priority_tables();
  Intent intent = game->OpenIntent();
  for (size_t r = 0; r < intent.size(); ++r) {
    const auto buffer = static_cast<size_t>(tables.runs[r].buffer);
    intent[r].mode = buffer < first ? Mode::kLate : Mode::kSkip;
  }
  GameSearch search(*game, intent);
  REQUIRE(search.latency_ps() > knapsack.BestLatency());
  for (int trial = 0; trial < trials; ++trial) {
    search.Move(rng);
    if (search.Try(search.latency_ps())) {
      search.Accept();
    } else {
      search.Reject();
    }
  }
  return search.latency_ps();
}

TEST_CASE("a large buffer gives way to several small ones that save more together") {
  // The large one saves more than any two of the small ones, and less than all three. Beside them
  // are eight that save little.
  Knapsack knapsack = {{900, 300, 300, 300}, {2'500, 1'000, 1'000, 1'000}, 900};
  for (int i = 0; i < 8; ++i) {
    knapsack.bytes.push_back(100);
    knapsack.savings.push_back(100);
  }
  Rng rng(7);
  for (int n = 0; n < 5; ++n)
    CHECK(LatencyAfterTrials(knapsack, 1, 16'000, rng) == knapsack.BestLatency());
}

TEST_CASE("two buffers give way to two others, of which one alone would save less") {
  const Knapsack knapsack = {{600, 400, 500, 500}, {1'100, 850, 1'000, 1'000}, 1'000};
  Rng rng(8);
  for (int n = 0; n < 5; ++n)
    CHECK(LatencyAfterTrials(knapsack, 2, 2'000, rng) == knapsack.BestLatency());
}

TEST_CASE("annealing with many trials finds the best choice where several must change places") {
  Rng rng(3);
  for (int n = 0; n < 3; ++n) {
    Knapsack knapsack;
    constexpr size_t kBuffers = 12;
    for (size_t i = 0; i < kBuffers; ++i) {
      knapsack.bytes.push_back(100 + static_cast<int64_t>(rng.Below(100)));
      knapsack.savings.push_back(10 * knapsack.bytes.back() + static_cast<int64_t>(rng.Below(100)));
    }
    knapsack.capacity = 1000;
    const auto game = knapsack.MakeGame();
    SolveLimits limits;
    limits.seconds = 0;
    limits.evaluations = 300'000;
    limits.seed = n;
    const auto result = Solve("anneal", {game, nullptr}, limits);
    INFO(n);
    REQUIRE(result.ok());
    CHECK(result->report.latency_ps == knapsack.BestLatency());
  }
}

}  // namespace
}  // namespace mallocgame
