// CheckProgramData: limits, and shapes of the time axis that can't be. program_test.cc breaks each
// invariant of a program by hand through Program::Create.
#include "mallocgame/program/check.h"

#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/rng.h"
#include "tests/catch.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::ProgramBuilder;

std::string MessageFor(const ProgramData& data) {
  const absl::Status status = CheckProgramData(data);
  CHECK((status.ok() || status.code() == absl::StatusCode::kInvalidArgument));
  return std::string(status.message());
}

// A branch, then a call, then what runs them.
ProgramData WithRegions() {
  ProgramBuilder b;
  const BufferId p = b.Parameter("p", 4);
  b.Add({.name = "before", .reads = {p}});
  b.BeginBranch();
  b.Add({.name = "yes", .reads = {p}});
  b.EndBranch();
  b.BeginCall();
  b.Add({.name = "inside", .reads = {p}});
  b.EndCall();
  b.Add({.name = "after", .reads = {p}});
  return b.Data();
}

TEST_CASE("branches and calls nest as loops do, but run once") {
  CHECK(MessageFor(WithRegions()).empty());
  ProgramData data = WithRegions();
  data.regions[1].trips = 2;
  CHECK_THAT(MessageFor(data), Catch::Contains("region 1: trips 2, its loops multiply to 1"));
  data = WithRegions();
  data.regions[2].begin = 1;  // begins with the branch and holds it
  CHECK_THAT(MessageFor(data), Catch::Contains("region 1: parent 0, the innermost around it is 2"));
  data = WithRegions();
  data.regions[2].end = 4;  // then nothing is left to run it
  CHECK_THAT(MessageFor(data), Catch::Contains("region 2 ends at 4, not before its parent 0"));
}

TEST_CASE("regions nest at most 64 deep") {
  const auto nested = [](int depth) {
    ProgramBuilder b;
    for (int i = 0; i < depth; ++i) b.BeginCall();
    b.Add({.name = "work"});
    for (int i = 0; i < depth; ++i) {
      b.EndCall();
      b.Add({.name = absl::StrCat("call", i)});
    }
    return MessageFor(b.Data());
  };
  CHECK(nested(63).empty());  // the entry is one of them
  CHECK_THAT(nested(64), Catch::Contains("regions nest deeper than 64"));
}

TEST_CASE("an instruction has at most 64 accesses") {
  const auto wide = [](int reads) {
    ProgramBuilder b;
    testing::Op op = {.name = "wide"};
    for (int i = 0; i < reads; ++i) op.reads.push_back(b.Parameter(absl::StrCat("p", i), 1));
    b.Add(op);
    return MessageFor(b.Data());
  };
  CHECK(wide(64).empty());
  CHECK_THAT(wide(65), Catch::Contains("at most 64"));
}

TEST_CASE("what never runs has no accesses and no costs") {
  const auto message = [](int64_t outer, bool accesses, int cycles) {
    ProgramBuilder b;
    const BufferId p = b.Parameter("p", 4);
    b.BeginLoop("outer", outer);
    b.BeginBody();
    b.BeginLoop("inner", 3);
    b.BeginBody();
    b.Add({.name = "work",
           .reads = accesses ? std::vector<BufferId>{p} : std::vector<BufferId>{},
           .cycles = cycles > 0 ? std::vector<int64_t>{cycles} : std::vector<int64_t>{}});
    b.EndLoop();
    b.EndLoop();
    return MessageFor(b.Data());
  };
  CHECK(message(0, false, 0).empty());
  CHECK(message(2, true, 5).empty());
  CHECK_THAT(message(0, true, 0), Catch::Contains("accesses, but its loop has no trips"));
  CHECK_THAT(message(0, false, 5), Catch::Contains("a cost, but its loop has no trips"));
}

