#include "mallocgame/solvers/learned/run_network.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace mallocgame {
namespace {

// `out` = weights^T * in. Weights of one input lie side by side, so that the inner loop is a
// vector's.
template <int kOut>
void Multiply(const float* weights, const float* in, int inputs, float* out) {
  for (int i = 0; i < inputs; ++i) {
    const float x = in[i];
    const float* w = weights + static_cast<ptrdiff_t>(i) * kOut;
    for (int o = 0; o < kOut; ++o) out[o] += w[o] * x;
  }
}

void Rectify(float* x, int count) {
  for (int i = 0; i < count; ++i) x[i] = std::max(x[i], 0.01f * x[i]);
}

float Sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

// What runs want over time: added as steps, then summed up.
class Pressure {
 public:
  void Add(float begin, float end, float height) {
    AddStep(begin, height);
    AddStep(end, -height);
  }
  // The function is done: from now on it is read.
  void Finish() {
    double level = 0;
    for (int p = 0; p < RunGraph::kPieces; ++p) {
      // The mean over the piece of a function that changes inside.
      const double mean = level + part_[p];
      level += step_[p];
      load_before_[p + 1] = load_before_[p] + mean;
      excess_before_[p + 1] = excess_before_[p] + std::max(0.0, mean - 1);
    }
  }
  float Mean(float begin, float end) const { return MeanOfPieces(load_before_.data(), begin, end); }
  float Excess(float begin, float end) const {
    return MeanOfPieces(excess_before_.data(), begin, end);
  }

 private:
  void AddStep(float at, float height) {
    const int p = static_cast<int>(at);
    if (p >= RunGraph::kPieces) return;
    step_[p] += height;
    part_[p] += static_cast<double>(height) * (static_cast<double>(p + 1) - at);
  }
  std::array<double, RunGraph::kPieces> step_ = {}, part_ = {};
  std::array<double, RunGraph::kPieces + 1> load_before_ = {}, excess_before_ = {};
};

}  // namespace

std::vector<RunAdvice> Advise(const RunGraph& graph, absl::Span<const float> weights) {
  using N = RunNetwork;
  const int32_t runs = graph.num_runs();
  const float* const w1 = weights.data();
  const float* const w2 = w1 + RunGraph::kFeatures * N::kHidden;
  const float* const w3 = w2 + (N::kHidden + 1) * N::kFirst;
  const float* const w4 = w3 + N::kSecondInputs * N::kHidden;

  std::vector<float> state(static_cast<size_t>(runs) * N::kState);
  std::array<Pressure, N::kSpaceWants> space;
  std::array<Pressure, N::kChannelWants> channel;
  for (int32_t r = 0; r < runs; ++r) {
    std::array<float, N::kHidden + 1> hidden = {};
    Multiply<N::kHidden>(w1, &graph.features[r * RunGraph::kFeatures], RunGraph::kFeatures,
                         hidden.data());
    Rectify(hidden.data(), N::kHidden);
    hidden[N::kHidden] = 1;
    std::array<float, N::kFirst> out = {};
    Multiply<N::kFirst>(w2, hidden.data(), N::kHidden + 1, out.data());
    for (int i = 0; i < N::kState; ++i) state[r * N::kState + i] = std::tanh(out[i]);
    const float* wants = out.data() + N::kState;
    for (int i = 0; i < N::kSpaceWants; ++i)
      space[i].Add(graph.begin[r], graph.end[r], Sigmoid(wants[i]) * graph.bytes[r]);
    wants += N::kSpaceWants;
    if (graph.copy[r] <= 0) continue;
    for (int i = 0; i < N::kChannelWants; ++i) {
      channel[i].Add(graph.fetch_begin[r], graph.need[r],
                     Sigmoid(wants[i]) * graph.copy[r] * RunGraph::kPieces /
                         (graph.need[r] - graph.fetch_begin[r]));
    }
  }
  for (Pressure& one : space) one.Finish();
  for (Pressure& one : channel) one.Finish();

  std::vector<RunAdvice> advice(runs);
  for (int32_t r = 0; r < runs; ++r) {
    std::array<float, N::kSecondInputs> in;
    float* x =
        std::copy_n(&graph.features[r * RunGraph::kFeatures], RunGraph::kFeatures, in.data());
    x = std::copy_n(&state[r * N::kState], N::kState, x);
    for (const Pressure& one : space) {
      *x++ = std::min(4.0f, one.Mean(graph.begin[r], graph.end[r]));
      *x++ = std::min(4.0f, one.Excess(graph.begin[r], graph.end[r]));
    }
    for (const Pressure& one : channel)
      *x++ = std::min(4.0f, one.Mean(graph.fetch_begin[r], graph.need[r]));
    std::array<float, N::kHidden + 1> hidden = {};
    Multiply<N::kHidden>(w3, in.data(), N::kSecondInputs, hidden.data());
    Rectify(hidden.data(), N::kHidden);
    hidden[N::kHidden] = 1;
    std::array<float, N::kOutputs> out = {};
    Multiply<N::kOutputs>(w4, hidden.data(), N::kHidden + 1, out.data());
    advice[r] = {graph.log_importance[r] + out[0],         out[1], out[2], out[3], out[4],
                 std::exp(std::clamp(out[5], -3.0f, 3.0f))};
  }
  return advice;
}

}  // namespace mallocgame
