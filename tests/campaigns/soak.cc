// Plays very many random games of all kinds, on all programs of a folder. It judges every plan, and
// the order of instructions where that is decided: that it is legal, and within the limit of main
// memory.
//
//     soak FOLDER STEPS [THREADS [SEED [GAME]]]
//
// GAME: time, priority or schedule; without it all of them.
// A job is one program and kind of game with options drawn from the seed; it is played again and
// again for its share of the steps. Sweeps over all jobs follow each other. Each line on standard
// output is a JSON object of what was done so far. At the end the first jobs are played again and
// must give what they gave at first. The exit status is 1 if anything is wrong, with one line about
// it, and 2 if an argument is.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/game/game.h"
#include "mallocgame/game/position.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/schedule/schedule_game.h"
#include "mallocgame/game/schedule/schedule_state.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/replay/files.h"
#include "mallocgame/replay/program_file.h"
#include "mallocgame/schedule/instruction_order.h"
#include "mallocgame/schedule/main_memory.h"
#include "mallocgame/simulator/simulate.h"
#include "tests/support/play.h"

namespace mallocgame {
namespace {

constexpr int64_t kStepsOfJob = 20'000;
constexpr uint64_t kJobsAgain = 64;  // that are played again at the end

struct NamedProgram {
  std::string name;
  ProgramFile file;
};

struct Counts {
  int64_t steps = 0, taken_back = 0, games = 0, copies = 0;
  // Games that end at another order of instructions than the program's, and those whose order main
  // memory cut short.
  int64_t reordered = 0, cut_short = 0;
  uint64_t digest = 0;  // of all latencies and plans' sizes
};

absl::StatusOr<std::vector<NamedProgram>> ReadPrograms(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".mgp") paths.push_back(entry.path());
  }
  if (paths.empty()) return absl::NotFoundError(folder + ": found no .mgp file");
  std::sort(paths.begin(), paths.end());
  std::vector<NamedProgram> programs;
  for (const std::filesystem::path& path : paths) {
    const auto bytes = ReadFile(path.string());
    if (!bytes.ok()) return bytes.status();
    auto file = ParseProgramFile(*bytes);
    if (!file.ok())
      return absl::InvalidArgumentError(path.string() + ": " + file.status().ToString());
    programs.push_back({path.stem().string(), *std::move(file)});
  }
  return programs;
}

std::unique_ptr<GameOptions> DrawOptions(const Program& program, const std::string& kind,
                                         Rng& rng) {
  std::vector<std::pair<const char*, OptionValue>> values = {
      {"candidates",
       int64_t{1 + rng.Below(kind == "schedule" ? kMaxScheduleCandidates : kMaxCandidates)}}};
  if (kind == "schedule" && rng.Below(2) == 0) {
    const MainMemory needed = MainMemoryOf(program);
    values.emplace_back("main_bytes",
                        needed.total_bytes() + needed.packed_bytes * rng.Below(8) / 8);
  }
  for (const char* weight : {"bytes_weight", "time_weight"})
    values.emplace_back(weight, 0.25 * rng.Below(9));
  values.emplace_back("exact_stalls", rng.Below(4) == 0);
  values.emplace_back("min_buffer_bytes", int64_t{rng.Below(2) == 0 ? 0 : 16 << 10});
  values.emplace_back("paper_actions", rng.Below(4) == 0);
  values.emplace_back("keep_free", rng.Below(4) == 0 ? 0.25 : 0.0);
  return testing::OptionsOf(kind, values);
}

// Checks the order that a schedule game came to.
absl::Status CheckOrder(const Position& end, Counts& counts) {
  const Game& game = end.game();
  const std::vector<Tick> order = end.InstructionOrder();
  if (absl::Status legal = CheckInstructionOrder(game.program(), order); !legal.ok()) return legal;
  const int64_t needed = MainMemoryOf(end.PlannedGame()->program()).total_bytes();
  const int64_t main_bytes = static_cast<const ScheduleGameOptions&>(game.options()).main_bytes;
  const int64_t limit = main_bytes > 0 ? main_bytes : MainMemoryOf(game.program()).total_bytes();
  if (needed > limit)
    return absl::InternalError(absl::StrCat("the order needs ", needed, " of ", limit, " bytes"));
  const auto& state = static_cast<const ScheduleState&>(end);
  counts.reordered = static_cast<int64_t>(!state.ordered().own);
  counts.cut_short = static_cast<int64_t>(state.fell_back());
  return absl::OkStatus();
}

