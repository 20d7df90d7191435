// Observations: where the parts lie, what the numbers mean on programs small enough for paper, and
// that all are in [-1, 1].
#include "mallocgame/game/observation.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "mallocgame/game/feature_scale.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/time/time_game.h"
#include "tests/catch.h"
#include "tests/game/observation_reader.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::MakeGame;
using testing::ProgramBuilder;
using testing::RandomAction;
using testing::RandomProgram;
using testing::RandomProgramOptions;
using testing::Reader;
using testing::TestHardware;

// Three instructions of 10 ns, the last of which reads a parameter of 4 kB and takes 3 ns if that
// is in fast memory.
std::shared_ptr<const Program> ReadAtTheEnd() {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4000);
  b.Add({.name = "a", .cycles = {10000}});
  b.Add({.name = "b", .cycles = {10000}});
  b.Add({.name = "use", .reads = {p}, .cycles = {10000, 3000}});
  return b.Build();
}

PriorityGameOptions PriorityOptions(int candidates) {
  PriorityGameOptions options;
  options.candidates = candidates;
  return options;
}

ObservationOptions Narrow() {
  ObservationOptions options;
  options.neighbours = 1;
  options.ticks_back = 2;
  options.ticks_ahead = 1;
  options.ticks_per_column = 1;
  options.address_cells = 4;
  return options;
}

TEST_CASE("the layout: parts one behind the other, without those that are left out") {
  TimeGameOptions game;
  game.paper_actions = true;
  const auto parts = game.Layout(Narrow());
  REQUIRE(parts.size() == 6);
  int offset = 0;
  for (const ObservationPart& part : parts) {
    REQUIRE(part.offset == offset);
    int size = 1;
    for (int n : part.shape) size *= n;
    offset += size;
  }
  REQUIRE(parts[0].shape == std::vector<int>{3, static_cast<int>(parts[0].columns.size())});
  REQUIRE(parts[2].shape == std::vector<int>{3, 4});
  REQUIRE(parts[5].shape == std::vector<int>{3});
  REQUIRE(game.Layout(ObservationOptions::Compact()).size() == 4);
}

