#include "ops/kernel_variant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ops/cuda_call.hpp"
#include "ops/cuda_device_spec.hpp"
#include "ops/cuda_dual_gemm.hpp"
#include "ops/cuda_packed_weights.hpp"
#include "pipeline/timeline.hpp"
#include "runtime/stream.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/tensors.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

using strategies::gemm::Product;

namespace tensors = strategies::dual_gemm;

/// One call, with the timestamps behind its tensors.
class ProfiledDualGemm final : public DualGemm::Backend {
 public:
  ProfiledDualGemm(const Device& device, const DualGemmProblem& problem, strategies::PlannedCall call,
                   const CudaOperands& operands, std::shared_ptr<const ProfileBuffer> profile)
      : Backend(problem, device.id(), call.strategy),
        operands_(operands),
        profile_(std::move(profile)),
        call_(std::move(call), device.id().ordinal,
              {with(stand_in(problem.a, problem.m, problem.k, device.id()),
                    stand_in(problem.out, problem.m, problem.n, device.id())),
               nullptr, operands.packed}) {}

  void run_prepared(Stream stream, const Tensor& a, const Tensor& c, void* workspace) const override {
    call_.run(stream, {with(a, c), workspace, operands_.packed});
  }
  [[nodiscard]] std::size_t workspace_bytes() const override { return call_.workspace_bytes(); }
  [[nodiscard]] std::size_t data_alignment() const override { return call_.planned().data_alignment; }

 private:
  using Tensors = std::array<Tensor, tensors::product_tensor_count>;

  [[nodiscard]] Tensors with(const Tensor& a, const Tensor& c) const {
    Tensors all{a, operands_.b1_gate, operands_.b2_up, c};
    all[tensors::profile_index].data = profile_ ? profile_->words.data() : nullptr;
    return all;
  }

  CudaOperands operands_;
  std::shared_ptr<const ProfileBuffer> profile_;
  CudaCall call_;
};

/// Blocks of the step that is looked into: persistent ones are at most one a multiprocessor.
int launched_blocks(const strategies::ProfiledCall& profiled, const DualGemmProblem& problem, DeviceId device,
                    const CudaOperands& operands, int multiprocessors) {
  const auto& launch = std::get<strategies::KernelLaunch>(profiled.call.steps[profiled.step]);
  const std::array<Tensor, tensors::dense_tensor_count> all{stand_in(problem.a, problem.m, problem.k, device),
                                                            operands.b1_gate, operands.b2_up,
                                                            stand_in(problem.out, problem.m, problem.n, device)};
  strategies::LaunchArguments arguments;
  (void)launch.bind({all, stand_in_address(), operands.packed}, arguments);
  const int cluster = static_cast<int>(launch.cluster.x);
  const int resident = std::max(multiprocessors / cluster, 1) * cluster;
  const auto blocks = static_cast<int>(arguments.grid.x);
  return launch.persistent ? std::min(blocks, resident) : blocks;
}

}  // namespace

void ProfileBuffer::prepare(int ordinal, int launched_blocks, const pipeline::Shape& launched_shape) {
  blocks = launched_blocks;
  shape = launched_shape;
  const auto count =
      static_cast<std::size_t>(blocks) * static_cast<std::size_t>(pipeline::profile_words_of_block(launched_shape));
  words = runtime::DeviceBuffer(ordinal, count * sizeof(std::uint64_t), "the timestamps");
  runtime::fill_async(words.data(), 0, words.bytes(), {}, ordinal);
  runtime::synchronize({}, ordinal);
}

std::vector<std::uint64_t> ProfileBuffer::read() const {
  std::vector<std::uint64_t> read(words.bytes() / sizeof(std::uint64_t));
  runtime::copy(read.data(), words.data(), words.bytes(), words.device().ordinal);
  return read;
}

std::shared_ptr<const DualGemm::Backend> plan_variant(const Device& device, const DualGemmProblem& problem,
                                                      const Tensor& b1_gate, const Tensor& b2_up,
                                                      const DualGemmOptions& options, const KernelVariant& variant) {
  const DeviceSpec spec = spec_of(device);
  const auto obstacle = [&](const strategies::PlannedCall& call) { return weights_obstacle(call, b1_gate, b2_up); };
  const strategies::PlannedCall chosen = choose_dual_gemm(problem, request_of(options), device.kind(), spec, obstacle);
  const auto* const strategy = strategies::find_strategy<strategies::gemm::ProductProblem>(
      strategies::gemm::strategies_of(Product::dual_gemm, device.kind()), chosen.strategy);
  std::optional<strategies::ProfiledCall> profiled =
      strategy->profiled(problem, chosen.knobs, spec, {variant.profile != nullptr, variant.ablation});
  if (!profiled) {
    throw Error(ErrorCode::unsupported,
                fmt::format("profiles are of fused kernels on a GPU, not of {} on {}", chosen.strategy, device.name()));
  }
  CudaOperands operands{b1_gate, b2_up};
  if (profiled->call.packing != nullptr) {
    const auto packed =
        std::make_shared<const CudaPackedWeights>(device, b1_gate, b2_up, numerics_of(options.knobs), profiled->call);
    operands = {packed->b1_gate(), packed->b2_up(), packed->packed(), packed};
  }
  if (variant.profile) {
    variant.profile->prepare(device.id().ordinal,
                             launched_blocks(*profiled, problem, device.id(), operands, spec.multiprocessors),
                             profiled->shape);
  }
  return std::make_shared<const ProfiledDualGemm>(device, problem, std::move(profiled->call), operands,
                                                  variant.profile);
}

}  // namespace thresher::ops
