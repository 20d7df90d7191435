// Measures how fast the environment is on one core: importing; steps with the next mask of legal
// actions, undo, clone and observations of both games; 64 environments stepped together; trials of
// local search; greedy, and the two judges. benchmarks/speed/README.md says how to run it.
#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/game/games.h"
#include "mallocgame/game/observation.h"
#include "mallocgame/game/position.h"
#include "mallocgame/game/priority/priority_game.h"
#include "mallocgame/game/schedule/schedule_game.h"
#include "mallocgame/game/schedule/schedule_state.h"
#include "mallocgame/hlo/import/import.h"
#include "mallocgame/hlo/module/hlo.pb.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/replay/files.h"
#include "mallocgame/search/game_search.h"
#include "mallocgame/search/game_variants.h"
#include "mallocgame/simulator/simulate.h"
#include "mallocgame/solvers/registry.h"
#include "mallocgame/vector/vector_env.h"

namespace mallocgame {
namespace {

struct Source {
  std::string module, profile;
  std::vector<std::string> priced;

  ImportInput Input() const {
    ImportInput input;
    input.module = module;
    input.profile = profile;
    input.priced.assign(priced.begin(), priced.end());
    return input;
  }
};

Source ReadSource(const std::string& name) {
  const std::string folder =
      absl::StrCat(MALLOCGAME_SOURCE_DIR "/benchmarks/programs/hlo/core/tpu_v4i/", name, "/");
  Source source;
  const auto read = [&](const char* file) {
    auto bytes = ReadFile(folder + file);
    MG_CHECK(bytes.ok());
    return *std::move(bytes);
  };
  source.module = read("pre_msa.hlo.pb.gz");
  source.profile = read("profile.json.gz");
  for (const char* file : {"codegen_default.hlo.pb.gz", "codegen_off.hlo.pb.gz"})
    source.priced.push_back(read(file));
  return source;
}

std::shared_ptr<const Game> MakeGame(const std::string& name, const std::string& kind = "time",
                                     int64_t main_bytes = 0) {
  const Hardware hardware = *HardwarePreset("tpu_v4i");
  const Source source = ReadSource(name);
  const auto imported = ImportHlo(source.Input(), hardware);
  MG_CHECK(imported.ok());
  const std::unique_ptr<GameOptions> options = *OptionsOfGame(kind);
  if (main_bytes > 0) MG_CHECK(options->Set("main_bytes", main_bytes).ok());
  return *Game::Create(imported->program, hardware, *options);
}

int RandomAction(const ActionSet& legal, Rng& rng) { return legal[rng.Below(legal.size())]; }

// What the import is compared with: libprotobuf alone parses the same bytes.
void ProtobufParse(benchmark::State& loop, const std::string& name) {
  const Source source = ReadSource(name);
  for (auto _ : loop) {
    google::protobuf::Arena arena;
    for (absl::string_view bytes : source.Input().priced) {
      auto* proto = google::protobuf::Arena::CreateMessage<hlo::HloProto>(&arena);
      MG_CHECK(proto->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    }
    auto* proto = google::protobuf::Arena::CreateMessage<hlo::HloProto>(&arena);
    MG_CHECK(proto->ParseFromArray(source.module.data(), static_cast<int>(source.module.size())));
    benchmark::DoNotOptimize(proto);
  }
}

void Import(benchmark::State& loop, const std::string& name) {
  const Source source = ReadSource(name);
  const Hardware hardware = *HardwarePreset("tpu_v4i");
  for (auto _ : loop) benchmark::DoNotOptimize(ImportHlo(source.Input(), hardware));
}

// One item is a decision together with the mask of legal actions after it.
void Step(benchmark::State& loop, const std::string& name, const std::string& kind) {
  const auto game = MakeGame(name, kind);
  const auto start = game->NewInitialPosition();
  const auto position = start->Clone();
  Rng rng(0);
  for (auto _ : loop) {
    if (position->IsTerminal()) position->CopyFrom(*start);
    benchmark::DoNotOptimize(position->Apply(RandomAction(position->legal_actions(), rng)));
  }
  loop.SetItemsProcessed(loop.iterations());
  loop.counters["decisions"] = game->max_decisions();
}

void StepAndUndo(benchmark::State& loop, const std::string& name, const std::string& kind) {
  const auto position = MakeGame(name, kind)->NewInitialPosition();
  Rng rng(0);
  for (auto _ : loop) {
    if (position->IsTerminal()) {
      while (position->num_decisions() > 0) position->Undo();
    }
    benchmark::DoNotOptimize(position->Apply(RandomAction(position->legal_actions(), rng)));
  }
  loop.SetItemsProcessed(loop.iterations());
}

// One item is a game of placement at another order of the instructions, drawn at random; main
// memory limits none.
void ChangedOrder(benchmark::State& loop, const std::string& name) {
  const auto game = std::static_pointer_cast<const ScheduleGame>(
      MakeGame(name, "schedule", std::numeric_limits<int64_t>::max()));
  const auto draw = [](ScheduleState& state, Rng& rng) {
    while (state.placement() == nullptr)
      MG_CHECK(state.Apply(RandomAction(state.legal_actions(), rng)).ok());
    return state.InstructionOrder();
  };
  std::vector<std::vector<Tick>> orders;
  for (uint64_t seed = 0; seed < 32; ++seed) {
    Rng rng(seed);
    ScheduleState state(game);
    orders.push_back(draw(state, rng));
  }
  size_t next = 0;
  for (auto _ : loop)
    benchmark::DoNotOptimize(
        PriorityState(game->schedule_tables().GameAt(orders[next++ % 32])->game));
  loop.SetItemsProcessed(loop.iterations());
}

// A position that is worth copying and looking at, with 20 decisions behind it.
std::unique_ptr<Position> AfterTwentyDecisions(const Game& game) {
  auto position = game.NewInitialPosition();
  Rng rng(0);
  for (int i = 0; i < 20 && !position->IsTerminal(); ++i)
    MG_CHECK(position->Apply(RandomAction(position->legal_actions(), rng)).ok());
  return position;
}

void Clone(benchmark::State& loop, const std::string& name, const std::string& kind) {
  const auto game = MakeGame(name, kind);
  const auto position = AfterTwentyDecisions(*game);
  for (auto _ : loop) benchmark::DoNotOptimize(position->Clone());
  loop.SetItemsProcessed(loop.iterations());
}

void Observe(benchmark::State& loop, const std::string& name, const std::string& kind,
             const ObservationOptions& options) {
  const auto game = MakeGame(name, kind);
  const auto position = AfterTwentyDecisions(*game);
  const Observer observer = *Observer::Create(game, options);
  std::vector<float> numbers(observer.size());
  for (auto _ : loop) {
    observer.Write(*position, numbers.data());
    benchmark::DoNotOptimize(numbers.data());
  }
  loop.SetItemsProcessed(loop.iterations());
}

// One item is a step of one environment: its decision, and the observation and the mask after it.
void Environments(benchmark::State& loop, const std::string& name, const std::string& kind) {
  constexpr int kCount = 64;
  const auto games = *GameList::Create({MakeGame(name, kind)}, ObservationOptions::Compact());
  const auto batch = *VectorEnv::Create(games, kCount, {});
  const int num_actions = games->num_actions();
  std::vector<float> observations(static_cast<size_t>(kCount) * games->observation_size());
  std::vector<int8_t> masks(static_cast<size_t>(kCount) * num_actions);
  std::vector<double> rewards(kCount);
  std::vector<int64_t> latency_ps(kCount), actions(kCount);
  const auto terminated = std::make_unique<bool[]>(kCount);
  StepBuffers out;
  out.observations = observations.data();
  out.masks = masks.data();
  out.rewards = rewards.data();
  out.terminated = terminated.get();
  out.latency_ps = latency_ps.data();
  MG_CHECK(batch->Reset({}, {}, out).ok());
  Rng rng(0);
  for (auto _ : loop) {
    for (size_t i = 0; i < actions.size(); ++i) {
      ActionSet legal;
      for (int a = 0; a < num_actions; ++a)
        legal.Add(a, static_cast<uint8_t>(masks[i * num_actions + a]));
      actions[i] = legal.empty() ? 0 : RandomAction(legal, rng);
    }
    MG_CHECK(batch->Step(actions, out).ok());
  }
  loop.SetItemsProcessed(loop.iterations() * kCount);
}

// A trial of local search: the decision at which it leaves the accepted game, and what it changes.
struct Trial {
  int32_t from;
  std::vector<std::pair<int32_t, Segment>> changes;
};
// Trials of the kinds that annealing makes, of the search's accepted game.
std::vector<Trial> Trials(GameSearch& search, Rng& rng) {
  for (int n = 0; n < 2000; ++n) {  // so that the accepted game is a good one
    search.Propose(rng);
    if (search.Try(search.latency_ps())) {
      search.Accept();
    } else {
      search.Reject();
    }
  }
  std::vector<Trial> trials(256);
  for (Trial& trial : trials) {
    const Intent before = search.intent();
    trial.from = search.Move(rng);
    for (size_t r = 0; r < before.size(); ++r) {
      if (search.intent()[r] != before[r])
        trial.changes.emplace_back(static_cast<int32_t>(r), search.intent()[r]);
    }
    search.Reject();
  }
  return trials;
}

// Each trial is played to its end and taken back: beside the accepted game, or, as a peer, alone.
void PlayTrials(benchmark::State& loop, const std::string& name, bool beside) {
  PriorityGameOptions options;
  options.candidates = kMaxCandidates;
  const auto game = PriorityGameWith(*MakeGame(name), options);
  GameSearch search(*game, game->OpenIntent());
  Rng rng(0);
  const std::vector<Trial> trials = Trials(search, rng);
  const auto latency_beside = [&](const Trial& trial) {
    search.GoTo(trial.from);
    for (const auto& [run, wanted] : trial.changes) search.Want(run, wanted.mode, wanted.rank);
    MG_CHECK(search.Try(std::numeric_limits<int64_t>::max()));
    search.Reject();
    return search.position().latency_ps();
  };
  PriorityState state(game);
  state.PlayOn(search.intent());
  const std::vector<uint8_t> accepted(state.actions().begin(), state.actions().end());
  int32_t agrees = state.num_decisions();
  const auto latency_alone = [&](const Trial& trial) {
    while (state.num_decisions() > std::min(agrees, trial.from)) state.Undo();
    while (state.num_decisions() < trial.from)
      MG_CHECK(state.TryApply(accepted[state.num_decisions()]));
    agrees = trial.from;
    Intent intent = search.intent();
    for (const auto& [run, wanted] : trial.changes) intent[run] = wanted;
    state.PlayOn(intent);
    return state.latency_ps();
  };
  size_t next = 0;
  for (auto _ : loop) {
    const Trial& trial = trials[next++ % trials.size()];
    benchmark::DoNotOptimize(beside ? latency_beside(trial) : latency_alone(trial));
  }
  loop.SetItemsProcessed(loop.iterations());
}

void Greedy(benchmark::State& loop, const std::string& name) {
  const auto game = MakeGame(name);
  for (auto _ : loop) benchmark::DoNotOptimize(Solve("greedy", {game, nullptr}, {}));
}

void Judge(benchmark::State& loop, const std::string& name, bool simulate) {
  const auto game = MakeGame(name);
  const Plan plan = Solve("greedy", {game, nullptr}, {})->plan;
  for (auto _ : loop) {
    if (simulate) {
      benchmark::DoNotOptimize(Simulate(game->cost_model(), plan));
    } else {
      benchmark::DoNotOptimize(Validate(game->program(), game->hardware(), plan));
    }
  }
}

template <class Measure, class... Arguments>
void Register(const std::string& what, const std::string& name, Measure measure,
              Arguments... arguments) {
  benchmark::RegisterBenchmark(absl::StrCat(what, "/", name).c_str(), measure, name, arguments...);
}

void RegisterAll() {
  const auto unit = benchmark::kMicrosecond;
  for (const char* name :
       {"wavernn_64steps_b8", "mlp_train_adam_b512", "resnet50_b1", "llama_1b_decode_8l_b4_kv1024",
        "alphatensor_b4", "resnet50_train_b8", "transformer_train_4l_b8_s256"}) {
    for (const std::string kind : {"time", "priority", "schedule"}) {
      const std::string prefix = kind == "time" ? "" : absl::StrCat(kind, "/");
      Register(prefix + "step", name, Step, kind);
      Register(prefix + "step_and_undo", name, StepAndUndo, kind);
      Register(prefix + "clone", name, Clone, kind);
      Register(prefix + "observe", name, Observe, kind, ObservationOptions());
      Register(prefix + "observe_compact", name, Observe, kind, ObservationOptions::Compact());
      Register(prefix + "64_environments", name, Environments, kind);
    }
    Register("schedule/changed_order", name, ChangedOrder);
    Register("priority/trial", name, PlayTrials, true);
    Register("priority/trial_alone", name, PlayTrials, false);
    benchmark::RegisterBenchmark(absl::StrCat("greedy/", name).c_str(), Greedy, name)->Unit(unit);
  }
  const std::string largest = "resnet50_train_b8";
  benchmark::RegisterBenchmark("protobuf_parse/resnet50_train_b8", ProtobufParse, largest)
      ->Unit(unit);
  benchmark::RegisterBenchmark("import/resnet50_train_b8", Import, largest)->Unit(unit);
  benchmark::RegisterBenchmark("validate/resnet50_train_b8", Judge, largest, false)->Unit(unit);
  benchmark::RegisterBenchmark("simulate/resnet50_train_b8", Judge, largest, true)->Unit(unit);
}

}  // namespace
}  // namespace mallocgame

int main(int argc, char** argv) {
  mallocgame::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
