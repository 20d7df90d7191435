#include "agents/training/torch_state.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "agents/training/bytes.h"
#include "mallocgame/base/error.h"

namespace mallocgame::training {
namespace {

absl::Status OtherNetworks(absl::string_view agent, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(agent, ": the saved networks are of other settings: ", what));
}

void WriteTensor(const torch::Tensor& tensor, std::string& out) {
  const torch::Tensor data = tensor.detach().to(torch::kCPU).contiguous();
  WriteBytes(
      absl::string_view(reinterpret_cast<const char*>(data.data_ptr<float>()), data.nbytes()), out);
}

// Reads into a tensor that has the right shape.
absl::Status ReadTensor(absl::string_view agent, absl::string_view& in, absl::string_view name,
                        torch::Tensor& tensor) {
  std::vector<float> data;
  MG_RETURN_IF_ERROR(ReadBytes(in, data));
  if (data.size() != static_cast<size_t>(tensor.numel())) {
    return OtherNetworks(
        agent, absl::StrCat(name, ": found ", data.size(), " numbers, expected ", tensor.numel()));
  }
  tensor.copy_(torch::from_blob(data.data(), tensor.sizes(), torch::kFloat32));
  return absl::OkStatus();
}

void WriteParameter(const std::string& name, const torch::Tensor& parameter, std::string& out) {
  WriteBytes(name, out);
  WriteTensor(parameter, out);
}

absl::Status ReadParameter(absl::string_view agent, absl::string_view& in, const std::string& name,
                           torch::Tensor& parameter) {
  absl::string_view found;
  MG_RETURN_IF_ERROR(ReadBytes(in, found));
  if (found != name)
    return OtherNetworks(agent, absl::StrCat("found ", found, ", expected ", name));
  return ReadTensor(agent, in, name, parameter);
}

absl::Status ReadTrained(absl::string_view agent, absl::string_view& in, const std::string& name,
                         torch::Tensor& parameter, torch::optim::AdamW& optimizer) {
  const torch::NoGradGuard no_gradient;
  MG_RETURN_IF_ERROR(ReadParameter(agent, in, name, parameter));
  uint8_t has_moments = 0;
  MG_RETURN_IF_ERROR(ReadBytes(in, has_moments));
  if (has_moments == 0) return absl::OkStatus();
  int64_t step = 0;
  torch::Tensor mean = torch::zeros_like(parameter), square = torch::zeros_like(parameter);
  MG_RETURN_IF_ERROR(ReadBytes(in, step));
  MG_RETURN_IF_ERROR(ReadTensor(agent, in, name, mean));
  MG_RETURN_IF_ERROR(ReadTensor(agent, in, name, square));
  auto state = std::make_unique<torch::optim::AdamWParamState>();
  state->step(step);
  state->exp_avg(mean);
  state->exp_avg_sq(square);
  optimizer.state()[parameter.unsafeGetTensorImpl()] = std::move(state);
  return absl::OkStatus();
}

}  // namespace

void WriteModule(const torch::nn::Module& module, torch::optim::AdamW& optimizer,
                 std::string& out) {
  for (const auto& item : module.named_parameters()) {
    WriteParameter(item.key(), item.value(), out);
    const auto state = optimizer.state().find(item.value().unsafeGetTensorImpl());
    WriteBytes(static_cast<uint8_t>(state != optimizer.state().end()), out);
    if (state == optimizer.state().end()) continue;
    const auto& moments = static_cast<const torch::optim::AdamWParamState&>(*state->second);
    WriteBytes(moments.step(), out);
    WriteTensor(moments.exp_avg(), out);
    WriteTensor(moments.exp_avg_sq(), out);
  }
}

absl::Status ReadModule(absl::string_view agent, absl::string_view& in, torch::nn::Module& module,
                        torch::optim::AdamW& optimizer) {
  for (auto& item : module.named_parameters()) {
    MG_RETURN_IF_ERROR(ReadTrained(agent, in, item.key(), item.value(), optimizer));
  }
  return absl::OkStatus();
}

void WriteWeights(const torch::nn::Module& module, std::string& out) {
  for (const auto& item : module.named_parameters()) WriteParameter(item.key(), item.value(), out);
}

absl::Status ReadWeights(absl::string_view agent, absl::string_view& in,
                         torch::nn::Module& module) {
  const torch::NoGradGuard no_gradient;
  for (auto& item : module.named_parameters())
    MG_RETURN_IF_ERROR(ReadParameter(agent, in, item.key(), item.value()));
  return absl::OkStatus();
}

}  // namespace mallocgame::training
