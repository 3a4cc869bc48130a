#include "ops/cuda_dual_gemm.hpp"

#include <fmt/format.h>

#include "ops/cuda_programs.hpp"
#include "ops/cuda_tensor_map.hpp"
#include "ops/cuda_weights.hpp"
#include "ops/knob_words.hpp"
#include "runtime/driver.hpp"
#include "strategies/dual_gemm/fused/host/geometry.hpp"
#include "strategies/dual_gemm/fused/program.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

namespace device_code = strategies::dual_gemm::fused;

constexpr std::int64_t row_alignment_bytes = 16;
/// Few tokens leave a kernel waiting for memory from its first moment: starting it before the last one has ended pays
/// there, and costs elsewhere (docs/kernels/dual-gemm.md).
constexpr std::int64_t most_tokens_of_dependent_launch = 128;

device_code::Matrix matrix(const Tensor& tensor) {
  return {static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(tensor.data)), tensor.strides[0]};
}

class CudaDualGemm final : public DualGemm::Backend {
 public:
  CudaDualGemm(const Device& device, const DualGemmProblem& problem, const FusedChoice& choice, const Tensor& b1_gate,
               const Tensor& b2_up, std::shared_ptr<const PackedWeights::Storage> weights, const KernelVariant& variant)
      : Backend(problem, device.id(), std::string(planner::name(choice.planned.strategy))),
        weights_(std::move(weights)),
        extents_{problem.m, problem.n, problem.k},
        config_(varied(choice.config, variant)),
        geometry_(geometry_of(config_)),
        staged_(load(config_)),
        direct_(load(with_direct_stores(config_))) {
    require_matrix_on_gpu(b1_gate, ordinal(), "b1 (gate)");
    require_matrix_on_gpu(b2_up, ordinal(), "b2 (up)");
    if (problem.m == 0 || problem.n == 0) {
      return;
    }
    params_ = device_code::scalars(config_, extents_, {}, geometry_, problem.activation);
    if (variant.profile) {
      variant.profile->prepare(ordinal(), static_cast<int>(geometry_.blocks), device_code::shape_of(config_));
      profile_ = variant.profile;
    }
    params_.gate = encode_for_gpu(device_code::weights_map(config_, extents_, matrix(b1_gate)), ordinal());
    params_.up = encode_for_gpu(device_code::weights_map(config_, extents_, matrix(b2_up)), ordinal());
    launch_.grid.x = geometry_.blocks;
    launch_.block.x = geometry_.threads;
    launch_.cluster.x = geometry_.cluster_blocks;
    launch_.dependent_launch = problem.m <= most_tokens_of_dependent_launch;
  }

  [[nodiscard]] std::size_t workspace_bytes() const override { return 0; }
  [[nodiscard]] std::size_t data_alignment() const override { return row_alignment_bytes; }

  void run_prepared(Stream stream, const Tensor& a, const Tensor& c, void*) const override {
    if (a.strides[0] * bits(a.format) / 8 % row_alignment_bytes != 0) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("a has rows {} elements apart, this plan needs a multiple of {}: pad them", a.strides[0],
                              row_alignment_bytes * 8 / bits(a.format)));
    }
    runtime::require_on_gpu(a.data, ordinal(), "a");
    runtime::require_on_gpu(c.data, ordinal(), "c");
    const device_code::Matrix output = matrix(c);
    device_code::Params params = device_code::scalars(config_, extents_, output, geometry_, problem().activation);
    params.tokens = encode_for_gpu(device_code::tokens_map(config_, extents_, matrix(a)), ordinal());
    params.gate = params_.gate;
    params.up = params_.up;
    if (profile_) {
      params.profile = {reinterpret_cast<std::uintptr_t>(profile_->words.data())};
    }
    const bool staged = config_.epilogue == device_code::Epilogue::tma && params.c_wide != 0;
    if (staged) {
      params.output = encode_for_gpu(device_code::output_map(config_, extents_, output), ordinal());
    }
    const Variant& variant = staged ? staged_ : direct_;
    runtime::LaunchConfig launch = launch_;
    launch.dynamic_shared_bytes = variant.shared_bytes;
    launch.stream = stream;
    variant.kernel.launch_with(launch, params);
  }

 private:
  [[nodiscard]] int ordinal() const { return device().ordinal; }

  static device_code::Config varied(device_code::Config config, const KernelVariant& variant) {
    config.profiled = variant.profile != nullptr;
    config.ablation = variant.ablation;
    return config;
  }

  /// The kernel for an output that the copy engine cannot address.
  static device_code::Config with_direct_stores(device_code::Config config) {
    config.epilogue = device_code::Epilogue::simt;
    return config;
  }

  [[nodiscard]] device_code::Geometry geometry_of(const device_code::Config& config) const {
    const int multiprocessors = runtime::device_properties(ordinal()).multiprocessors;
    return device_code::geometry(config, extents_, multiprocessors);
  }

  struct Variant {
    runtime::Kernel kernel;
    unsigned shared_bytes;
  };

  [[nodiscard]] Variant load(const device_code::Config& config) const {
    const strategies::DeviceProgram program = device_code::program(config);
    const Variant variant{load_program(ordinal(), program).kernel(program.kernels.front()),
                          geometry_of(config).shared_bytes};
    variant.kernel.allow_dynamic_shared(variant.shared_bytes);
    return variant;
  }

  std::shared_ptr<const PackedWeights::Storage> weights_;  // keeps the weights' memory alive
  device_code::Extents extents_;
  device_code::Config config_;
  device_code::Geometry geometry_;
  Variant staged_;
  Variant direct_;  ///< for outputs that the copy engine cannot address
  std::shared_ptr<ProfileBuffer> profile_;
  device_code::Params params_{};
  runtime::LaunchConfig launch_;
};

