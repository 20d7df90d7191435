// Measures a network of three layers of 256 under the search, on one thread: simulations per CPU
// second, beside those of the same network with the same batches and without a search.
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <vector>

#include "benchmarks/speed/measure_search.h"
#include "mallocgame/game/time/time_game.h"
#include "mallocgame/tree/selection.h"

namespace mallocgame::mcts {
namespace {

constexpr int64_t kWidth = 256;
constexpr int kActions = 4;
constexpr int kSimulations = 50;

// Two matrices of 256 by 256 with a ReLU between. A hidden state and an action go in, the next
// hidden state comes out. Logits, value and reward are its first numbers, so that only the network
// is measured. Outputs go to tensors that are made beforehand.
class Mlp {
 public:
  Mlp() {
    const auto weight = [] { return torch::randn({kWidth, kWidth}) / 16; };
    first_ = weight(), second_ = weight();
    first_bias_ = torch::randn({kWidth}), second_bias_ = torch::randn({kWidth});
  }

  // Input and output are row-major [rows, 256].
  void Ask(const torch::Tensor& input, torch::Tensor& output) {
    if (!middle_.defined() || middle_.size(0) != input.size(0))
      middle_ = torch::empty({input.size(0), kWidth});
    torch::addmm_out(middle_, first_bias_, input, first_);
    middle_.relu_();
    torch::addmm_out(output, second_bias_, middle_, second_);
  }

 private:
  torch::Tensor first_, second_, first_bias_, second_bias_, middle_;
};

// The network writes each hidden state where it stays. A table knows the row of each slot.
class MlpModel final : public Model {
 public:
  int num_actions() const override { return kActions; }

  absl::Status Reserve(int slots) override {
    if (hidden_.defined() && hidden_.size(0) == slots) return absl::OkStatus();
    hidden_ = torch::empty({slots, kWidth});
    row_of_.resize(slots);
    return absl::OkStatus();
  }

  absl::Status Start(absl::Span<const RootRow> rows, const Predictions& out) override {
    used_ = 0;
    Gather(rows.size());
    for (size_t i = 0; i < rows.size(); ++i)
      std::fill_n(Input(i), kWidth, 0.01F * static_cast<float>(rows[i].root));
    return Answer(rows, out);
  }

  absl::Status Step(absl::Span<const StepRow> rows, const Predictions& out) override {
    Gather(rows.size());
    const float* hidden = hidden_.const_data_ptr<float>();
    for (size_t i = 0; i < rows.size(); ++i) {
      std::copy_n(hidden + row_of_[rows[i].parent_slot] * kWidth, kWidth, Input(i));
      Input(i)[rows[i].action] += 1;
    }
    return Answer(rows, out);
  }

 private:
  void Gather(size_t rows) {
    if (!input_.defined() || input_.size(0) != static_cast<int64_t>(rows))
      input_ = torch::empty({static_cast<int64_t>(rows), kWidth});
  }
  float* Input(size_t row) { return input_.mutable_data_ptr<float>() + row * kWidth; }

  template <class Row>
  absl::Status Answer(absl::Span<const Row> rows, const Predictions& out) {
    torch::Tensor output = hidden_.narrow(0, used_, static_cast<int64_t>(rows.size()));
    mlp_.Ask(input_, output);
    const float* answer = output.const_data_ptr<float>();
    for (size_t i = 0; i < rows.size(); ++i, answer += kWidth) {
      row_of_[rows[i].slot] = used_++;
      std::copy_n(answer, kActions, out.logits.data() + i * kActions);
      out.values[i] = answer[kActions];
      out.rewards[i] = answer[kActions + 1];
    }
    return absl::OkStatus();
  }

  Mlp mlp_;
  torch::Tensor input_, hidden_;
  std::vector<int64_t> row_of_;  // for each slot
  int64_t used_ = 0;
};

// range(0) is the number of roots, which is the batch size.
void GumbelWithMlp(benchmark::State& state) {
  const c10::InferenceMode inference;
  MlpModel model;
  SearchOptions options;
  options.simulations = kSimulations;
  MeasureSearch(state, model, *MakeGumbel({}), options, static_cast<int>(state.range(0)));
}

void MlpAlone(benchmark::State& state) {
  const c10::InferenceMode inference;
  Mlp mlp;
  const torch::Tensor input = torch::randn({state.range(0), kWidth});
  torch::Tensor output = torch::empty_like(input);
  int64_t rows = 0;
  for (auto _ : state) {
    mlp.Ask(input, output);
    benchmark::DoNotOptimize(output.const_data_ptr<float>());
    rows += state.range(0);
  }
  state.counters["simulations"] =
      benchmark::Counter(static_cast<double>(rows), benchmark::Counter::kIsRate);
}

BENCHMARK(GumbelWithMlp)->ArgName("batch")->Arg(1)->Arg(8)->Arg(32)->Arg(64)->Arg(128);
BENCHMARK(MlpAlone)->ArgName("batch")->Arg(1)->Arg(8)->Arg(32)->Arg(64)->Arg(128);

}  // namespace
}  // namespace mallocgame::mcts

int main(int argc, char** argv) {
  at::set_num_threads(1);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
