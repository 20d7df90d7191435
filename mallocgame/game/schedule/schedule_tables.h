// What the rules of the schedule game look up at every step, computed once for a game: the units
// that stand in some order, and what each one does to main memory. Private to the folder.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/types/span.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/observation.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/schedule/instruction_order.h"
#include "mallocgame/schedule/units.h"

namespace mallocgame {

class PriorityObserver;

// A game of placement at one order of instructions. Shared by threads.
struct OrderedGame {
  // The program's own order.
  OrderedGame(std::vector<Tick> own_order, std::shared_ptr<const PriorityGame> own_game);
  OrderedGame(std::vector<Tick> in_order, std::shared_ptr<const PriorityGame> at_order,
              const ReorderedProgram& made);
  ~OrderedGame();

  // Made when it is asked for first.
  const PriorityObserver& ObserverOf(const ObservationOptions& options) const;

  const std::vector<Tick> order;  // for each tick its tick in the schedule game's program
  const std::shared_ptr<const PriorityGame> game;
  const bool own;                         // it is the program's own order
  const std::vector<int32_t> own_access;  // by access of the game's program: the program's own

 private:
  struct Observing {
    ObservationOptions options;
    std::unique_ptr<const PriorityObserver> observer;
  };
  mutable std::mutex mutex_;
  mutable std::vector<Observing> observers_;
};

// Ticks that stand together in every order that the game can reach, or a region whose order the
// game decides.
struct UnitPart {
  Tick begin = 0, end = 0;
  int32_t region = -1;  // -1: its ticks are as in the program
};

// A unit of the program (schedule/units.h). All of them are numbered, those of a region in the
// program's order.
struct GameUnit {
  int32_t region = 0;
  Tick begin = 0, end = 0;
  bool works = false;
  std::vector<int32_t> before, after;  // direct dependences
  // Empty: the unit is one part.
  std::vector<UnitPart> parts;
  // The bytes of all buffers that begin to be used in it: what it can add to live main memory.
  int64_t grows_at_most = 0;
  // What observations say of it.
  int64_t time_ps = 0;           // with everything in main memory, all trips
  int64_t saving_ps = 0;         // what it saves with everything in fast memory, all trips
  int64_t idle_ps = 0;           // what it leaves to the channel then, all trips
  int64_t fetch_ps = 0;          // one transfer of each parameter and constant that it uses
  int64_t critical_ps = 0;       // the longest chain of dependent units that it begins, by time_ps
  std::vector<int32_t> buffers;  // those that it uses, each once: Program::buffers()
};

struct ScheduleTables {
  // `placement` is the priority game of the same program, hardware and options; an order may need
  // so much main memory at most, 0: as much as the program's own.
  ScheduleTables(const Game& game, std::shared_ptr<const PriorityGame> placement,
                 int64_t main_bytes);

  // The game at an order of the units, which must be one: made anew, or of those asked for last.
  std::shared_ptr<const OrderedGame> GameAt(std::vector<Tick> order) const;
  // The main memory that temporaries need at offsets in this order, as MainMemoryOf counts it.
  int64_t PackedBytes(absl::Span<const Tick> order) const;

  ScheduleUnits units;
  std::shared_ptr<const PriorityGame> placement;  // the priority game at the program's own order
  std::shared_ptr<const OrderedGame> own;         // the same
  std::vector<GameUnit> all;
  std::vector<int32_t> first_unit;  // by region, and the number of units
  std::vector<uint8_t> decided;     // by region: it, or one inside, has a choice
  int32_t working = 0;              // units of decided regions that work
  int max_order_decisions = 0;

  // Main memory. Buffers are numbered that live for a while only (schedule/main_memory.h); one
  // lives from the first *use* to the last. A use is a tick, or a loop with all its ticks if the
  // buffer comes from outside of it.
  std::vector<int64_t> bytes;  // by buffer
  std::vector<int32_t> uses;   // by buffer
  int64_t limit_bytes = 0;     // the most that may be needed at offsets
  // The same less what fragmentation adds in the program's own order: what surely fits.
  int64_t sure_bytes = 0;
  // The buffers of which a use begins at tick t, and ends behind it.
  absl::Span<const int32_t> Begin(Tick t) const { return Of(begins_, begin_first_, t); }
  absl::Span<const int32_t> End(Tick t) const { return Of(ends_, end_first_, t); }

 private:
  static absl::Span<const int32_t> Of(const std::vector<int32_t>& list,
                                      const std::vector<int32_t>& first, Tick t) {
    return absl::MakeConstSpan(list).subspan(first[t], first[t + 1] - first[t]);
  }
  void NumberUnits();
  void FindChoices();
  bool HasChoice(int32_t region) const;
  void DivideUnits();
  void FindUses(const Program& program);
  void DescribeUnits(const Game& game);

  std::vector<int32_t> begins_, begin_first_, ends_, end_first_;
  // The games that GameAt made last, of all threads. They go with the tables.
  static constexpr size_t kRememberedOrders = 16;
  mutable std::mutex mutex_;
  mutable std::array<std::shared_ptr<const OrderedGame>, kRememberedOrders> remembered_;
  mutable size_t next_ = 0;
};

}  // namespace mallocgame