// One game. Now and then actions are taken back, and what can be seen must be as it was.
absl::StatusOr<Counts> PlayOne(const Game& game, Rng& rng) {
  Counts counts;
  const std::unique_ptr<Position> position = game.NewInitialPosition();
  int64_t latency_ps = position->latency_ps();
  while (!position->IsTerminal()) {
    const ActionSet legal = position->legal_actions();
    if (legal.empty()) return absl::InternalError("no action is legal");
    const int action = testing::RandomAction(*position, rng);
    if (rng.Below(16) == 0) {
      const auto tried = position->Apply(testing::RandomAction(*position, rng));
      if (!tried.ok()) return tried.status();
      position->Undo();
      if (position->latency_ps() != latency_ps || position->legal_actions() != legal)
        return absl::InternalError("an action that is taken back leaves something");
      ++counts.taken_back;
    }
    const auto saved_ps = position->Apply(action);
    if (!saved_ps.ok()) return saved_ps.status();
    latency_ps -= *saved_ps;
    if (position->latency_ps() != latency_ps)
      return absl::InternalError("the latency is not what the actions saved");
    ++counts.steps;
  }
  const Plan plan = position->ToPlan();
  if (game.options().decides_order()) {
    if (absl::Status status = CheckOrder(*position, counts); !status.ok()) return status;
  }
  const std::shared_ptr<const Game> planned = position->PlannedGame();
  const Verdict verdict = Validate(planned->program(), game.hardware(), plan);
  if (!verdict.ok()) return absl::InternalError("the plan is invalid: " + verdict.message);
  const auto report = Simulate(planned->cost_model(), plan);
  if (!report.ok()) return report.status();
  if (report->latency_ps != latency_ps)
    return absl::InternalError(absl::StrCat("the game tells ", latency_ps, " ps, the simulator ",
                                            report->latency_ps, " ps"));
  counts.games = 1;
  counts.copies = static_cast<int64_t>(plan.copies.size());
  counts.digest = MixSeeds(static_cast<uint64_t>(latency_ps), plan.copies.size());
  return counts;
}

absl::StatusOr<Counts> PlayJob(const std::vector<NamedProgram>& programs,
                               absl::Span<const std::string> kinds, uint64_t seed, uint64_t job) {
  const NamedProgram& played = programs[job / kinds.size() % programs.size()];
  const std::string& kind = kinds[job % kinds.size()];
  Rng rng(seed, job);
  const auto game = Game::Create(played.file.program, played.file.hardware,
                                 *DrawOptions(*played.file.program, kind, rng));
  absl::Status status = game.status();
  Counts sum;
  while (status.ok()) {
    const absl::StatusOr<Counts> one = PlayOne(**game, rng);
    if (!one.ok()) {
      status = one.status();
      break;
    }
    sum.steps += one->steps;
    sum.taken_back += one->taken_back;
    sum.games += one->games;
    sum.copies += one->copies;
    sum.reordered += one->reordered;
    sum.cut_short += one->cut_short;
    sum.digest ^= one->digest + static_cast<uint64_t>(sum.games);
    // A game without a decision has been played once.
    if (sum.steps == 0 || sum.steps >= kStepsOfJob) return sum;
  }
  return absl::InternalError(absl::StrCat(played.name, ", ", kind, " game, job ", job, " of seed ",
                                          seed, ": ", status.message()));
}

