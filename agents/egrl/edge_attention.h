// Attention along the links of a graph as one Torch operation. A dozen small operations would need
// ten times as long.
#pragma once

#include <torch/torch.h>

#include "agents/egrl/problem_graph.h"

namespace mallocgame::egrl {

// The arrays of Links as int64 tensors.
struct LinkTensors {
  explicit LinkTensors(const Links& links);
  torch::Tensor first, from;
};

// values [nodes, heads, width], scores [nodes, 2, heads] -> [nodes, heads, width]. The score is the
// additive one of graph attention (Velickovic et al., ICLR 2018): among the nodes that node n is
// linked to, it attends to node m in proportion to exp(LeakyReLU(scores[m, 0] + scores[n, 1])). The
// tensors are float32 on the CPU. The result can be differentiated once, by values and scores.
torch::Tensor EdgeAttention(const torch::Tensor& values, const torch::Tensor& scores,
                            const LinkTensors& links);

}  // namespace mallocgame::egrl
