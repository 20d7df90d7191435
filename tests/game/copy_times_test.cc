// A copy schedule that is changed is the one that would be made anew.
#include "mallocgame/game/priority/copy_times.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "mallocgame/base/rounding.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/hardware/hardware.h"
#include "tests/catch.h"
#include "tests/support/fresh_copy_times.h"
#include "tests/support/large_program.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::FreshCopyTimes;
using testing::RandomProgram;
using testing::TestHardware;

std::shared_ptr<const Game> PriorityGame(std::shared_ptr<const Program> program,
                                         const Hardware& hardware) {
  PriorityGameOptions options;
  options.min_buffer_bytes = 0;
  return *PriorityGame::Create(std::move(program), hardware, options);
}

// Residences of random accesses, placed and taken back at random.
class RandomArrangement {
 public:
  RandomArrangement(const Game& game, Rng& rng) : tables_(game), arrangement_(tables_), rng_(rng) {}

  const Arrangement& arrangement() const { return arrangement_; }

  bool PlaceOne() {
    const auto buffer = static_cast<int32_t>(rng_.Below(tables_.first.size() - 1));
    const auto of = tables_.decisions_of(buffer);
    if (of.empty()) return false;
    const auto first = static_cast<int32_t>(rng_.Below(of.size()));
    const auto last = static_cast<int32_t>(
        std::min<size_t>(of.size() - 1, first + rng_.Below(rng_.Below(4) == 0 ? of.size() : 2)));
    const auto planned = tables_.Plan(buffer, first, last, rng_.Below(8) == 0);
    return planned.has_value() && Place(*planned);
  }

  bool Place(const PlannedResidence& planned) {
    const auto of = tables_.decisions_of(planned.buffer);
    for (int32_t i = planned.first; i <= planned.last; ++i)
      if (arrangement_.served_by()[of[i]] >= 0 || !tables_.may_be_fast[of[i]]) return false;
    if (planned.preload && arrangement_.preloads() >= tables_.game.hardware().max_preloads)
      return false;
    const Tick begin = rng_.Below(2) == 0 ? planned.latest_fetch : planned.earliest_fetch;
    return arrangement_.Place(planned, begin) || arrangement_.Place(planned, planned.need);
  }

  // As the games do: the last ones are taken back, others placed.
  void ChangeLast(uint32_t most) {
    for (uint32_t n = rng_.Below(most); n > 0 && !arrangement_.steps().empty(); --n)
      arrangement_.Undo();
    for (uint32_t n = rng_.Below(most); n > 0; --n) PlaceOne();
  }

  // As a search of residences does: some go, others come into their holes, and perhaps all of that
  // is taken back.
  void ChangeSome() {
    ChangeSomeOnTop();
    if (rng_.Below(2) == 0) arrangement_.Settle();
    for (uint32_t n = rng_.Below(8); n > 0 && !arrangement_.steps().empty(); --n)
      arrangement_.Undo();
  }

  // A trial, which TakeBack takes back.
  void Try() {
    arrangement_.Settle();
    ChangeSomeOnTop();
  }
  void TakeBack() {
    while (!arrangement_.steps().empty()) arrangement_.Undo();
  }

  // As games that are played again do: some in the middle go or change their turn, and the others
  // are placed again.
  void ChangeAny() {
    std::vector<PlannedResidence> again(arrangement_.placed().begin(), arrangement_.placed().end());
    std::erase_if(again, [](const PlannedResidence& planned) { return planned.buffer < 0; });
    if (again.empty()) return;
    for (uint32_t n = rng_.Below(3); n > 0 && !again.empty(); --n)
      again.erase(again.begin() + rng_.Below(again.size()));
    for (uint32_t n = rng_.Below(3); n > 0 && again.size() > 1; --n)
      std::swap(again[rng_.Below(again.size())], again[rng_.Below(again.size())]);
    arrangement_.Clear();
    for (const PlannedResidence& planned : again)
      arrangement_.Place(planned, planned.begin, planned.offset);
    for (uint32_t n = rng_.Below(3); n > 0; --n) PlaceOne();
  }

 private:
  void ChangeSomeOnTop() {
    for (uint32_t n = 1 + rng_.Below(3); n > 0; --n) {
      const auto r = static_cast<int32_t>(rng_.Below(arrangement_.placed().size() + 1));
      if (r < std::ssize(arrangement_.placed()) && arrangement_.placed()[r].buffer >= 0)
        arrangement_.Remove(r);
    }
    for (uint32_t n = rng_.Below(4); n > 0; --n) PlaceOne();
  }

