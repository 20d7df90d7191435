// Attention along the links of a graph as one Torch operation: what a dozen small ones would do in
// ten times the time.
#ifndef AGENTS_EGRL_EDGE_ATTENTION_H_
#define AGENTS_EGRL_EDGE_ATTENTION_H_

#include <torch/torch.h>

#include "agents/egrl/problem_graph.h"

namespace mallocgame::egrl {

// Links as int64 tensors.
struct LinkTensors {
  explicit LinkTensors(const Links& links);
  torch::Tensor first, from;
};

// values [nodes, heads, width], scores [nodes, 2, heads] -> [nodes, heads, width]. With graph
// attention's additive score (Velickovic et al., ICLR 2018) node n attends to node m, of those it
// is linked to, in proportion to exp(LeakyReLU(scores[m, 0] + scores[n, 1])). Differentiable once,
// by values and scores; float32 on the CPU.
torch::Tensor EdgeAttention(const torch::Tensor& values, const torch::Tensor& scores,
                            const LinkTensors& links);

}  // namespace mallocgame::egrl

#endif  // AGENTS_EGRL_EDGE_ATTENTION_H_
