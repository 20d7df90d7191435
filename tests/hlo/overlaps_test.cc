// Residences whose bytes are taken get others: small plans with every number by hand.
#include "mallocgame/hlo/import/overlaps.h"

#include <memory>
#include <vector>

#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame::hlo {
namespace {

// Three buffers of 16, 8 and 12 bytes over six ticks.
std::shared_ptr<const Program> Sample() {
  testing::ProgramBuilder builder;
  builder.Parameter("a", 16);
  builder.Parameter("b", 8);
  builder.Parameter("c", 12);
  for (const char* name : {"t0", "t1", "t2", "t3", "t4", "t5"}) builder.Add({.name = name});
  return builder.Build();
}
const BufferId kA(0), kB(1), kC(2);

// The offsets after MoveOverlapping, with `fast_bytes` of fast memory and alignment 4.
std::vector<int64_t> Offsets(Plan plan, int64_t fast_bytes) {
  MoveOverlapping(*Sample(), testing::TestHardware(fast_bytes, 4), plan);
  std::vector<int64_t> offsets;
  for (const Residence& residence : plan.residences) offsets.push_back(residence.offset);
  return offsets;
}

Plan PlanOf(std::vector<Residence> residences) {
  Plan plan;
  plan.residences = std::move(residences);
  return plan;
}

using Offset = std::vector<int64_t>;

TEST_CASE("residences that share no byte at no time stay where they are") {
  // b takes a's bytes when a is gone; c lies beside both.
  CHECK(Offsets(PlanOf({{kA, 0, 0, 3}, {kB, 0, 3, 6}, {kC, 16, 0, 6}}), 64) == Offset{0, 0, 16});
}

TEST_CASE("a residence that begins on taken bytes moves to the lowest offset that is free") {
  // b begins inside a. Above a, [16, 28) is c's until tick 4, so b goes behind it.
  CHECK(Offsets(PlanOf({{kA, 0, 0, 6}, {kB, 8, 2, 5}, {kC, 16, 0, 4}}), 64) == Offset{0, 28, 16});
  // Without c there is room directly behind a.
  CHECK(Offsets(PlanOf({{kA, 0, 0, 6}, {kB, 8, 2, 5}}), 64) == Offset{0, 16});
  // A gap of 8 bytes between a and c is just enough.
  CHECK(Offsets(PlanOf({{kA, 0, 0, 6}, {kB, 8, 2, 5}, {kC, 24, 0, 6}}), 64) == Offset{0, 16, 24});
  // A new offset is rounded up to the alignment of 4: c ends at 2 + 12 = 14.
  CHECK(Offsets(PlanOf({{kC, 2, 0, 6}, {kB, 4, 2, 5}}), 64) == Offset{2, 16});
}

TEST_CASE("a residence for which there is no room stays where it is") {
  CHECK(Offsets(PlanOf({{kA, 0, 0, 6}, {kB, 8, 2, 5}}), 24) == Offset{0, 16});
  CHECK(Offsets(PlanOf({{kA, 0, 0, 6}, {kB, 8, 2, 5}}), 23) == Offset{0, 8});
}

TEST_CASE("a residence that slices fill takes the bytes of each slice from when that begins") {
  Plan plan = PlanOf({{kA, 0, 0, 6}, {kB, 8, 0, 2}});
  const auto slice = [](Tick begin, int64_t part_begin, int64_t part_end) {
    Copy copy;
    copy.kind = CopyKind::kPrefetch;
    copy.residence = ResidenceId(0);
    copy.begin = begin;
    copy.end = begin + 1;
    copy.part_begin = part_begin;
    copy.part_end = part_end;
    return copy;
  };
  // The upper half of a is empty until tick 2, which is when b, which lies there, is gone.
  plan.copies = {slice(0, 0, 8), slice(2, 8, 16)};
  CHECK(Offsets(plan, 64) == Offset{0, 8});
  // If it is filled a tick earlier, b is still there: a moves above b, with both of its halves.
  plan.copies[1] = slice(1, 8, 16);
  CHECK(Offsets(plan, 64) == Offset{16, 8});
}

}  // namespace
}  // namespace mallocgame::hlo
