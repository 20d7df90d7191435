#include "mallocgame/placement/placement.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/noise.h"
#include "mallocgame/base/worker_pool.h"
#include "mallocgame/placement/game_levels.h"
#include "mallocgame/placement/level_model.h"

namespace mallocgame {

// The working memory of one thread, so that evaluating many maps allocates nothing.
struct PlacementProblem::Scratch {
  PlacementMap map;
  LevelModel::Occupancy occupancy;
  std::unique_ptr<Position> position;
  Intent intent;  // what the map at hand says
};

PlacementProblem::PlacementProblem(std::shared_ptr<const Program> program,
                                   std::vector<std::string> level_names, PlacementGraph graph)
    : program_(std::move(program)), level_names_(std::move(level_names)), graph_(std::move(graph)) {
  for (const PlacementNode& node : graph_.nodes) {
    for (const PlacedTensor& tensor : node.tensors) total_bytes_ += tensor.size_bytes;
  }
}

PlacementProblem::~PlacementProblem() = default;

namespace {

absl::Status CheckNotEmpty(const PlacementProblem& problem) {
  const auto& tensors = problem.graph().tensor_of;
  if (std::any_of(tensors.begin(), tensors.end(), [](int32_t tensor) { return tensor >= 0; }))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("placement: program ", problem.program().name(), " has no tensor to place"));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const PlacementProblem>> PlacementProblem::Create(
    std::shared_ptr<const Program> program, const Hierarchy& hierarchy) {
  MG_RETURN_IF_ERROR(ValidateHierarchy(hierarchy));
  std::vector<std::string> names;
  for (const MemoryLevel& level : hierarchy.levels) names.push_back(level.name);
  PlacementGraph graph = MakePlacementGraph(*program);
  std::shared_ptr<PlacementProblem> problem(
      new PlacementProblem(std::move(program), std::move(names), std::move(graph)));
  MG_RETURN_IF_ERROR(CheckNotEmpty(*problem));
  problem->model_ =
      std::make_unique<const LevelModel>(*problem->program_, hierarchy, problem->graph_);
  const int64_t peak = problem->model_->peak_bytes();
  if (const MemoryLevel& last = hierarchy.levels.back(); peak > last.capacity_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("hierarchy ", hierarchy.name, ": ", last.name, ": capacity_bytes: found ",
                     last.capacity_bytes, ", allowed for ", problem->program_->name(),
                     ": at least ", peak, ", its tensors at their most"));
  }
  problem->baseline_map_ = problem->model_->CompilerMap();
  problem->baseline_ps_ = problem->model_->LatencyPs(problem->baseline_map_);
  return problem;
}

absl::StatusOr<std::shared_ptr<const PlacementProblem>> PlacementProblem::Create(
    std::shared_ptr<const Game> game, std::optional<int64_t> baseline_ps, const Plan* plan) {
  if (baseline_ps.has_value() && *baseline_ps < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("baseline_ps: found ", *baseline_ps, ", allowed: 1 or more"));
  }
  if (game->options().decides_order()) {
    return absl::InvalidArgumentError(
        "placement: found a schedule game, allowed: a time game or a priority game");
  }
  if (plan != nullptr)
    MG_RETURN_IF_ERROR(CheckWellFormed(game->program(), game->hardware(), *plan));
  std::unique_ptr<const GameLevels> on_game = GameLevels::Of(*game);
  std::shared_ptr<PlacementProblem> problem(
      new PlacementProblem(game->shared_program(), on_game->names(), on_game->graph()));
  MG_RETURN_IF_ERROR(CheckNotEmpty(*problem));
  problem->game_ = std::move(game);
  problem->on_game_ = std::move(on_game);
  problem->baseline_map_ = plan == nullptr
                               ? PlacementMap(problem->map_size(), 0)
                               : problem->on_game_->Read(problem->game_->ReadPlan(*plan));
  problem->baseline_ps_ = baseline_ps.has_value()
                              ? *baseline_ps
                              : problem->Evaluate(problem->baseline_map_)->latency_ps;
  return problem;
}

absl::Status PlacementProblem::Check(absl::Span<const uint8_t> maps, size_t count) const {
  if (maps.size() != count * map_size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("map: found ", maps.size(), " levels, allowed: ", count * map_size(),
                     ", two for each node", count == 1 ? "" : " and map"));
  }
  const auto wrong =
      std::find_if(maps.begin(), maps.end(), [this](uint8_t level) { return level >= levels(); });
  if (wrong == maps.end()) return absl::OkStatus();
  const size_t at = wrong - maps.begin();
  return absl::InvalidArgumentError(absl::StrCat(
      "map ", at / map_size(), ": ", at % 2 == 0 ? "weights" : "activations", " of node ",
      at % map_size() / 2, ": found level ", *wrong, ", allowed: 0 to ", levels() - 1));
}