/// Whether the copy engine can address the weights; the sentence says which it cannot.
std::string weights_obstacle(const Tensor& b1_gate, const Tensor& b2_up) {
  for (const auto& [tensor, name] : {std::pair{&b1_gate, "b1 (gate)"}, std::pair{&b2_up, "b2 (up)"}}) {
    if (reinterpret_cast<std::uintptr_t>(tensor->data) % row_alignment_bytes != 0) {
      return fmt::format("{} is not aligned to {} bytes", name, row_alignment_bytes);
    }
    if (tensor->strides[0] * bits(tensor->format) / 8 % row_alignment_bytes != 0) {
      return fmt::format("{} has rows {} elements apart, not a multiple of {}", name, tensor->strides[0],
                         row_alignment_bytes * 8 / bits(tensor->format));
    }
  }
  return "";
}

}  // namespace

std::optional<DeviceSpec> fused_device_spec(int ordinal) {
  const runtime::DeviceProperties& properties = runtime::device_properties(ordinal);
  if (!properties.is(Arch::sm_90a)) {
    return std::nullopt;
  }
  DeviceSpec spec = device_spec("H100");
  if (properties.name.find("H200") != std::string::npos) {
    spec = device_spec("H200");
  }
  spec.multiprocessors = properties.multiprocessors;
  return spec;
}

std::shared_ptr<const DualGemm::Backend> make_cuda_dual_gemm(const Device& device, const DualGemmProblem& problem,
                                                             const Tensor& b1_gate, const Tensor& b2_up,
                                                             std::shared_ptr<const PackedWeights::Storage> weights,
                                                             const DualGemmOptions& options,
                                                             const KernelVariant& variant) {
  const bool asked_for = !options.strategy.empty() || !options.knobs.empty();
  const auto refuse = [&](const std::string& reason) -> std::shared_ptr<const DualGemm::Backend> {
    if (asked_for) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("no fused dual GEMM{}{} for this problem on {}: {}", options.strategy.empty() ? "" : " ",
                              options.strategy, device.name(), reason));
    }
    return nullptr;
  };
  const std::optional<DeviceSpec> spec = fused_device_spec(device.id().ordinal);
  if (!spec) {
    return refuse("it needs a Hopper GPU (compute capability 9.0)");
  }
  const std::optional<FusedChoice> choice =
      choose_fused(problem, {options.strategy, planner_words(options.knobs)}, *spec);
  if (!choice) {
    return refuse(
        fmt::format("it takes fp16 with fp16 or bf16 with bf16 and rows of whole {} bytes, not {} with {} and K = {}",
                    row_alignment_bytes, name(problem.a), name(problem.b), problem.k));
  }
  if (const std::string obstacle = weights_obstacle(b1_gate, b2_up); !obstacle.empty()) {
    return refuse(obstacle);
  }
  return std::make_shared<const CudaDualGemm>(device, problem, *choice, b1_gate, b2_up, std::move(weights), variant);
}

}  // namespace thresher::ops