  ArrangementTables tables_;
  Arrangement arrangement_;
  Rng& rng_;
};

Arrangement WithoutHoles(const Arrangement& arrangement) {
  Arrangement without_holes(arrangement.tables());
  for (const PlannedResidence& planned : arrangement.placed()) {
    if (planned.buffer < 0) continue;
    REQUIRE(without_holes.IsFree(planned.begin, planned.end, planned.offset,
                                 planned.offset + arrangement.size(planned)));
    without_holes.PlaceAt(planned, planned.begin, planned.offset);
  }
  return without_holes;
}

void CheckSame(CopyTimes& changed, const Arrangement& arrangement) {
  const Arrangement without_holes = WithoutHoles(arrangement);
  REQUIRE(without_holes.compute_ps() == arrangement.compute_ps());
  REQUIRE(without_holes.preloads() == arrangement.preloads());
  REQUIRE(without_holes.placements() == arrangement.placements());
  for (Tick t = 0; t < arrangement.tables().program.ticks(); t += 7)
    REQUIRE(without_holes.TakenBytes(t) == arrangement.TakenBytes(t));
  FreshCopyTimes fresh;
  const int64_t stall_ps = fresh.Run(without_holes);
  REQUIRE(changed.Run(arrangement) == stall_ps);
  REQUIRE(changed.ToPlan(arrangement) == fresh.ToPlan(without_holes));
}

