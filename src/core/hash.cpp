// Hashes of the problems that plans are made for: equal values have equal hashes.
#include "thresher/append.hpp"
#include "thresher/attention.hpp"
#include "thresher/gated_mlp.hpp"
#include "thresher/gemm.hpp"
#include "thresher/grouped_gemm.hpp"
#include "thresher/moe_layer.hpp"
#include "thresher/quantize.hpp"

namespace thresher {
namespace {

/// The hash of a sequence of values; their order counts.
class Hash {
 public:
  template <class Value>
  Hash& add(const Value& value) noexcept {
    constexpr std::size_t golden = 0x9E3779B97F4A7C15ULL;
    sum_ ^= std::hash<Value>()(value) + golden + (sum_ << 6) + (sum_ >> 2);
    return *this;
  }
  Hash& add(const Activation& activation) noexcept {
    return add(activation.kind).add(activation.alpha).add(activation.limit).add(activation.up_offset);
  }
  Hash& add(const std::optional<Activation>& activation) noexcept {
    return activation ? add(true).add(*activation) : add(false);
  }
  Hash& add(const Knobs& knobs) noexcept {
    for (const auto& [name, value] : knobs) {
      add(name).add(value);
    }
    return *this;
  }
  [[nodiscard]] std::size_t sum() const noexcept { return sum_; }

 private:
  std::size_t sum_ = 0;
};

}  // namespace
}  // namespace thresher

std::size_t std::hash<thresher::DualGemmProblem>::operator()(const thresher::DualGemmProblem& p) const noexcept {
  return thresher::Hash().add(p.m).add(p.n).add(p.k).add(p.a).add(p.b).add(p.out).add(p.activation).sum();
}

std::size_t std::hash<thresher::DualGemmOptions>::operator()(const thresher::DualGemmOptions& o) const noexcept {
  return thresher::Hash().add(o.strategy).add(o.knobs).add(o.threads).add(o.deterministic).sum();
}

std::size_t std::hash<thresher::AppendProblem>::operator()(const thresher::AppendProblem& p) const noexcept {
  return thresher::Hash()
      .add(p.tokens)
      .add(p.heads)
      .add(p.kv_heads)
      .add(p.head_dim)
      .add(p.value_dim)
      .add(p.format)
      .add(p.kv_format)
      .add(p.pairs)
      .add(p.rotary_dim)
      .add(p.theta)
      .add(p.max_position)
      .add(p.page_size)
      .add(p.pages)
      .sum();
}

std::size_t std::hash<thresher::AppendOptions>::operator()(const thresher::AppendOptions& o) const noexcept {
  return thresher::Hash().add(o.threads).sum();
}

std::size_t std::hash<thresher::QuantizeProblem>::operator()(const thresher::QuantizeProblem& p) const noexcept {
  return thresher::Hash().add(p.rows).add(p.columns).add(p.x).add(p.out).sum();
}

std::size_t std::hash<thresher::QuantizeOptions>::operator()(const thresher::QuantizeOptions& o) const noexcept {
  return thresher::Hash().add(o.threads).sum();
}

std::size_t std::hash<thresher::AttentionProblem>::operator()(const thresher::AttentionProblem& p) const noexcept {
  return thresher::Hash()
      .add(p.batch)
      .add(p.heads)
      .add(p.kv_heads)
      .add(p.queries)
      .add(p.keys)
      .add(p.head_dim)
      .add(p.value_dim)
      .add(p.format)
      .add(p.kv_format)
      .add(p.q_format)
      .add(p.causal)
      .add(p.scale)
      .add(p.window_left)
      .add(p.window_right)
      .add(p.softcap)
      .add(p.variable_length)
      .add(p.page_size)
      .add(p.pages)
      .add(p.sinks)
      .sum();
}

std::size_t std::hash<thresher::AttentionOptions>::operator()(const thresher::AttentionOptions& o) const noexcept {
  return thresher::Hash()
      .add(o.strategy)
      .add(o.knobs)
      .add(o.threads)
      .add(o.dependent_launch)
      .add(o.deterministic)
      .sum();
}

std::size_t std::hash<thresher::GemmProblem>::operator()(const thresher::GemmProblem& p) const noexcept {
  return thresher::Hash().add(p.m).add(p.n).add(p.k).add(p.a).add(p.b).add(p.out).add(p.bias).add(p.activation).sum();
}

std::size_t std::hash<thresher::GroupedProblem>::operator()(const thresher::GroupedProblem& p) const noexcept {
  return thresher::Hash()
      .add(p.experts)
      .add(p.rows)
      .add(p.n)
      .add(p.k)
      .add(p.tokens)
      .add(p.expected_rows)
      .add(p.layout)
      .add(p.row_ids_divisor)
      .add(p.a)
      .add(p.b)
      .add(p.out)
      .add(p.activation)
      .add(p.bias)
      .add(p.row_weights)
      .sum();
}

std::size_t std::hash<thresher::MoeProblem>::operator()(const thresher::MoeProblem& p) const noexcept {
  return thresher::Hash()
      .add(p.experts)
      .add(p.tokens)
      .add(p.top_k)
      .add(p.hidden_size)
      .add(p.intermediate_size)
      .add(p.expected_rows)
      .add(p.x)
      .add(p.gate_up)
      .add(p.intermediate)
      .add(p.intermediate_scale)
      .add(p.down)
      .add(p.rows)
      .add(p.out)
      .add(p.activation)
      .add(p.gate_up_bias)
      .add(p.down_bias)
      .add(p.quantized_x)
      .sum();
}

std::size_t std::hash<thresher::GatedMlpProblem>::operator()(const thresher::GatedMlpProblem& p) const noexcept {
  return thresher::Hash()
      .add(p.tokens)
      .add(p.hidden_size)
      .add(p.intermediate_size)
      .add(p.x)
      .add(p.gate_up)
      .add(p.intermediate)
      .add(p.intermediate_scale)
      .add(p.down)
      .add(p.out)
      .add(p.activation)
      .sum();
}
