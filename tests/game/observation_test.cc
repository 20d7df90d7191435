// Observations: where the parts lie, what the numbers mean on programs small enough for paper, and
// that all are in [-1, 1].
#include "mallocgame/game/observation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>
#include <string>

#include "mallocgame/game/feature_scale.h"
#include "mallocgame/game/order/order_state.h"
#include "mallocgame/game/tables.h"
#include "tests/catch.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::MakeGame;
using testing::ProgramBuilder;
using testing::RandomProgram;
using testing::RandomProgramOptions;
using testing::TestHardware;

int Column(absl::Span<const Feature> features, const std::string& name) {
  for (size_t i = 0; i < features.size(); ++i) {
    if (features[i].name == name) return static_cast<int>(i);
  }
  FAIL("no feature " << name);
  return -1;
}

// Reads an observation by the names of its parts and columns.
struct Reader {
  Reader(const Position& position, const ObservationOptions& options,
         const Prices* prices = nullptr)
      : kind(position.game().options().kind),
        layout(ObservationLayout(options, position.game().num_actions(), kind)) {
    const auto observer = Observer::Create(position.shared_game(), options, prices);
    REQUIRE(observer.ok());
    numbers.assign(observer->size() + 1, 77.0F);
    observer->Write(position, numbers.data());
    REQUIRE(numbers.back() == 77.0F);
    numbers.pop_back();
  }
  const ObservationPart& Part(const std::string& name) const {
    for (const ObservationPart& part : layout) {
      if (part.name == name) return part;
    }
    FAIL("no part " << name);
    return layout[0];
  }
  float At(const std::string& name, int row, int column) const {
    const ObservationPart& part = Part(name);
    return numbers[part.offset + row * part.shape.back() + column];
  }
  float Access(int row, const char* feature) const {
    return At("accesses", row, Column(AccessFeatures(), feature));
  }
  float Candidate(int row, const char* feature) const {
    return At("candidates", row, Column(CandidateFeatures(), feature));
  }
  float Of(int action, const char* feature) const {
    return At("actions", action, Column(ActionFeatures(kind), feature));
  }
  float Of(Action action, const char* feature) const {
    return Of(static_cast<int>(action), feature);
  }
  float Scalar(const char* feature) const {
    return At("scalars", 0, Column(ScalarFeatures(kind), feature));
  }

  GameKind kind;
  std::vector<ObservationPart> layout;
  std::vector<float> numbers;
};

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

GameOptions OrderGame(int candidates) {
  GameOptions options;
  options.kind = GameKind::kOrder;
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
  const auto parts = ObservationLayout(Narrow(), 3);
  REQUIRE(parts.size() == 6);
  int offset = 0;
  for (const ObservationPart& part : parts) {
    REQUIRE(part.offset == offset);
    int size = 1;
    for (int n : part.shape) size *= n;
    offset += size;
  }
  REQUIRE(parts[0].shape == std::vector<int>{3, static_cast<int>(AccessFeatures().size())});
  REQUIRE(parts[2].shape == std::vector<int>{3, 4});
  REQUIRE(parts[5].shape == std::vector<int>{3});
  REQUIRE(ObservationLayout(ObservationOptions::Compact(), 4).size() == 4);
}