TEST_CASE("a read at the end, on paper") {
  State state(MakeGame(ReadAtTheEnd(), TestHardware(8000)));
  const Reader seen(state, Narrow());
  REQUIRE(seen.Access(1, "present") == 1);
  REQUIRE(seen.Access(1, "is_read") == 1);
  REQUIRE(seen.Access(1, "is_parameter") == 1);
  REQUIRE(seen.Access(1, "share") == 0.5F);
  REQUIRE(seen.Access(1, "copy_time") == Approx((2 + 0.25) / 32));  // 4 ns: log2 of 5 is 2 + 1/4
  REQUIRE(seen.Access(1, "saving") == Approx(3.0 / 32));            // 7 ns: log2 of 8
  REQUIRE(seen.Access(1, "saving_per_copy") == Approx(7.0 / 11));
  REQUIRE(seen.Access(1, "idle_before") == Approx(20.0 / 24));
  REQUIRE(seen.Access(1, "in_main") == 1);
  REQUIRE(seen.Access(1, "fast") == 0);
  REQUIRE(seen.Access(0, "present") == 0);
  REQUIRE(seen.Access(2, "present") == 0);
  // The latest window that hides 4 ns begins at the instruction before; NoCopy preloads the buffer,
  // which is resident from the start.
  REQUIRE(seen.Of(Action::kCopy, "lead") == Approx(1.0 / 16));
  REQUIRE(seen.Of(Action::kCopy, "saved") == Approx(3.0 / 32));
  REQUIRE(seen.Of(Action::kCopy, "transfer") == 1);
  REQUIRE(seen.Of(Action::kCopy, "stay") == Approx(1.0 / 16));
  REQUIRE(seen.Of(Action::kNoCopy, "preload") == 1);
  REQUIRE(seen.Of(Action::kNoCopy, "lead") == Approx(1.5 / 16));
  REQUIRE(seen.Of(Action::kDrop, "legal") == 1);
  REQUIRE(seen.Of(Action::kDrop, "saved") == 0);
  // Half the memory for the last two of three equal instructions, or for all of them.
  REQUIRE(seen.Of(Action::kCopy, "space") == Approx(scale::Space(1.0 / 3)));
  REQUIRE(seen.Of(Action::kNoCopy, "space") == Approx(scale::Space(1.0 / 2)));
  REQUIRE(seen.Of(Action::kDrop, "space") == 0);
  // The buffer is wished for over the same two instructions, and its copy of 4 ns in the 20 ns of
  // idle time before this tick that are left; the latest window leaves 10 of them.
  REQUIRE(seen.Of(Action::kCopy, "demand") == Approx(0.5 / 1.5));
  REQUIRE(seen.Of(Action::kNoCopy, "demand") == Approx((2.0 / 6) / (1 + 2.0 / 6)));
  REQUIRE(seen.Of(Action::kCopy, "excess") == 0);
  REQUIRE(seen.Of(Action::kCopy, "contention") == Approx(4.0 / 14));
  REQUIRE(seen.Of(Action::kNoCopy, "contention") == 0);
  REQUIRE(seen.Of(Action::kCopy, "profit") == 0);
  REQUIRE(seen.Scalar("priced") == 0);
  // For a copy of 4 ns there are two instructions with 10 ns of idle time each before this tick,
  // and 6 ns behind it.
  REQUIRE(seen.At("idle", 0, 0) == Approx(10.0 / 14));
  REQUIRE(seen.At("idle", 1, 1) == Approx(10.0 / 14));
  REQUIRE(seen.At("idle", 2, 0) < seen.At("idle", 1, 0));
  REQUIRE(seen.Scalar("taken") == 0);
  REQUIRE(seen.Scalar("largest_free") == 1);
  REQUIRE(seen.Scalar("return") == 0);

  REQUIRE(state.Apply(Action::kCopy).ok());
  const Reader after(state, Narrow());
  REQUIRE(state.IsTerminal());
  REQUIRE(after.Scalar("return") == Approx(7.0 / 30));
  REQUIRE(after.Scalar("progress") == 1);
  REQUIRE(after.Access(0, "fast") == 1);
  REQUIRE(after.Access(1, "present") == 0);
  for (int a = 0; a < 4; ++a) REQUIRE(after.At("action_mask", 0, a) == 0);
}

TEST_CASE("prices on paper") {
  const auto program = ReadAtTheEnd();
  // 4000 bytes pay 1, 2 and 3 ns at the three ticks; a copy of 4 ns pays 0.5, 1 and 2 ns.
  const Prices prices = {{0.25, 0.5, 0.75}, {0.125, 0.25, 0.5}};
  const State state(MakeGame(program, TestHardware(8000)));
  const Reader seen(state, Narrow(), &prices);
  REQUIRE(seen.Scalar("priced") == 1);
  REQUIRE(seen.Of(Action::kDrop, "profit") == 0);
  REQUIRE(seen.Of(Action::kCopy, "space_rent") == scale::Time(5000));
  REQUIRE(seen.Of(Action::kCopy, "channel_rent") == scale::Time(1000));
  REQUIRE(seen.Of(Action::kCopy, "profit") == Approx((7.0 - 6) / (7 + 6)));
  REQUIRE(seen.Of(Action::kNoCopy, "space_rent") == scale::Time(6000));
  REQUIRE(seen.Of(Action::kNoCopy, "channel_rent") == 0);

  const auto order =
      MakeGame(program, TestHardware(8000), PriorityOptions(2))->NewInitialPosition();
  const Reader ordered(*order, Narrow(), &prices);
  const int late = PriorityAction(0, Mode::kLate), early = PriorityAction(0, Mode::kEarly);
  REQUIRE(ordered.Scalar("priced") == 1);
  REQUIRE(ordered.Of(late, "profit") == Approx((7.0 - 6) / (7 + 6)));
  REQUIRE(ordered.Of(early, "space_rent") == scale::Time(6000));
  REQUIRE(ordered.Of(early, "channel_rent") == scale::Time(750));

  const Prices short_prices = {{1.0}, {}};
  for (const auto& game : {state.shared_game(), order->shared_game()}) {
    REQUIRE(Observer::Create(game, Narrow(), &short_prices).status().code() ==
            absl::StatusCode::kInvalidArgument);
  }
}

