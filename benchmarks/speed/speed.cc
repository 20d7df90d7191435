// Measures how fast the environment is on one core: importing, steps with the next mask of legal
// actions, undo, clone, greedy, and the two judges. benchmarks/speed/README.md says how to run it.
#include <bit>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "benchmark/benchmark.h"
#include "mallocgame/base/error.h"
#include "mallocgame/base/rng.h"
#include "mallocgame/game/state.h"
#include "mallocgame/hlo/hlo.pb.h"
#include "mallocgame/hlo/import.h"
#include "mallocgame/plan/validate.h"
#include "mallocgame/replay/files.h"
#include "mallocgame/simulator/simulate.h"
#include "mallocgame/solvers/registry.h"

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
      absl::StrCat(MALLOCGAME_SOURCE_DIR "/benchmarks/programs/hlo/v4lite/", name, "/");
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

std::shared_ptr<const Game> MakeGame(const std::string& name) {
  const Hardware hardware = *HardwarePreset("tpu_v4i");
  const Source source = ReadSource(name);
  const auto imported = ImportHlo(source.Input(), hardware);
  MG_CHECK(imported.ok());
  return *Game::Create(imported->program, hardware);
}

Action RandomAction(const State& state, Rng& rng) {
  uint32_t mask = state.legal_mask();
  for (uint32_t skip = rng.Below(std::popcount(mask)); skip > 0; --skip) mask &= mask - 1;
  return static_cast<Action>(std::countr_zero(mask));
}

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
void Step(benchmark::State& loop, const std::string& name) {
  const auto game = MakeGame(name);
  const State start = game->InitialState();
  State state = start;
  Rng rng(0);
  for (auto _ : loop) {
    if (state.IsTerminal()) state = start;
    benchmark::DoNotOptimize(state.Apply(RandomAction(state, rng)));
  }
  loop.SetItemsProcessed(loop.iterations());
  loop.counters["decisions"] = game->max_decisions();
}

void StepAndUndo(benchmark::State& loop, const std::string& name) {
  const auto game = MakeGame(name);
  State state = game->InitialState();
  Rng rng(0);
  for (auto _ : loop) {
    if (state.IsTerminal()) {
      while (state.num_decisions() > 0) state.Undo();
    }
    benchmark::DoNotOptimize(state.Apply(RandomAction(state, rng)));
  }
  loop.SetItemsProcessed(loop.iterations());
}

void Clone(benchmark::State& loop, const std::string& name) {
  const auto game = MakeGame(name);
  State state = game->InitialState();
  Rng rng(0);
  for (int i = 0; i < 20 && !state.IsTerminal(); ++i)
    MG_CHECK(state.Apply(RandomAction(state, rng)).ok());
  for (auto _ : loop) {
    State clone = state;
    benchmark::DoNotOptimize(clone);
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

void RegisterAll() {
  const auto unit = benchmark::kMicrosecond;
  for (const char* name : {"wavernn_64steps_b8", "resnet50_b1", "llama_1b_decode_8l_b4_kv1024",
                           "alphatensor_b4", "resnet50_train_b8"}) {
    benchmark::RegisterBenchmark(absl::StrCat("step/", name).c_str(), Step, name);
    benchmark::RegisterBenchmark(absl::StrCat("step_and_undo/", name).c_str(), StepAndUndo, name);
    benchmark::RegisterBenchmark(absl::StrCat("clone/", name).c_str(), Clone, name);
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
