// Game logs: what is recorded can be replayed, and what differs is named.
#include "mallocgame/replay/game_log.h"

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "mallocgame/base/rng.h"
#include "mallocgame/game/games.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/schedule/schedule_game.h"
#include "mallocgame/game/time/state.h"
#include "mallocgame/game/time/time_game.h"
#include "tests/catch.h"
#include "tests/replay/sample.h"
#include "tests/support/dependences.h"
#include "tests/support/play.h"

namespace mallocgame {
namespace {

using Catch::Matchers::Contains;

std::shared_ptr<const Game> MakeGame(std::shared_ptr<const Program> program) {
  TimeGameOptions options;
  options.min_buffer_bytes = 0;
  return *Game::Create(std::move(program), testing::TestHardware(testing::kSampleFastBytes),
                       options);
}

std::vector<uint8_t> RandomActions(const Game& game, Rng& rng) {
  const std::unique_ptr<Position> position = game.NewInitialPosition();
  while (!position->IsTerminal()) {
    REQUIRE(position->Apply(testing::RandomAction(*position, rng)).ok());
  }
  return {position->actions().begin(), position->actions().end()};
}

struct LogSample {
  std::shared_ptr<const Program> program = testing::SampleBuilder().Build();
  std::shared_ptr<const Game> game = MakeGame(program);
  GameLog log;