TEST_CASE("occupancy: what a residence that begins there can't have") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 6), q = b.Parameter("q", 2);
  b.Add({.name = "a", .reads = {p}, .cycles = {10}});
  b.Add({.name = "b", .cycles = {10}});
  b.Add({.name = "c", .reads = {q}, .cycles = {10}});
  State state(MakeGame(b.Build(), TestHardware(8)));
  REQUIRE(state.Apply(Action::kNoCopy).ok());  // p at 0 to 6 until tick 1
  const Reader seen(state, Narrow());
  REQUIRE(state.tick() == 2);
  for (int cell = 0; cell < 4; ++cell) {
    REQUIRE(seen.At("occupancy", 0, cell) == (cell < 3 ? 1.0F : 0.0F));  // tick 0
    REQUIRE(seen.At("occupancy", 1, cell) == 0.0F);                      // tick 1
    REQUIRE(seen.At("occupancy", 2, cell) == 0.0F);
  }
}

TEST_CASE("what is booked isn't left") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4), q = b.Parameter("q", 8);
  b.Add({.name = "a", .cycles = {10}});
  b.Add({.name = "b", .cycles = {10}});
  b.Add({.name = "c", .reads = {p}, .cycles = {10}});
  b.Add({.name = "d", .reads = {q}, .cycles = {10}});
  Hardware hardware = TestHardware(64);
  hardware.max_preloads = 0;
  State state(MakeGame(b.Build(), hardware));
  REQUIRE(state.Apply(Action::kCopy).ok());  // 4 of b's 10
  ObservationOptions options = Narrow();
  options.ticks_back = 3;
  const Reader seen(state, options);
  REQUIRE(seen.At("idle", 0, 1) == Approx(10.0 / 18));  // a
  REQUIRE(seen.At("idle", 1, 0) == Approx(10.0 / 18));  // b
  REQUIRE(seen.At("idle", 1, 1) == Approx(6.0 / 14));
}

ObservationOptions RandomOptions(Rng& rng) {
  ObservationOptions options;
  options.neighbours = static_cast<int>(rng.Below(6));
  options.ticks_back = static_cast<int>(rng.Below(10));
  options.ticks_ahead = static_cast<int>(rng.Below(10));
  options.ticks_per_column = 1 + static_cast<int>(rng.Below(5));
  options.address_cells = static_cast<int>(rng.Below(20));
  return options;
}

TEST_CASE(
    "on random programs and plays of both games every number is in [-1, 1], the mask is the mask, "
    "and undo is seen") {
  Rng rng(5);
  for (int g = 0; g < 600; ++g) {
    RandomProgramOptions program_options;
    program_options.instructions = 4 + static_cast<int>(rng.Below(40));
    program_options.roofline = rng.Below(4) == 0;
    const bool paper_actions = rng.Below(3) == 0;
    const int64_t candidates = 1 + rng.Below(6);
    const auto game_options =
        testing::OptionsOf(g % 2 == 0 ? "time" : "priority",
                           {{"paper_actions", paper_actions}, {"candidates", candidates}});
    Hardware hardware = TestHardware(4 + rng.Below(40));
    hardware.max_preloads = static_cast<int32_t>(rng.Below(3));
    const auto game = MakeGame(RandomProgram(rng, program_options), hardware, *game_options);
    const ObservationOptions options = RandomOptions(rng);
    const auto position = game->NewInitialPosition();
    while (true) {
      const Reader seen(*position, options);
      const auto out_of_range = std::find_if(seen.numbers.begin(), seen.numbers.end(),
                                             [](float x) { return !(std::abs(x) <= 1.0F); });
      INFO("number " << out_of_range - seen.numbers.begin());
      REQUIRE(out_of_range == seen.numbers.end());
      const ActionSet legal = position->legal_actions();
      for (int a = 0; a < game->num_actions(); ++a) {
        REQUIRE(seen.At("action_mask", 0, a) == (legal.Has(a) ? 1.0F : 0.0F));
        REQUIRE(seen.Of(a, "legal") == (legal.Has(a) ? 1.0F : 0.0F));
      }
      if (position->IsTerminal()) break;
      const int action = RandomAction(*position, rng);
      REQUIRE(position->Apply(action).ok());
      position->Undo();
      REQUIRE(Reader(*position, options).numbers == seen.numbers);
      REQUIRE(position->Apply(action).ok());
    }
  }
}

