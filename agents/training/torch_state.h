// A module and its optimizer as bytes and back: for each parameter its name, its values, and the
// optimizer's moments and number of steps. Torch's own archive is of no use here, because its bytes
// differ from run to run.
#pragma once

#include <torch/torch.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace mallocgame::training {

void WriteModule(const torch::nn::Module& module, torch::optim::AdamW& optimizer, std::string& out);

// Takes what WriteModule wrote from the front of `in`, into a new module of the same shapes and its
// new optimizer. After an error both are of no use. InvalidArgument: the bytes are damaged, or of
// other shapes or names; the message begins with `agent`.
absl::Status ReadModule(absl::string_view agent, absl::string_view& in, torch::nn::Module& module,
                        torch::optim::AdamW& optimizer);

// The weights of a module alone, as bytes and back, with the same errors.
void WriteWeights(const torch::nn::Module& module, std::string& out);
absl::Status ReadWeights(absl::string_view agent, absl::string_view& in, torch::nn::Module& module);

}  // namespace mallocgame::training