  LogSample() {
    Rng rng(11);
    std::vector<uint8_t> actions;
    // A game with a residence and a copy, so that there is something to change.
    do {
      actions = RandomActions(*game, rng);
      log = *RecordGame(*game, actions, "by hand", 42);
    } while (log.plan.residences.empty() || log.plan.copies.empty());
  }
};

std::string Difference(const GameLog& log, const std::shared_ptr<const Program>& program) {
  const absl::StatusOr<ReplayVerdict> verdict = ReplayLog(log, program);
  INFO(verdict.status());
  REQUIRE(verdict.ok());
  CHECK(verdict->same == verdict->message.empty());
  return verdict->message;
}

TEST_CASE("a recorded game is written, read and replayed") {
  const LogSample s;
  CHECK(s.log.solver == "by hand");
  CHECK(s.log.seed == 42);
  CHECK(s.log.program_fingerprint == s.program->fingerprint());
  CHECK(s.log.actions.size() == s.log.saved_ps.size());
  int64_t saved = 0;
  for (const int64_t ps : s.log.saved_ps) saved += ps;
  CHECK(s.log.totals.latency_ps == s.log.totals.all_main_ps - saved);

  const std::string bytes = SerializeGameLog(s.log);
  CHECK(bytes == SerializeGameLog(s.log));
  const absl::StatusOr<GameLog> back = ParseGameLog(bytes);
  REQUIRE(back.ok());
  CHECK(*back == s.log);
  CHECK(SerializeGameLog(*back) == bytes);
  CHECK(Difference(*back, s.program) == "");
}

TEST_CASE("search statistics are kept as they are") {
  LogSample s;
  const std::string without = SerializeGameLog(s.log);
  const size_t numbers = s.log.actions.size() * kActions;
  for (size_t i = 0; i < numbers; ++i) {
    s.log.search_visits.push_back(static_cast<int32_t>(i * 7));
    s.log.search_values.push_back(-0.25f * static_cast<float>(i));
  }
  const std::string bytes = SerializeGameLog(s.log);
  CHECK(bytes != without);
  const absl::StatusOr<GameLog> back = ParseGameLog(bytes);
  REQUIRE(back.ok());
  CHECK(*back == s.log);
  CHECK(Difference(*back, s.program) == "");

  SECTION("one is missing") { s.log.search_visits.pop_back(); }
  SECTION("a decision's are missing") {
    s.log.search_visits.resize(numbers - kActions);
    s.log.search_values.resize(numbers - kActions);
  }
  SECTION("a count below nothing") { s.log.search_visits[1] = -1; }
  SECTION("no number") { s.log.search_values[2] = std::numeric_limits<float>::quiet_NaN(); }
  SECTION("no end") { s.log.search_values[2] = std::numeric_limits<float>::infinity(); }
  const absl::StatusOr<GameLog> refused = ParseGameLog(SerializeGameLog(s.log));
  if (s.log == *back) return;  // no section ran this time
  REQUIRE(refused.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(refused.status().message()), Contains("search statistics"));
}

TEST_CASE("random games on random programs replay, with every option") {
  Rng rng(5);
  for (int i = 0; i < 100; ++i) {
    const std::shared_ptr<const Program> program =
        testing::WithDependences(*testing::RandomProgram(rng, {.roofline = i % 2 == 1}));
    const auto options = testing::OptionsOf(
        GameNames()[i % 3], {{"paper_actions", i % 4 == 0},
                             {"candidates", int64_t{1 + i % kMaxScheduleCandidates}},
                             {"main_bytes", i % 6 == 2 ? int64_t{1} << 40 : 0},
                             {"bytes_weight", 0.5 * (i % 5)},
                             {"time_weight", 0.25 * (i % 9)},
                             {"exact_stalls", i % 4 == 3}});
    options->min_buffer_bytes = i % 3;
    options->keep_free = i % 5 == 0 ? 0.25 : 0.0;
    if (i % 7 == 0 && !program->accesses().empty()) options->forbidden = {AccessId(0)};
    const auto game = Game::Create(program, testing::TestHardware(16), *options);
    REQUIRE(game.ok());
    const absl::StatusOr<GameLog> log = RecordGame(**game, RandomActions(**game, rng), "random", 5);
    REQUIRE(log.ok());
    const absl::StatusOr<GameLog> back = ParseGameLog(SerializeGameLog(*log));
    REQUIRE(back.ok());
    REQUIRE(*back == *log);
    REQUIRE(Difference(*back, program) == "");
  }
}

TEST_CASE("a logged priority game says what differs, and names the version of its own rules") {
  Rng rng(3);
  const LogSample s;
  PriorityGameOptions options;
  options.TakeOver(s.game->options());
  options.candidates = 2;
  const auto game = *Game::Create(s.program, s.game->hardware(), options);
  const GameLog log = *RecordGame(*game, RandomActions(*game, rng), "random", 3);
  CHECK(log.rules_version == kPriorityRulesVersion);
  GameLog changed = log;
  changed.saved_ps[0] += 1;
  CHECK_THAT(Difference(changed, s.program),
             Contains("step 0 (access ") && Contains(game->ActionToString(log.actions[0])));
  changed = log;
  changed.actions[0] = static_cast<uint8_t>(game->num_actions());
  CHECK_THAT(Difference(changed, s.program), Contains("action 10") && Contains("0 to 9"));
  changed = log;
  changed.rules_version = kPriorityRulesVersion + 1;
  CHECK_THAT(std::string(ReplayLog(changed, s.program).status().message()),
             Contains("priority game"));
  for (const int candidates : {0, kMaxCandidates + 1, -1}) {
    PriorityGameOptions wrong = options;
    wrong.candidates = candidates;
    changed = log;
    changed.options = std::make_shared<const PriorityGameOptions>(wrong);
    CHECK_THAT(std::string(ParseGameLog(SerializeGameLog(changed)).status().message()),
               Contains("candidates"));
  }
  // Search statistics have a number for each of its actions.
  changed = log;
  changed.search_visits.resize(log.actions.size() * game->num_actions());
  changed.search_values.resize(changed.search_visits.size());
  const auto back = ParseGameLog(SerializeGameLog(changed));
  REQUIRE(back.ok());
  CHECK(*back == changed);
}

TEST_CASE("a logged schedule game has the order, and says where it differs") {
  Rng rng(4);
  const auto program =
      testing::WithDependences(*testing::RandomProgram(rng, {.instructions = 20, .loops = 0}));
  ScheduleGameOptions options;
  options.main_bytes = int64_t{1} << 40;
  options.min_buffer_bytes = 0;
  const auto game = *Game::Create(program, testing::TestHardware(16), options);
  const GameLog log = *RecordGame(*game, RandomActions(*game, rng), "random", 3);
  CHECK(log.rules_version == kScheduleRulesVersion);
  REQUIRE(log.order.size() == static_cast<size_t>(program->ticks()));
  GameLog changed = log;
  std::swap(changed.order[0], changed.order[1]);
  CHECK_THAT(Difference(changed, program), Contains("tick of the order 0 differs"));
  changed = log;
  changed.actions[0] = 16;
  CHECK_THAT(Difference(changed, program), Contains("step 0 (the order of instructions)"));
  options.main_bytes = 1;
  changed = log;
  changed.options = std::make_shared<const ScheduleGameOptions>(options);
  CHECK_THAT(std::string(ReplayLog(changed, program).status().message()), Contains("main_bytes"));
}

TEST_CASE("an action, a reward or an offset that was changed is named") {
  const LogSample s;
  SECTION("reward") {
    GameLog log = s.log;
    log.saved_ps[1] += 1;
    const absl::StatusOr<ReplayVerdict> verdict = ReplayLog(log, s.program);
    REQUIRE(verdict.ok());
    CHECK_FALSE(verdict->same);
    CHECK(verdict->step == 1);
    CHECK_THAT(verdict->message,
               Contains("step 1 (access ") &&
                   Contains("expected to save " + std::to_string(log.saved_ps[1]) + " ps, found " +
                            std::to_string(s.log.saved_ps[1])));
  }
  SECTION("an action that is no action, and one that isn't legal there") {
    GameLog log = s.log;
    log.actions[0] = 200;
    CHECK_THAT(Difference(log, s.program), Contains("step 0") && Contains("action 200"));
    State state(s.game);
    for (size_t i = 0; i < s.log.actions.size(); ++i) {
      int illegal = 0;
      while (state.legal_actions().Has(illegal)) ++illegal;
      if (illegal < kActions) {
        log = s.log;
        log.actions[i] = static_cast<uint8_t>(illegal);
        CHECK_THAT(Difference(log, s.program),
                   Contains("step " + std::to_string(i)) &&
                       Contains(ActionName(static_cast<Action>(illegal))));
      }
      REQUIRE(state.Apply(static_cast<Action>(s.log.actions[i])).ok());
    }
  }
  SECTION("a game cut short, and one that goes on after its end") {
    GameLog log = s.log;
    log.actions.pop_back();
    log.saved_ps.pop_back();
    CHECK_THAT(Difference(log, s.program), Contains("expected the end"));
    log = s.log;
    log.actions.push_back(0);
    log.saved_ps.push_back(0);
    CHECK_THAT(Difference(log, s.program), Contains("the game is over"));
  }
  SECTION("offset") {
    GameLog log = s.log;
    const int64_t offset = log.plan.residences[0].offset;
    log.plan.residences[0].offset = 63;
    const absl::StatusOr<ReplayVerdict> verdict = ReplayLog(log, s.program);
    REQUIRE(verdict.ok());
    CHECK_FALSE(verdict->same);
    CHECK(verdict->step == std::nullopt);
    CHECK_THAT(verdict->message, Contains("residence 0") && Contains("offset 63") &&
                                     Contains("offset " + std::to_string(offset)));
  }
  SECTION("copy") {
    GameLog log = s.log;
    log.plan.copies[0].part_end += 1;
    CHECK_THAT(Difference(log, s.program), Contains("plan: copy 0"));
    log = s.log;
    log.plan.copies.clear();
    CHECK_THAT(Difference(log, s.program), Contains("plan: copy 0 differs (expected 0 in all"));
  }
  SECTION("placement of an access") {
    GameLog log = s.log;
    log.plan.served_by.back() = ResidenceId(7);
    CHECK_THAT(Difference(log, s.program),
               Contains("access " + std::to_string(log.plan.served_by.size() - 1)));
  }
  SECTION("report") {
    GameLog log = s.log;
    log.totals.peak_fast_bytes += 1;
    CHECK_THAT(Difference(log, s.program), Contains("peak_fast_bytes"));
  }
}

TEST_CASE("a log that can't be replayed here says why") {
  const LogSample s;
  GameLog log = s.log;
  const std::shared_ptr<const Program> other = testing::SampleBuilder("other").Build();
  const absl::Status status = ReplayLog(log, other).status();
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(status.message()),
             Contains(other->fingerprint()) && Contains(s.program->fingerprint()));

