// Tests the parts of XLA's allocator on worked examples, then the whole: what it decides on small
// programs made by hand, that its plans are valid for every program, and that they cost what XLA's
// own plans cost.
#include "mallocgame/solvers/xla/heuristic.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "mallocgame/plan/validate.h"
#include "mallocgame/replay/files.h"
#include "mallocgame/replay/program_file.h"
#include "mallocgame/simulator/simulate.h"
#include "mallocgame/solvers/xla/copy_resource.h"
#include "mallocgame/solvers/xla/cost.h"
#include "mallocgame/solvers/xla/heap.h"
#include "mallocgame/solvers/xla/interval_picker.h"
#include "tests/catch.h"
#include "tests/support/large_program.h"
#include "tests/support/machine.h"
#include "tests/support/plans.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::AccessAt;
using testing::ProgramBuilder;
using testing::TestHardware;

std::shared_ptr<const Program> Ticks(int count) {
  ProgramBuilder b;
  for (int i = 0; i < count; ++i) b.Add({.name = "op." + std::to_string(i)});
  return b.Build();
}

std::vector<Tick> All(IntervalPicker::Candidates candidates) {
  std::vector<Tick> all;
  while (const auto s = candidates.Next()) all.push_back(*s);
  return all;
}

TEST_CASE("interval picker: the reference's example") {
  const auto program = Ticks(7);
  const std::vector<int64_t> elapsed = {0, 4, 2, 3, 1, 5, 2};
  const IntervalPicker picker(*program, elapsed, {1, 2, 1000, 5});
  const double between[] = {15, 11, 9, 6, 5, 0};
  for (Tick s = 0; s < 6; ++s) CHECK(picker.Elapsed(s, 6) == between[s]);
  CHECK(picker.Elapsed(-1, 6) == 0);
  CHECK(All(picker.Begins(0, 6, 4, 0)) == std::vector<Tick>{2, 3, 1, 4, 0});
  // What the user saves moves the latest begin, an upper limit the earliest one.
  CHECK(*picker.Begins(0, 6, 6, 0).latest() == 3);
  CHECK(*picker.Begins(0, 6, 6, 1).latest() == 4);
  CHECK(!picker.Begins(0, 6, 16, 0).latest());
  const IntervalPicker limited(*program, elapsed, {1, 2, 9, 5});
  CHECK(All(limited.Begins(0, 6, 4, 0)) == std::vector<Tick>{2, 3, 4});
  CHECK(limited.MayStay(3, 6));
  CHECK(!limited.MayStay(2, 6));
  CHECK(picker.HiddenBy(0, 6) == 3);  // 4 + 2 before tick 3
}

TEST_CASE("interval picker: loops weigh more from outside, and windows stay in a region") {
  ProgramBuilder b;
  b.Add({.name = "before"});
  b.Add({.name = "hides"});
  b.BeginLoop("while", 7);
  b.BeginBody();
  b.Add({.name = "x"});
  b.Add({.name = "y"});
  b.Add({.name = "z"});
  const Tick exit = b.EndLoop();
  b.Add({.name = "use"});
  const auto program = b.Build();
  std::vector<int64_t> elapsed(program->instructions().size(), 0);
  const Tick x = exit - 3;
  elapsed[1] = 4;
  for (Tick t = x; t < exit; ++t) elapsed[t] = 2;
  const IntervalPicker picker(*program, elapsed, {1, 2, 1000, 5});
  CHECK(picker.Elapsed(0, exit + 1) == 4 + 5 * 6);
  CHECK(picker.Elapsed(x, exit - 1) == 2);
  // A window to `use` may span the loop, but not begin inside it. A window inside doesn't leave it.
  CHECK(picker.WindowEnd(exit) == 2 + 1);
  for (const Tick s : All(picker.Begins(0, exit + 1, 4, 0))) CHECK((s < 2 || s >= exit - 1));
  for (const Tick s : All(picker.Begins(0, exit, 1, 0))) CHECK(s >= x - 1);
}

