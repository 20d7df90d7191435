// A module and its optimizer as bytes: training continues the same, and other shapes are refused.
#include "agents/training/torch_state.h"

#include "agents/training/torch_runtime.h"
#include "tests/catch.h"

namespace mallocgame::training {
namespace {

struct Trained {
  explicit Trained(int64_t width)
      : module(std::make_shared<torch::nn::LinearImpl>(width, 2)),
        optimizer(module->parameters(), torch::optim::AdamWOptions(0.1)) {
    UseOneTorchThread();
    const torch::NoGradGuard no_gradient;
    for (torch::Tensor& parameter : module->parameters()) parameter.fill_(0.5);
  }
  void Step() {
    optimizer.zero_grad();
    module->forward(torch::ones({1, module->options.in_features()})).pow(2).sum().backward();
    optimizer.step();
  }
  std::string Bytes() {
    std::string bytes;
    WriteModule(*module, optimizer, bytes);
    return bytes;
  }

  std::shared_ptr<torch::nn::LinearImpl> module;
  torch::optim::AdamW optimizer;
};

TEST_CASE("training continues the same from the bytes") {
  Trained one(3), other(3);
  for (int i = 0; i < 4; ++i) one.Step();
  const std::string bytes = one.Bytes() + "rest";
  absl::string_view in = bytes;
  REQUIRE(ReadModule("toy", in, *other.module, other.optimizer).ok());
  REQUIRE(in == "rest");
  for (int i = 0; i < 3; ++i) one.Step(), other.Step();
  REQUIRE((one.Bytes() == other.Bytes()));
  Trained without_moments(3);
  REQUIRE((without_moments.Bytes() != other.Bytes()));
}

TEST_CASE("an optimizer that has done no step is kept so") {
  Trained one(3), other(3);
  other.Step();
  const std::string bytes = one.Bytes();
  Trained fresh(3);
  absl::string_view in = bytes;
  REQUIRE(ReadModule("toy", in, *fresh.module, fresh.optimizer).ok());
  REQUIRE((fresh.Bytes() == bytes));
  REQUIRE((fresh.Bytes() != other.Bytes()));
}

TEST_CASE("other shapes and bytes that end early are refused") {
  Trained one(3), wider(4);
  one.Step();
  const std::string bytes = one.Bytes();
  absl::string_view in = bytes;
  const absl::Status status = ReadModule("toy", in, *wider.module, wider.optimizer);
  REQUIRE(status.message() ==
          "toy: the saved networks are of other settings: weight: found 6 numbers, expected 8");
  for (size_t size : {size_t{0}, size_t{9}, bytes.size() / 2, bytes.size() - 1}) {
    in = absl::string_view(bytes).substr(0, size);
    REQUIRE(absl::IsInvalidArgument(ReadModule("toy", in, *one.module, one.optimizer)));
  }
}

}  // namespace
}  // namespace mallocgame::training
