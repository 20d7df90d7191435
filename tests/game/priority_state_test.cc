// What must hold for every priority game on every program, and what its modes do.
#include "mallocgame/game/priority/priority_state.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "absl/strings/str_join.h"
#include "mallocgame/game/priority/channel_slack.h"
#include "mallocgame/game/priority/copy_times.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/search/intent.h"
#include "mallocgame/simulator/simulate.h"
#include "tests/catch.h"
#include "tests/support/large_program.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;
using testing::RandomAction;
using testing::RandomProgram;
using testing::TestHardware;

PriorityGameOptions PriorityOptions() {
  PriorityGameOptions options;
  options.min_buffer_bytes = 0;
  return options;
}

std::shared_ptr<const PriorityGame> RandomGame(Rng& rng) {
  auto program = RandomProgram(rng, {.instructions = 6 + static_cast<int>(rng.Below(30)),
                                     .loops = static_cast<int>(rng.Below(3)),
                                     .branches = static_cast<int>(rng.Below(2)),
                                     .constrained = rng.Below(2) == 0});
  Hardware hardware = TestHardware(4 + rng.Below(20), rng.Below(3) == 0 ? 4 : 1);
  hardware.max_preloads = static_cast<int32_t>(rng.Below(3));
  hardware.max_outstanding_prefetches = 1 + static_cast<int32_t>(rng.Below(4));
  hardware.max_outstanding_evictions = 1 + static_cast<int32_t>(rng.Below(4));
  PriorityGameOptions options = PriorityOptions();
  options.candidates = 1 + static_cast<int>(rng.Below(kMaxCandidates));
  options.keep_free = rng.Below(4) == 0 ? 0.25 : 0.0;
  options.exact_stalls = rng.Below(4) == 0;
  if (rng.Below(4) == 0) {
    for (size_t a = 0; a < program->accesses().size(); ++a) {
      const uint32_t kind = rng.Below(10);
      if (kind == 0) options.forbidden.emplace_back(a);
    }
  }
  return *PriorityGame::Create(program, hardware, options);
}

// Reads everything that can be seen of a position without changing it.
std::string Visible(const Position& position) {
  return position.ToString() + absl::StrJoin(position.legal_actions(), ",") + " " +
         std::to_string(position.latency_ps());
}

TEST_CASE("every priority game ends in a valid plan that costs what the savings add up to") {
  Rng rng(1);
  int64_t in_loops = 0, preloads = 0, copies = 0, decisions = 0;
  for (int n = 0; n < 2000; ++n) {
    const auto game = RandomGame(rng);
    for (int episode = 0; episode < 3; ++episode) {
      const auto position = game->NewInitialPosition();
      int64_t saved = 0;
      while (!position->IsTerminal()) {
        const auto step = position->Apply(RandomAction(*position, rng));
        REQUIRE(step.ok());
        saved += *step;
        REQUIRE(position->num_decisions() <= game->max_decisions());
      }
      decisions += position->num_decisions();
      const Plan plan = position->ToPlan();
      const Verdict verdict = Validate(game->program(), game->hardware(), plan);
      INFO("game " << n << ": " << verdict.message);
      REQUIRE(verdict.ok());
      const auto report = Simulate(game->cost_model(), plan);
      REQUIRE(report.ok());
      REQUIRE(report->latency_ps == position->latency_ps());
      REQUIRE(game->all_main_ps() - saved == report->latency_ps);
      for (const AccessId id : game->options().forbidden)
        REQUIRE(!plan.served_by[id.index()].valid());
      for (const Residence& r : plan.residences)
        in_loops += game->program().region_at(r.begin) != 0;
      for (const Copy& copy : plan.copies) preloads += copy.preload;
      copies += static_cast<int64_t>(plan.copies.size());
    }
  }
  CHECK(in_loops > 1000);
  CHECK(preloads > 500);
  CHECK(copies > 10000);
  CHECK(decisions > 50000);
}

TEST_CASE("with exact stalls every position has the latency of its plan") {
  Rng rng(9);
  int64_t positions = 0, more = 0;
  while (positions < 20'000) {
    const auto game = RandomGame(rng);
    PriorityGameOptions options = game->options();
    options.exact_stalls = true;
    const auto exact = *PriorityGame::Create(game->shared_program(), game->hardware(), options);
    options.exact_stalls = false;
    const auto bounded = *PriorityGame::Create(game->shared_program(), game->hardware(), options);
    const auto position = exact->NewInitialPosition(), other = bounded->NewInitialPosition();
    for (; !position->IsTerminal(); ++positions) {
      const int action = RandomAction(*position, rng);
      const int64_t promised = position->SavingOf(action);
      REQUIRE(*position->Apply(action) == promised);
      REQUIRE(other->Apply(action).ok());
      const auto report = Simulate(exact->cost_model(), position->ToPlan());
      REQUIRE(report.ok());
      REQUIRE(report->latency_ps == position->latency_ps());
      REQUIRE(other->latency_ps() <= position->latency_ps());
      more += other->latency_ps() < position->latency_ps();
    }
    REQUIRE(other->ToPlan() == position->ToPlan());
  }
  CHECK(more > 100);  // A lower bound isn't always exact.
}

