#include "arena/emulation/packed_dual_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arena/dual_gemm/generate.hpp"
#include "arena/dual_gemm/task.hpp"
#include "arena/emulation/host_kernel.hpp"
#include "arena/emulation/kernel_numbers.hpp"
#include "ops/nvfp4_choice.hpp"
#include "strategies/dual_gemm/packed/host/emulated.hpp"
#include "strategies/dual_gemm/packed/program.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

namespace device_code = strategies::dual_gemm::packed;
using device_code::Config;

class PackedRun final : public EmulatedRun {
 public:
  PackedRun(const Config& config, const Problem& problem)
      : inputs_(dual_gemm_inputs(problem.as<DualGemmTask>(), Distribution::full_range, 1)),
        c_(make_host_tensor("c", dual_gemm(problem).out, {dual_gemm(problem).m, dual_gemm(problem).n})),
        product_(host_kernel(device_code::program(config)), config,
                 {inputs_[0].view(), inputs_[1].view(), inputs_[2].view(), c_.view(), dual_gemm(problem).activation}) {}

  [[nodiscard]] emulator::Report run(const emulator::Options& options) override {
    std::fill(c_.values.begin(), c_.values.end(), std::uint8_t{0xA5});
    return product_.run(options);
  }

  [[nodiscard]] std::span<const std::uint8_t> output() const override { return c_.values; }

 private:
  std::vector<HostTensor> inputs_;
  HostTensor c_;
  device_code::EmulatedProduct product_;
};

class PackedKernel final : public EmulatedKernel {
 public:
  PackedKernel(const Config& config, Format tokens) : config_(config), tokens_(tokens) {}

  [[nodiscard]] std::string title() const override {
    return fmt::format("{} from {} to {}, {} stages of {} of k", device_code::program(config_).title,
                       thresher::name(tokens_), thresher::name(format_of(config_.output)), config_.stages,
                       config_.blocks_per_slot * static_cast<int>(device_code::weight_block_k(config_)));
  }
  [[nodiscard]] std::string key() const override {
    return fmt::format("{} from {}", device_code::kernel_name(config_), thresher::name(tokens_));
  }
  [[nodiscard]] std::string arguments(const Problem& problem) const override {
    const DualGemmProblem& gemm = dual_gemm(problem);
    return fmt::format("dual_gemm --knobs \"{}\" --a {} --b nvfp4 --out {} --activation {} --m {} --n {} --k {}",
                       planner::text(ops::planned_config(config_)), thresher::name(gemm.a), thresher::name(gemm.out),
                       thresher::name(gemm.activation.kind), gemm.m, gemm.n, gemm.k);
  }

  [[nodiscard]] std::vector<Problem> edges() const override {
    // The ring's slots and one more for each half of a split, and a ragged rest: few enough to be quick.
    const int slot_k = config_.blocks_per_slot * static_cast<int>(device_code::weight_block_k(config_));
    const int ring_k = slot_k * config_.split_k * config_.stages;
    return {problem(config_.block_tokens + 1, device_code::tile_outputs(config_) + 5, ring_k + slot_k + 16),
            problem(1, 1, 16)};
  }

  [[nodiscard]] std::unique_ptr<EmulatedRun> on(const Problem& wanted) const override {
    const DualGemmProblem& gemm = dual_gemm(wanted);
    Problem fitting = problem(gemm.m, gemm.n, gemm.k);
    fitting.as<DualGemmTask>().scale_layout = wanted.as<DualGemmTask>().scale_layout;
    if (gemm.m < 1 || gemm.n < 1 || gemm.k < 16 || gemm.k % 16 != 0) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} cannot be emulated: m and n are at least 1, k is a multiple of 16", label(fitting)));
    }
    return std::make_unique<PackedRun>(config_, fitting);
  }

 private:
  [[nodiscard]] Problem problem(std::int64_t m, std::int64_t n, std::int64_t k) const {
    return problem_of(DualGemmProblem{.m = m,
                                      .n = n,
                                      .k = k,
                                      .a = tokens_,
                                      .b = Format::nvfp4,
                                      .out = format_of(config_.output),
                                      .activation = {.kind = activation_of(config_.activation)}});
  }

  Config config_;
  Format tokens_;
};

}  // namespace

std::shared_ptr<const EmulatedKernel> make_packed_emulation(const Config& config, Format tokens) {
  return std::make_shared<const PackedKernel>(config, tokens);
}

}  // namespace thresher::arena