TEST_CASE("a read at the end, on paper") {
  State state = MakeGame(ReadAtTheEnd(), TestHardware(8000))->InitialState();
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
  const State state = MakeGame(program, TestHardware(8000))->InitialState();
  const Reader seen(state, Narrow(), &prices);
  REQUIRE(seen.Scalar("priced") == 1);
  REQUIRE(seen.Of(Action::kDrop, "profit") == 0);
  REQUIRE(seen.Of(Action::kCopy, "space_rent") == scale::Time(5000));
  REQUIRE(seen.Of(Action::kCopy, "channel_rent") == scale::Time(1000));
  REQUIRE(seen.Of(Action::kCopy, "profit") == Approx((7.0 - 6) / (7 + 6)));
  REQUIRE(seen.Of(Action::kNoCopy, "space_rent") == scale::Time(6000));
  REQUIRE(seen.Of(Action::kNoCopy, "channel_rent") == 0);

  const auto order = MakeGame(program, TestHardware(8000), OrderGame(2))->Start();
  const Reader ordered(*order, Narrow(), &prices);
  const int late = OrderAction(0, Service::kLate), early = OrderAction(0, Service::kEarly);
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
  State state = MakeGame(b.Build(), TestHardware(8))->InitialState();
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
  State state = MakeGame(b.Build(), hardware)->InitialState();
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
    GameOptions game_options;
    game_options.kind = g % 2 == 0 ? GameKind::kTime : GameKind::kOrder;
    game_options.paper_actions = rng.Below(3) == 0;
    game_options.candidates = 1 + static_cast<int>(rng.Below(6));
    Hardware hardware = TestHardware(4 + rng.Below(40));
    hardware.max_preloads = static_cast<int32_t>(rng.Below(3));
    const auto game = MakeGame(RandomProgram(rng, program_options), hardware, game_options);
    const ObservationOptions options = RandomOptions(rng);
    const auto position = game->Start();
    while (true) {
      const Reader seen(*position, options);
      const auto out_of_range = std::find_if(seen.numbers.begin(), seen.numbers.end(),
                                             [](float x) { return !(std::abs(x) <= 1.0F); });
      INFO("number " << out_of_range - seen.numbers.begin());
      REQUIRE(out_of_range == seen.numbers.end());
      uint32_t mask = position->legal_mask();
      for (int a = 0; a < game->num_actions(); ++a) {
        REQUIRE(seen.At("action_mask", 0, a) == static_cast<float>(mask >> a & 1u));
        REQUIRE(seen.Of(a, "legal") == static_cast<float>(mask >> a & 1u));
      }
      if (position->IsTerminal()) break;
      for (uint32_t skip = rng.Below(std::popcount(mask)); skip > 0; --skip) mask &= mask - 1;
      const int action = std::countr_zero(mask);
      REQUIRE(position->Apply(action).ok());
      position->Undo();
      REQUIRE(Reader(*position, options).numbers == seen.numbers);
      REQUIRE(position->Apply(action).ok());
    }
  }
}

TEST_CASE("the layout of the order game has its own parts") {
  const auto parts = ObservationLayout(Narrow(), 2 * kServices, GameKind::kOrder);
  std::vector<std::string> names;
  for (const ObservationPart& part : parts) names.push_back(part.name);
  REQUIRE(names == std::vector<std::string>{"candidates", "actions", "occupancy", "idle", "demand",
                                            "scalars", "action_mask"});
  REQUIRE(parts[0].shape == std::vector<int>{3, static_cast<int>(CandidateFeatures().size())});
  REQUIRE(parts[2].shape == std::vector<int>{3, 4});
  REQUIRE(ObservationLayout(ObservationOptions::Compact(), 20, GameKind::kOrder).size() == 4);
}

