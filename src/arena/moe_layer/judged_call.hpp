#pragma once
/// The call that judge and inspector of layers read.
#include <vector>

#include "arena/gemm/judged_call.hpp"
#include "arena/moe_layer/inputs.hpp"
#include "reference/moe_layer.hpp"

namespace thresher::arena {

/// One call of a layer in the words of the definition. Refers to the inputs; out is one of the right shape without
/// data.
class JudgedLayer {
 public:
  JudgedLayer(const LayerTask& task, const InputsOfCall& inputs) {
    const FindTensor find = find_in(inputs);
    const MoeProblem& p = task.problem;
    call_ = {p, gate_up_weights(task, find), down_weights(task, find), layer_tensors(find)};
    call_.tensors.out = Tensor::contiguous(nullptr, p.out, {p.tokens, p.hidden_size});
    if (task.is_dense) {
      ids_.assign(static_cast<std::size_t>(p.tokens), 0);
      ones_.assign(static_cast<std::size_t>(p.tokens), 1.0F);
      call_.tensors.topk_ids = Tensor::contiguous(ids_.data(), Format::int32, {p.tokens, 1});
      call_.tensors.topk_weights = Tensor::contiguous(ones_.data(), Format::fp32, {p.tokens, 1});
    }
  }
  JudgedLayer(const JudgedLayer&) = delete;

  [[nodiscard]] const reference::MoeCall& call() const noexcept { return call_; }

 private:
  reference::MoeCall call_;
  std::vector<std::int32_t> ids_;  ///< of a gated MLP, whose one expert every token has chosen
  std::vector<float> ones_;
};

}  // namespace thresher::arena