TEST_CASE("exact stalls are the same whether or not they were asked for on the way") {
  Rng rng(11);
  int64_t unasked = 0;
  for (int n = 0; n < 300; ++n) {
    const auto any = RandomGame(rng);
    PriorityGameOptions options = any->options();
    options.exact_stalls = true;
    const auto game = *PriorityGame::Create(any->shared_program(), any->hardware(), options);
    PriorityState asked(game), other(game);
    while (!asked.IsTerminal()) {
      const int action = RandomAction(asked, rng);
      if (rng.Below(3) == 0) {  // what is known of an action here must not count elsewhere
        for (const int one : other.legal_actions()) other.SavingOf(one);
      }
      if (rng.Below(3) == 0 && other.num_decisions() > 0) {
        const int last = other.actions().back();
        other.Undo();
        REQUIRE(other.TryApply(last));
      }
      const int64_t before = asked.latency_ps();
      REQUIRE(asked.Apply(action).ok());
      REQUIRE(asked.decided().back().latency_ps == before);
      REQUIRE(other.TryApply(action));
      unasked += other.decided().back().stall_ps < 0;
      if (rng.Below(3) == 0) REQUIRE(other.latency_ps() == asked.latency_ps());
    }
    for (; asked.num_decisions() > 0; asked.Undo(), other.Undo())
      REQUIRE(other.latency_ps() == asked.latency_ps());
  }
  CHECK(unasked > 1000);
}

TEST_CASE("Undo takes back every decision of the priority game, and clones are independent") {
  Rng rng(2);
  for (int n = 0; n < 300; ++n) {
    const auto game = RandomGame(rng);
    PriorityState state(game);
    std::vector<std::string> seen;
    for (; !state.IsTerminal();) {
      seen.push_back(Visible(state));
      if (rng.Below(4) == 0) {
        const auto clone = state.Clone();
        while (!clone->IsTerminal()) REQUIRE(clone->Apply(RandomAction(*clone, rng)).ok());
        const int64_t end = clone->latency_ps();
        const int action = clone->actions().back();
        clone->Undo();
        REQUIRE(clone->Apply(action).ok());
        REQUIRE(clone->latency_ps() == end);
        REQUIRE(Visible(state) == seen.back());
      }
      REQUIRE(state.Apply(RandomAction(state, rng)).ok());
    }
    REQUIRE(state.legal_actions().empty());
    while (state.num_decisions() > 0) {
      state.Undo();
      REQUIRE(Visible(state) == seen.back());
      seen.pop_back();
    }
  }
}

TEST_CASE("how late the channel is agrees with a walk over all ticks of a segment") {
  Rng rng(5);
  const std::vector<Tick> begins = {0, 1, 17, 49, 50, 82, 400, 1000};
  ChannelSlack summed(begins);
  std::vector<int64_t> slack(begins.back());
  for (int change = 0; change < 2000; ++change) {
    const auto tick = static_cast<Tick>(rng.Below(begins.back()));
    slack[tick] = static_cast<int64_t>(rng.Below(200)) - 100;
    const auto segment = static_cast<int32_t>(std::upper_bound(begins.begin(), begins.end(), tick) -
                                              begins.begin() - 1);
    int64_t looked_at = 0;
    summed.Update(segment, tick, [&](Tick t) {
      ++looked_at;
      return slack[t];
    });
    CHECK(looked_at <= ChannelSlack::kBlock);
    for (int32_t s = 0; s + 1 < static_cast<int32_t>(begins.size()); ++s) {
      int64_t sum = 0, least = 0;
      for (Tick t = begins[s]; t < begins[s + 1]; ++t) least = std::min(least, sum += slack[t]);
      REQUIRE(summed.Late(s) == -least);
    }
    const auto at = [&](Tick t) { return slack[t]; };
    const Tick begin = begins[segment], length = begins[segment + 1] - begin;
    const Tick from = begin + static_cast<Tick>(rng.Below(length + 1));
    const Tick to = from + static_cast<Tick>(rng.Below(begins[segment + 1] - from + 1));
    REQUIRE(summed.Sum(segment, from, to, at) ==
            std::accumulate(slack.begin() + from, slack.begin() + to, int64_t{0}));
    // Changes of a few ticks, perhaps of one twice.
    std::vector<ChannelSlack::Change> changes;
    for (uint32_t i = rng.Below(4); i > 0; --i) {
      changes.push_back({begin + static_cast<Tick>(rng.Below(length)),
                         static_cast<int64_t>(rng.Below(200)) - 100});
    }
    std::sort(changes.begin(), changes.end(),
              [](const auto& a, const auto& b) { return a.tick < b.tick; });
    int64_t sum = 0, least = 0;
    for (Tick t = begin; t < begins[segment + 1]; ++t) {
      sum += slack[t];
      for (const ChannelSlack::Change& c : changes) sum += c.tick == t ? c.slack : 0;
      least = std::min(least, sum);
    }
    REQUIRE(summed.LateWith(segment, changes, at) == -least);
  }
}

