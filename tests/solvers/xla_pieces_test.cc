// XLA's allocator with other pieces: with pieces that answer as XLA does its plans stay as they
// are, each piece has its effect, and wrong answers are refused.
#include "mallocgame/solvers/xla/pieces.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "mallocgame/plan/validate.h"
#include "mallocgame/replay/files.h"
#include "mallocgame/replay/program_file.h"
#include "mallocgame/solvers/xla/heap.h"
#include "mallocgame/solvers/xla/heuristic.h"
#include "tests/catch.h"
#include "tests/support/plans.h"
#include "tests/support/play.h"
#include "tests/support/programs.h"

namespace mallocgame {
namespace {

using testing::AccessAt;
using testing::MakeGame;
using testing::ProgramBuilder;
using testing::TestHardware;

// A small machine and a program for it, drawn at random.
std::shared_ptr<const Game> RandomGameOfPieces(Rng& rng) {
  testing::RandomProgramOptions options;
  options.instructions = 10 + static_cast<int>(rng.Below(40));
  options.loops = static_cast<int>(rng.Below(3));
  options.constrained = rng.Below(2) == 0;
  options.roofline = true;
  const auto program = testing::RandomProgram(rng, options);
  Hardware hardware = TestHardware(8 + rng.Below(40), rng.Below(3) == 0 ? 4 : 1);
  hardware.max_preloads = static_cast<int32_t>(rng.Below(2));
  return MakeGame(program, hardware);
}

std::optional<int64_t> BestFit(const XlaOffsetQuestion& question) {
  std::optional<int64_t> offset;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const ByteRange& range : question.free) {
    const bool endless = range.end == question.capacity_bytes;
    if (endless ? !offset : range.size() < least) {
      offset = range.begin;
      least = range.size();
    }
  }
  return offset;
}

// Packs anew as XLA does, through the heap's own best fit.
std::optional<std::vector<int64_t>> PackedByXla(const XlaRepackQuestion& question,
                                                const Program& program) {
  std::vector<int64_t> reserved(question.reserved.begin(), question.reserved.end());
  reserved.resize(program.ticks(), 0);
  ChunkHeap heap(reserved, question.capacity_bytes, question.alignment_bytes);
  for (const XlaBlock& block : question.blocks)
    heap.Add({block.begin, block.end, block.offset, block.size_bytes});
  const auto time = [&program](Tick t) { return program.instruction(t).logical_time; };
  if (!heap.Repack(time)) return std::nullopt;
  std::vector<int64_t> offsets;
  for (const int32_t id : heap.Ids()) offsets.push_back(heap.chunk(id).offset);
  return offsets;
}

XlaPieces AsXlaDoes(const Program& program) {
  XlaPieces pieces;
  pieces.order = [](const XlaOrderQuestion& question) {
    return std::vector<BufferId>(question.by_xla.begin(), question.by_xla.end());
  };
  pieces.begins = [](const XlaBeginsQuestion& question) { return question.ByXla(); };
  pieces.retry = [](const XlaAttempt& attempt) { return attempt.by_xla; };
  pieces.offset = BestFit;
  pieces.repack = [&program](const XlaRepackQuestion& question) {
    return PackedByXla(question, program);
  };
  return pieces;
}

TEST_CASE("pieces: those that answer as XLA does leave every plan as it is") {
  int repacked = 0, copies = 0, undone = 0;
  for (uint64_t seed = 0; seed < 600; ++seed) {
    Rng rng(seed, 5);
    const auto game = RandomGameOfPieces(rng);
    const XlaOutcome xla = PlanLikeXla(*game, Deadline());
    const auto same = PlanWithPieces(*game, Deadline(), AsXlaDoes(game->program()));
    INFO("seed " << seed << ": " << same.status().ToString());
    REQUIRE(same.ok());
    REQUIRE(same->plan == xla.plan);
    REQUIRE(same->order == xla.order);
    repacked += same->counts.repacked;
    undone += same->counts.undone;
    copies += static_cast<int>(same->plan.copies.size());
  }
  CHECK(repacked > 20);
  CHECK(undone > 20);
  CHECK(copies > 500);
}

TEST_CASE("pieces: slices and a real program's plan stay as they are too") {
  const auto bytes =
      ReadFile(MALLOCGAME_SOURCE_DIR
               "/bindings/python/mallocgame/programs/llama_1b_decode_8l_b4_kv1024.tpu_v5e.mgp");
  REQUIRE(bytes.ok());
  const auto file = ParseProgramFile(*bytes);
  REQUIRE(file.ok());
  const auto game = MakeGame(file->program, file->hardware);
  XlaPieces pieces = AsXlaDoes(*file->program);
  pieces.repack = nullptr;  // Here some blocks come in slices.
  const auto same = PlanWithPieces(*game, Deadline(), pieces);
  REQUIRE(same.ok());
  CHECK(same->plan == PlanLikeXla(*game, Deadline()).plan);
}

// Ten instructions that hide copies, then a use of three parameters of 8 bytes each.
struct ThreeParameters {
  explicit ThreeParameters(int64_t fast_bytes) {
    ProgramBuilder b("sample", CostKind::kRoofline);
    for (const char* name : {"p", "q", "r"}) parameters.push_back(b.Parameter(name, 8));
    const BufferId out = b.Result("out", 4);
    for (int i = 0; i < 10; ++i) b.Add({.name = "work." + std::to_string(i), .flops = 8});
    use = b.Add({.name = "use", .reads = parameters, .writes = {out}});
    b.MarkOutput(out);
    Hardware hardware = TestHardware(fast_bytes);
    hardware.max_preloads = 0;
    game = MakeGame(b.Build(), hardware);
  }
  absl::StatusOr<XlaOutcome> Plan(const XlaPieces& pieces) const {
    auto outcome = PlanWithPieces(*game, Deadline(), pieces);
    if (outcome.ok()) REQUIRE(Validate(game->program(), game->hardware(), outcome->plan).ok());
    return outcome;
  }
  mallocgame::Plan ValidPlan(const XlaPieces& pieces) const {
    auto outcome = Plan(pieces);
    REQUIRE(outcome.ok());
    return outcome->plan;
  }
  bool Fast(const mallocgame::Plan& plan, size_t parameter) const {
    const AccessId access = AccessAt(game->program(), parameters[parameter], use);
    return plan.served_by[access.index()].valid();
  }
  std::string Error(const XlaPieces& pieces) const {
    return std::string(Plan(pieces).status().message());
  }

