#include "agents/training/torch_runtime.h"

#include <ATen/Parallel.h>
#include <torch/cuda.h>
#include <torch/version.h>

namespace mallocgame::training {

void UseOneTorchThread() { at::set_num_threads(1); }
bool HasCuda() { return torch::cuda::is_available(); }
const char* TorchVersion() { return TORCH_VERSION; }

}  // namespace mallocgame::training
