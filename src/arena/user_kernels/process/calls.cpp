#include "arena/user_kernels/process/calls.hpp"

#include <fmt/format.h>

#include "arena/gemm/task.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {
namespace {

int format_code(Format format) {
  switch (format) {
    case Format::fp32: return THRESHER_OWN_FP32;
    case Format::fp16: return THRESHER_OWN_FP16;
    case Format::bf16: return THRESHER_OWN_BF16;
    case Format::nvfp4: return THRESHER_OWN_NVFP4;
    default: break;
  }
  throw Error(ErrorCode::unsupported, fmt::format("user kernels are not given {}", name(format)));
}

thresher_own_matrix matrix(const Tensor& tensor) {
  thresher_own_matrix out{};
  out.values = tensor.data;
  out.rows = tensor.shape[0];
  out.columns = tensor.shape[1];
  out.row_stride = tensor.strides[0];
  out.format = format_code(tensor.format);
  out.scale_layout =
      tensor.scales.layout == ScaleLayout::blocked ? THRESHER_OWN_SCALES_BLOCKED : THRESHER_OWN_SCALES_ROW_MAJOR;
  out.scales = tensor.scales.codes();
  out.global_scale = tensor.global_scale;
  return out;
}

int activation_code(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::silu: return THRESHER_OWN_SILU;
    case ActivationKind::gelu_tanh: return THRESHER_OWN_GELU_TANH;
    case ActivationKind::swiglu_clamped: return THRESHER_OWN_SWIGLU_CLAMPED;
    case ActivationKind::situ: return THRESHER_OWN_SITU;
    case ActivationKind::relu2: break;  // of no problem that has gate and up
  }
  return THRESHER_OWN_SWIGLU_CLAMPED;
}

}  // namespace

Calls::Calls(const Problem& problem, Memory& memory, const std::vector<DeviceSet>& sets, std::size_t workspace_bytes) {
  if (workspace_bytes > 0) {
    workspace_ = std::make_unique<GuardedBuffer>(memory, workspace_bytes);
  }
  const DualGemmProblem gemm = dual_gemm(problem);
  for (const DeviceSet& set : sets) {
    const Tensor& c = set.tensor("c");
    thresher_own_dual_gemm call{};
    call.m = gemm.m;
    call.n = gemm.n;
    call.k = gemm.k;
    call.a = matrix(set.tensor("a"));
    call.b1 = matrix(set.tensor("b1"));
    call.b2 = matrix(set.tensor("b2"));
    call.c = c.data;
    call.c_row_stride = c.strides[0];
    call.c_format = format_code(c.format);
    call.activation = activation_code(gemm.activation.kind);
    call.alpha = gemm.activation.alpha;
    call.limit = gemm.activation.limit;
    call.up_offset = gemm.activation.up_offset;
    call.workspace = workspace_ ? workspace_->data() : nullptr;
    call.workspace_bytes = static_cast<long long>(workspace_bytes);
    calls_.push_back(call);
    activations_.push_back(set.places_of("a"));
  }
}

std::vector<std::string> Calls::guard_damage() const {
  const auto damage = workspace_ ? workspace_->damage() : std::nullopt;
  return damage ? std::vector{describe(*damage, "its workspace")} : std::vector<std::string>{};
}

std::size_t output_bytes(const thresher_own_dual_gemm& call) {
  const std::size_t element_bytes = call.c_format == THRESHER_OWN_FP32 ? 4 : 2;
  return call.m == 0 ? 0
                     : (static_cast<std::size_t>(call.m - 1) * static_cast<std::size_t>(call.c_row_stride) +
                        static_cast<std::size_t>(call.n)) *
                           element_bytes;
}

}  // namespace thresher::arena::user_kernels
