// The operations on an NVIDIA GPU.
#include "ops/cuda_dual_gemm.hpp"
#include "ops/cuda_nvfp4.hpp"
#include "ops/cuda_two_pass.hpp"
#include "ops/cuda_weights.hpp"
#include "ops/device_memory.hpp"
#include "ops/device_operations.hpp"
#include "ops/knob_words.hpp"
#include "ops/nvfp4_choice.hpp"
#include "runtime/driver.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

class CudaOperations final : public DeviceOperations {
 public:
  [[nodiscard]] std::vector<std::string> dual_gemm_strategies() const override {
    return {"packed", "interleaved", "sequential", "pingpong", "two_pass"};
  }

  [[nodiscard]] std::string dual_gemm_format_obstacle(const Device& device, const DualGemmProblem& problem,
                                                      const DualGemmOptions& options) const override {
    const std::string& strategy = options.strategy;
    const std::string formats = std::string(name(problem.a)) + " with " + std::string(name(problem.b));
    if (strategy == "packed" && !can_pack(device, problem)) {
      return "strategy packed needs nvfp4 weights and a Hopper GPU, not " + formats + " on " + device.name();
    }
    if (options.numerics == Numerics::fast && !strategy.empty() && strategy != "packed") {
      return "numerics fast is the strategy packed's, not that of strategy " + strategy;
    }
    const bool fused_16_bit = strategy == "interleaved" || strategy == "sequential" || strategy == "pingpong";
    if (fused_16_bit && options.knobs.empty() && (problem.a != problem.b || problem.b == Format::nvfp4)) {
      return "strategy " + strategy + " takes fp16 with fp16 or bf16 with bf16, not " + formats;
    }
    return "";
  }

  [[nodiscard]] std::string dual_gemm_obstacle(const Device& device, const DualGemmProblem& problem,
                                               const DualGemmOptions& options) const override {
    const std::string formats = dual_gemm_format_obstacle(device, problem, options);
    const bool by_knobs = formats.empty() && !options.knobs.empty() && options.strategy != "two_pass";
    return by_knobs ? knobs_obstacle(device, problem, options) : formats;
  }

  [[nodiscard]] std::shared_ptr<const PackedWeights::Storage> pack(const Device& device, const Tensor& b1_gate,
                                                                   const Tensor& b2_up,
                                                                   const PackOptions& options) const override {
    require_matrix_on_gpu(b1_gate, device.id().ordinal, "b1 (gate)");
    require_matrix_on_gpu(b2_up, device.id().ordinal, "b2 (up)");
    require_numerics(device, b1_gate.format, options.numerics);
    if (b1_gate.format == Format::nvfp4 && runs_packed_nvfp4(device)) {
      return std::make_shared<const CudaNvfp4Weights>(device, b1_gate, b2_up, options.numerics);
    }
    return std::make_shared<const CudaWeights>(device, b1_gate, b2_up, options.numerics);
  }

  [[nodiscard]] std::shared_ptr<const PackedWeights::Storage> restore(const Device& device,
                                                                      PackedContent content) const override {
    if (content.layout == matrices_layout) {
      const DeviceTensor gate(view(content, 0), device);
      const DeviceTensor up(view(content, 1), device);
      return pack(device, gate.tensor(), up.tensor(), {.numerics = content.numerics});
    }
    if (content.layout == CudaNvfp4Weights::layout(content.numerics) && runs_packed_nvfp4(device)) {
      return std::make_shared<const CudaNvfp4Weights>(device, content);
    }
    throw Error(ErrorCode::unsupported, "they were packed in the layout " + content.layout + ", which " +
                                            device.name() + " does not read: pack them again for this device");
  }

  [[nodiscard]] std::shared_ptr<const DualGemm::Backend> plan_packed(const Device& device,
                                                                     const DualGemmProblem& problem,
                                                                     const PackedWeights& weights,
                                                                     const DualGemmOptions& options) const override {
    if (auto packed = std::dynamic_pointer_cast<const CudaNvfp4Weights>(weights.shared())) {
      if (!options.strategy.empty() && options.strategy != "packed") {
        throw Error(ErrorCode::invalid_argument, "strategy " + options.strategy +
                                                     " reads weights as they were before packing: plan it from b1 and "
                                                     "b2, or leave the strategy empty");
      }
      return make_cuda_nvfp4(device, problem, std::move(packed), planner_words(options.knobs));
    }
    return plan(device, problem, weights.storage().b1_gate(), weights.storage().b2_up(), weights.shared(), options);
  }