double ResidentMb() {
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

class Soak {
 public:
  Soak(std::vector<NamedProgram> programs, std::vector<std::string> kinds, int64_t steps,
       uint64_t seed)
      : programs_(std::move(programs)), kinds_(std::move(kinds)), steps_(steps), seed_(seed) {}

  absl::Status Run(int threads) {
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; ++t) workers.emplace_back([this] { Work(); });
    for (std::thread& worker : workers) worker.join();
    if (!status_.ok()) return status_;
    for (uint64_t job = 0; job < std::min<uint64_t>(kJobsAgain, next_job_.load()); ++job) {
      const absl::StatusOr<Counts> again = PlayJob(programs_, kinds_, seed_, job);
      if (!again.ok()) return again.status();
      if (again->digest != first_digests_[job])
        return absl::InternalError(
            absl::StrCat("job ", job, " of seed ", seed_, " gave something else at first"));
    }
    return absl::OkStatus();
  }

 private:
  void Work() {
    while (!Done()) {
      const uint64_t job = next_job_++;
      const absl::StatusOr<Counts> counts = PlayJob(programs_, kinds_, seed_, job);
      const std::lock_guard<std::mutex> lock(mutex_);
      if (counts.ok()) {
        Take(job, *counts);
      } else {
        status_ = counts.status();
      }
    }
  }

  bool Done() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return !status_.ok() || sum_.steps >= steps_;
  }

  // With the lock.
  void Take(uint64_t job, const Counts& done) {
    if (job < kJobsAgain) first_digests_[job] = done.digest;
    sum_.steps += done.steps;
    sum_.taken_back += done.taken_back;
    sum_.games += done.games;
    sum_.copies += done.copies;
    sum_.reordered += done.reordered;
    sum_.cut_short += done.cut_short;
    // About a hundred lines, and one at the end.
    if (sum_.steps < told_ + steps_ / 100 && sum_.steps < steps_) return;
    told_ = sum_.steps;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began_;
    std::printf(
        "{\"steps\": %lld, \"taken_back\": %lld, \"games\": %lld, \"copies\": %lld, "
        "\"reordered\": %lld, \"cut_short\": %lld, \"seconds\": %.1f, \"resident_mb\": %.1f}\n",
        static_cast<long long>(sum_.steps), static_cast<long long>(sum_.taken_back),
        static_cast<long long>(sum_.games), static_cast<long long>(sum_.copies),
        static_cast<long long>(sum_.reordered), static_cast<long long>(sum_.cut_short),
        seconds.count(), ResidentMb());
    std::fflush(stdout);
  }

  const std::vector<NamedProgram> programs_;
  const std::vector<std::string> kinds_;
  const int64_t steps_;
  const uint64_t seed_;
  const std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
  std::atomic<uint64_t> next_job_ = 0;

  std::mutex mutex_;
  Counts sum_;
  int64_t told_ = 0;
  uint64_t first_digests_[kJobsAgain] = {};
  absl::Status status_;
};

// Reads a number in [1, most].
absl::StatusOr<int64_t> Number(const char* text, int64_t most) {
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) || number < 1 || number > most)
    return absl::InvalidArgumentError(absl::StrCat("found '", text, "', allowed: 1 to ", most));
  return number;
}

int Fail(const absl::Status& status, int exit_status) {
  std::fprintf(stderr, "soak: %s\n", std::string(status.message()).c_str());
  return exit_status;
}

int Main(int argc, char** argv) {
  constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
  if (argc < 3 || argc > 6)
    return Fail(absl::InvalidArgumentError("usage: soak FOLDER STEPS [THREADS [SEED [GAME]]]"), 2);
  std::vector<std::string> kinds;
  for (const std::string kind : {"time", "priority", "schedule"}) {
    if (argc < 6 || kind == std::string(argv[5])) kinds.push_back(kind);
  }
  if (kinds.empty()) return Fail(absl::InvalidArgumentError("no such game"), 2);
  const auto steps = Number(argv[2], kAny);
  const auto threads = Number(argc > 3 ? argv[3] : "1", 1024);
  const auto seed = Number(argc > 4 ? argv[4] : "1", kAny);
  for (const absl::Status& status : {steps.status(), threads.status(), seed.status()}) {
    if (!status.ok()) return Fail(status, 2);
  }
  auto programs = ReadPrograms(argv[1]);
  if (!programs.ok()) return Fail(programs.status(), 2);
  Soak soak(*std::move(programs), std::move(kinds), *steps, static_cast<uint64_t>(*seed));
  const absl::Status status = soak.Run(static_cast<int>(*threads));
  return status.ok() ? 0 : Fail(status, 1);
}

}  // namespace
}  // namespace mallocgame

int main(int argc, char** argv) { return mallocgame::Main(argc, argv); }
