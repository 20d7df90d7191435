// Measures how much time and memory solvers need for a large program. Prints one line for each
// solver.
//
//   mallocgame_large [INSTRUCTIONS] [HARDWARE] [SOLVER[=SECONDS]...]
//
// The default is 100000 tpu_v4i greedy xla-heuristic. Without SECONDS a solver has no limit of
// time, which is for those that end by themselves. The peak is that of the whole process so far,
// program and game included.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "mallocgame/game/time/time_game.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/solvers/registry.h"
#include "tests/support/large_program.h"

namespace mallocgame {
namespace {

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double PeakMib() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

int Run(int instructions, const std::string& hardware_name,
        const std::vector<std::string>& solvers) {
  const auto hardware = HardwarePreset(hardware_name);
  if (!hardware.ok() || instructions < 200 || instructions > 10'000'000) {
    std::fprintf(stderr,
                 "usage: mallocgame_large [INSTRUCTIONS >= 200] [HARDWARE] "
                 "[SOLVER[=SECONDS]...]\n");
    return 2;
  }
  testing::LargeProgramOptions options;
  options.instructions = instructions;
  options.loops = std::min(options.loops, instructions / 200);
  double start = Seconds();
  const auto program = testing::LargeProgram(options);
  const auto game = TimeGame::Create(program, *hardware, {});
  if (!game.ok()) return 2;
  std::printf("%-14s %8.2f s  peak %6.0f MiB  %d ticks, %zu buffers, %zu accesses\n", "program",
              Seconds() - start, PeakMib(), program->ticks(), program->buffers().size(),
              program->accesses().size());
  for (const std::string& asked : solvers) {
    const size_t sign = asked.find('=');
    const std::string solver = asked.substr(0, sign);
    SolveLimits limits;
    limits.seconds = sign == std::string::npos ? 0 : std::stod(asked.substr(sign + 1));
    start = Seconds();
    const auto result = Solve(solver, {*game, nullptr}, limits);
    const double seconds = Seconds() - start;
    if (!result.ok()) {
      std::fprintf(stderr, "%s\n", result.status().ToString().c_str());
      return 2;
    }
    const bool valid = Validate(*program, *hardware, result->plan).ok();
    std::printf(
        "%-14s %8.2f s  peak %6.0f MiB  %s, %.3f of the all-main latency, %zu residences, %zu "
        "copies\n",
        solver.c_str(), seconds, PeakMib(), valid ? "valid" : "NOT VALID",
        static_cast<double>(result->report.latency_ps) /
            static_cast<double>(result->report.all_main_ps),
        result->plan.residences.size(), result->plan.copies.size());
    if (!valid) return 1;
  }
  return 0;
}

}  // namespace
}  // namespace mallocgame

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  const int instructions = arguments.empty() ? 100'000 : std::stoi(arguments[0]);
  const std::string hardware = arguments.size() < 2 ? "tpu_v4i" : arguments[1];
  std::vector<std::string> solvers = {"greedy", "xla-heuristic"};
  if (arguments.size() > 2) solvers.assign(arguments.begin() + 2, arguments.end());
  return mallocgame::Run(instructions, hardware, solvers);
}
