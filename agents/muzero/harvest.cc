#include "agents/muzero/harvest.h"

#include <algorithm>
#include <utility>

#include "agents/training/bytes.h"
#include "agents/training/checkpoint.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/game/play_actions.h"

namespace mallocgame::muzero {
namespace {

using training::CutShort;
using training::ReadBytes;
using training::WriteBytes;

// A best game of a task. Of two that are drawn it is the better one, so that the best are drawn
// most often and each has a chance.
const PlayedGame& DrawBest(const Replay& replay, Rng& rng) {
  const std::vector<PlayedGame>& best = replay.best(rng.Below(replay.tasks()));
  const auto count = static_cast<uint32_t>(best.size());
  return best[std::min(rng.Below(count), rng.Below(count))];
}

Start StartOf(const PlayedGame& game) {
  Start start = {game.id, game.task, game.actions, {}};
  for (const Step& step : game.steps) start.decisions.push_back(step.decision);
  return start;
}

// Whether it has a whole game of its task, and decisions of that.
bool IsStart(absl::Span<const Task> tasks, const Start& start) {
  const auto& [id, task, actions, decisions, first_step] = start;
  if (task < 0 || static_cast<size_t>(task) >= tasks.size() || decisions.empty()) return false;
  const auto end = PlayActions(tasks[task].game(), actions);
  const auto is_index = [count = static_cast<int32_t>(actions.size())](int32_t index) {
    return index >= 0 && index < count;
  };
  return end.ok() && (*end)->IsTerminal() && is_index(first_step) &&
         std::all_of(decisions.begin(), decisions.end(), is_index);
}

void WriteGames(const std::vector<PlayedGame>& games, std::string& out) {
  WriteBytes(static_cast<uint64_t>(games.size()), out);
  for (const PlayedGame& game : games) WriteGame(game, out);
}

absl::Status ReadGames(absl::string_view& in, absl::Span<const Task> tasks,
                       std::vector<PlayedGame>& games) {
  uint64_t count = 0;
  MG_RETURN_IF_ERROR(ReadBytes(in, count));
  for (uint64_t i = 0; i < count; ++i) {
    MG_ASSIGN_OR_RETURN(PlayedGame game, ReadGame(in, tasks));
    games.push_back(std::move(game));
  }
  return absl::OkStatus();
}

}  // namespace

Assignment Assign(const Config& config, const Replay& replay, uint64_t seed, int64_t updates) {
  Rng rng(seed);
  Assignment assignment;
  assignment.seed = rng.Next();
  assignment.updates = updates;
  for (int i = 0; i < config.games; ++i)
    assignment.starts.push_back(StartOf(DrawBest(replay, rng)));
  if (config.varied_decisions > 0) assignment.varied = StartOf(DrawBest(replay, rng));
  for (const StepId& id : replay.DrawEvenly(config.reanalysed, rng)) {
    const PlayedGame& game = *replay.Find(id);
    assignment.old.push_back(
        {id.game, game.task, game.actions, {game.steps[id.step].decision}, id.step});
  }
  return assignment;
}

void Write(const Assignment& assignment, std::string& out) {
  training::WriteField(assignment, out);
}

absl::StatusOr<Assignment> ReadAssignment(absl::string_view& in, absl::Span<const Task> tasks) {
  Assignment assignment;
  MG_RETURN_IF_ERROR(training::ReadField(in, assignment));
  const auto valid = [tasks](const Start& start) { return IsStart(tasks, start); };
  const auto& [seed, updates, starts, varied, old] = assignment;
  if (starts.empty() || !std::all_of(starts.begin(), starts.end(), valid) ||
      !std::all_of(old.begin(), old.end(), valid) || (varied && !valid(*varied)))
    return CutShort();
  return assignment;
}

void Write(const Harvest& harvest, std::string& out) {
  WriteGames(harvest.games, out);
  WriteGames(harvest.rollouts, out);
  WriteGames(harvest.variations, out);
  WriteBytes(static_cast<uint64_t>(harvest.revisions.size()), out);
  for (const Revision& one : harvest.revisions) {
    training::WriteField(one.id, out);
    WritePolicy(one.policy, out);
    WriteBytes(static_cast<uint8_t>(one.value.has_value()), out);
    if (one.value) WriteBytes(*one.value, out);
  }
  for (const int64_t count : {harvest.searches, harvest.evaluations, harvest.varied})
    WriteBytes(count, out);
  for (const double sum : {harvest.depth_sum, harvest.entropy_sum, harvest.seconds})
    WriteBytes(sum, out);
}

absl::StatusOr<Harvest> ReadHarvest(absl::string_view& in, absl::Span<const Task> tasks) {
  Harvest harvest;
  uint64_t revisions = 0;
  MG_RETURN_IF_ERROR(ReadGames(in, tasks, harvest.games));
  MG_RETURN_IF_ERROR(ReadGames(in, tasks, harvest.rollouts));
  MG_RETURN_IF_ERROR(ReadGames(in, tasks, harvest.variations));
  MG_RETURN_IF_ERROR(ReadBytes(in, revisions));
  for (uint64_t i = 0; i < revisions; ++i) {
    Revision one;
    uint8_t has_value = 0;
    MG_RETURN_IF_ERROR(training::ReadField(in, one.id));
    MG_RETURN_IF_ERROR(ReadPolicy(in, tasks[0].game(), one.policy));
    MG_RETURN_IF_ERROR(ReadBytes(in, has_value));
    if (has_value != 0) MG_RETURN_IF_ERROR(ReadBytes(in, one.value.emplace()));
    harvest.revisions.push_back(std::move(one));
  }
  for (int64_t* count : {&harvest.searches, &harvest.evaluations, &harvest.varied})
    MG_RETURN_IF_ERROR(ReadBytes(in, *count));
  for (double* sum : {&harvest.depth_sum, &harvest.entropy_sum, &harvest.seconds})
    MG_RETURN_IF_ERROR(ReadBytes(in, *sum));
  return harvest;
}

}  // namespace mallocgame::muzero
