#include "agents/muzero/torch_network.h"

#include <utility>

#include "agents/training/torch_status.h"
#include "mallocgame/base/error.h"

namespace mallocgame::muzero {
namespace {

using training::CatchTorch;

class TorchNetwork final : public Network {
 public:
  TorchNetwork(Networks networks, const ObservationShape& shape, const Config& config)
      : networks_(std::move(networks)), shape_(shape), width_(config.width),
        learned_(config.paper()), device_(DeviceOf(config)) {}

  int num_actions() const override { return static_cast<int>(shape_.num_actions); }
  int observation_size() const override { return static_cast<int>(shape_.size); }

  absl::Status Predict(absl::Span<const float> observations, absl::Span<float> logits,
                       absl::Span<float> values) override {
    return CatchTorch("muzero: evaluating positions", [&] {
      const c10::InferenceMode inference;
      const torch::Tensor seen = OnDevice(observations, values.size());
      return Write(networks_->Represent(seen), seen, logits, values);
    });
  }

  absl::Status Reserve(int slots) override {
    return CatchTorch("muzero: reserving hidden states", [&] {
      MG_RETURN_IF_ERROR(CheckLearned());
      const c10::InferenceMode inference;
      if (hidden_.defined() && hidden_.size(0) >= slots) return absl::OkStatus();
      const torch::Tensor before = hidden_;
      hidden_ = torch::zeros({slots, width_}, Options());
      if (before.defined()) hidden_.narrow(0, 0, before.size(0)).copy_(before);
      return absl::OkStatus();
    });
  }

  absl::Status Start(absl::Span<const float> observations, absl::Span<const int32_t> slots,
                     absl::Span<float> logits, absl::Span<float> values) override {
    return CatchTorch("muzero: evaluating roots", [&] {
      MG_RETURN_IF_ERROR(CheckLearned());
      const c10::InferenceMode inference;
      const torch::Tensor seen = OnDevice(observations, values.size());
      const torch::Tensor hidden = networks_->Represent(seen);
      hidden_.index_copy_(0, Indices(slots), hidden);
      return Write(hidden, seen, logits, values);
    });
  }

  absl::Status Step(absl::Span<const int32_t> parents, absl::Span<const int32_t> actions,
                    absl::Span<const int32_t> slots, absl::Span<float> logits,
                    absl::Span<float> values, absl::Span<float> rewards) override {
    return CatchTorch("muzero: evaluating steps", [&] {
      MG_RETURN_IF_ERROR(CheckLearned());
      const c10::InferenceMode inference;
      const auto [hidden, reward] =
          networks_->Step(hidden_.index_select(0, Indices(parents)), Indices(actions));
      hidden_.index_copy_(0, Indices(slots), hidden);
      Copy(MeanOfBins(reward), rewards);
      return Write(hidden, {}, logits, values);
    });
  }

 private:
  torch::TensorOptions Options() const {
    return torch::TensorOptions().dtype(torch::kFloat32).device(device_);
  }

  absl::Status CheckLearned() const {
    if (learned_) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "muzero: this agent searches the true game (preset=strong), it has no dynamics");
  }

  torch::Tensor OnDevice(absl::Span<const float> observations, size_t rows) const {
    return torch::from_blob(const_cast<float*>(observations.data()),
                            {static_cast<int64_t>(rows), shape_.size})
        .to(Options());
  }

  torch::Tensor Indices(absl::Span<const int32_t> indices) const {
    return torch::from_blob(const_cast<int32_t*>(indices.data()),
                            {static_cast<int64_t>(indices.size())}, torch::kInt32)
        .to(torch::TensorOptions().dtype(torch::kInt64).device(device_));
  }

  static void Copy(const torch::Tensor& from, absl::Span<float> to) {
    torch::from_blob(to.data(), from.sizes(), torch::kFloat32).copy_(from);
  }

  absl::Status Write(const torch::Tensor& hidden, const torch::Tensor& seen,
                     absl::Span<float> logits, absl::Span<float> values) {
    const auto [policy, value] = networks_->Predict(hidden, seen);
    Copy(policy, logits);
    Copy(MeanOfBins(value), values);
    return absl::OkStatus();
  }

  Networks networks_;
  ObservationShape shape_;
  int64_t width_;
  bool learned_;
  torch::Device device_;
  torch::Tensor hidden_;  // [slots, width]
};

}  // namespace

std::unique_ptr<Network> CopyForInference(const Networks& networks, const ObservationShape& shape,
                                          const Config& config) {
  const torch::NoGradGuard no_gradient;
  Networks copy(shape, config);
  const auto from = networks->named_parameters();
  for (auto& item : copy->named_parameters()) item.value().copy_(from[item.key()]);
  copy->eval();
  copy->to(DeviceOf(config));
  return std::make_unique<TorchNetwork>(std::move(copy), shape, config);
}

}  // namespace mallocgame::muzero
