#include "arena/user_kernels/base_contestant.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "arena/dual_gemm/task.hpp"
#include "arena/operation/operation.hpp"
#include "arena/user_kernels/contestant.hpp"
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
  throw Error(ErrorCode::unsupported, fmt::format("kernels from outside are not given {}", name(format)));
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
    case ActivationKind::swiglu_clamped: break;
  }
  return THRESHER_OWN_SWIGLU_CLAMPED;
}

}  // namespace

std::string BaseContestant::format_obstacle(const Problem& problem) const {
  const std::vector<std::string>& formats = kernel_.formats;
  const std::string asked = formats_text(dual_gemm(problem));
  if (formats.empty() || std::find(formats.begin(), formats.end(), asked) != formats.end()) {
    return "";
  }
  return fmt::format("the pitch enters {} for {}, not {}", kernel_.entry, fmt::join(formats, " and "), asked);
}

Answer BaseContestant::feasible(const Problem& problem, Memory& memory) const {
  const std::int64_t workspace_bytes = evaluate(kernel_.workspace_bytes, shape_of(dual_gemm(problem)));
  if (workspace_bytes < 0) {
    return {false, fmt::format("workspace_bytes is {} for {}", workspace_bytes, label(problem))};
  }
  const double needed = 2 * problem.operation().cost(problem).compulsory_bytes + static_cast<double>(workspace_bytes);
  return fits_in_memory(problem, needed, memory);
}

Calls::Calls(const Problem& problem, Memory& memory, const std::vector<DeviceSet>& sets, std::size_t workspace_bytes) {
  if (workspace_bytes > 0) {
    workspace_ = std::make_unique<GuardedBuffer>(memory, workspace_bytes);
  }
  const DualGemmProblem& gemm = dual_gemm(problem);
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

std::unique_ptr<Contestant> bring(const ContestantSpec& spec, const Kernel& kernel, const Device& device,
                                  const Registry& registry, const std::vector<std::string>& server) {
  const std::vector<std::string> known = registry.strategies(spec.operation);
  if (std::find(known.begin(), known.end(), spec.strategy) != known.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("contestant {}: {} is a strategy of Thresher's own: give the kernel {} another name",
                            label(spec), spec.strategy, kernel.source));
  }
  return kernel.language == Language::cuda ? make_cuda_contestant(spec, kernel, device, server)
                                           : make_host_contestant(spec, kernel, device, server);
}

}  // namespace thresher::arena::user_kernels
