// What observations say of actions: on random programs and plays it is what then happens, and what
// observation.h defines, found in another way.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <memory>
#include <vector>

#include "mallocgame/game/feature_scale.h"
#include "mallocgame/game/observation.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/priority/priority_state.h"
#include "mallocgame/game/tables.h"
#include "mallocgame/game/time/time_game.h"
#include "tests/catch.h"
#include "tests/game/observation_reader.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::MakeGame;
using testing::RandomAction;
using testing::RandomProgram;
using testing::Reader;
using testing::TestHardware;

// A game in which something takes time.
std::shared_ptr<const Game> RandomGame(Rng& rng, const std::string& kind) {
  // Nanoseconds are what can be seen.
  constexpr int64_t kUnit = 1000;
  const auto program = RandomProgram(rng, {.instructions = 4 + static_cast<int>(rng.Below(40)),
                                           .size_unit = kUnit,
                                           .constrained = rng.Below(2) == 0,
                                           .roofline = rng.Below(4) == 0});
  const int64_t candidates = 1 + rng.Below(kMaxCandidates);
  const bool exact_stalls = rng.Below(4) == 0;
  const auto options =
      testing::OptionsOf(kind, {{"candidates", candidates}, {"exact_stalls", exact_stalls}});
  for (size_t a = 0; a < program->accesses().size(); ++a) {
    const uint32_t wish = rng.Below(20);
    if (wish == 0) options->forbidden.emplace_back(a);
  }
  Hardware hardware = TestHardware(kUnit * (4 + rng.Below(40)));
  hardware.max_preloads = static_cast<int32_t>(rng.Below(3));
  auto game = MakeGame(program, hardware, *options);
  return game->all_main_ps() > 0 ? game : RandomGame(rng, kind);
}