TEST_CASE("the order game on paper") {
  const auto game = MakeGame(ReadAtTheEnd(), TestHardware(8000), OrderGame(2));
  const auto position = game->Start();
  const int late = OrderAction(0, Service::kLate), early = OrderAction(0, Service::kEarly),
            preload = OrderAction(0, Service::kPreload), skip = OrderAction(0, Service::kSkip);
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

int RandomAction(const Position& position, Rng& rng) {
  uint32_t mask = position.legal_mask();
  for (uint32_t skip = rng.Below(std::popcount(mask)); skip > 0; --skip) mask &= mask - 1;
  return std::countr_zero(mask);
}

std::shared_ptr<const Game> RandomGame(Rng& rng, GameKind kind) {
  // Nanoseconds are what can be seen.
  constexpr int64_t kUnit = 1000;
  const auto program = RandomProgram(rng, {.instructions = 4 + static_cast<int>(rng.Below(40)),
                                           .size_unit = kUnit,
                                           .constrained = rng.Below(2) == 0,
                                           .roofline = rng.Below(4) == 0});
  GameOptions options;
  options.kind = kind;
  options.candidates = 1 + static_cast<int>(rng.Below(kMaxCandidates));
  for (size_t a = 0; a < program->accesses().size(); ++a) {
    const uint32_t wish = rng.Below(20);
    if (wish == 0) options.forbidden.emplace_back(a);
    if (wish == 1) options.required.emplace_back(a);
  }
  Hardware hardware = TestHardware(kUnit * (4 + rng.Below(40)));
  hardware.max_preloads = static_cast<int32_t>(rng.Below(3));
  hardware.askable = kind == GameKind::kOrder && rng.Below(3) == 0;
  return MakeGame(program, hardware, options);
}

TEST_CASE("what an action promises to save is what it saves") {
  const GameKind kind = GENERATE(GameKind::kTime, GameKind::kOrder);
  Rng rng(6);
  int stalls = 0, forcing = 0;
  for (int g = 0; g < 500; ++g) {
    const auto game = RandomGame(rng, kind);
    const auto position = game->Start();
    while (!position->IsTerminal()) {
      const Reader seen(*position, ObservationOptions::Compact());
      for (uint32_t rest = position->legal_mask(); rest != 0; rest &= rest - 1) {
        const int action = std::countr_zero(rest);
        const int64_t promised = position->SavingOf(action);
        const auto saved = position->Apply(action);
        REQUIRE(saved.ok());
        INFO(game->ActionText(action) << " in game " << g);
        REQUIRE(seen.Of(action, "saved") == scale::Time(promised));
        if (kind == GameKind::kOrder && position->IsTerminal()) {
          REQUIRE(promised >= *saved);  // The schedule may find more stalls.
        } else {
          REQUIRE(promised == *saved);
        }
        stalls += *saved < 0;
        forcing +=
            kind == GameKind::kTime && seen.Of(action, "saved_here") != seen.Of(action, "saved");
        position->Undo();
      }
      REQUIRE(position->Apply(RandomAction(*position, rng)).ok());
    }
  }
  CHECK(stalls > 100);
  CHECK((kind == GameKind::kOrder || forcing > 100));
}

// Positions in time of the ticks and the program's end: shares of the all-main time.
std::vector<double> PositionsOf(const Game& game) {
  std::vector<double> positions = {0};
  double before = 0;
  for (Tick t = 0; t < game.program().ticks(); ++t) {
    before += static_cast<double>(game.cost_model().PriceOf(t, 0).time_ps) *
              static_cast<double>(game.program().trips(t));
    positions.push_back(before / static_cast<double>(game.all_main_ps()));
  }
  return positions;
}

// The space that the residences of `after` take in addition to those of `before`.
double AddedSpace(const Game& game, const Plan& before, const Plan& after) {
  const std::vector<double> positions = PositionsOf(game);
  double space = 0;
  for (const Residence& r : after.residences) {
    Tick from = r.begin;
    for (const Residence& old : before.residences) {
      if (old.buffer == r.buffer && old.begin == r.begin && old.offset == r.offset)
        from = std::max(from, old.end);
    }
    if (from >= r.end) continue;
    space += static_cast<double>(game.program().buffer(r.buffer).size_bytes) /
             static_cast<double>(game.usable_bytes()) * (positions[r.end] - positions[from]);
  }
  return space;
}

TEST_CASE("the space that an action takes is that of the plan") {
  const GameKind kind = GENERATE(GameKind::kTime, GameKind::kOrder);
  Rng rng(7);
  int taken = 0;
  for (int g = 0; g < 150; ++g) {
    const auto game = RandomGame(rng, kind);
    if (game->all_main_ps() == 0) continue;
    const auto position = game->Start();
    while (!position->IsTerminal()) {
      const Reader seen(*position, ObservationOptions::Compact());
      const Plan before = position->ToPlan();
      const int action = RandomAction(*position, rng);
      REQUIRE(position->Apply(action).ok());
      double space = 0;
      if (kind == GameKind::kTime) {
        space = AddedSpace(*game, before, position->ToPlan());
      } else if (seen.Of(action, "places") != 0) {
        // The schedule may give a residence its bytes later than they are reserved.
        const auto& state = static_cast<const OrderState&>(*position);
        const PlannedResidence& placed = state.arrangement().placed().back();
        const std::vector<double> positions = PositionsOf(*game);
        space = static_cast<double>(state.arrangement().size(placed)) /
                static_cast<double>(game->usable_bytes()) *
                (positions[placed.end] - positions[placed.begin]);
      }
      INFO("game " << g << ", decision " << position->num_decisions());
      REQUIRE(seen.Of(action, "space") == Approx(scale::Space(space)).margin(1e-5));
      taken += space > 0;
    }
  }
  CHECK(taken > 200);
}

// An access's wish, as observation.h defines it, found by going back tick by tick.
struct Wish {
  Tick begin, tick;
  double share, copy_ps;  // copy_ps is 0 if it needs no prefetch
};

std::vector<Wish> WishesOf(const Game& game) {
  const Program& program = game.program();
  const GameTables& tables = game.tables();
  std::vector<int64_t> idle(program.ticks());
  for (Tick t = 0; t < program.ticks(); ++t) {
    uint64_t slots = 0;
    if (program.instruction(t).kind == InstructionKind::kLoopEntry) continue;
    for (const Decision& d : tables.decisions) {
      if (d.tick == t) slots |= uint64_t{1} << program.slot(d.access);
    }
    idle[t] = game.cost_model().PriceOf(t, slots).idle_ps;
  }
  std::vector<Wish> wishes;
  std::map<int32_t, Tick> last;
  for (const Decision& d : tables.decisions) {
    const auto previous = last.find(d.buffer);
    const Tick kept_from = previous == last.end() ? -1 : previous->second + 1;
    last[d.buffer] = d.tick;
    if (kept_from > d.tick) continue;
    const GameBuffer& buffer = tables.buffers[d.buffer];
    Wish wish = {d.tick, d.tick,
                 static_cast<double>(buffer.size_bytes) / static_cast<double>(game.usable_bytes()),
                 static_cast<double>(buffer.copy_ps)};
    int64_t hidden = 0;
    const bool written = d.kind == AccessKind::kWrite;
    while (!written && hidden < buffer.copy_ps && wish.begin != kept_from &&
           wish.begin > program.segment_begin(d.tick))
      hidden += idle[--wish.begin];
    if (written || (wish.begin == kept_from && hidden < buffer.copy_ps)) wish.copy_ps = 0;
    wishes.push_back(wish);
  }
  return wishes;
}

double Part(double x, double unit) { return x <= 0 ? 0 : x / (x + unit); }

TEST_CASE("the pressure that actions of the time game meet, tick by tick") {
  Rng rng(8);
  int crowded = 0, contended = 0;
  for (int g = 0; g < 150; ++g) {
    const auto game = RandomGame(rng, GameKind::kTime);
    if (game->all_main_ps() == 0) continue;
    const std::vector<double> positions = PositionsOf(*game);
    const std::vector<Wish> wishes = WishesOf(*game);
    const auto length = [&](Tick from, Tick to) { return positions[to] - positions[from]; };
    State state = game->InitialState();
    while (!state.IsTerminal()) {
      const Reader seen(state, ObservationOptions::Compact());
      const Tick now = state.tick();
      const auto copies = [&](Tick from, Tick to) {
        double copy_ps = 0;
        for (const Wish& wish : wishes) {
          const double whole = length(wish.begin, wish.tick);
          const Tick begin = std::max(from, wish.begin), end = std::min(to, wish.tick);
          if (wish.tick >= now && begin < end && whole > 0)
            copy_ps += wish.copy_ps * length(begin, end) / whole;
        }
        return copy_ps;
      };
      for (int a = 1; a < kActions; ++a) {
        if (!state.IsLegal(static_cast<Action>(a))) continue;
        const StateView view = state.view();
        const ActionEffect& effect = view.effects[a];
        double demand = 0, excess = 0, copy_ps = 0, idle_ps = 0;
        for (Tick t = effect.begin; t < effect.end; ++t) {
          double share = 0;
          for (const Wish& wish : wishes) {
            if (wish.tick >= now && wish.begin <= t && t <= wish.tick) share += wish.share;
          }
          demand += share * length(t, t + 1);
          excess += std::max(0.0, share - 1) * length(t, t + 1);
        }
        if (effect.transfer) {
          copy_ps += copies(effect.window.begin, now);
          idle_ps += static_cast<double>(view.windows.FreePs(effect.window.begin));
        }
        if (effect.write_back_end != 0) {
          const GameTables& tables = game->tables();
          const Tick from = tables.decisions[view.decision].UsedUntil();
          copy_ps += copies(from, effect.write_back_end);
          idle_ps += static_cast<double>(tables.certain_idle_before[effect.write_back_end] -
                                         tables.certain_idle_before[from]);
        }
        INFO("game " << g << ", decision " << state.num_decisions() << ", action " << a);
        const double held = length(effect.begin, effect.end);
        REQUIRE(seen.Of(a, "demand") == Approx(Part(demand, held)).margin(1e-5));
        REQUIRE(seen.Of(a, "excess") == Approx(Part(excess, held)).margin(1e-5));
        REQUIRE(seen.Of(a, "contention") == Approx(Part(copy_ps, idle_ps)).margin(1e-5));
        crowded += excess > 0;
        contended += copy_ps > 0;
      }
      REQUIRE(state.Apply(RandomAction(state, rng)).ok());
    }
  }
  CHECK(crowded > 100);
  CHECK(contended > 100);
}

// Amounts along the program's time in the pieces that observation.h names.
class Pieces {
 public:
  void Spread(double begin, double end, double amount) {
    if (begin == end) amounts_[std::min(kCount - 1, static_cast<int>(begin * kCount))] += amount;
    for (int p = 0; p < kCount && begin < end; ++p)
      amounts_[p] += amount * Overlap(p, begin, end) / (end - begin);
  }
  double Sum(double begin, double end) const {
    double sum = 0;
    for (int p = 0; p < kCount; ++p) sum += amounts_[p] * Overlap(p, begin, end) * kCount;
    return sum;
  }
  // The part of both above `limit` in each piece.
  static Pieces Above(const Pieces& a, const Pieces& b, double limit) {
    Pieces above;
    for (int p = 0; p < kCount; ++p)
      above.amounts_[p] = std::max(0.0, a.amounts_[p] + b.amounts_[p] - limit);
    return above;
  }
  static constexpr int kCount = 64;

 private:
  static double Overlap(int piece, double begin, double end) {
    return std::max(0.0, std::min(end, (piece + 1.0) / kCount) -
                             std::max(begin, static_cast<double>(piece) / kCount));
  }
  std::array<double, kCount> amounts_ = {};
};

TEST_CASE("the pressure that actions of the order game meet, piece by piece") {
  Rng rng(9);
  int crowded = 0, contended = 0;
  for (int g = 0; g < 150; ++g) {
    const auto game = RandomGame(rng, GameKind::kOrder);
    if (game->all_main_ps() == 0) continue;
    const std::vector<double> positions = PositionsOf(*game);
    OrderState state(game);
    const OrderTables& tables = state.tables();
    const auto share = [&](int32_t buffer) {
      return static_cast<double>(game->tables().buffers[buffer].size_bytes) /
             static_cast<double>(game->usable_bytes());
    };
    while (!state.IsTerminal()) {
      const Reader seen(state, ObservationOptions::Compact());
      Pieces taken, wanted, copies;
      for (const PlannedResidence& placed : state.arrangement().placed()) {
        const double begin = positions[placed.begin], end = positions[placed.end];
        if (begin < end) taken.Spread(begin, end, share(placed.buffer) * (end - begin));
      }
      for (size_t r = 0; r < tables.runs.size(); ++r) {
        const Run& run = tables.runs[r];
        if (!state.IsOpen(static_cast<int32_t>(r)) || (!run.placeable && !run.preloadable))
          continue;
        const double begin = positions[run.placeable ? run.late_begin : 0],
                     end = positions[run.placeable ? run.planned.end : run.preloaded.end];
        if (begin < end) wanted.Spread(begin, end, share(run.buffer) * (end - begin));
        if (run.placeable && run.planned.fetched) {
          copies.Spread(begin, positions[run.planned.need],
                        static_cast<double>(game->tables().buffers[run.buffer].copy_ps *
                                            tables.arrangement.passes[run.planned.need]));
        }
      }
      const Pieces excess = Pieces::Above(taken, wanted, 1.0 / Pieces::kCount);
      const uint32_t mask = state.legal_mask();
      for (int action = 0; action < game->num_actions(); ++action) {
        if ((mask >> action & 1) == 0 || seen.Of(action, "places") == 0) continue;
        REQUIRE(state.Apply(action).ok());
        const PlannedResidence placed = state.arrangement().placed().back();
        state.Undo();
        const double begin = positions[placed.begin], end = positions[placed.end];
        const double held = end - begin;
        INFO("game " << g << ", decision " << state.num_decisions() << ", action " << action);
        const auto mean = [&](const Pieces& pieces) {
          return held <= 0 ? 0.0 : pieces.Sum(begin, end) / held;
        };
        REQUIRE(seen.Of(action, "full") == Approx(std::min(1.0, mean(taken))).margin(1e-4));
        REQUIRE(seen.Of(action, "demand") == Approx(Part(mean(wanted), 1)).margin(1e-4));
        REQUIRE(seen.Of(action, "excess") == Approx(Part(mean(excess), 1)).margin(1e-4));
        double contention = 0;
        if (placed.fetched) {
          int64_t free = 0;
          for (Tick t = placed.begin; t < placed.need; ++t)
            free += state.arrangement().idle_ps(t) - state.due_ps(t);
          free = std::max<int64_t>(0, free * tables.arrangement.passes[placed.need]);
          contention = Part(copies.Sum(begin, positions[placed.need]), static_cast<double>(free));
        }
        REQUIRE(seen.Of(action, "contention") == Approx(contention).margin(1e-3));
        crowded += mean(excess) > 0;
        contended += contention > 0;
      }
      REQUIRE(state.Apply(RandomAction(state, rng)).ok());
    }
  }
  CHECK(crowded > 100);
  CHECK(contended > 100);
}

TEST_CASE("the channel's time that a prefetch finds is what those that are due leave") {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 6), q = b.Parameter("q", 6);
  b.Add({.name = "wait", .cycles = {10}});
  b.Add({.name = "use", .reads = {p, q}, .cycles = {100, 50, 50, 20}});
  Hardware hardware = TestHardware(16);
  hardware.max_preloads = 0;
  const auto game = MakeGame(b.Build(), hardware, OrderGame(2));
  const auto position = game->Start();
  const int first = OrderAction(0, Service::kLate), second = OrderAction(1, Service::kLate);
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
  const auto game = MakeGame(b.Build(), TestHardware(8), OrderGame(2));
  const auto position = game->Start();
  ObservationOptions options;
  options.neighbours = 2;
  const auto ranks = [&] {
    const Reader seen(*position, options);
    std::vector<float> found;
    for (int row = 0; row < 4; ++row) found.push_back(5 * seen.Candidate(row, "rank"));
    return found;
  };
  REQUIRE(ranks() == std::vector<float>{0, 1, 2, 3});
  REQUIRE(position->Apply(OrderAction(1, Service::kSkip)).ok());
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
