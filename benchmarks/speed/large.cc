// Measures how much time and memory solvers need for a large program. Prints one line for each
// solver, whose plan is valid.
//
//   mallocgame_large [INSTRUCTIONS] [HARDWARE | PROGRAM.mgp] [SOLVER[@GAME][=SECONDS]... | OUT.mgp]
//
// The program is a made-up one for the hardware, or the one of a file, repeated as layers until it
// has so many instructions. With OUT.mgp it is written there. GAME is a game's name or `exact`, the
// priority game with exact stalls. The default is
// 100000 tpu_v4i greedy greedy@priority greedy@exact xla-heuristic portfolio=10. Without SECONDS a
// solver has no limit of time, which is for those that end by themselves. The peak is that of the
// whole process so far, program and game included.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/game/games.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/replay/files.h"
#include "mallocgame/replay/program_file.h"
#include "mallocgame/solvers/registry.h"
#include "tests/support/large_program.h"

namespace mallocgame {
namespace {

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double CpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double PeakMib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// A program for its hardware.
struct Subject {
  std::shared_ptr<const Program> program;
  Hardware hardware;
};

// The program as often, one after the other, as it takes to have so many instructions: as layers
// that hand nothing on. Each has buffers of its own.
std::shared_ptr<const Program> Repeated(const Program& layer, int instructions) {
  const ProgramData& one = layer.data();
  const int count = (instructions + layer.ticks() - 1) / layer.ticks();
  ProgramData all;
  all.name = one.name + " repeated";
  all.argument_bytes = count * one.argument_bytes;
  all.window_bytes = one.window_bytes;
  all.cost.kind = one.cost.kind;
  all.cost.pools = one.cost.pools;
  all.regions.push_back(one.regions[0]);
  all.regions[0].end = count * layer.ticks();
  for (int i = 0; i < count; ++i) {
    const Tick ticks = i * layer.ticks();
    const auto accesses = static_cast<int32_t>(all.accesses.size());
    const auto buffers = static_cast<int32_t>(all.buffers.size());
    const auto regions = static_cast<int32_t>(all.regions.size()) - 1;
    const auto loops = static_cast<int32_t>(all.loops.size());
    const int32_t logical = i * (one.instructions.back().logical_time + 1);
    for (Instruction instruction : one.instructions) {
      instruction.name += absl::StrCat(".", i);
      instruction.op_name =
          absl::StrCat("jit(repeated)/layer_", i, "/", instruction.opcode, "/", instruction.opcode);
      if (instruction.region > 0) instruction.region += regions;
      instruction.logical_time += logical;
      instruction.first_access += accesses;
      all.instructions.push_back(std::move(instruction));
    }
    for (size_t r = 1; r < one.regions.size(); ++r) {
      Region region = one.regions[r];
      if (region.parent > 0) region.parent += regions;
      if (region.loop >= 0) region.loop += loops;
      region.begin += ticks;
      region.end += ticks;
      all.regions.push_back(region);
    }
    for (Loop loop : one.loops) {
      loop.entry += ticks;
      loop.exit += ticks;
      all.loops.push_back(loop);
    }
    for (Buffer buffer : one.buffers) {
      buffer.name += absl::StrCat(".", i);
      all.buffers.push_back(std::move(buffer));
    }
    for (Access access : one.accesses) {
      access.tick += ticks;
      access.buffer = BufferId(access.buffer.index() + buffers);
      if (access.held_until > 0) access.held_until += ticks;
      all.accesses.push_back(access);
    }
    all.cost.instructions.insert(all.cost.instructions.end(), one.cost.instructions.begin(),
                                 one.cost.instructions.end());
  }
  return *Program::Create(std::move(all));
}

absl::StatusOr<Subject> SubjectOf(const std::string& source, int instructions) {
  if (!absl::EndsWith(source, ".mgp")) {
    MG_ASSIGN_OR_RETURN(const Hardware hardware, HardwarePreset(source));
    testing::LargeProgramOptions options;
    options.instructions = instructions;
    options.loops = std::min(options.loops, instructions / 200);
    return Subject{testing::LargeProgram(options), hardware};
  }
  MG_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(source));
  MG_ASSIGN_OR_RETURN(const ProgramFile file, ParseProgramFile(bytes));
  return Subject{Repeated(*file.program, instructions), file.hardware};
}

// The game of a name, or `exact`: the priority game with exact stalls.
absl::StatusOr<std::shared_ptr<const Game>> GameOf(const Subject& subject,
                                                   const std::string& kind) {
  if (kind != "exact") {
    MG_ASSIGN_OR_RETURN(const auto options, OptionsOfGame(kind));
    return Game::Create(subject.program, subject.hardware, *options);
  }
  PriorityGameOptions options;
  options.exact_stalls = true;
  return Game::Create(subject.program, subject.hardware, options);
}

// Parts a text in front of `sign` and behind it.
std::pair<std::string, std::string> Parted(const std::string& text, char sign) {
  const size_t at = text.find(sign);
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + 1)};
}