TEST_CASE("copy resource: the reference's example") {
  // All numbers are twice the reference's, because that has halves.
  CopyResource resource(std::vector<int64_t>{0, 8, 4, 6, 2, 10, 4});
  REQUIRE(resource.HasRoom(2, 6, 12));
  resource.Add(2, 6, 12);              // behind tick 1: 4 + 6 + 2 at ticks 2, 3, 4
  CHECK(!resource.HasRoom(4, 6, 11));  // 2 ps of the first are left at tick 4
  REQUIRE(resource.HasRoom(4, 6, 10));
  const CopyResource::Key second = resource.Add(4, 6, 10);
  // This one begins before both: it has 8 ps at tick 1, and the 2 ps that are left delay the
  // others.
  CHECK(!resource.HasRoom(1, 6, 10));
  resource.Remove(second);
  CHECK(resource.HasRoom(1, 6, 10));
  CHECK(resource.HasRoom(4, 4, 0));
  CHECK(!resource.HasRoom(4, 4, 1));
}

TEST_CASE("copy resource: room is what a queue served tick by tick has") {
  Rng rng(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> time(12);
    for (int64_t& t : time) t = rng.Below(5);
    struct Window {
      Tick begin, end;
      int64_t work;
      CopyResource::Key key;
    };
    std::vector<Window> windows;
    CopyResource resource(time);
    // Served first in, first out, all are done by their ends.
    const auto in_time = [&time](std::vector<Window> all) {
      std::stable_sort(all.begin(), all.end(),
                       [](const Window& a, const Window& b) { return a.begin < b.begin; });
      size_t front = 0;
      for (Tick t = 0; t <= 12; ++t) {
        for (const Window& w : all) {
          if (w.end == t && w.work > 0) return false;
        }
        int64_t left = t < 12 ? time[t] : 0;
        while (front < all.size() && all[front].begin <= t) {
          const int64_t served = std::min(left, all[front].work);
          left -= served;
          all[front].work -= served;
          if (all[front].work > 0) break;
          ++front;
        }
      }
      return true;
    };
    for (int i = 0; i < 12; ++i) {
      if (!windows.empty() && rng.Below(4) == 0) {
        const size_t gone = rng.Below(windows.size());
        resource.Remove(windows[gone].key);
        windows.erase(windows.begin() + static_cast<std::ptrdiff_t>(gone));
        continue;
      }
      const auto begin = static_cast<Tick>(rng.Below(12));
      Window added = {
          begin, begin + static_cast<Tick>(rng.Below(13 - begin)), 1 + rng.Below(6), {}};
      std::vector<Window> with = windows;
      with.push_back(added);
      REQUIRE(resource.HasRoom(added.begin, added.end, added.work) == in_time(with));
      if (!in_time(with)) continue;
      added.key = resource.Add(added.begin, added.end, added.work);
      windows.push_back(added);
    }
  }
}

TEST_CASE("heap: the smallest free range that fits, ties to the lower, the top last") {
  const std::vector<int64_t> reserved(10, 0);
  ChunkHeap heap(reserved, 100, 1);
  heap.Add({0, 10, 10, 10});  // free below: [0, 10)
  heap.Add({0, 5, 25, 5});    // [20, 25), until tick 5
  heap.Add({2, 10, 40, 10});  // [30, 40)
  CHECK(heap.BestFit(0, 5, 5) == 20);
  CHECK(heap.BestFit(0, 5, 6) == 0);  // ties: [0, 10) and [30, 40)
  CHECK(heap.BestFit(0, 5, 11) == 50);
  CHECK(heap.BestFit(5, 10, 11) == 20);
  CHECK(heap.BestFit(0, 2, 50) == 30);
  CHECK(!heap.BestFit(0, 5, 51));
  CHECK(heap.IsFree(0, 2, 30, 70));
  CHECK(!heap.IsFree(0, 3, 30, 70));
  CHECK(heap.FreeUntil(0, 10, 35, 10) == 2);
  CHECK(heap.RoomFrom(0, 5, 75) == 0);
  CHECK(heap.RoomFrom(0, 10, 76) == 5);
  CHECK(heap.RoomFrom(0, 10, 90) == 10);
}

TEST_CASE("heap: alignment, and what instructions reserve") {
  const std::vector<int64_t> reserved = {0, 9, 0, 0};
  ChunkHeap heap(reserved, 64, 8);
  CHECK(heap.BestFit(2, 4, 3) == 0);
  CHECK(heap.BestFit(0, 4, 3) == 16);
  CHECK(!heap.IsFree(0, 2, 8, 8));
  heap.Add({2, 4, 0, 3});
  CHECK(heap.BestFit(2, 4, 3) == 8);
  CHECK(heap.FreeUntil(0, 4, 8, 4) == 1);
}

