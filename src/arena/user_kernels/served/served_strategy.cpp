// A strategy of Thresher's own in a process, on the tensors that a user kernel would get.
#include <unordered_map>

#include "arena/contestants/registry.hpp"
#include "arena/gemm/task.hpp"
#include "arena/operation/operation.hpp"
#include "arena/user_kernels/served/served.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

Format format_of(int code) {
  switch (code) {
    case THRESHER_OWN_FP32: return Format::fp32;
    case THRESHER_OWN_FP16: return Format::fp16;
    case THRESHER_OWN_BF16: return Format::bf16;
    case THRESHER_OWN_NVFP4: return Format::nvfp4;
    default: break;
  }
  throw Error(ErrorCode::internal, "a call has a format that no kernel is given");
}

Activation activation_of(const thresher_own_dual_gemm& call) {
  Activation activation;
  activation.kind = call.activation == THRESHER_OWN_SILU        ? ActivationKind::silu
                    : call.activation == THRESHER_OWN_GELU_TANH ? ActivationKind::gelu_tanh
                    : call.activation == THRESHER_OWN_SITU      ? ActivationKind::situ
                                                                : ActivationKind::swiglu_clamped;
  activation.alpha = call.alpha;
  activation.limit = call.limit;
  activation.up_offset = call.up_offset;
  return activation;
}

Tensor tensor_of(const thresher_own_matrix& matrix) {
  // A strategy reads its operands and does not write through them.
  Tensor tensor =
      Tensor::contiguous(const_cast<void*>(matrix.values), format_of(matrix.format), {matrix.rows, matrix.columns});
  tensor.strides[0] = matrix.row_stride;
  tensor.scales.data = matrix.scales;
  tensor.scales.layout =
      matrix.scale_layout == THRESHER_OWN_SCALES_BLOCKED ? ScaleLayout::blocked : ScaleLayout::row_major;
  tensor.global_scale = matrix.global_scale;
  return tensor;
}

DeviceSet set_of(const thresher_own_dual_gemm& call) {
  Tensor c = Tensor::contiguous(call.c, format_of(call.c_format), {call.m, call.n});
  c.strides[0] = call.c_row_stride;
  return DeviceSet({{"a", tensor_of(call.a)}, {"b1", tensor_of(call.b1)}, {"b2", tensor_of(call.b2)}, {"c", c}});
}

Problem problem_of_call(const thresher_own_dual_gemm& call) {
  return problem_of(DualGemmProblem{call.m, call.n, call.k, format_of(call.a.format), format_of(call.b1.format),
                                    format_of(call.c_format), activation_of(call)});
}

class ServedStrategy final : public Served {
 public:
  explicit ServedStrategy(std::unique_ptr<Contestant> contestant) : contestant_(std::move(contestant)) {}
  void bind(std::uint32_t binding, Reader&) override { bindings_[binding] = {}; }
  void add_call(std::uint32_t binding, const thresher_own_dual_gemm& call) override {
    bindings_.at(binding).calls.push_back(call);
  }
  void complete(std::uint32_t binding) override {
    Binding& bound = bindings_.at(binding);
    for (const thresher_own_dual_gemm& call : bound.calls) {
      bound.sets.push_back(set_of(call));
    }
    bound.runner = contestant_->prepare(problem_of_call(bound.calls.at(0)), memory_, bound.sets);
  }
  void unbind(std::uint32_t binding) override { bindings_.erase(binding); }
  void call(std::uint32_t binding, std::uint32_t set) override { bindings_.at(binding).runner->run(Stream{}, set); }

 private:
  struct Binding {
    std::vector<thresher_own_dual_gemm> calls{};
    std::vector<DeviceSet> sets{};
    std::unique_ptr<Runner> runner{};
  };
  std::unique_ptr<Contestant> contestant_;
  HostMemory memory_;
  std::unordered_map<std::uint32_t, Binding> bindings_;
};

}  // namespace

std::unique_ptr<Served> serve_strategy(Reader& question) {
  auto strategy = library_registry(Device::cpu())->create(parse_label(question.text()));
  return std::make_unique<ServedStrategy>(std::move(strategy));
}

}  // namespace thresher::arena::user_kernels