  [[nodiscard]] std::shared_ptr<const DualGemm::Backend> plan_raw(const Device& device, const DualGemmProblem& problem,
                                                                  const Tensor& b1_gate, const Tensor& b2_up,
                                                                  const DualGemmOptions& options) const override {
    return plan(device, problem, b1_gate, b2_up, nullptr, options);
  }

 private:
  static std::string knobs_obstacle(const Device& device, const DualGemmProblem& problem,
                                    const DualGemmOptions& options) {
    try {
      if (can_pack(device, problem)) {
        const int multiprocessors = runtime::device_properties(device.id().ordinal).multiprocessors;
        (void)choose_packed(problem, planner_words(options.knobs), multiprocessors, options.numerics);
        return "";
      }
      const auto spec = fused_device_spec(device.id().ordinal);
      return spec && choose_fused(problem, {"", planner_words(options.knobs)}, *spec)
                 ? ""
                 : "the knobs \"" + options.knobs.text() +
                       "\" are for fused kernels on a Hopper GPU, which take fp16 with fp16, "
                       "bf16 with bf16, or nvfp4 weights";
    } catch (const Error& error) {
      return error.what();
    }
  }

  static void require_numerics(const Device& device, Format weights, Numerics numerics) {
    if (numerics == Numerics::fast && (weights != Format::nvfp4 || !runs_packed_nvfp4(device))) {
      throw Error(ErrorCode::unsupported, "numerics fast needs nvfp4 weights and a Hopper GPU, not " +
                                              std::string(name(weights)) + " on " + device.name() +
                                              ": use numerics exact");
    }
  }

  static bool can_pack(const Device& device, const DualGemmProblem& problem) {
    return problem.b == Format::nvfp4 && runs_packed_nvfp4(device);
  }

  /// NVFP4 weights are packed here, at plan time. Otherwise a fused kernel where one takes the problem, else the
  /// library's products, which take every problem.
  static std::shared_ptr<const DualGemm::Backend> plan(const Device& device, const DualGemmProblem& problem,
                                                       const Tensor& b1_gate, const Tensor& b2_up,
                                                       const std::shared_ptr<const PackedWeights::Storage>& weights,
                                                       const DualGemmOptions& options) {
    if (options.strategy == "packed" && !can_pack(device, problem)) {
      throw Error(ErrorCode::unsupported, cuda_operations().dual_gemm_obstacle(device, problem, options));
    }
    if (weights == nullptr) {
      require_numerics(device, problem.b, options.numerics);
    }
    const bool by_knobs = !options.knobs.empty() && options.strategy != "two_pass";
    if (can_pack(device, problem) && (by_knobs || options.strategy.empty() || options.strategy == "packed")) {
      require_matrix_on_gpu(b1_gate, device.id().ordinal, "b1 (gate)");
      require_matrix_on_gpu(b2_up, device.id().ordinal, "b2 (up)");
      return make_cuda_nvfp4(
          device, problem, std::make_shared<const CudaNvfp4Weights>(device, b1_gate, b2_up, packing_numerics(options)),
          planner_words(options.knobs));
    }
    if (options.numerics == Numerics::fast) {
      throw Error(ErrorCode::invalid_argument, "numerics fast is the strategy packed's, not that of strategy '" +
                                                   options.strategy + "': use numerics exact");
    }
    if (options.strategy != "two_pass") {
      if (auto fused = make_cuda_dual_gemm(device, problem, b1_gate, b2_up, weights, options)) {
        return fused;
      }
    }
    return make_cuda_two_pass(device, problem, b1_gate, b2_up, weights);
  }
};

}  // namespace

const DeviceOperations& cuda_operations() {
  static const CudaOperations operations;
  return operations;
}

}  // namespace thresher::ops