TEST_CASE("heap: repacking makes room, or changes nothing") {
  const std::vector<int64_t> reserved(6, 0);
  ChunkHeap heap(reserved, 10, 1);
  const int32_t a = heap.Add({0, 2, 0, 4}), b = heap.Add({0, 6, 4, 4});
  CHECK(!heap.BestFit(2, 6, 6));
  REQUIRE(heap.Repack());
  CHECK(heap.chunk(b).offset == 0);
  CHECK(heap.chunk(a).offset == 4);
  CHECK(heap.BestFit(2, 6, 6) == 4);
  heap.Remove(a);
  CHECK(heap.BestFit(0, 6, 6) == 4);
}

// Keeps the bytes of every tick, the slow way.
class Grid {
 public:
  bool Free(const Chunk& c) const {
    return Visit(c, [this](size_t cell) { return !taken_[cell]; });
  }
  void Take(const Chunk& c) {
    Visit(c, [this](size_t cell) { return taken_[cell] = true; });
  }

 private:
  template <class Cell>
  bool Visit(const Chunk& c, const Cell& cell) const {
    for (int part = 0; part < c.parts; ++part) {
      for (Tick t = c.PartBegin(part); t < c.end; ++t) {
        for (int64_t i = 0; i < c.PartBytes(part); ++i) {
          if (!cell(t * 24 + c.offset + c.PartOffset(part) + i)) return false;
        }
      }
    }
    return true;
  }
  std::vector<bool> taken_ = std::vector<bool>(10 * 24, false);
};

TEST_CASE("heap: chunks in parts find room exactly where there is some") {
  Rng rng(6);
  int placed = 0, refused = 0;
  for (int round = 0; round < 400; ++round) {
    const std::vector<int64_t> reserved(10, 0);
    ChunkHeap heap(reserved, 24, 1);
    Grid grid;
    for (int i = 0; i < 14; ++i) {
      Chunk chunk;
      chunk.begin = static_cast<Tick>(rng.Below(9));
      chunk.end = chunk.begin + 1 + static_cast<Tick>(rng.Below(10 - chunk.begin));
      chunk.size = 1 + rng.Below(10);
      if (rng.Below(2) == 0) {
        chunk.part_size = (chunk.size + 3) / 4;
        chunk.parts = static_cast<int>((chunk.size + chunk.part_size - 1) / chunk.part_size);
        Tick begin = chunk.begin;
        for (int part = 0; part < chunk.parts; ++part) {
          chunk.part_begin[part] = begin;
          begin = std::min(chunk.end - 1, begin + static_cast<Tick>(rng.Below(3)));
        }
      }
      bool room = false;
      Chunk tried = chunk;
      std::vector<uint8_t> places(chunk.parts);
      std::iota(places.begin(), places.end(), 0);
      do {
        std::copy(places.begin(), places.end(), tried.part_place.begin());
        for (tried.offset = 0; tried.offset <= 24 - chunk.size; ++tried.offset)
          room |= grid.Free(tried);
      } while (std::next_permutation(places.begin(), places.end()));
      if (heap.BestFit(chunk)) {
        REQUIRE(grid.Free(chunk));
        grid.Take(chunk);
        heap.Add(chunk);
        ++placed;
      } else {
        REQUIRE(!room);
        ++refused;
      }
    }
  }
  CHECK(placed > 1000);
  CHECK(refused > 1000);
}

TEST_CASE("heap: parts that begin early go where bytes are free early") {
  const std::vector<int64_t> reserved(10, 0);
  ChunkHeap heap(reserved, 16, 1);
  heap.Add({0, 3, 0, 4});    // [0, 4) is free from tick 3 on
  heap.Add({0, 10, 12, 4});  // never free
  Chunk chunk = {1, 8, 0, 8, 2, 4, {1, 4}, {}};
  REQUIRE(heap.BestFit(chunk));
  CHECK(chunk.offset == 0);
  CHECK(chunk.PartOffset(0) == 4);  // The earlier part lies above the later one.
  CHECK(chunk.PartOffset(1) == 0);
  // Both parts at once fit further up only.
  Chunk at_once = {1, 8, 0, 8, 2, 4, {1, 1}, {}};
  REQUIRE(heap.BestFit(at_once));
  CHECK(at_once.offset == 4);
  CHECK(at_once.PartOffset(0) == 0);
  // A smaller part lies at the high end, whenever it begins.
  Chunk uneven = {1, 8, 0, 7, 2, 4, {1, 4}, {}};
  REQUIRE(heap.BestFit(uneven));
  CHECK(uneven.offset == 0);
  CHECK(uneven.PartBytes(0) == 3);
}