TEST_CASE("stalls and free space of a long priority game agree with a walk over all ticks") {
  const auto program = testing::LargeProgram({.instructions = 3000, .loops = 2});
  const auto game = PriorityGame::Create(program, *HardwarePreset("tpu_v6e"), PriorityOptions());
  REQUIRE(game.ok());
  PriorityState state(*game);
  const PriorityTables& tables = state.tables();
  const auto least_stall = [&] {
    int64_t stall = 0;
    for (size_t s = 0; s + 1 < tables.segment_begin.size(); ++s) {
      int64_t sum = 0, least = 0;
      const Tick end = tables.segment_begin[s + 1];
      for (Tick t = tables.segment_begin[s]; t < end; ++t)
        least = std::min(least, sum += state.arrangement().idle_ps(t) - state.due_ps(t));
      stall -= least * tables.arrangement.passes[end - 1];
    }
    return stall;
  };
  const auto fits = [&](const PlannedResidence& planned) {  // at every tick, wherever that is
    for (Tick t = planned.need; t < planned.end; ++t) {
      if (state.arrangement().TakenBytes(t) + state.arrangement().size(planned) >
          (*game)->usable_bytes())
        return false;
    }
    return true;
  };
  Rng rng(6);
  while (!state.IsTerminal()) {
    if (rng.Below(8) == 0 && !state.decided().empty()) state.Undo();
    const Run& run = tables.runs[state.candidates()[0]];
    const bool without_room = run.placeable && !fits(run.planned);
    const Mode mode = run.placeable && rng.Below(4) > 0 ? Mode::kLate : Mode::kSplit;
    const bool applied = state.TryApply(PriorityAction(0, mode));
    if (without_room && mode == Mode::kLate) CHECK(!applied);
    if (!applied && !state.TryApply(PriorityAction(0, Mode::kSplit)))
      REQUIRE(state.TryApply(PriorityAction(0, Mode::kSkip)));
    if (!state.IsTerminal() && rng.Below(20) == 0) REQUIRE(state.stall_ps() == least_stall());
  }
  CHECK(Validate(*program, (*game)->hardware(), state.ToPlan()).ok());
}

TEST_CASE("an illegal action of the priority game is refused and changes nothing") {
  Rng rng(3);
  for (int n = 0; n < 100; ++n) {
    const auto game = RandomGame(rng);
    PriorityState state(game);
    while (!state.IsTerminal()) {
      const std::string before = Visible(state);
      for (int action = -1; action <= game->num_actions(); ++action) {
        if (action >= 0 && state.legal_actions().Has(action)) continue;
        const auto step = state.Apply(action);
        REQUIRE(step.status().code() == absl::StatusCode::kInvalidArgument);
        REQUIRE(Visible(state) == before);
      }
      REQUIRE(state.Apply(RandomAction(state, rng)).ok());
    }
    REQUIRE(state.Apply(0).status().code() == absl::StatusCode::kFailedPrecondition);
  }
}

// `w` is read twice, far apart; `t` needs the space between.
TEST_CASE("a run is split where a residence would be held longest without an access") {
  ProgramBuilder b;
  const BufferId w = b.Parameter("w", 4), t = b.Parameter("t", 8);
  b.Add({.name = "first", .reads = {w}, .cycles = {40, 10}});
  b.Add({.name = "between", .reads = {t}, .cycles = {80, 10}});
  b.Add({.name = "wait", .cycles = {20}});
  b.Add({.name = "second", .reads = {w}, .cycles = {40, 10}});
  Hardware hardware = TestHardware(8);
  hardware.max_preloads = 0;
  PriorityGameOptions options = PriorityOptions();
  options.candidates = 2;
  const auto game = *PriorityGame::Create(b.Build(), hardware, options);
  PriorityState state(game);
  const auto run_of = [&](size_t candidate) -> const Run& {
    return state.tables().runs[state.candidates()[candidate]];
  };
  const size_t whole = run_of(0).last == 1 ? 0 : 1;
  REQUIRE(run_of(whole).last == 1);
  REQUIRE(state.Apply(PriorityAction(static_cast<int>(whole), Mode::kSplit)).ok());
  // Both halves of w and t are open; of three, the two most important are shown.
  int served = 0;
  while (!state.IsTerminal()) {
    const auto late = PriorityAction(0, Mode::kLate);
    const bool legal = state.legal_actions().Has(late);
    served += legal;
    REQUIRE(state.Apply(legal ? late : PriorityAction(0, Mode::kSkip)).ok());
  }
  REQUIRE(served == 3);
  REQUIRE(Validate(game->program(), hardware, state.ToPlan()).ok());
}

