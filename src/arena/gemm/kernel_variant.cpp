#include "arena/gemm/kernel_variant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ops/cuda_device_spec.hpp"
#include "pipeline/timeline.hpp"
#include "runtime/stream.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/tensors.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

namespace tensors = strategies::gemm;

/// Blocks of the step that is looked into: persistent ones are at most one a multiprocessor.
int launched_blocks(const strategies::ProfiledCall& profiled, const DualGemmProblem& problem, DeviceId device,
                    const ops::PlanWeights& weights, int multiprocessors) {
  const auto& launch = std::get<strategies::KernelLaunch>(profiled.call.steps[profiled.step]);
  const std::array<Tensor, tensors::dense_tensor_count> all{ops::stand_in(problem.a, {problem.m, problem.k}, device),
                                                            weights.views.gate, weights.views.up,
                                                            ops::stand_in(problem.out, {problem.m, problem.n}, device)};
  strategies::LaunchArguments arguments;
  (void)launch.bind({all, ops::stand_in_address(), weights.packed}, arguments);
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

ops::PlanPointer plan_variant(const Device& device, const DualGemmProblem& problem, const Tensor& b1_gate,
                              const Tensor& b2_up, const DualGemmOptions& options, const KernelVariant& variant) {
  const DeviceSpec spec = ops::spec_of(device);
  const GroupedWeights weights{.b1 = b1_gate, .b2 = b2_up};
  ops::PlanWeights of{.views = weight_views(weights), .where_they_lie = weights};
  const auto obstacle = [&](const strategies::PlannedCall& call) { return ops::weights_obstacle(call, of.views); };
  const strategies::PlannedCall chosen =
      ops::choose_product(problem, ops::request_of(options), device.kind(), spec, obstacle);
  const auto& strategy =
      planner::named_strategy(tensors::strategies_of(tensors::Product::dual_gemm, device.kind()), chosen.strategy);
  std::optional<strategies::ProfiledCall> profiled =
      strategy.profiled(problem, chosen.knobs, spec, {variant.profile != nullptr, variant.ablation});
  if (!profiled) {
    throw Error(ErrorCode::unsupported,
                fmt::format("profiles are of fused kernels on a GPU, not of {} on {}", chosen.strategy, device.name()));
  }
  if (profiled->call.packing != nullptr) {
    of.keeps = ops::pack_by(profiled->call, device, weights, ops::numerics_of(options.knobs));
    of.views = of.keeps->views();
    of.packed = of.keeps->packed();
  }
  if (variant.profile) {
    variant.profile->prepare(device.id().ordinal,
                             launched_blocks(*profiled, problem, device.id(), of, spec.multiprocessors),
                             profiled->shape);
    of.timestamps = static_cast<std::uint64_t*>(variant.profile->words.data());
    of.keeps_timestamps = variant.profile;
  }
  std::vector<ops::PlannedRows> calls{{problem.m, std::move(profiled->call)}};
  return std::make_shared<const ops::ProductPlan>(device, problem, std::move(calls), std::move(of));
}

}  // namespace thresher::arena
