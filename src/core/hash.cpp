// Hashes of what plans are made for: equal values have equal hashes.
#include "thresher/attention.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher {
namespace {

/// The hash of a sequence of values, in which their order counts.
class Hash {
 public:
  template <class Value>
  Hash& add(const Value& value) noexcept {
    constexpr std::size_t golden = 0x9E3779B97F4A7C15ULL;
    sum_ ^= std::hash<Value>()(value) + golden + (sum_ << 6) + (sum_ >> 2);
    return *this;
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
  return thresher::Hash()
      .add(p.m)
      .add(p.n)
      .add(p.k)
      .add(p.a)
      .add(p.b)
      .add(p.out)
      .add(p.activation.kind)
      .add(p.activation.alpha)
      .add(p.activation.limit)
      .add(p.activation.up_offset)
      .sum();
}

std::size_t std::hash<thresher::DualGemmOptions>::operator()(const thresher::DualGemmOptions& o) const noexcept {
  return thresher::Hash().add(o.strategy).add(o.knobs).add(o.threads).sum();
}

std::size_t std::hash<thresher::AttentionProblem>::operator()(const thresher::AttentionProblem& p) const noexcept {
  return thresher::Hash()
      .add(p.batch)
      .add(p.heads)
      .add(p.kv_heads)
      .add(p.queries)
      .add(p.keys)
      .add(p.head_dim)
      .add(p.format)
      .add(p.causal)
      .add(p.scale)
      .add(p.window_left)
      .add(p.window_right)
      .add(p.softcap)
      .add(p.variable_length)
      .sum();
}

std::size_t std::hash<thresher::AttentionOptions>::operator()(const thresher::AttentionOptions& o) const noexcept {
  return thresher::Hash().add(o.strategy).add(o.knobs).add(o.threads).add(o.dependent_launch).sum();
}