TEST_CASE("interval picker: slices begin when another part of the time is over") {
  const auto program = Ticks(8);
  const IntervalPicker picker(*program, std::vector<int64_t>{0, 4, 0, 4, 0, 0, 8, 0},
                              {1, 2, 1000, 5});
  // From tick 0 to 7 there are 16 ps. Ticks that take no time are no places to begin behind.
  CHECK(picker.SliceBegins(0, 7, 4) == std::vector<Tick>{0, 1, 3, 3});
  CHECK(picker.SliceBegins(0, 7, 2) == std::vector<Tick>{0, 3});
  CHECK(picker.SliceBegins(5, 7, 4) == std::vector<Tick>{5, 5, 5, 5});
}

TEST_CASE("cost: the reference's example of memory boundedness") {
  Hardware hardware = TestHardware(1000);
  hardware.main_bytes_per_second = 10'000'000'000'000;  // 10 bytes a ps
  hardware.fast_read_bytes_per_second = hardware.fast_write_bytes_per_second = 40'000'000'000'000;
  const auto boundedness = [&hardware](int64_t flops, bool in_loop) {
    ProgramBuilder b("bound", CostKind::kRoofline);
    const BufferId in = b.Parameter("in", 200), a = b.Result("a", 400), out = b.Result("out", 200);
    b.Add({.name = "P", .reads = {in}, .writes = {a}, .flops = 10});
    if (in_loop) b.BeginLoop("while", 3);
    if (in_loop) b.BeginBody();
    b.Add({.name = "X", .reads = {a}, .writes = {out}, .flops = flops});
    if (in_loop) b.EndLoop();
    return XlaCost(*b.Build(), hardware, 5).Boundedness(a);
  };
  CHECK(boundedness(30, false) == Approx(3.0));
  CHECK(boundedness(70, false) == Approx(1.5));
  CHECK(boundedness(30, true) == Approx(9.0));
}