TEST_CASE("the trips of nested loops are limited together") {
  const auto nested = [](int64_t outer, int64_t inner) {
    ProgramBuilder b;
    b.BeginLoop("outer", outer);
    b.BeginBody();
    b.BeginLoop("inner", inner);
    b.BeginBody();
    b.Add({.name = "work"});
    b.EndLoop();
    b.EndLoop();
    return MessageFor(b.Data());
  };
  constexpr int64_t kMost = int64_t{1} << 40;
  CHECK(nested(1 << 20, 1 << 20).empty());
  CHECK(nested(1, kMost).empty());
  CHECK_THAT(nested(1 << 20, (1 << 20) + 1), Catch::Contains("in all"));
}

// The games take it for free, so the simulator must not find a price there.
TEST_CASE("a loop's entry has no cost") {
  ProgramBuilder b;
  b.BeginLoop("loop", 3);
  b.BeginBody();
  b.Add({.name = "work"});
  b.EndLoop();
  ProgramData data = b.Data();
  CHECK(MessageFor(data).empty());
  const size_t entry = data.loops[0].entry;
  data.cost.instructions[entry].link_ps = 1;
  CHECK_THAT(MessageFor(data), Catch::Contains("a loop's entry has a cost"));
  data.cost.instructions[entry] = InstructionCost();
  data.cost.instructions[entry].kernel = true;
  CHECK_THAT(MessageFor(data), Catch::Contains("a loop's entry has a cost"));
}

TEST_CASE("numbers are limited so that sums of them fit") {
  const auto with = [](const std::function<void(ProgramData&)>& change) {
    ProgramData data = WithRegions();
    change(data);
    return MessageFor(data);
  };
  constexpr int64_t kBytes = int64_t{1} << 48, kWork = int64_t{1} << 60;
  CHECK(with([](ProgramData& d) { d.buffers[0].size_bytes = kBytes; }).empty());
  CHECK(!with([](ProgramData& d) { d.buffers[0].size_bytes = kBytes + 1; }).empty());
  CHECK(with([](ProgramData& d) { d.buffers[0].unit_bytes = d.buffers[0].size_bytes; }).empty());
  CHECK(
      !with([](ProgramData& d) { d.buffers[0].unit_bytes = d.buffers[0].size_bytes + 1; }).empty());
  CHECK(!with([](ProgramData& d) { d.buffers[0].unit_bytes = -1; }).empty());
  CHECK(with([](ProgramData& d) { d.window_bytes = kBytes; }).empty());
  CHECK(!with([](ProgramData& d) { d.window_bytes = kBytes + 1; }).empty());
  CHECK(!with([](ProgramData& d) { d.window_bytes = -1; }).empty());
  CHECK(with([](ProgramData& d) { d.argument_bytes = kBytes; }).empty());
  CHECK(!with([](ProgramData& d) { d.argument_bytes = kBytes + 1; }).empty());
  CHECK(with([](ProgramData& d) { d.instructions[0].reserved_bytes = kBytes; }).empty());
  CHECK(!with([](ProgramData& d) { d.instructions[0].reserved_bytes = kBytes + 1; }).empty());
  CHECK(with([](ProgramData& d) { d.cost.instructions[0].flops = kWork; }).empty());
  CHECK(!with([](ProgramData& d) { d.cost.instructions[0].flops = kWork + 1; }).empty());
  CHECK(!with([](ProgramData& d) { d.cost.instructions[0].operands[0].slot = -2; }).empty());
}

TEST_CASE("what the generator makes passes, and a tick moved to another region does not") {
  Rng rng(3);
  int moved = 0;
  for (int i = 0; i < 100; ++i) {
    ProgramData data = testing::RandomProgram(rng)->data();
    CHECK(MessageFor(data).empty());
    if (data.regions.size() < 2) continue;
    Instruction& instruction = data.instructions[rng.Below(data.instructions.size())];
    instruction.region = (instruction.region + 1) % static_cast<int32_t>(data.regions.size());
    CHECK_FALSE(MessageFor(data).empty());
    ++moved;
  }
  CHECK(moved > 50);
}

}  // namespace
}  // namespace mallocgame
