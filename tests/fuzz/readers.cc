// Each reader reads its input, and then does what the result must be good for.
#include "tests/fuzz/readers.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/position.h"
#include "mallocgame/hardware/hardware.h"
#include "mallocgame/hlo/import/import.h"
#include "mallocgame/hlo/import/uses.h"
#include "mallocgame/plan/plan.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/replay/container.h"
#include "mallocgame/replay/game_log.h"
#include "mallocgame/replay/plan_file.h"
#include "mallocgame/replay/program_file.h"
#include "mallocgame/simulator/simulate.h"
#include "tests/fuzz/edited_program.h"
#include "tests/fuzz/sample.h"
#include "tests/fuzz/solver_readers.h"
#include "tests/support/play.h"

namespace mallocgame::fuzz {
namespace {

// Longer programs are read but not played, because a game takes time.
constexpr Tick kMaxTicksPlayed = 300;

// Plays a random game of each kind. On every program that is accepted, it must end in a valid plan
// that costs what the game said, and its log must replay as it was.
void Play(const std::shared_ptr<const Program>& program, const Hardware& hardware) {
  if (program->ticks() > kMaxTicksPlayed) return;
  for (const std::string kind : {"time", "priority"}) {
    const auto game = Game::Create(program, hardware, *testing::OptionsOf(kind));
    if (!game.ok()) return;
    Rng rng(1);
    const std::unique_ptr<Position> position = (*game)->NewInitialPosition();
    testing::PlayOnAtRandom(*position, rng);
    const Plan plan = position->ToPlan();
    MG_CHECK(Validate(*program, hardware, plan).ok());
    const auto report = Simulate((*game)->cost_model(), plan);
    MG_CHECK(report.ok() && report->latency_ps == position->latency_ps());
    const auto log = RecordGame(**game, position->actions(), "at random", 1);
    MG_CHECK(log.ok() && log->plan == plan);
    const auto verdict = ReplayLog(*log, program);
    MG_CHECK(verdict.ok() && verdict->same);
  }
}

// Judges a plan that may break any rule. The judges must not end the process.
void Judge(const std::shared_ptr<const Program>& program, const Hardware& hardware,
           const Plan& plan) {
  const Verdict verdict = Validate(*program, hardware, plan);
  MG_CHECK(verdict.ok() == verdict.message.empty());
  const auto report = Simulate(CostModel(program, hardware), plan);
  // A plan that can be played may take longer than 64 bits can say.
  const bool too_long = absl::IsOutOfRange(report.status());
  MG_CHECK(report.ok() || too_long == (verdict.rule != Rule::kMalformed));
  MG_CHECK(!report.ok() || verdict.rule != Rule::kMalformed);
  if (!report.ok()) return;
  PlanToString(*program, plan);
  const absl::StatusOr<Plan> back = PlanFromJson(*program, PlanToJson(*program, plan));
  MG_CHECK(back.ok() && *back == plan);
}

bool Import(const ImportInput& input) {
  const Hardware hardware = *HardwarePreset("tpu_v4i");
  const absl::StatusOr<Imported> imported = ImportHlo(input, hardware);
  if (!imported.ok()) return false;
  MG_CHECK(FindUses(*imported->program, input.module).ok());
  Judge(imported->program, hardware, AllMainPlan(*imported->program, hardware));
  Play(imported->program, hardware);
  return true;
}

bool ReadHlo(absl::string_view bytes) {
  return Import({.module = bytes, .priced = {}, .profile = {}});
}

bool ReadPriced(absl::string_view bytes) {
  const std::vector<absl::string_view> parts = SplitParts(bytes, 2);
  return Import({.module = parts[0], .priced = {parts[1]}, .profile = {}});
}

bool ReadProfile(absl::string_view bytes) {
  const std::vector<absl::string_view> parts = SplitParts(bytes, 2);
  return Import({.module = parts[0], .priced = {}, .profile = parts[1]});
}

bool ReadAssigned(absl::string_view bytes) {
  const std::vector<absl::string_view> parts = SplitParts(bytes, 2);
  const Hardware hardware = *HardwarePreset("tpu_v4i");
  const absl::StatusOr<Imported> imported =
      ImportHlo({.module = parts[0], .priced = {}, .profile = {}}, hardware);
  if (!imported.ok()) return false;
  const absl::StatusOr<Plan> plan =
      ReadAssignment(*imported->program, parts[0], parts[1], hardware);
  if (!plan.ok()) return false;
  MG_CHECK(Validate(*imported->program, hardware, *plan).rule != Rule::kMalformed);
  Judge(imported->program, hardware, *plan);
  return true;
}

bool ReadProgramFile(absl::string_view bytes) {
  const absl::StatusOr<ProgramFile> file = ParseProgramFile(PackFile(FileKind::kProgram, bytes));
  if (!file.ok()) return false;
  const std::string again = SerializeProgramFile(*file);
  const absl::StatusOr<ProgramFile> back = ParseProgramFile(again);
  MG_CHECK(back.ok() && back->program->data() == file->program->data() &&
           SerializeProgramFile(*back) == again);
  if (file->xla_plan.has_value()) Judge(file->program, file->hardware, *file->xla_plan);
  Play(file->program, file->hardware);
  return true;
}

// Program::Create is a reader too: everything else trusts what it accepts.
bool ReadProgram(absl::string_view bytes) {
  EditedProgram edited = MakeEditedProgram(bytes);
  const auto program = Program::Create(std::move(edited.program));
  if (!program.ok() || !ValidateHardware(edited.hardware).ok()) return false;
  Judge(*program, edited.hardware, AllMainPlan(**program, edited.hardware));
  Play(*program, edited.hardware);
  return true;
}

bool ReadGameLog(absl::string_view bytes) {
  const absl::StatusOr<GameLog> log = ParseGameLog(PackFile(FileKind::kGameLog, bytes));
  if (!log.ok()) return false;
  const std::string again = SerializeGameLog(*log);
  const absl::StatusOr<GameLog> back = ParseGameLog(again);
  MG_CHECK(back.ok() && SerializeGameLog(*back) == again);
  const absl::StatusOr<ReplayVerdict> verdict = ReplayLog(*log, SampleProgram());
  MG_CHECK(!verdict.ok() || verdict->same == verdict->message.empty());
  return true;
}

bool ReadPlan(absl::string_view bytes) {
  const std::shared_ptr<const Program> program = SampleProgram();
  const absl::StatusOr<Plan> plan = PlanFromJson(*program, bytes);
  if (!plan.ok()) return false;
  Judge(program, SampleHardware(), *plan);
  return true;
}

bool ReadHardware(absl::string_view bytes) {
  const absl::StatusOr<Hardware> hardware = HardwareFromJson(bytes);
  if (!hardware.ok()) return false;
  MG_CHECK(ValidateHardware(*hardware).ok());
  const absl::StatusOr<Hardware> back = HardwareFromJson(HardwareToJson(*hardware));
  MG_CHECK(back.ok() && *back == *hardware);
  Play(SampleProgram(), *hardware);
  return true;
}

constexpr Reader kReaders[] = {
    {"hlo", ReadHlo},           {"priced", ReadPriced},
    {"profile", ReadProfile},   {"assignment", ReadAssigned},
    {"program", ReadProgram},   {"program_file", ReadProgramFile},
    {"game_log", ReadGameLog},  {"plan", ReadPlan},
    {"hardware", ReadHardware}, {"offsets", ReadOffsets},
};

}  // namespace

absl::Span<const Reader> Readers() { return kReaders; }

std::string JoinParts(std::initializer_list<absl::string_view> parts) {
  std::string bytes;
  size_t left = parts.size();
  for (const absl::string_view part : parts) {
    if (--left > 0) {
      for (int shift = 0; shift < 32; shift += 8)
        bytes.push_back(static_cast<char>(part.size() >> shift & 255));
    }
    absl::StrAppend(&bytes, part);
  }
  return bytes;
}

std::vector<absl::string_view> SplitParts(absl::string_view bytes, size_t count) {
  std::vector<absl::string_view> parts;
  while (parts.size() + 1 < count) {
    size_t size = 0;
    for (size_t i = 0; i < 4 && i < bytes.size(); ++i)
      size |= static_cast<size_t>(static_cast<uint8_t>(bytes[i])) << 8 * i;
    bytes.remove_prefix(std::min<size_t>(4, bytes.size()));
    parts.push_back(bytes.substr(0, size));
    bytes.remove_prefix(parts.back().size());
  }
  parts.push_back(bytes);
  return parts;
}

}  // namespace mallocgame::fuzz