  log.rules_version = 99;
  CHECK(ReplayLog(log, s.program).status().code() == absl::StatusCode::kFailedPrecondition);
  log = s.log;
  log.saved_ps.pop_back();
  CHECK_FALSE(ReplayLog(log, s.program).ok());
  CHECK_FALSE(ParseGameLog(SerializeGameLog(log)).ok());
  log = s.log;
  const std::shared_ptr<GameOptions> wrong = s.log.options->Clone();
  wrong->forbidden = {AccessId(1000)};
  log.options = std::shared_ptr<const GameOptions>(wrong);
  CHECK(ReplayLog(log, s.program).status().code() == absl::StatusCode::kInvalidArgument);
  log = s.log;
  log.hardware.fast_bytes = -1;
  CHECK_THAT(std::string(ParseGameLog(SerializeGameLog(log)).status().message()),
             Contains("fast_bytes"));
}

TEST_CASE("only whole games of legal actions are recorded") {
  const LogSample s;
  std::vector<uint8_t> actions = s.log.actions;
  actions.push_back(0);
  CHECK_THAT(std::string(RecordGame(*s.game, actions, "", 0).status().message()),
             Contains("the game is over"));
  actions.resize(1);
  CHECK_THAT(std::string(RecordGame(*s.game, actions, "", 0).status().message()),
             Contains("the game goes on"));
  actions[0] = 4;
  CHECK_THAT(std::string(RecordGame(*s.game, actions, "", 0).status().message()),
             Contains("step 0"));
}

}  // namespace
}  // namespace mallocgame