TEST_CASE("the layout of the priority game has its own parts") {
  const auto parts = PriorityOptions(2).Layout(Narrow());
  std::vector<std::string> names;
  for (const ObservationPart& part : parts) names.push_back(part.name);
  REQUIRE(names == std::vector<std::string>{"candidates", "actions", "occupancy", "idle", "demand",
                                            "scalars", "action_mask"});
  REQUIRE(parts[0].shape == std::vector<int>{3, static_cast<int>(parts[0].columns.size())});
  REQUIRE(parts[2].shape == std::vector<int>{3, 4});
  REQUIRE(PriorityOptions(4).Layout(ObservationOptions::Compact()).size() == 4);
}

TEST_CASE("the priority game on paper") {
  const auto game = MakeGame(ReadAtTheEnd(), TestHardware(8000), PriorityOptions(2));
  const auto position = game->NewInitialPosition();
  const int late = PriorityAction(0, Mode::kLate), early = PriorityAction(0, Mode::kEarly),
            preload = PriorityAction(0, Mode::kPreload), skip = PriorityAction(0, Mode::kSkip);
  const Reader seen(*position, Narrow());
  REQUIRE(seen.Candidate(0, "present") == 1);
  REQUIRE(seen.Candidate(1, "present") == 0);
  REQUIRE(seen.Candidate(0, "reads") == Approx(1.0 / 16));
  REQUIRE(seen.Candidate(0, "share") == 0.5F);
  REQUIRE(seen.Candidate(0, "copy_time") == Approx((2 + 0.25) / 32));
  REQUIRE(seen.Candidate(0, "saving") == Approx(3.0 / 32));
  REQUIRE(seen.Candidate(0, "begin") == Approx(20.0 / 30));
  REQUIRE(seen.Candidate(0, "end") == 1);
  REQUIRE(seen.Candidate(0, "fetched") == 1);
  REQUIRE(seen.Candidate(0, "preloadable") == 1);
  REQUIRE(seen.Candidate(0, "late_lead") == Approx(1.0 / 16));
  REQUIRE(seen.Candidate(0, "early_lead") == Approx(1.5 / 16));
  // Late takes half the memory for the last two of three equal instructions.
  for (const int action : {late, early, preload}) {
    REQUIRE(seen.Of(action, "places") == 1);
    REQUIRE(seen.Of(action, "saved") == Approx(3.0 / 32));
    REQUIRE(seen.Of(action, "full") == 0);
  }
  REQUIRE(seen.Of(late, "space") == Approx(scale::Space(1.0 / 3)));
  REQUIRE(seen.Of(late, "lead") == Approx(1.0 / 16));
  REQUIRE(seen.Of(early, "lead") == Approx(1.5 / 16));
  // 4 ns are to be copied, and the two instructions before leave 20.
  REQUIRE(seen.Of(late, "slack") == Approx(20.0 / 24));
  REQUIRE(seen.Of(late, "copies") == Approx((2 + 0.25) / 32));
  REQUIRE(seen.Of(preload, "slack") == 1);
  REQUIRE(seen.Of(preload, "copies") == 0);
  // Only this run wishes for anything: half of memory over two thirds of the time, and its copy in
  // the 10 ns before its tick.
  REQUIRE(seen.Of(late, "demand") == Approx(0.5 / 1.5).margin(0.01));
  REQUIRE(seen.Of(preload, "demand") == Approx((1.0 / 3) / (4.0 / 3)).margin(0.01));
  REQUIRE(seen.Of(late, "excess") == 0);
  REQUIRE(seen.Of(late, "contention") == Approx(4.0 / 14).margin(0.01));
  REQUIRE(seen.Of(preload, "contention") == 0);
  REQUIRE(seen.Of(skip, "legal") == 1);
  REQUIRE(seen.Of(skip, "places") == 0);
  // Three columns of one instruction each.
  REQUIRE(seen.At("idle", 0, 0) == 1);
  REQUIRE(seen.At("demand", 0, 0) == 0);
  REQUIRE(seen.At("demand", 0, 1) == 0);
  REQUIRE(seen.At("demand", 2, 1) == Approx(0.5 / 1.5));
  REQUIRE(seen.Scalar("return") == 0);

  REQUIRE(position->Apply(late).ok());
  const Reader after(*position, Narrow());
  REQUIRE(position->IsTerminal());
  REQUIRE(after.Candidate(0, "present") == 0);
  REQUIRE(after.Scalar("return") == Approx(7.0 / 30));
  REQUIRE(after.Scalar("taken") == Approx(1.0 / 3));
  REQUIRE(after.Scalar("rank") == 1);
  REQUIRE(after.At("occupancy", 0, 0) == 0);
  REQUIRE(after.At("occupancy", 1, 0) == Approx(1));
  REQUIRE(after.At("occupancy", 1, 1) == Approx(1));
  REQUIRE(after.At("occupancy", 1, 2) == 0);
  REQUIRE(after.At("demand", 2, 0) == Approx(0.5));
  REQUIRE(after.At("demand", 2, 1) == 0);
  REQUIRE(after.At("idle", 1, 1) == Approx(0.6));  // The prefetch is due behind `b`.
}

