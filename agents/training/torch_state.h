// A module and its optimizer as bytes and back. By parameter: name, values, and the optimizer's
// moments and number of steps. Not Torch's own archive, whose bytes differ from run to run.
#ifndef AGENTS_TRAINING_TORCH_STATE_H_
#define AGENTS_TRAINING_TORCH_STATE_H_

#include <torch/torch.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mallocgame::training {

void WriteModule(const torch::nn::Module& module, torch::optim::AdamW& optimizer, std::string& out);

// Takes what WriteModule wrote from the begin of `in`, into a new module of the same shapes and its
// new optimizer, which are of no use after an error. InvalidArgument: damaged, or of other shapes
// or names; begins with `agent`.
absl::Status ReadModule(absl::string_view agent, absl::string_view& in, torch::nn::Module& module,
                        torch::optim::AdamW& optimizer);

}  // namespace mallocgame::training

#endif  // AGENTS_TRAINING_TORCH_STATE_H_
