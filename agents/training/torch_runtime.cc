#include "agents/training/torch_runtime.h"

#include <ATen/Parallel.h>
#include <torch/cuda.h>

namespace mallocgame::training {

void UseOneTorchThread() { at::set_num_threads(1); }
bool HasCuda() { return torch::cuda::is_available(); }

}  // namespace mallocgame::training
