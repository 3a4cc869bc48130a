#include "ops/kernel_variant.hpp"

#include <fmt/format.h>

#include "ops/cuda_dual_gemm.hpp"
#include "ops/cuda_nvfp4.hpp"
#include "ops/knob_words.hpp"
#include "ops/nvfp4_choice.hpp"
#include "pipeline/timeline.hpp"
#include "runtime/stream.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {

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
  if (device.kind() != DeviceKind::cuda || options.strategy == "two_pass") {
    throw Error(ErrorCode::unsupported,
                fmt::format("profiles are of fused kernels on a GPU, not of {} on {}",
                            options.strategy.empty() ? "strategies" : options.strategy, device.name()));
  }
  if (problem.b == Format::nvfp4 && runs_packed_nvfp4(device)) {
    return make_cuda_nvfp4(device, problem,
                           std::make_shared<const CudaNvfp4Weights>(device, b1_gate, b2_up, packing_numerics(options)),
                           planner_words(options.knobs), variant);
  }
  DualGemmOptions fused = options;
  if (fused.strategy.empty() && fused.knobs.empty()) {
    fused.strategy = "interleaved";  // a refusal is then a sentence, not another kernel
  }
  return make_cuda_dual_gemm(device, problem, b1_gate, b2_up, nullptr, fused, variant);
}

}  // namespace thresher::ops
