#include "agents/egrl/policy.h"

#include <utility>

#include "agents/egrl/modules.h"
#include "agents/training/torch_status.h"
#include "mallocgame/base/error.h"

namespace mallocgame::egrl {
namespace {

using training::CatchTorch;

class TorchPolicy final : public Policy {
 public:
  TorchPolicy(const Config& config, const ProblemGraph& graph)
      : config_(config), features_(graph.features), graph_(graph),
        module_(config, features_, graph_.levels) {
    size_t begin = 0;
    for (const torch::Tensor& parameter : module_->parameters()) {
      const size_t size = parameter.numel();
      blocks_.push_back({begin, size, parameter.dim() > 1});
      begin += size;
    }
  }

  const std::vector<WeightBlock>& blocks() const override { return blocks_; }

  absl::StatusOr<std::vector<float>> Initial(uint64_t seed) override {
    return CatchTorch("egrl: making a policy", [&]() -> absl::StatusOr<std::vector<float>> {
      PolicyModule fresh(config_, features_, graph_.levels);
      Initialise(*fresh, seed);
      return WeightsOf(*fresh);
    });
  }

  absl::StatusOr<std::vector<float>> Probabilities(absl::Span<const float> weights) override {
    return CatchTorch("egrl: asking a policy", [&]() -> absl::StatusOr<std::vector<float>> {
      MG_CHECK(weights.size() == num_weights());
      const torch::NoGradGuard no_gradient;
      SetWeights(weights, *module_);
      const auto p = torch::softmax(module_->forward(graph_), 1).contiguous();
      return std::vector<float>(p.data_ptr<float>(), p.data_ptr<float>() + p.numel());
    });
  }

 private:
  Config config_;
  int64_t features_;
  GraphTensors graph_;
  PolicyModule module_;
  std::vector<WeightBlock> blocks_;
};

}  // namespace

size_t Policy::NumWeights(const Config& config, const ProblemGraph& graph) {
  return NumPolicyWeights(config, graph.features, graph.levels);
}

absl::StatusOr<std::unique_ptr<Policy>> Policy::Create(const Config& config,
                                                       const ProblemGraph& graph) {
  return CatchTorch("egrl: making a policy", [&]() -> absl::StatusOr<std::unique_ptr<Policy>> {
    return std::make_unique<TorchPolicy>(config, graph);
  });
}

}  // namespace mallocgame::egrl