TEST_CASE("what an action promises to save is what it saves") {
  const std::string kind = GENERATE(as<std::string>(), "time", "priority");
  Rng rng(6);
  int stalls = 0, forcing = 0;
  for (int g = 0; g < 500; ++g) {
    const auto game = RandomGame(rng, kind);
    const auto position = game->NewInitialPosition();
    while (!position->IsTerminal()) {
      const Reader seen(*position, ObservationOptions::Compact());
      for (const int action : position->legal_actions()) {
        const int64_t promised = position->SavingOf(action);
        const auto saved = position->Apply(action);
        REQUIRE(saved.ok());
        INFO(game->ActionToString(action) << " in game " << g);
        REQUIRE(seen.Of(action, "saved") == scale::Time(promised));
        if (kind == "priority" && position->IsTerminal() &&
            !PriorityGame::From(*game)->options().exact_stalls) {
          REQUIRE(promised >= *saved);  // The schedule may find more stalls.
        } else {
          REQUIRE(promised == *saved);
        }
        stalls += *saved < 0;
        forcing += kind == "time" && seen.Of(action, "saved_here") != seen.Of(action, "saved");
        position->Undo();
      }
      REQUIRE(position->Apply(RandomAction(*position, rng)).ok());
    }
  }
  CHECK(stalls > 100);
  CHECK((kind == "priority" || forcing > 100));
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
  const std::string kind = GENERATE(as<std::string>(), "time", "priority");
  Rng rng(7);
  int taken = 0;
  for (int g = 0; g < 150; ++g) {
    const auto game = RandomGame(rng, kind);
    const auto position = game->NewInitialPosition();
    while (!position->IsTerminal()) {
      const Reader seen(*position, ObservationOptions::Compact());
      const Plan before = position->ToPlan();
      const int action = RandomAction(*position, rng);
      REQUIRE(position->Apply(action).ok());
      double space = 0;
      if (kind == "time") {
        space = AddedSpace(*game, before, position->ToPlan());
      } else if (seen.Of(action, "places") != 0) {
        // The schedule may give a residence its bytes later than they are reserved.
        const auto& state = static_cast<const PriorityState&>(*position);
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
    const auto game = RandomGame(rng, "time");
    const std::vector<double> positions = PositionsOf(*game);
    const std::vector<Wish> wishes = WishesOf(*game);
    const auto length = [&](Tick from, Tick to) { return positions[to] - positions[from]; };
    State state(game);
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
        if (effect.eviction_end != 0) {
          const GameTables& tables = game->tables();
          const Tick from = tables.decisions[view.decision].UsedUntil();
          copy_ps += copies(from, effect.eviction_end);
          idle_ps += static_cast<double>(tables.certain_idle_before[effect.eviction_end] -
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

TEST_CASE("the pressure that actions of the priority game meet, piece by piece") {
  Rng rng(9);
  int crowded = 0, contended = 0;
  for (int g = 0; g < 150; ++g) {
    const auto game = RandomGame(rng, "priority");
    const std::vector<double> positions = PositionsOf(*game);
    PriorityState state(PriorityGame::From(*game)->shared());
    const PriorityTables& tables = state.tables();
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
        const double begin = positions[run.placeable ? run.planned.latest_fetch : 0],
                     end = positions[run.placeable ? run.planned.end : run.preloaded.end];
        if (begin < end) wanted.Spread(begin, end, share(run.buffer) * (end - begin));
        if (run.placeable && run.planned.fetched) {
          copies.Spread(begin, positions[run.planned.need],
                        static_cast<double>(game->tables().buffers[run.buffer].copy_ps *
                                            tables.arrangement.passes[run.planned.need]));
        }
      }
      const Pieces excess = Pieces::Above(taken, wanted, 1.0 / Pieces::kCount);
      for (const int action : state.legal_actions()) {
        if (seen.Of(action, "places") == 0) continue;
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

// Seven columns and five cells, which no power of two is a multiple of.
ObservationOptions Odd() {
  ObservationOptions options;
  options.ticks_back = 4;
  options.ticks_ahead = 3;
  options.address_cells = 5;
  return options;
}

TEST_CASE("what an observer remembers of a game changes nothing that it sees") {
  Rng rng(13);
  int looks = 0;
  for (int g = 0; g < 40; ++g) {
    const auto game = RandomGame(rng, "priority");
    const Observer follows = *Observer::Create(game, Odd());
    const auto position = game->NewInitialPosition();
    auto other = position->Clone();  // an older position of the same game
    std::vector<float> seen(follows.size());
    for (int step = 0; step < 60; ++step) {
      const double kind = rng.Uniform();
      if (kind < 0.25 && position->num_decisions() > 0) {
        position->Undo();
      } else if (kind < 0.3) {
        other = position->Clone();
      } else if (!position->IsTerminal()) {
        REQUIRE(position->Apply(RandomAction(*position, rng)).ok());
      }
      const Position& looked_at = kind < 0.9 ? *position : *other;
      follows.Write(looked_at, seen.data());
      REQUIRE(seen == Reader(looked_at, Odd()).numbers);
      ++looks;
    }
  }
  REQUIRE(looks == 2400);
}

TEST_CASE("the columns of the priority game's pictures are means over their time") {
  Rng rng(17);
  constexpr int kColumns = 7, kCells = 5;
  int full = 0;
  for (int g = 0; g < 60; ++g) {
    const auto game = RandomGame(rng, "priority");
    const std::vector<double> positions = PositionsOf(*game);
    const auto capacity = static_cast<double>(game->usable_bytes());
    PriorityState state(PriorityGame::From(*game)->shared());
    const PriorityTables& tables = state.tables();
    while (true) {
      const Reader seen(state, Odd());
      for (int c = 0; c < kColumns; ++c) {
        // The share of the column in which [begin, end) lies.
        const auto part = [&](Tick begin, Tick end) {
          const double from = std::max(positions[begin], static_cast<double>(c) / kColumns),
                       to = std::min(positions[end], (c + 1.0) / kColumns);
          return std::max(0.0, to - from) * kColumns;
        };
        double taken = 0, wanted = 0, idle = 0, left = 0;
        std::array<double, kCells> cells = {};
        for (const PlannedResidence& placed : state.arrangement().placed()) {
          const double held = part(placed.begin, placed.end);
          const auto low = static_cast<double>(placed.offset) / capacity * kCells;
          const double high =
              low + static_cast<double>(state.arrangement().size(placed)) / capacity * kCells;
          taken += held * (high - low) / kCells;
          for (int cell = 0; cell < kCells; ++cell)
            cells[cell] +=
                held * std::max(0.0, std::min(high, cell + 1.0) - std::max(low, 1.0 * cell));
        }
        for (size_t r = 0; r < tables.runs.size(); ++r) {
          const Run& run = tables.runs[r];
          if (!state.IsOpen(static_cast<int32_t>(r)) || (!run.placeable && !run.preloadable))
            continue;
          const double held = run.placeable ? part(run.planned.latest_fetch, run.planned.end)
                                            : part(0, run.preloaded.end);
          const int64_t size = game->tables().buffers[run.buffer].size_bytes;
          wanted += held * static_cast<double>(size) / capacity;
        }
        for (Tick t = 0; t < game->program().ticks(); ++t) {
          const double length = positions[t + 1] - positions[t];
          // A tick that takes no time is in the column where it stands.
          const int own = std::min(static_cast<int>(positions[t] * kColumns), kColumns - 1);
          const double lies = length > 0 ? part(t, t + 1) / kColumns / length : own == c;
          const double share = lies * kColumns / static_cast<double>(game->all_main_ps()) *
                               static_cast<double>(tables.arrangement.passes[t]);
          idle += share * static_cast<double>(state.arrangement().idle_ps(t));
          left += share * static_cast<double>(state.arrangement().idle_ps(t) - state.due_ps(t));
        }
        INFO("game " << g << ", decision " << state.num_decisions() << ", column " << c);
        for (int cell = 0; cell < kCells; ++cell)
          REQUIRE(seen.At("occupancy", c, cell) == Approx(cells[cell]).margin(1e-4));
        REQUIRE(seen.At("demand", c, 0) == Approx(taken).margin(1e-4));
        REQUIRE(seen.At("demand", c, 1) == Approx(wanted / (1 + wanted)).margin(1e-4));
        REQUIRE(seen.At("idle", c, 0) == Approx(std::clamp(idle, -1.0, 1.0)).margin(1e-4));
        REQUIRE(seen.At("idle", c, 1) == Approx(std::clamp(left, -1.0, 1.0)).margin(1e-4));
        full += taken > 0.5;
      }
      if (state.IsTerminal()) break;
      REQUIRE(state.Apply(RandomAction(state, rng)).ok());
    }
  }
  CHECK(full > 100);
}

}  // namespace
}  // namespace mallocgame