absl::Status SolveOne(const Subject& subject, const std::string& asked) {
  const auto [player, seconds_asked] = Parted(asked, '=');
  const auto [solver, kind] = Parted(player, '@');
  SolveLimits limits;
  limits.seconds = seconds_asked.empty() ? 0 : std::stod(seconds_asked);
  MG_ASSIGN_OR_RETURN(const auto game, GameOf(subject, kind.empty() ? "time" : kind));
  const double start = Seconds(), cpu = CpuSeconds();
  MG_ASSIGN_OR_RETURN(const SolveResult result, Solve(solver, {game, nullptr}, limits));
  const double seconds = Seconds() - start, cpu_seconds = CpuSeconds() - cpu;
  if (!Validate(*subject.program, subject.hardware, result.plan).ok())
    return absl::InternalError(absl::StrCat(asked, ": the plan is not valid"));
  std::printf(
      "%-16s %8.2f s, %.2f of CPU  peak %6.0f MiB  %.3f of the all-main latency, %zu residences, "
      "%zu copies\n",
      asked.c_str(), seconds, cpu_seconds, PeakMib(),
      static_cast<double>(result.report.latency_ps) /
          static_cast<double>(result.report.all_main_ps),
      result.plan.residences.size(), result.plan.copies.size());
  return absl::OkStatus();
}

absl::Status Run(int instructions, const std::string& source,
                 const std::vector<std::string>& players) {
  const double start = Seconds();
  MG_ASSIGN_OR_RETURN(const Subject subject, SubjectOf(source, instructions));
  std::printf("%-16s %8.2f s  peak %6.0f MiB  %d ticks, %zu buffers, %zu accesses\n", "program",
              Seconds() - start, PeakMib(), subject.program->ticks(),
              subject.program->buffers().size(), subject.program->accesses().size());
  for (const std::string& asked : players) {
    if (absl::EndsWith(asked, ".mgp")) {
      ProgramFile file;
      file.program = subject.program;
      file.hardware = subject.hardware;
      MG_RETURN_IF_ERROR(WriteFile(asked, SerializeProgramFile(file)));
    } else {
      MG_RETURN_IF_ERROR(SolveOne(subject, asked));
    }
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace mallocgame

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const int instructions = arguments.empty() ? 100'000 : std::stoi(arguments[0]);
  const std::string source = arguments.size() < 2 ? "tpu_v4i" : arguments[1];
  std::vector<std::string> players = {"greedy", "greedy@priority", "greedy@exact", "xla-heuristic",
                                      "portfolio=10"};
  if (arguments.size() > 2) players.assign(arguments.begin() + 2, arguments.end());
  if (instructions < 200 || instructions > 10'000'000) {
    std::fprintf(stderr, "INSTRUCTIONS: found %d, allowed: 200 to 10000000\n", instructions);
    return 2;
  }
  const absl::Status status = mallocgame::Run(instructions, source, players);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 2;
}
