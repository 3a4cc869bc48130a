// Attention on an NVIDIA GPU of compute capability 9.0.
#include <fmt/format.h>

#include <algorithm>

#include "ops/attention_backend.hpp"
#include "ops/attention_launch.hpp"
#include "ops/cuda_programs.hpp"
#include "ops/cuda_tensor_map.hpp"
#include "runtime/driver.hpp"
#include "runtime/nvrtc.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

namespace device_code = strategies::attention;

class CudaAttention final : public Attention::Backend {
 public:
  CudaAttention(const Device& device, const AttentionProblem& problem, const AttentionChoice& choice,
                bool dependent_launch)
      : Backend(problem, device.id(), choice.strategy),
        geometry_(attention_geometry(choice)),
        kernel_(load(choice)),
        constants_(attention_constants(problem, geometry_)) {
    if (geometry_.shared_bytes > 0) {
      kernel_.allow_dynamic_shared(geometry_.shared_bytes);
    }
    config_.block.x = geometry_.threads;
    config_.cluster.x = geometry_.cluster;
    config_.dynamic_shared_bytes = geometry_.shared_bytes;
    config_.dependent_launch = dependent_launch;
    const AttentionGrid grid = attention_grid(problem, choice, geometry_, constants_);
    config_.grid = {grid.x, grid.y, grid.z};
    if (geometry_.persistent && grid.x > 0) {
      config_.grid.x = std::min(config_.grid.x, resident_blocks());
    }
  }

  [[nodiscard]] std::size_t workspace_bytes() const override { return 0; }

  void run(Stream stream, const AttentionTensors& tensors, void*) const override {
    const runtime::ContextGuard guard(device().ordinal);
    device_code::Params params = constants_;
    add_tensors(params, problem(), tensors);
    if (geometry_.copies) {
      params.query_map = encode(query_map(problem(), geometry_, tensors.q), tensors.q);
      params.key_map = encode(key_map(problem(), geometry_, tensors.k), tensors.k);
      params.value_map = encode(key_map(problem(), geometry_, tensors.v), tensors.v);
    }
    runtime::LaunchConfig config = config_;
    config.stream = stream;
    kernel_.launch_with(config, params);
  }

 private:
  [[nodiscard]] runtime::Kernel load(const AttentionChoice& choice) const {
    const strategies::DeviceProgram program = attention_program(problem(), choice);
    return load_program(device().ordinal, program).kernel(program.kernels.front());
  }

  [[nodiscard]] unsigned resident_blocks() const {
    if (geometry_.cluster > 1) {
      return static_cast<unsigned>(kernel_.resident_clusters(config_)) * geometry_.cluster;
    }
    return static_cast<unsigned>(
        kernel_.blocks_per_multiprocessor(static_cast<int>(geometry_.threads), geometry_.shared_bytes) *
        runtime::device_properties(device().ordinal).multiprocessors);
  }

  /// A tensor without rows has no map; nothing of it is copied.
  [[nodiscard]] device_code::TensorMap encode(const machine::TensorMapDescription& map, const Tensor& tensor) const {
    return tensor.elements() == 0 ? device_code::TensorMap{} : encode_for_gpu(map, device().ordinal);
  }

  AttentionGeometry geometry_;
  runtime::Kernel kernel_;
  device_code::Params constants_;
  runtime::LaunchConfig config_;
};

class CudaAttentionOperations final : public AttentionOperations {
 public:
  [[nodiscard]] std::vector<std::string> strategies() const override {
    return {"pipelined", "split", "simple", "rows", "rows_shared", "rows_coalesced"};
  }

  [[nodiscard]] std::string obstacle(const Device& device, const AttentionProblem& problem,
                                     const AttentionOptions& options) const override {
    try {
      (void)choose(device, problem, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  [[nodiscard]] std::shared_ptr<const Attention::Backend> plan(const Device& device, const AttentionProblem& problem,
                                                               const AttentionOptions& options) const override {
    const AttentionChoice choice = choose(device, problem, options);
    if (!options.strategy.empty() || runtime::nvrtc_status().problem.empty()) {
      return std::make_shared<CudaAttention>(device, problem, choice, options.dependent_launch);
    }
    return plan_without_compiler(device, problem, choice, options.dependent_launch);
  }

 private:
  /// The choice where its machine code is at hand, else what is built in.
  static std::shared_ptr<const Attention::Backend> plan_without_compiler(const Device& device,
                                                                         const AttentionProblem& problem,
                                                                         const AttentionChoice& choice,
                                                                         bool dependent_launch) {
    for (const AttentionChoice& wanted : {choice, choose(device, problem, {.strategy = "pipelined"})}) {
      try {
        return std::make_shared<CudaAttention>(device, problem, wanted, dependent_launch);
      } catch (const Error& error) {
        if (error.code() != ErrorCode::unsupported) {
          throw;
        }
      }
    }
    return std::make_shared<CudaAttention>(device, problem, choose(device, problem, {.strategy = "simple"}),
                                           dependent_launch);
  }

  /// Throws Error for what this GPU or the strategy asked for cannot take.
  static AttentionChoice choose(const Device& device, const AttentionProblem& problem,
                                const AttentionOptions& options) {
    const runtime::DeviceProperties& properties = runtime::device_properties(device.id().ordinal);
    if (!properties.is(Arch::sm_90a)) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("attention runs on GPUs of compute capability 9.0 (Hopper), {} has {}.{}: plan on "
                              "Device::cpu()",
                              properties.name, properties.capability_major, properties.capability_minor));
    }
    for (const auto& [argument, rows] : {std::pair{"queries", problem.queries}, std::pair{"keys", problem.keys}}) {
      if (rows >= most_attention_rows) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("problem.{} is {}, a GPU takes less than {}", argument, rows, most_attention_rows));
      }
    }
    return choose_attention(problem, options, properties.multiprocessors);
  }
};

}  // namespace

const AttentionOperations& cuda_attention_operations() {
  static const CudaAttentionOperations operations;
  return operations;
}

}  // namespace thresher::ops
