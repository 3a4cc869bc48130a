#include "arena/emulation/dual_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arena/dual_gemm/task.hpp"
#include "arena/emulation/fused_dual_gemm.hpp"
#include "arena/emulation/packed_dual_gemm.hpp"
#include "ops/cuda_dual_gemm_choice.hpp"
#include "ops/nvfp4_choice.hpp"
#include "strategies/dual_gemm/fused/host/emulated.hpp"
#include "strategies/dual_gemm/packed/choose.hpp"

namespace thresher::arena {
namespace {

constexpr const char* packed = "packed";

bool is_hopper(const DeviceSpec& device) { return device.matrix_unit == MatrixUnit::wgmma; }

class DualGemmEmulation final : public EmulatedOperation {
 public:
  [[nodiscard]] std::string_view name() const override { return "dual_gemm"; }
  [[nodiscard]] std::vector<std::string> strategies() const override {
    return {"sequential", "interleaved", "pingpong", packed};
  }

  [[nodiscard]] Emulation planned(const Problem& problem, const PlanRequest& request,
                                  const DeviceSpec& device) const override {
    const DualGemmProblem& gemm = dual_gemm(problem);
    if (request.strategy == "two_pass") {
      return {nullptr, "its products are a library's kernels (cuBLASLt), not Thresher's"};
    }
    if (!is_hopper(device)) {
      return {nullptr, fmt::format("there is no kernel for {} to emulate", device.name)};
    }
    // Knobs for NVFP4 weights are the packed kernel's, whatever strategy they name (ops/cuda_operations.cpp).
    const bool by_knobs = !request.knobs.empty();
    if (gemm.b == Format::nvfp4 && (by_knobs || request.strategy.empty() || request.strategy == packed)) {
      return {make_packed_emulation(ops::choose_packed(gemm, request.knobs, device.multiprocessors, request.numerics),
                                    gemm.a),
              ""};
    }
    if (const auto choice = ops::choose_fused(gemm, {request.strategy, request.knobs}, device)) {
      return {make_fused_emulation(choice->config, planner::text(choice->planned)), ""};
    }
    return {nullptr, fmt::format("no fused kernel takes {}", label(problem))};
  }

  [[nodiscard]] std::vector<std::shared_ptr<const EmulatedKernel>> samples(const std::string& strategy) const override {
    std::vector<std::shared_ptr<const EmulatedKernel>> found;
    if (strategy == packed) {
      for (const strategies::dual_gemm::packed::Config& config : strategies::dual_gemm::packed::default_configs()) {
        const bool is_bf16 = config.operand == strategies::dual_gemm::packed::Number::bf16;
        found.push_back(make_packed_emulation(config, is_bf16 ? Format::bf16 : Format::nvfp4));
      }
      return found;
    }
    for (const strategies::dual_gemm::fused::Config& config : strategies::dual_gemm::fused::small_configs()) {
      if (strategy == strategy_name(config)) {
        found.push_back(make_fused_emulation(config, ""));
      }
    }
    return found;
  }
};

}  // namespace

const EmulatedOperation& emulated_dual_gemm() {
  static const DualGemmEmulation operation;
  return operation;
}

}  // namespace thresher::arena