TEST_CASE("options of the priority game out of range are refused") {
  ProgramBuilder b;
  const BufferId w = b.Parameter("w", 4);
  b.Add({.name = "use", .reads = {w}, .cycles = {40, 10}});
  const auto program = b.Build();
  PriorityGameOptions options = PriorityOptions();
  for (const int candidates : {0, kMaxCandidates + 1}) {
    options.candidates = candidates;
    const auto game = PriorityGame::Create(program, TestHardware(8), options);
    REQUIRE(game.status().code() == absl::StatusCode::kInvalidArgument);
  }
}

TEST_CASE("regions may be listed in any order") {
  Rng rng(12);
  int nested = 0;
  for (int n = 0; n < 40; ++n) {
    const auto program = RandomProgram(rng, {.instructions = 20, .loops = 2, .branches = 1});
    ProgramData data = program->data();
    // The entry stays the first.
    std::reverse(data.regions.begin() + 1, data.regions.end());
    const auto count = static_cast<int32_t>(data.regions.size());
    const auto renumber = [count](int32_t& region) {
      region = region > 0 ? count - region : region;
    };
    for (Region& region : data.regions) {
      renumber(region.parent);
      nested += region.parent > 0 ? 1 : 0;
    }
    for (Instruction& instruction : data.instructions) renumber(instruction.region);
    const auto reversed = Program::Create(std::move(data));
    INFO(reversed.status());
    REQUIRE(reversed.ok());
    const Hardware hardware = TestHardware(4 + rng.Below(20));
    PriorityState played(*PriorityGame::Create(program, hardware, PriorityOptions()));
    PriorityState same(*PriorityGame::Create(*reversed, hardware, PriorityOptions()));
    while (!played.IsTerminal()) {
      const int action = RandomAction(played, rng);
      REQUIRE(played.TryApply(action));
      REQUIRE(same.TryApply(action));
      REQUIRE(same.latency_ps() == played.latency_ps());
    }
    REQUIRE(same.ToPlan().residences == played.ToPlan().residences);
    REQUIRE(same.ToPlan().copies == played.ToPlan().copies);
  }
  CHECK(nested > 40);
}

TEST_CASE("a plan says of a run that it was preloaded, though it is evicted too") {
  ProgramBuilder b;
  const BufferId w = b.Parameter("w", 4);
  b.Add({.name = "update", .updates = {w}, .cycles = {40, 10}});
  b.Add({.name = "between", .cycles = {40}});
  b.Add({.name = "last", .reads = {w}, .cycles = {40, 10}});
  const auto game = *PriorityGame::Create(b.Build(), TestHardware(8), PriorityOptions());
  PriorityState state(game);
  REQUIRE(state.Apply(PriorityAction(0, Mode::kSplit)).ok());
  REQUIRE(state.Apply(PriorityAction(0, Mode::kPreload)).ok());
  while (!state.IsTerminal()) REQUIRE(state.Apply(PriorityAction(0, Mode::kSkip)).ok());
  const Plan plan = state.ToPlan();
  REQUIRE(plan.copies.size() == 2);
  REQUIRE(plan.copies.back().kind == CopyKind::kEviction);
  REQUIRE(game->ReadPlan(plan)[0].mode == Mode::kPreload);
}

TEST_CASE("where copies take longer than can be counted there is no game") {
  Rng rng(14);
  const auto program = RandomProgram(rng, {.instructions = 12});
  Hardware hardware = TestHardware(16);
  hardware.main_bytes_per_second = 1;
  for (const Buffer& buffer : program->buffers()) REQUIRE(buffer.size_bytes < 1'000'000);
  REQUIRE(PriorityGame::Create(program, hardware, PriorityOptions()).ok());
  ProgramData data = program->data();
  for (Buffer& buffer : data.buffers) buffer.size_bytes *= 1'000'000;
  const auto large = Program::Create(std::move(data));
  REQUIRE(large.ok());
  const auto game = PriorityGame::Create(*large, hardware, PriorityOptions());
  REQUIRE(absl::IsInvalidArgument(game.status()));
  REQUIRE(std::string(game.status().message()).find("a run of more than") != std::string::npos);
}

}  // namespace
}  // namespace mallocgame
