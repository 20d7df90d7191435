#include "agents/egrl/edge_attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mallocgame::egrl {
namespace {

constexpr float kSlope = 0.2F;  // slope of LeakyReLU below 0

float Leaky(float x) { return x > 0 ? x : kSlope * x; }

// The attention [links, heads] of each node to those it is linked to. It sums to 1 for each node.
torch::Tensor Attend(const torch::Tensor& scores, const torch::Tensor& first,
                     const torch::Tensor& from) {
  const int64_t nodes = scores.size(0), heads = scores.size(2);
  auto attention = torch::empty({from.size(0), heads}, scores.options());
  const float* const s = scores.data_ptr<float>();
  const int64_t* const begin = first.data_ptr<int64_t>();
  const int64_t* const source = from.data_ptr<int64_t>();
  float* const a = attention.data_ptr<float>();
  for (int64_t n = 0; n < nodes; ++n) {
    for (int64_t h = 0; h < heads; ++h) {
      const float own = s[(2 * n + 1) * heads + h];
      float most = -std::numeric_limits<float>::infinity(), sum = 0;
      for (int64_t l = begin[n]; l < begin[n + 1]; ++l) {
        a[l * heads + h] = Leaky(s[2 * source[l] * heads + h] + own);
        most = std::max(most, a[l * heads + h]);
      }
      for (int64_t l = begin[n]; l < begin[n + 1]; ++l)
        sum += a[l * heads + h] = std::exp(a[l * heads + h] - most);
      for (int64_t l = begin[n]; l < begin[n + 1]; ++l) a[l * heads + h] /= sum;
    }
  }
  return attention;
}

class EdgeAttentionFunction : public torch::autograd::Function<EdgeAttentionFunction> {
 public:
  static torch::Tensor forward(torch::autograd::AutogradContext* context,
                               const torch::Tensor& values_in, const torch::Tensor& scores_in,
                               const torch::Tensor& first, const torch::Tensor& from) {
    const auto values = values_in.contiguous(), scores = scores_in.contiguous();
    const auto attention = Attend(scores, first, from);
    context->save_for_backward({values, scores, first, from, attention});
    const int64_t nodes = values.size(0), heads = values.size(1), width = values.size(2);
    auto result = torch::zeros_like(values);
    const float* const v = values.data_ptr<float>();
    const float* const a = attention.data_ptr<float>();
    const int64_t* const begin = first.data_ptr<int64_t>();
    const int64_t* const source = from.data_ptr<int64_t>();
    float* const r = result.data_ptr<float>();
    for (int64_t n = 0; n < nodes; ++n) {
      for (int64_t l = begin[n]; l < begin[n + 1]; ++l) {
        for (int64_t h = 0; h < heads; ++h) {
          const float share = a[l * heads + h];
          const float* const taken = v + (source[l] * heads + h) * width;
          float* const out = r + (n * heads + h) * width;
          for (int64_t i = 0; i < width; ++i) out[i] += share * taken[i];
        }
      }
    }
    return result;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto gradient = gradients[0].contiguous();
    const int64_t nodes = gradient.size(0), heads = gradient.size(1), width = gradient.size(2);
    auto of_values = torch::zeros_like(saved[0]), of_scores = torch::zeros_like(saved[1]);
    auto of_attention = torch::empty_like(saved[4]);
    const float* const g = gradient.data_ptr<float>();
    const float* const v = saved[0].data_ptr<float>();
    const float* const s = saved[1].data_ptr<float>();
    const int64_t* const begin = saved[2].data_ptr<int64_t>();
    const int64_t* const source = saved[3].data_ptr<int64_t>();
    const float* const a = saved[4].data_ptr<float>();
    float* const gv = of_values.data_ptr<float>();
    float* const gs = of_scores.data_ptr<float>();
    float* const ga = of_attention.data_ptr<float>();
    for (int64_t n = 0; n < nodes; ++n) {
      for (int64_t l = begin[n]; l < begin[n + 1]; ++l) {
        for (int64_t h = 0; h < heads; ++h) {
          const float share = a[l * heads + h];
          const float* const out = g + (n * heads + h) * width;
          const float* const taken = v + (source[l] * heads + h) * width;
          float* const to = gv + (source[l] * heads + h) * width;
          float dot = 0;
          for (int64_t i = 0; i < width; ++i) {
            dot += out[i] * taken[i];
            to[i] += share * out[i];
          }
          ga[l * heads + h] = dot;
        }
      }
      for (int64_t h = 0; h < heads; ++h) {
        float mean = 0;
        for (int64_t l = begin[n]; l < begin[n + 1]; ++l)
          mean += a[l * heads + h] * ga[l * heads + h];
        for (int64_t l = begin[n]; l < begin[n + 1]; ++l) {
          const int64_t there = 2 * source[l] * heads + h, here = (2 * n + 1) * heads + h;
          const float slope = s[there] + s[here] > 0 ? 1 : kSlope;
          const float change = slope * a[l * heads + h] * (ga[l * heads + h] - mean);
          gs[there] += change;
          gs[here] += change;
        }
      }
    }
    return {of_values, of_scores, torch::Tensor(), torch::Tensor()};
  }
};

}  // namespace

LinkTensors::LinkTensors(const Links& links)
    : first(torch::tensor(links.first, torch::kInt64)),
      from(torch::tensor(links.from, torch::kInt64)) {}

torch::Tensor EdgeAttention(const torch::Tensor& values, const torch::Tensor& scores,
                            const LinkTensors& links) {
  return EdgeAttentionFunction::apply(values, scores, links.first, links.from);
}

}  // namespace mallocgame::egrl