  std::vector<BufferId> parameters;
  Tick use = 0;
  std::shared_ptr<const Game> game;
};

TEST_CASE("pieces: the first in the order gets the bytes") {
  const ThreeParameters sample(8);
  for (size_t first = 0; first < 3; ++first) {
    XlaPieces pieces;
    pieces.order = [&](const XlaOrderQuestion& question) {
      std::vector<BufferId> order(question.by_xla.begin(), question.by_xla.end());
      std::swap(*std::find(order.begin(), order.end(), sample.parameters[first]), order[0]);
      return order;
    };
    const Plan plan = sample.ValidPlan(pieces);
    for (size_t i = 0; i < 3; ++i) CHECK(sample.Fast(plan, i) == (i == first));
  }
}

TEST_CASE("pieces: a prefetch begins where the piece says, which sees what is free") {
  const ThreeParameters sample(64);
  std::vector<std::vector<ByteRange>> seen;
  XlaPieces pieces;
  pieces.begins = [&](const XlaBeginsQuestion& question) {
    seen.push_back(question.memory.Free(question.first, question.held_until));
    CHECK(question.memory.MostUsed(question.first, question.held_until) ==
          8 * (static_cast<int64_t>(seen.size()) - 1));
    CHECK(question.HiddenPs(question.end - 2) == 16);
    CHECK(question.ByXla(4).front() == 4);
    return std::vector<Tick>{question.first + 3};
  };
  const Plan plan = sample.ValidPlan(pieces);
  CHECK(seen == std::vector<std::vector<ByteRange>>{{{0, 64}}, {{8, 64}}, {{16, 64}}});
  REQUIRE(plan.copies.size() == 3);
  for (const Copy& copy : plan.copies) CHECK(copy.begin == 4);
}

TEST_CASE("pieces: what follows an attempt is up to the piece") {
  const ThreeParameters sample(16);
  XlaPieces pieces;
  CHECK(sample.ValidPlan(pieces).copies.size() > 0);
  pieces.retry = [](const XlaAttempt&) { return XlaNext::kLeaveOut; };
  CHECK(sample.ValidPlan(pieces).copies.empty());
  int asked = 0;
  pieces.retry = [&](const XlaAttempt& attempt) {
    CHECK(attempt.retry == asked % 3);
    return asked++ % 3 == 2 ? XlaNext::kLeaveOut : XlaNext::kRetry;
  };
  CHECK(sample.Plan(pieces)->counts.attempts == asked);
}

TEST_CASE("pieces: bytes lie where the piece says, at first and when they are packed anew") {
  const ThreeParameters sample(64);
  XlaPieces pieces;
  pieces.offset = [](const XlaOffsetQuestion& question) {
    return std::optional(question.free.back().end - question.size_bytes);
  };
  std::vector<int64_t> offsets;
  for (const Residence& residence : sample.ValidPlan(pieces).residences)
    offsets.push_back(residence.offset);
  std::sort(offsets.begin(), offsets.end());
  CHECK(offsets == std::vector<int64_t>{40, 48, 56});

  pieces.offset = [](const XlaOffsetQuestion&) { return std::optional<int64_t>(); };
  CHECK(sample.ValidPlan(pieces).residences.empty());

  pieces.offset = nullptr;
  pieces.retry = [](const XlaAttempt& attempt) {
    return attempt.repacks_of_buffer == 0 ? XlaNext::kRepack : XlaNext::kKeep;
  };
  pieces.repack = [](const XlaRepackQuestion& question) {
    std::vector<int64_t> moved;
    for (size_t i = 0; i < question.blocks.size(); ++i)
      moved.push_back(48 - 8 * static_cast<int64_t>(i));
    return std::optional(moved);
  };
  offsets.clear();
  for (const Residence& residence : sample.ValidPlan(pieces).residences)
    offsets.push_back(residence.offset);
  CHECK(std::count(offsets.begin(), offsets.end(), 48) == 1);
  CHECK(std::count(offsets.begin(), offsets.end(), 40) == 1);
}

TEST_CASE("pieces: a wrong answer is refused, and says what was wrong") {
  using Catch::Matchers::Contains;
  const ThreeParameters sample(64);
  XlaPieces pieces;
  SECTION("an order without a buffer") {
    pieces.order = [](const XlaOrderQuestion& question) {
      return std::vector<BufferId>(question.by_xla.begin() + 1, question.by_xla.end());
    };
    CHECK_THAT(sample.Error(pieces), Contains("order: found 3 of 4 buffers, missing: buffer"));
  }
  SECTION("an order that has one twice, or one that is none") {
    pieces.order = [](const XlaOrderQuestion& question) {
      return std::vector<BufferId>(2, question.by_xla[0]);
    };
    CHECK_THAT(sample.Error(pieces), Contains("twice"));
    pieces.order = [](const XlaOrderQuestion&) { return std::vector<BufferId>{BufferId(99)}; };
    CHECK_THAT(sample.Error(pieces), Contains("order: found buffer 99, which is none of the 4"));
  }
  SECTION("a begin out of its range") {
    for (const Tick wrong : {-7, 0, 12, 400}) {
      pieces.begins = [wrong](const XlaBeginsQuestion&) { return std::vector<Tick>{wrong}; };
      CHECK_THAT(sample.Error(pieces), Contains("begins: found " + std::to_string(wrong) +
                                                " for the prefetch of buffer"));
    }
  }
  SECTION("an offset that is taken, or not aligned") {
    pieces.offset = [](const XlaOffsetQuestion&) { return std::optional<int64_t>(60); };
    CHECK_THAT(sample.Error(pieces), Contains("offset: found 60 for 8 bytes of buffer"));
    pieces.offset = [](const XlaOffsetQuestion&) { return std::optional<int64_t>(0); };
    CHECK_THAT(sample.Error(pieces), Contains("where not all of these bytes are free"));
  }
  SECTION("attempts without an end, and what can't be kept") {
    pieces.retry = [](const XlaAttempt&) { return XlaNext::kRetry; };
    CHECK_THAT(sample.Error(pieces), Contains("retry: found another attempt for buffer"));
  }
  SECTION("bytes that are packed into each other") {
    pieces.retry = [](const XlaAttempt& attempt) {
      return attempt.repacks_of_buffer == 0 ? XlaNext::kRepack : XlaNext::kKeep;
    };
    pieces.repack = [](const XlaRepackQuestion& question) {
      return std::optional(std::vector<int64_t>(question.blocks.size(), 0));
    };
    CHECK_THAT(sample.Error(pieces), Contains("repack: found 0 for block 1"));
    pieces.repack = [](const XlaRepackQuestion&) {
      return std::optional(std::vector<int64_t>(9, 0));
    };
    CHECK_THAT(sample.Error(pieces), Contains("repack: found 9 offsets, allowed: 0"));
  }
  SECTION("an error of the piece's own") {
    pieces.begins = [](const XlaBeginsQuestion&) -> absl::StatusOr<std::vector<Tick>> {
      return absl::UnavailableError("no answer today");
    };
    CHECK(sample.Plan(pieces).status() == absl::UnavailableError("no answer today"));
  }
}

}  // namespace
}  // namespace mallocgame