TEST_CASE("cost: what is bound by compute counts against a result, not against a parameter") {
  const Hardware hardware = TestHardware(1000);
  ProgramBuilder b("compute", CostKind::kRoofline);
  const BufferId in = b.Parameter("in", 16), made = b.Result("made", 16);
  b.Add({.name = "make", .reads = {in}, .writes = {made}, .flops = 100'000});
  b.Add({.name = "use", .reads = {made}, .flops = 100'000});
  const auto program = b.Build();
  const XlaCost cost(*program, hardware, 5);
  CHECK(cost.Boundedness(in) == 0);
  CHECK(cost.Boundedness(made) < 0);
}

std::shared_ptr<const Game> GameOf(const std::shared_ptr<const Program>& program,
                                   const Hardware& hardware, const GameOptions& options = {}) {
  auto game = Game::Create(program, hardware, options);
  REQUIRE(game.ok());
  return *game;
}

Plan Allocate(const std::shared_ptr<const Program>& program, const Hardware& hardware,
              const GameOptions& options = {}, const XlaOptions& xla = {}) {
  const XlaOutcome outcome = PlanLikeXla(*GameOf(program, hardware, options), Deadline(), xla);
  REQUIRE(outcome.finished);
  const Verdict verdict = Validate(*program, hardware, outcome.plan);
  INFO(verdict.message << "\n" << PlanToString(*program, outcome.plan));
  REQUIRE(verdict.ok());
  return outcome.plan;
}

TEST_CASE(
    "a value used soon stays without a copy, a parameter is prefetched behind what hides it "
    "twice") {
  ProgramBuilder b("small", CostKind::kRoofline);
  const BufferId p = b.Parameter("p", 8), v = b.Result("v", 4), out = b.Result("out", 4);
  b.Add({.name = "a"});
  b.Add({.name = "b", .flops = 9});
  b.Add({.name = "c", .flops = 9});
  const Tick made = b.Add({.name = "d", .writes = {v}, .flops = 9});
  const Tick used = b.Add({.name = "e", .reads = {p, v}, .writes = {out}});
  b.MarkOutput(out);
  Hardware hardware = TestHardware(64);
  hardware.max_preloads = 0;
  const auto program = b.Build();
  const Plan plan = Allocate(program, hardware);
  CHECK(plan.served_by[AccessAt(*program, v, made).index()].valid());
  CHECK(plan.served_by[AccessAt(*program, v, used).index()].valid());
  CHECK(!plan.served_by[AccessAt(*program, out, used).index()].valid());
  REQUIRE(plan.copies.size() == 1);
  CHECK(plan.copies[0].begin == 2);  // 18 ps of c and d hide 8 ps best
  CHECK(plan.copies[0].end == used);
}

TEST_CASE("the largest factor is preloaded, an operand as large as the result is not") {
  ProgramBuilder b("preload", CostKind::kRoofline);
  const BufferId x = b.Parameter("x", 12), w = b.Parameter("w", 8), out = b.Result("out", 12);
  const Tick t = b.Add({.name = "fusion.1", .reads = {x, w}, .writes = {out}, .flops = 100});
  b.MarkOutput(out);
  const auto program = b.Build();
  const Plan plan = Allocate(program, TestHardware(64));
  REQUIRE(plan.copies.size() == 1);
  CHECK(plan.copies[0].preload);
  CHECK(plan.served_by[AccessAt(*program, w, t).index()].valid());
  CHECK(!plan.served_by[AccessAt(*program, x, t).index()].valid());
}

TEST_CASE("as many factors are preloaded as the hardware allows, the largest that fit first") {
  ProgramBuilder b("preload", CostKind::kRoofline);
  const BufferId x = b.Parameter("x", 12), out = b.Result("out", 12);
  std::vector<BufferId> factors;
  for (const int64_t size : {8, 11, 60, 9}) {
    const std::string name = std::to_string(size);
    factors.push_back(b.Parameter(name + ".w", size));
    b.Add({.name = "fusion." + name, .reads = {x, factors.back()}, .writes = {out}, .flops = 200});
  }
  b.MarkOutput(out);
  const auto program = b.Build();
  Hardware hardware = TestHardware(64);
  for (const int allowed : {0, 1, 2, 5}) {
    hardware.max_preloads = allowed;
    std::vector<BufferId> preloaded;
    const Plan plan = Allocate(program, hardware);
    for (const Copy& copy : plan.copies)
      if (copy.preload) preloaded.push_back(plan.residences[copy.residence.index()].buffer);
    std::vector<BufferId> largest = {factors[2]};  // The others don't fit beside it.
    largest.resize(std::min<size_t>(allowed, 1));
    CHECK(preloaded == largest);
  }
  hardware.fast_bytes = 32;
  for (const int allowed : {1, 2, 3, 5}) {
    hardware.max_preloads = allowed;
    const Plan plan = Allocate(program, hardware);
    std::vector<BufferId> preloaded;
    for (const Copy& copy : plan.copies)
      if (copy.preload) preloaded.push_back(plan.residences[copy.residence.index()].buffer);
    std::vector<BufferId> largest = {factors[1], factors[3], factors[0]};
    largest.resize(std::min<size_t>(allowed, 3));
    CHECK_THAT(preloaded, Catch::UnorderedEquals(largest));
  }
}

TEST_CASE("a value whose pause is too long is written back and fetched again") {
  ProgramBuilder b("pause", CostKind::kRoofline);
  const BufferId v = b.Result("v", 4), w = b.Result("w", 4);
  b.Add({.name = "make", .writes = {v}});
  b.Add({.name = "soon", .reads = {v}, .flops = 10});
  for (int i = 0; i < 8; ++i) b.Add({.name = "wait." + std::to_string(i), .flops = 20});
  const Tick late = b.Add({.name = "late", .reads = {v}, .writes = {w}});
  const auto program = b.Build();
  XlaOptions options;
  options.inefficient_use_to_copy = 0;
  // No pause is longer than 8 times 8 ps.
  const Plan plan = Allocate(program, TestHardware(8), {}, options);
  REQUIRE(plan.copies.size() == 2);
  CHECK(plan.copies[0].kind == CopyKind::kWriteBack);
  CHECK(plan.copies[0].begin == 1);
  CHECK(plan.copies[1].kind == CopyKind::kPrefetch);
  CHECK(plan.served_by[AccessAt(*program, v, late).index()].valid());
  // Two copies of a buffer that is used three times are worth it at XLA's ratio, but not at a
  // higher one.
  CHECK(Allocate(program, TestHardware(8)).copies.size() == 2);
  options.inefficient_use_to_copy = 2.5;
  CHECK(Allocate(program, TestHardware(8), {}, options).copies.empty());
}

TEST_CASE("a large prefetch goes in slices that take their bytes one after the other") {
  ProgramBuilder b("slices", CostKind::kRoofline);
  const BufferId p = b.Parameter("p", 8), out = b.Result("out", 4);
  for (int i = 0; i < 9; ++i) b.Add({.name = "hide." + std::to_string(i), .flops = 4});
  const Tick use = b.Add({.name = "use", .reads = {p}, .writes = {out}});
  b.MarkOutput(out);
  const auto program = b.Build();
  XlaOptions options;
  options.min_sliced_bytes = 8;
  Hardware hardware = TestHardware(16);
  hardware.max_preloads = 0;
  const Plan plan = Allocate(program, hardware, {}, options);
  REQUIRE(plan.copies.size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    // 16 ps hide 8 ps twice, a slice every quarter
    CHECK(plan.copies[i].begin == 5 + static_cast<Tick>(i));
    CHECK(plan.copies[i].end == use);
    CHECK(plan.copies[i].part_end - plan.copies[i].part_begin == 2);
  }
}

TEST_CASE("a buffer is resident over a loop, or in main memory at its boundary") {
  ProgramBuilder b("loop", CostKind::kRoofline);
  const BufferId w = b.Parameter("w", 8), out = b.Result("out", 4);
  b.Add({.name = "a"});
  b.Add({.name = "b", .flops = 20});
  const Tick entry = b.BeginLoop("while", 4);
  b.BeginBody();
  const Tick inside = b.Add({.name = "x", .reads = {w}, .flops = 2});
  const Tick exit = b.EndLoop();
  b.Add({.name = "last", .writes = {out}});
  b.MarkOutput(out);
  const auto program = b.Build();
  const Plan plan = Allocate(program, TestHardware(16));
  const ResidenceId place = plan.served_by[AccessAt(*program, w, entry).index()];
  REQUIRE(place.valid());
  CHECK(plan.served_by[AccessAt(*program, w, inside).index()] == place);
  CHECK(plan.residences[place.index()].end >= exit);
  GameOptions options;
  options.forbidden = {AccessAt(*program, w, inside)};
  CHECK(Allocate(program, TestHardware(16), options).copies.empty());
}

TEST_CASE("a plain copy of a parameter becomes a prefetch") {
  ProgramBuilder b("replace", CostKind::kRoofline);
  const BufferId p = b.Parameter("p", 8), c = b.Result("c", 8), out = b.Result("out", 4);
  b.Add({.name = "a"});
  b.Add({.name = "b", .flops = 20});
  const Tick copy = b.Add({.name = "copy", .reads = {p}, .writes = {c}, .plain_copy = true});
  b.Add({.name = "use", .reads = {c}, .writes = {out}});
  b.MarkOutput(out);
  const auto program = b.Build();
  const Plan plan = Allocate(program, TestHardware(64));
  REQUIRE(plan.copies.size() == 1);
  CHECK(plan.copies[0].replaces == copy);
  CHECK(plan.copies[0].end == copy + 1);
  CHECK(!plan.served_by[AccessAt(*program, p, copy).index()].valid());
}

TEST_CASE(
    "every random program gets a valid plan that a machine carries out, within its constraints") {
  int fast = 0, copies = 0, slices = 0, loops = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed, 3);
    testing::RandomProgramOptions options;
    options.instructions = 4 + static_cast<int>(rng.Below(rng.Below(4) == 0 ? 60 : 16));
    options.loops = static_cast<int>(rng.Below(3));
    options.branches = static_cast<int>(rng.Below(2));
    options.roofline = rng.Below(2) == 0;
    const auto program = testing::RandomProgram(rng, options);
    Hardware hardware = TestHardware(4 + rng.Below(60), rng.Below(3) == 0 ? 4 : 1);
    hardware.max_preloads = static_cast<int32_t>(rng.Below(3));
    hardware.max_outstanding_prefetches = 1 + static_cast<int32_t>(rng.Below(4));
    hardware.max_outstanding_write_backs = 1 + static_cast<int32_t>(rng.Below(4));
    GameOptions game_options;
    for (size_t a = 0; a < program->accesses().size(); ++a) {
      const AccessId id(static_cast<int64_t>(a));
      if (seed % 4 == 0 && rng.Below(8) == 0) game_options.forbidden.push_back(id);
      if (seed % 4 == 1 && rng.Below(8) == 0) game_options.required.push_back(id);
    }
    game_options.keep_free = seed % 4 == 2 ? 0.25 : 0;
    XlaOptions xla;
    if (rng.Below(2) == 0) xla.min_overlap = 0.2, xla.preferred_overlap = 0.5;
    if (rng.Below(2) == 0) xla.min_sliced_bytes = 3;
    const Plan plan = Allocate(program, hardware, game_options, xla);
    for (const auto timing : {testing::CopyTiming::kAtOnce, testing::CopyTiming::kLate}) {
      const std::string error = testing::RunPlan(*program, hardware, plan, timing);
      INFO("seed " << seed << ": " << error);
      REQUIRE(error.empty());
    }
    for (const AccessId id : game_options.forbidden) REQUIRE(!plan.served_by[id.index()].valid());
    const int64_t most =
        hardware.fast_bytes -
        static_cast<int64_t>(game_options.keep_free * static_cast<double>(hardware.fast_bytes));
    for (const Residence& r : plan.residences)
      REQUIRE(r.offset + program->buffer(r.buffer).size_bytes <= most);
    copies += static_cast<int>(plan.copies.size());
    for (const Copy& copy : plan.copies) slices += copy.part_begin > 0;
    for (size_t a = 0; a < plan.served_by.size(); ++a) {
      fast += plan.served_by[a].valid();
      loops += plan.served_by[a].valid() && program->accesses()[a].kind == AccessKind::kLoopEntry;
    }
  }
  // The test says something only if the plans move something.
  CHECK(fast > 30000);
  CHECK(copies > 5000);
  CHECK(slices > 500);
  CHECK(loops > 1000);
}

TEST_CASE(
    "a large program is allocated, deterministically; an interrupted run is valid as far as it "
    "got") {
  testing::LargeProgramOptions options;
  options.instructions = 8000;
  const auto program = testing::LargeProgram(options);
  const Hardware hardware = *HardwarePreset("tpu_v4i");
  const Plan plan = Allocate(program, hardware);
  CHECK(plan == Allocate(program, hardware));
  const auto game = GameOf(program, hardware);
  CHECK(Simulate(game->cost_model(), plan)->latency_ps < game->all_main_ps() * 9 / 10);
  XlaOutcome stopped;
  for (double seconds = 10; stopped.finished; seconds /= 2)
    stopped = PlanLikeXla(*game, Deadline(seconds));
  CHECK(Validate(*program, hardware, stopped.plan).ok());
  CHECK(!stopped.plan.residences.empty());
  const std::atomic<bool> cancel = true;
  CHECK(!PlanLikeXla(*game, Deadline(0, &cancel)).finished);
}

TEST_CASE("on the corpus: valid, near XLA's own plans in places and as fast") {
  std::vector<std::filesystem::path> paths;
  const std::filesystem::path folder =
      std::filesystem::path(MALLOCGAME_SOURCE_DIR) / "bindings/python/mallocgame/programs";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".mgp") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  REQUIRE(paths.size() >= 40);
  std::vector<double> deviations;
  int nearly_the_same = 0;
  for (const auto& path : paths) {
    INFO(path.string());
    const auto bytes = ReadFile(path.string());
    REQUIRE(bytes.ok());
    const auto file = ParseProgramFile(*bytes);
    REQUIRE(file.ok());
    const Plan plan = Allocate(file->program, file->hardware);
    if (!file->xla_plan) continue;
    const CostModel cost_model(file->program, file->hardware);
    const auto own = Simulate(cost_model, plan);
    const auto xla = Simulate(cost_model, *file->xla_plan);
    REQUIRE((own.ok() && xla.ok()));
    const double ratio =
        static_cast<double>(own->latency_ps) / static_cast<double>(xla->latency_ps);
    CHECK(ratio < 1.15);
    CHECK(ratio > 0.9);
    deviations.push_back(std::abs(ratio - 1));
    const size_t accesses = plan.served_by.size();
    size_t same = 0;
    for (size_t a = 0; a < accesses; ++a)
      same += (plan.served_by[a].value < 0) == (file->xla_plan->served_by[a].value < 0) ? 1 : 0;
    nearly_the_same += 100 * same >= 99 * accesses ? 1 : 0;
  }
  REQUIRE(!deviations.empty());
  std::sort(deviations.begin(), deviations.end());
  CHECK(deviations[deviations.size() / 2] < 0.001);
  CHECK(nearly_the_same >= 39);
}

}  // namespace
}  // namespace mallocgame