TEST_CASE("the channel's time that a prefetch finds is what those that are due leave") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 6), q = b.Parameter("q", 6);
  b.Add({.name = "wait", .cycles = {10}});
  b.Add({.name = "use", .reads = {p, q}, .cycles = {100, 50, 50, 20}});
  Hardware hardware = TestHardware(16);
  hardware.max_preloads = 0;
  const auto game = MakeGame(b.Build(), hardware, PriorityOptions(2));
  const auto position = game->NewInitialPosition();
  const int first = PriorityAction(0, Mode::kLate), second = PriorityAction(1, Mode::kLate);
  const Reader seen(*position, Narrow());
  REQUIRE(seen.Of(first, "slack") == Approx(10.0 / 16));
  REQUIRE(seen.Of(second, "slack") == Approx(10.0 / 16));
  REQUIRE(position->Apply(first).ok());
  REQUIRE(Reader(*position, Narrow()).Of(first, "slack") == Approx(4.0 / 10));
  REQUIRE(*position->Apply(first) == 30 - 2);  // 2 of 6 are not hidden.
}

TEST_CASE("open runs that are no candidates stand behind them") {
  ProgramBuilder b;
  for (int i = 0; i < 5; ++i) {
    const std::string name(1, static_cast<char>('a' + i));
    const BufferId p = b.Parameter(name, 4);
    b.Add({.name = "use " + name, .reads = {p}, .cycles = {40, 10}});
  }
  const auto game = MakeGame(b.Build(), TestHardware(8), PriorityOptions(2));
  const auto position = game->NewInitialPosition();
  ObservationOptions options;
  options.neighbours = 2;
  const auto ranks = [&] {
    const Reader seen(*position, options);
    std::vector<float> found;
    for (int row = 0; row < 4; ++row) found.push_back(5 * seen.Candidate(row, "rank"));
    return found;
  };
  REQUIRE(ranks() == std::vector<float>{0, 1, 2, 3});
  REQUIRE(position->Apply(PriorityAction(1, Mode::kSkip)).ok());
  REQUIRE(ranks() == std::vector<float>{0, 2, 3, 4});
}

TEST_CASE("options out of range") {
  const auto game = MakeGame(ReadAtTheEnd(), TestHardware(8));
  for (int ObservationOptions::* member :
       {&ObservationOptions::neighbours, &ObservationOptions::ticks_back,
        &ObservationOptions::ticks_ahead, &ObservationOptions::ticks_per_column,
        &ObservationOptions::address_cells}) {
    for (int value : {-1, 1 << 30}) {
      ObservationOptions options;
      options.*member = value;
      const auto observer = Observer::Create(game, options);
      REQUIRE(observer.status().code() == absl::StatusCode::kInvalidArgument);
    }
  }
}

}  // namespace
}  // namespace mallocgame
