// Measures on one program what a decision, a look and a trial of the search take: CPU time on one
// core, in microseconds.
//
//   mallocgame_growth PROGRAM.mgp [PART...]
//
// Prints one JSON object; growth.py makes a table of several. A game that takes long is played for
// some seconds only, and its decisions then are those that come first. The parts, all of them if
// none is named, are the games `time`, `priority` and `exact` (priority with exact stalls), and the
// searches `games`, `exact-games`, `residences` and `orders`.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "mallocgame/base/error.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/game/games.h"
#include "mallocgame/game/observation.h"
#include "mallocgame/game/position.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/replay/files.h"
#include "mallocgame/replay/program_file.h"
#include "mallocgame/schedule/units.h"
#include "mallocgame/search/anneal.h"
#include "mallocgame/search/game_search.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/search/residence_search.h"
#include "mallocgame/solvers/schedule/schedule_moves.h"
#include "mallocgame/solvers/schedule/scheduled_game.h"

namespace mallocgame {
namespace {

constexpr double kEnough = 0.3, kMost = 5;  // seconds of one measurement
constexpr int kFew = 16;                    // so many, however long they take, up to kMost
constexpr int kDecisions = 64;              // that are looked at, one after the other
constexpr double kWarmUp = 1;               // seconds of trials before those that count
constexpr double kTemperature = 1e-5;       // of annealing, as a share of the latency

double CpuSeconds() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void Print(const std::string& what, double seconds, int64_t count) {
  std::printf(", \"%s\": %.4g", what.c_str(), 1e6 * seconds / static_cast<double>(count));
  std::fflush(stdout);
}

void MeasureRepeated(const std::string& what, const std::function<void()>& run) {
  run();
  const double start = CpuSeconds();
  int64_t count = 0;
  double used = 0;
  while ((used < kEnough || count < kFew) && used < kMost) {
    run();
    ++count;
    used = CpuSeconds() - start;
  }
  Print(what, used, count);
}

// A look after each of some decisions, which are then taken back: what that takes beside the same
// without looks.
void MeasureLooks(const std::string& what, const Observer& observer, const Intent& greedy,
                  Position& position) {
  std::vector<float> numbers(observer.size());
  const int begin = position.num_decisions();
  int64_t looks = 0;
  const auto play = [&](bool looking) {
    const double start = CpuSeconds();
    while (position.num_decisions() < begin + kDecisions && !position.IsTerminal()) {
      if (looking) observer.Write(position, numbers.data());
      looks += looking;
      position.Decide(greedy);
    }
    while (position.num_decisions() > begin) position.Undo();
    return CpuSeconds() - start;
  };
  play(true);
  double with = 0, without = 0;
  for (looks = 0; with < kEnough || (looks < kFew && with < kMost);) {
    with += play(true);
    without += play(false);
  }
  Print(what, std::max(0.0, with - without), looks);
}

// Greedy's game, a decision of it, undo in its second half, clone and observation in its middle.
void MeasureGame(const std::string& kind, const std::shared_ptr<const Game>& game) {
  const Intent greedy = game->OpenIntent();
  const auto position = game->NewInitialPosition();
  double playing = 0, undoing = 0;
  int64_t played = 0, undone = 0;
  int longest = 0;
  while ((playing < kEnough || undoing < kEnough / 8) && playing < kMost) {
    const double start = CpuSeconds();
    double now = start;
    while (!position->IsTerminal() && playing + now - start < kMost) {
      position->Decide(greedy);
      ++played;
      if (played % 16 == 0) now = CpuSeconds();
    }
    const int decided = position->num_decisions(), half = decided / 2;
    const double end = CpuSeconds();
    playing += end - start;
    while (position->num_decisions() > half) position->Undo();
    undoing += CpuSeconds() - end;
    undone += decided - half;
    while (position->num_decisions() > 0) position->Undo();
    if (decided == 0) return;
    longest = std::max(longest, decided);
  }
  Print("decision, " + kind, playing, played);
  Print("undo, " + kind, undoing, undone);
  const auto middle = game->NewInitialPosition();
  while (middle->num_decisions() < longest / 2) middle->Decide(greedy);
  MeasureRepeated("clone, " + kind, [&] { middle->Clone(); });
  for (const bool compact : {false, true}) {
    const Observer observer =
        *Observer::Create(game, compact ? ObservationOptions::Compact() : ObservationOptions());
    MeasureLooks((compact ? "compact observation, " : "observation, ") + kind, observer, greedy,
                 *middle);
  }
}

void MeasureTrials(const std::string& what, Neighbourhood& search) {
  if (search.empty()) return;
  Rng rng(0);
  const auto try_one = [&] {
    search.Propose(rng);
    const auto latency = static_cast<double>(search.latency_ps());
    const auto loss = static_cast<int64_t>(AcceptedLoss(kTemperature * latency, rng));
    if (search.Try(search.latency_ps() + loss)) {
      search.Accept();
    } else {
      search.Reject();
    }
  };
  const double until = CpuSeconds() + kWarmUp;
  while (CpuSeconds() < until) try_one();
  MeasureRepeated("trial, " + what, try_one);
}

// Another order of instructions, with the placement played at it.
void MeasureOrders(const PriorityGame& game) {
  const ScheduleUnits units(game.shared_program());
  if (!units.has_freedom()) return;
  ScheduleMoves moves(units);
  const ScheduledGame start(units, game, game.OpenIntent());
  const Intent decided = start.Decided();
  Rng rng(0);
  MeasureRepeated("trial, orders", [&] {
    UnitOrder order = start.order();
    moves.Propose(start.place(), order, rng);
    const ScheduledGame next(units, game, std::move(order), decided);
  });
}

Plan StartOf(const ProgramFile& file, const Game& game) {
  if (file.xla_plan) return *file.xla_plan;
  const auto position = game.NewInitialPosition();
  position->PlayOn(game.OpenIntent());
  return position->ToPlan();
}

void MeasureParts(const ProgramFile& file, const std::vector<std::string>& parts) {
  const auto wanted = [&](const char* part) {
    return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end();
  };
  const double start = CpuSeconds();
  const auto time = *Game::Create(file.program, file.hardware, **OptionsOfGame("time"));
  const auto accesses = static_cast<int64_t>(file.program->accesses().size());
  Print("making a game, for each access", CpuSeconds() - start, accesses);
  PriorityGameOptions options;
  const auto priority = PriorityGameWith(*time, options);
  options.exact_stalls = true;
  const auto exact = PriorityGameWith(*time, options);
  if (wanted("time")) MeasureGame("time", time);
  if (wanted("priority")) MeasureGame("priority", priority);
  if (wanted("exact")) MeasureGame("exact stalls", exact);
  const auto searched = GameToSearch(*priority);
  options.candidates = kMaxCandidates;
  const auto exact_searched = PriorityGameWith(*time, options);
  if (wanted("games")) {
    GameSearch search(*searched, searched->OpenIntent());
    MeasureTrials("games", search);
  }
  if (wanted("exact-games")) {
    GameSearch search(*exact_searched, exact_searched->OpenIntent());
    MeasureTrials("games, exact stalls", search);
  }
  if (wanted("residences")) {
    ResidenceSearch search(*time, StartOf(file, *priority));
    MeasureTrials("residences", search);
  }
  if (wanted("orders")) MeasureOrders(*searched);
}

int MeasureProgram(const std::string& path, const std::vector<std::string>& parts) {
  const auto bytes = ReadFile(path);
  const auto file = bytes.ok() ? ParseProgramFile(*bytes) : bytes.status();
  if (!file.ok()) {
    std::fprintf(stderr, "%s: %s\n", path.c_str(), file.status().ToString().c_str());
    return 2;
  }
  std::printf("{\"instructions\": %d, \"accesses\": %zu", file->program->ticks(),
              file->program->accesses().size());
  MeasureParts(*file, parts);
  std::printf("}\n");
  return 0;
}

}  // namespace
}  // namespace mallocgame

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: mallocgame_growth PROGRAM.mgp [PART...]\n");
    return 2;
  }
  return mallocgame::MeasureProgram(argv[1], {argv + 2, argv + argc});
}