TEST_CASE("a schedule changed by random residences is the one made anew") {
  Rng rng(1);
  CopyTimes changed;  // one for all games
  int64_t residences = 0;
  for (int n = 0; n < 400; ++n) {
    const auto program = RandomProgram(rng, {.instructions = 6 + static_cast<int>(rng.Below(150)),
                                             .loops = static_cast<int>(rng.Below(4)),
                                             .branches = static_cast<int>(rng.Below(2)),
                                             .constrained = rng.Below(2) == 0});
    Hardware hardware = TestHardware(4 + rng.Below(60), rng.Below(3) == 0 ? 4 : 1);
    hardware.max_preloads = static_cast<int32_t>(rng.Below(3));
    hardware.max_outstanding_prefetches = 1 + static_cast<int32_t>(rng.Below(4));
    hardware.max_outstanding_evictions = 1 + static_cast<int32_t>(rng.Below(4));
    const auto game = PriorityGame(program, hardware);
    RandomArrangement random(*game, rng);
    for (int step = 0; step < 60; ++step) {
      INFO("program " << n << ", step " << step);
      if (rng.Below(3) == 0)
        random.ChangeSome();
      else if (rng.Below(3) == 0)
        random.ChangeAny();
      else
        random.ChangeLast(1 + rng.Below(8));
      CheckSame(changed, random.arrangement());
      residences += static_cast<int64_t>(random.arrangement().placed().size());
    }
  }
  CHECK(residences > 50'000);
}

TEST_CASE("a schedule that was tried and given up leaves no trace") {
  Rng rng(3);
  CopyTimes schedule;
  int exact = 0, broken_off = 0, given_up = 0;
  for (int n = 0; n < 200; ++n) {
    const auto program = RandomProgram(rng, {.instructions = 6 + static_cast<int>(rng.Below(400)),
                                             .loops = static_cast<int>(rng.Below(4)),
                                             .branches = static_cast<int>(rng.Below(2)),
                                             .constrained = rng.Below(2) == 0});
    Hardware hardware = TestHardware(4 + rng.Below(60), rng.Below(3) == 0 ? 4 : 1);
    hardware.max_outstanding_prefetches = 1 + static_cast<int32_t>(rng.Below(4));
    hardware.max_outstanding_evictions = 1 + static_cast<int32_t>(rng.Below(4));
    const auto game = PriorityGame(program, hardware);
    RandomArrangement random(*game, rng);
    for (uint32_t placed = rng.Below(100); placed > 0; --placed) random.PlaceOne();
    int64_t kept = schedule.Run(random.arrangement());
    for (int step = 0; step < 60; ++step) {
      INFO("program " << n << ", step " << step);
      random.Try();
      const int64_t most = rng.Below(3) == 0 ? std::numeric_limits<int64_t>::max() : kept,
                    stall_ps = schedule.Try(random.arrangement(), most);
      FreshCopyTimes fresh;
      const int64_t right = fresh.Run(WithoutHoles(random.arrangement()));
      exact += stall_ps == right;
      broken_off += stall_ps != right;
      REQUIRE((stall_ps == right || stall_ps > most));
      if (stall_ps <= most && rng.Below(2) == 0) {
        schedule.Keep();
        kept = stall_ps;
        if (rng.Below(4) == 0) CheckSame(schedule, random.arrangement());
        continue;
      }
      ++given_up;
      random.TakeBack();
      if (rng.Below(4) != 0) continue;
      CheckSame(schedule, random.arrangement());
      if (rng.Below(4) == 0) random.ChangeAny();
      kept = schedule.Run(random.arrangement());
    }
  }
  CHECK(exact > 8000);
  CHECK(broken_off > 50);
  CHECK(given_up > 5000);
}

TEST_CASE("so it is on a large program") {
  Rng rng(2);
  const auto program = testing::LargeProgram({.instructions = 3000});
  for (const char* chip : {"tpu_v4i", "tpu_v5e"}) {
    const auto game = PriorityGame(program, *HardwarePreset(chip));
    RandomArrangement random(*game, rng);
    CopyTimes changed;
    for (int n = 0; n < 3000; ++n) random.PlaceOne();
    for (int step = 0; step < 100; ++step) {
      INFO(chip << ", step " << step);
      if (step % 2 == 0)
        random.ChangeSome();
      else if (step % 5 == 0)
        random.ChangeAny();
      else
        random.ChangeLast(1 + rng.Below(8));
      CheckSame(changed, random.arrangement());
    }
    CHECK(random.arrangement().placed().size() > 300);
  }
}

TEST_CASE("room is found exactly where some is left, for however long") {
  Rng rng(4);
  const auto program = testing::LargeProgram({.instructions = 6000, .loops = 0});
  const auto game = PriorityGame(program, *HardwarePreset("tpu_v5e"));
  RandomArrangement random(*game, rng);
  for (int n = 0; n < 8000; ++n) random.PlaceOne();
  const Arrangement& arrangement = random.arrangement();
  REQUIRE(arrangement.placed().size() > 1500);
  const ArrangementTables& tables = arrangement.tables();
  int with_room = 0, without = 0, of_many = 0;
  std::vector<int32_t> over;
  for (int n = 0; n < 400; ++n) {
    const auto buffer = static_cast<int32_t>(rng.Below(tables.first.size() - 1));
    PlannedResidence planned;
    planned.buffer = buffer;
    planned.end = 1 + static_cast<Tick>(rng.Below(program->ticks()));
    const auto longest =
        static_cast<uint32_t>(n % 2 == 0 ? planned.end : std::min(planned.end, 40));
    planned.need = planned.latest_fetch = planned.end - 1 - static_cast<Tick>(rng.Below(longest));
    REQUIRE(arrangement.FindOver(planned.need, planned.end, 1 << 30, over));
    of_many += over.size() > 1000;
    // If there is room, there is some at the lowest offset or right above another residence.
    const int64_t alignment = game->hardware().alignment_bytes,
                  lowest =
                      RoundUp(game->tables().reserved.Most(planned.need, planned.end), alignment);
    const auto is_free = [&](int64_t offset) {
      const int64_t top = offset + arrangement.size(planned);
      const bool free = offset >= lowest && top <= game->usable_bytes() &&
                        std::none_of(over.begin(), over.end(), [&](int32_t r) {
                          const PlannedResidence& one = arrangement.placed()[r];
                          return one.offset < top && offset < one.offset + arrangement.size(one);
                        });
      REQUIRE(arrangement.IsFree(planned.need, planned.end, offset, top) == free);
      return free;
    };
    const bool has_room = is_free(lowest) || std::any_of(over.begin(), over.end(), [&](int32_t r) {
                            const PlannedResidence& one = arrangement.placed()[r];
                            return is_free(RoundUp(one.offset + arrangement.size(one), alignment));
                          });
    REQUIRE(arrangement.HasRoom(planned, planned.need) == has_room);
    (has_room ? with_room : without)++;
    Arrangement copy = arrangement;
    REQUIRE(copy.Place(planned, planned.need) == has_room);
    if (!has_room) continue;
    const int64_t offset = copy.placed()[copy.steps().back().residence].offset;
    REQUIRE(is_free(offset));
  }
  CHECK(with_room > 50);
  CHECK(without > 50);
  CHECK(of_many > 20);
}

}  // namespace
}  // namespace mallocgame