double PlacementProblem::RewardOf(int64_t latency_ps, double moved) const {
  if (game_ == nullptr && moved > 0) return -moved;
  const double speedup =
      static_cast<double>(baseline_ps_) / static_cast<double>(std::max<int64_t>(1, latency_ps));
  return speedup * speedup;
}

PlacementOutcome PlacementProblem::EvaluateOne(absl::Span<const uint8_t> map,
                                               Scratch* scratch) const {
  scratch->map.assign(map.begin(), map.end());
  int64_t latency = 0, moved = 0;
  if (game_ == nullptr) {
    moved = model_->Rectify(absl::MakeSpan(scratch->map), &scratch->occupancy);
    latency = model_->LatencyPs(scratch->map);
  } else {
    latency = PlayInto(absl::MakeSpan(scratch->map), scratch, nullptr);
    for (size_t i = 0; i < map.size(); ++i) {
      if (scratch->map[i] != map[i]) moved += graph_.nodes[i / 2].tensors[i % 2].size_bytes;
    }
  }
  const double share = static_cast<double>(moved) / static_cast<double>(total_bytes_);
  return {latency, share, RewardOf(latency, share)};
}

absl::StatusOr<PlacementOutcome> PlacementProblem::Evaluate(absl::Span<const uint8_t> map) const {
  MG_RETURN_IF_ERROR(Check(map, 1));
  Scratch scratch;
  return EvaluateOne(map, &scratch);
}

absl::Status PlacementProblem::EvaluateMany(absl::Span<const uint8_t> maps,
                                            absl::Span<PlacementOutcome> outcomes,
                                            int threads) const {
  MG_RETURN_IF_ERROR(Check(maps, outcomes.size()));
  if (threads < 1 || threads > kMaxThreads) {
    return absl::InvalidArgumentError(
        absl::StrCat("threads: found ", threads, ", allowed: 1 to ", kMaxThreads));
  }
  constexpr int kMapsAtOnce = 64;  // fewer maps are not worth a thread
  const int count = static_cast<int>(outcomes.size());
  WorkerPool pool(std::min(threads, (count + kMapsAtOnce - 1) / kMapsAtOnce));
  pool.Run(count, kMapsAtOnce, [&](int begin, int end) {
    Scratch scratch;
    for (int i = begin; i < end; ++i) {
      const size_t at = i;
      outcomes[at] = EvaluateOne(maps.subspan(at * map_size(), map_size()), &scratch);
    }
  });
  return absl::OkStatus();
}

PlacementOutcome PlacementProblem::Measured(PlacementOutcome outcome, double noise,
                                            Rng& rng) const {
  if (noise == 0) return outcome;
  outcome.latency_ps =
      std::llround(static_cast<double>(outcome.latency_ps) * (1 + noise * Noise(rng)));
  outcome.reward = RewardOf(outcome.latency_ps, outcome.moved);
  return outcome;
}

absl::StatusOr<PlacementMap> PlacementProblem::Rectify(absl::Span<const uint8_t> map) const {
  MG_RETURN_IF_ERROR(Check(map, 1));
  Scratch scratch;
  EvaluateOne(map, &scratch);
  return scratch.map;
}

absl::StatusOr<std::vector<uint8_t>> PlacementProblem::Play(absl::Span<const uint8_t> map) const {
  if (game_ == nullptr)
    return absl::FailedPreconditionError(
        "play: found a memory hierarchy, allowed: a placement on a Game");
  MG_RETURN_IF_ERROR(Check(map, 1));
  PlacementMap played(map.begin(), map.end());
  std::vector<uint8_t> actions;
  Scratch scratch;
  PlayInto(absl::MakeSpan(played), &scratch, &actions);
  return actions;
}

absl::StatusOr<PlacementCosts> PlacementProblem::Costs() const {
  if (model_ == nullptr)
    return absl::FailedPreconditionError(
        "costs: found a placement on a Game, allowed: a memory hierarchy");
  return model_->Costs();
}

int64_t PlacementProblem::PlayInto(absl::Span<uint8_t> map, Scratch* scratch,
                                   std::vector<uint8_t>* actions) const {
  if (scratch->position == nullptr) scratch->position = game_->NewInitialPosition();
  Position& position = *scratch->position;
  while (position.num_decisions() > 0) position.Undo();
  if (scratch->intent.empty()) scratch->intent = game_->OpenIntent();
  on_game_->Write(map, scratch->intent);
  position.PlayOn(scratch->intent);
  for (int i = 0; i < position.num_decisions(); ++i)
    on_game_->Decided(position.DecidedSegment(i), position.DecidedMode(i), map);
  if (actions != nullptr) actions->assign(position.actions().begin(), position.actions().end());
  return position.latency_ps();
}

}  // namespace mallocgame
