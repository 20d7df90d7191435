// Program files: nothing is lost, nothing is taken on trust.
#include "mallocgame/replay/program_file.h"

#include <limits>
#include <string>
#include <utility>

#include "mallocgame/base/rng.h"
#include "mallocgame/replay/container.h"
#include "tests/catch.h"
#include "tests/replay/sample.h"

namespace mallocgame {
namespace {

using Catch::Matchers::Contains;

ProgramFile SampleFile() {
  ProgramFile file;
  file.program = testing::SampleBuilder().Build();
  file.hardware = testing::TestHardware(testing::kSampleFastBytes);
  file.xla_plan = testing::SamplePlan(*file.program, file.hardware);
  file.origin = "written by hand";
  file.summary.priced_instructions = 3;
  file.summary.unpriced_instructions = 4;
  file.summary.pools = 5;
  file.summary.rows = 6;
  file.summary.unknown_trip_counts = 7;
  file.summary.unscheduled_computations = 9;
  file.summary.profile_names_unmatched = 8;
  return file;
}

void CheckSame(const ProgramFile& a, const ProgramFile& b) {
  CHECK(a.program->data() == b.program->data());
  CHECK(a.program->fingerprint() == b.program->fingerprint());
  CHECK(a.hardware == b.hardware);
  CHECK(a.xla_plan == b.xla_plan);
  CHECK(a.origin == b.origin);
  CHECK(a.summary == b.summary);
}

std::string ErrorOf(const ProgramFile& file) {
  return std::string(ParseProgramFile(SerializeProgramFile(file)).status().message());
}

TEST_CASE("a program file comes back whole, and the same file gives the same bytes") {
  const ProgramFile file = SampleFile();
  const std::string bytes = SerializeProgramFile(file);
  CHECK(bytes == SerializeProgramFile(file));
  const absl::StatusOr<ProgramFile> back = ParseProgramFile(bytes);
  REQUIRE(back.ok());
  CheckSame(file, *back);
  CHECK(SerializeProgramFile(*back) == bytes);
}

// The file keeps `data`, which differs from its program in what the fingerprint leaves out.
void CheckKeeps(ProgramFile file, ProgramData data) {
  const auto program = Program::Create(std::move(data));
  REQUIRE(program.ok());
  CHECK((*program)->fingerprint() == file.program->fingerprint());
  file.program = *program;
  const auto back = ParseProgramFile(SerializeProgramFile(file));
  REQUIRE(back.ok());
  CheckSame(file, *back);
}

TEST_CASE("a program file keeps what XLA measures windows by, which is not in the fingerprint") {
  const ProgramFile file = SampleFile();
  ProgramData data = file.program->data();
  data.window_bytes = 3 << 20;
  CheckKeeps(file, std::move(data));
}

TEST_CASE("a program file keeps where buffers may be cut, or that it isn't known") {
  for (const int64_t unit : {0, 1, 2}) {
    const ProgramFile file = SampleFile();
    ProgramData data = file.program->data();
    for (Buffer& buffer : data.buffers) buffer.unit_bytes = std::min(unit, buffer.size_bytes);
    for (Buffer& buffer : data.buffers)
      if (unit != 0 && buffer.size_bytes % buffer.unit_bytes != 0) buffer.unit_bytes = 1;
    CheckKeeps(file, std::move(data));
  }
}

TEST_CASE("a program file keeps what instructions do, and a file without knows nothing of it") {
  const ProgramFile file = SampleFile();
  const std::string without = SerializeProgramFile(file);
  ProgramData data = file.program->data();
  REQUIRE(!data.cost.pools.empty());
  data.cost.pools.back().work = WorkClass::kReduction;
  data.cost.pools.back().element_bits = 16;
  CheckKeeps(file, std::move(data));
  const auto back = ParseProgramFile(without);
  REQUIRE(back.ok());
  CHECK(back->program->cost().pools.back().work == WorkClass::kUnknown);
}

TEST_CASE("a program file keeps the latency of copies") {
  ProgramFile file = SampleFile();
  file.hardware.copy_latency_ps = 450'000;
  const auto back = ParseProgramFile(SerializeProgramFile(file));
  REQUIRE(back.ok());
  CheckSame(file, *back);
}

TEST_CASE("a program file keeps waits for links, and a file without has none") {
  ProgramFile file = SampleFile();
  const std::string without = SerializeProgramFile(file);
  ProgramData data = file.program->data();
  data.cost.instructions.back().link_ps = 7;
  const auto program = Program::Create(std::move(data));
  REQUIRE(program.ok());
  CHECK((*program)->fingerprint() != file.program->fingerprint());
  file.program = *program;
  file.summary.modelled_instructions = 1;
  file.xla_plan.reset();
  const std::string bytes = SerializeProgramFile(file);
  const auto back = ParseProgramFile(bytes);
  REQUIRE(back.ok());
  CheckSame(file, *back);
  CHECK(back->summary.modelled_instructions == 1);
  CHECK(back->program->cost().instructions.back().link_ps == 7);
  CHECK(ParseProgramFile(without)->program->cost().instructions.back().link_ps == 0);

  ProgramData negative = file.program->data();
  negative.cost.instructions.back().link_ps = -1;
  const auto refused = Program::Create(std::move(negative));
  CHECK_FALSE(refused.ok());
}

TEST_CASE("a program file keeps which instructions are kernels") {
  ProgramFile file = SampleFile();
  ProgramData data = file.program->data();
  InstructionCost& cost = data.cost.instructions.back();
  cost.kernel = true;
  cost.pool = -1;
  cost.unpriced_bytes = 1;
  CHECK_FALSE(Program::Create(data).ok());
  cost.unpriced_bytes = 0;
  const auto program = Program::Create(data);
  REQUIRE(program.ok());
  CHECK((*program)->fingerprint() != file.program->fingerprint());
  file.program = *program;
  file.summary.kernels = 2;
  file.summary.kernels_without_estimate = 1;
  file.summary.host_computations = 3;
  file.summary.kept_copies = 4;
  file.xla_plan.reset();
  const auto back = ParseProgramFile(SerializeProgramFile(file));
  REQUIRE(back.ok());
  CheckSame(file, *back);
  CHECK(back->summary.kernels == 2);
  CHECK(back->summary.kernels_without_estimate == 1);
  CHECK(back->summary.host_computations == 3);
  CHECK(back->summary.kept_copies == 4);
  CHECK(back->program->cost().instructions.back().kernel);
}

TEST_CASE("a program file without XLA's plan has none when it comes back") {
  ProgramFile file = SampleFile();
  file.xla_plan.reset();
  const absl::StatusOr<ProgramFile> back = ParseProgramFile(SerializeProgramFile(file));
  REQUIRE(back.ok());
  CHECK_FALSE(back->xla_plan.has_value());
}

TEST_CASE("random programs come back whole") {
  Rng rng(7);
  for (int i = 0; i < 200; ++i) {
    ProgramFile file = SampleFile();
    file.program = testing::RandomProgram(rng, {.instructions = 20, .roofline = i % 2 == 1});
    file.xla_plan = AllMainPlan(*file.program, file.hardware);
    const std::string bytes = SerializeProgramFile(file);
    const absl::StatusOr<ProgramFile> back = ParseProgramFile(bytes);
    INFO(back.status());
    REQUIRE(back.ok());
    CheckSame(file, *back);
    REQUIRE(SerializeProgramFile(*back) == bytes);
  }
}

TEST_CASE("extreme numbers and names survive") {
  ProgramData data = testing::SampleBuilder("\u00e9\u20ac\U0001F9E0").Data();
  data.argument_bytes = int64_t{1} << 48;
  data.instructions[0].name = std::string("\0\x7f", 2);
  const absl::StatusOr<std::shared_ptr<const Program>> program = Program::Create(data);
  REQUIRE(program.ok());
  ProgramFile file = SampleFile();
  file.program = *program;
  file.xla_plan.reset();
  file.summary.rows = std::numeric_limits<int64_t>::max();
  file.summary.pools = std::numeric_limits<int64_t>::min();
  const absl::StatusOr<ProgramFile> back = ParseProgramFile(SerializeProgramFile(file));
  INFO(back.status());
  REQUIRE(back.ok());
  CheckSame(file, *back);
}

TEST_CASE("text that isn't UTF-8 is refused with its place") {
  for (const char* bad :
       {"\xff", "\x80", "\xc0\x80", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xe2\x82x"}) {
    ProgramFile file = SampleFile();
    file.origin = bad;
    CHECK_THAT(ErrorOf(file), Contains("origin: not UTF-8"));
  }
  ProgramData data = testing::SampleBuilder().Data();
  data.instructions[1].name = "a\xff";
  ProgramFile file = SampleFile();
  file.program = *Program::Create(data);
  CHECK_THAT(ErrorOf(file), Contains("instructions: column name, row 1: not UTF-8"));
}

TEST_CASE("hardware and plans are checked on the way in") {
  ProgramFile file = SampleFile();
  file.hardware.alignment_bytes = 0;
  CHECK_THAT(ErrorOf(file), Contains("program file") && Contains("alignment_bytes"));

  file = SampleFile();
  file.xla_plan->residences[0].buffer = BufferId(99);
  CHECK_THAT(ErrorOf(file), Contains("XLA's plan"));

  file = SampleFile();
  file.xla_plan->served_by.pop_back();
  CHECK_THAT(ErrorOf(file), Contains("XLA's plan"));

  file = SampleFile();
  file.xla_plan->program_fingerprint = "0000000000000000";
  CHECK_THAT(ErrorOf(file), Contains("XLA's plan"));
}

// The bytes of a field of a message that has a length.
std::string Field(int number, const std::string& value) {
  std::string bytes(1, static_cast<char>(number << 3 | 2));
  size_t length = value.size();
  for (; length >= 128; length >>= 7) bytes.push_back(static_cast<char>((length & 127) | 128));
  bytes.push_back(static_cast<char>(length));
  return bytes + value;
}

TEST_CASE("tables that don't fit together, or are too long, are refused before they are made") {
  const auto error = [](const std::string& instructions) {
    // The message is ProgramFile.program.instructions.
    const std::string payload = Field(1, Field(3, instructions));
    return std::string(ParseProgramFile(PackFile(FileKind::kProgram, payload)).status().message());
  };
  const std::string one_name = Field(1, "");
  CHECK_THAT(error(one_name),
             Contains("instructions: column opcode has 0 rows, the first column has 1"));
  CHECK_THAT(error(one_name + Field(2, "") + Field(3, "\x08")),
             Contains("column kind, row 0: 4 is out of range"));
  std::string names;
  for (int i = 0; i <= 1 << 22; ++i) names += one_name;
  CHECK_THAT(error(names), Contains("column name has 4194305 rows; allowed: at most 4194304"));
}

TEST_CASE("a damaged payload is refused, or another program file that is as good") {
  const std::string payload = *UnpackFile(FileKind::kProgram, SerializeProgramFile(SampleFile()));
  int refused = 0;
  const auto parse = [&](absl::string_view damaged) {
    const absl::StatusOr<ProgramFile> file =
        ParseProgramFile(PackFile(FileKind::kProgram, damaged));
    refused += !file.ok();
    if (file.ok()) REQUIRE(ParseProgramFile(SerializeProgramFile(*file)).ok());
  };
  for (size_t n = 0; n < payload.size(); ++n) parse(payload.substr(0, n));
  // Only a cut between two of the last few fields leaves a good message.
  CHECK(refused > static_cast<int>(payload.size()) - 20);
  Rng rng(3);
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = payload;
    for (int k = 0; k < 3; ++k) {
      rng.Pick(damaged) = static_cast<char>(rng.Below(256));
    }
    parse(damaged);
  }
}

}  // namespace
}  // namespace mallocgame
