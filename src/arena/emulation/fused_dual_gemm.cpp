#include "arena/emulation/fused_dual_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "arena/dual_gemm/generate.hpp"
#include "arena/dual_gemm/task.hpp"
#include "arena/emulation/host_kernel.hpp"
#include "arena/emulation/kernel_numbers.hpp"
#include "strategies/dual_gemm/fused/host/emulated.hpp"
#include "strategies/dual_gemm/fused/program.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

namespace device_code = strategies::dual_gemm::fused;
using device_code::Config;

class FusedRun final : public EmulatedRun {
 public:
  FusedRun(const Config& config, const Problem& problem)
      : kernel_(host_kernel(device_code::program(config))),
        config_(config),
        problem_(dual_gemm(problem)),
        inputs_(dual_gemm_inputs(problem.as<DualGemmTask>(), Distribution::normal, 1)),
        c_(make_host_tensor("c", problem_.out, {problem_.m, problem_.n})) {
    for (const HostTensor& input : inputs_) {
      memory_.add(input.name, input.values.data(), input.values.size(), emulator::Use::input);
    }
    memory_.add("c", c_.values.data(), c_.values.size(), emulator::Use::output);
  }

  [[nodiscard]] emulator::Report run(const emulator::Options& options) override {
    std::fill(c_.values.begin(), c_.values.end(), std::uint8_t{0xA5});
    const auto matrix = [](const HostTensor& tensor) {
      return device_code::Matrix{reinterpret_cast<std::uintptr_t>(tensor.values.data()), tensor.shape[1]};
    };
    const device_code::EmulatedProblem problem{{problem_.m, problem_.n, problem_.k},
                                               matrix(inputs_[0]),
                                               matrix(inputs_[1]),
                                               matrix(inputs_[2]),
                                               matrix(c_),
                                               problem_.activation};
    return emulate(kernel_, config_, problem, memory_, options);
  }

  [[nodiscard]] std::span<const std::uint8_t> output() const override { return c_.values; }

 private:
  strategies::HostKernel kernel_;
  Config config_;
  DualGemmProblem problem_;
  std::vector<HostTensor> inputs_;
  HostTensor c_;
  emulator::GlobalMemory memory_;
};

class FusedKernel final : public EmulatedKernel {
 public:
  FusedKernel(const Config& config, std::string knobs) : config_(config), knobs_(std::move(knobs)) {}

  [[nodiscard]] std::string title() const override {
    std::string text = device_code::title(config_);
    const auto add = [&](bool is_set, const std::string& words) { text += is_set ? ", " + words : ""; };
    add(config_.activation != device_code::ActivationCode::silu,
        std::string(thresher::name(activation_of(config_.activation))));
    add(config_.multicast > 1, fmt::format("multicast {}", config_.multicast));
    add(config_.split_k > 1, fmt::format("split-K {}", config_.split_k));
    add(config_.epilogue == device_code::Epilogue::tma, "tma");
    add(config_.persistent, "persistent");
    return text;
  }
  [[nodiscard]] std::string key() const override { return device_code::kernel_expression(config_); }

  [[nodiscard]] std::string arguments(const Problem& problem) const override {
    const DualGemmProblem& gemm = dual_gemm(problem);
    const std::string shape = fmt::format(" --m {} --n {} --k {}", gemm.m, gemm.n, gemm.k);
    if (knobs_.empty()) {
      return fmt::format("dual_gemm --strategy {}", strategy_name(config_)) + shape;
    }
    return fmt::format("dual_gemm --knobs \"{}\" --a {} --out {} --activation {}", knobs_, thresher::name(gemm.a),
                       thresher::name(gemm.out), thresher::name(gemm.activation.kind)) +
           shape;
  }

  [[nodiscard]] std::vector<Problem> edges() const override {
    const int ring_k = config_.block_k * config_.stages * config_.split_k;
    return {problem(device_code::block_tokens(config_) + 1, config_.block_outputs + 8, ring_k + config_.block_k + 8),
            problem(1, 8, 8)};
  }

  [[nodiscard]] std::unique_ptr<EmulatedRun> on(const Problem& wanted) const override {
    const DualGemmProblem& gemm = dual_gemm(wanted);
    const Problem fitting = problem(gemm.m, gemm.n, gemm.k);
    if (gemm.m < 1 || gemm.n < 8 || gemm.k < 8 || gemm.n % 8 != 0 || gemm.k % 8 != 0) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} cannot be emulated: m is at least 1, n and k are multiples of 8", label(fitting)));
    }
    return std::make_unique<FusedRun>(config_, fitting);
  }

 private:
  [[nodiscard]] Problem problem(std::int64_t m, std::int64_t n, std::int64_t k) const {
    return problem_of(DualGemmProblem{.m = m,
                                      .n = n,
                                      .k = k,
                                      .a = format_of(config_.operand),
                                      .b = format_of(config_.operand),
                                      .out = format_of(config_.output),
                                      .activation = {.kind = activation_of(config_.activation)}});
  }

  Config config_;
  std::string knobs_;
};

}  // namespace

std::string strategy_name(const Config& config) {
  return config.strategy == device_code::Strategy::sequential    ? "sequential"
         : config.strategy == device_code::Strategy::interleaved ? "interleaved"
                                                                 : "pingpong";
}

std::shared_ptr<const EmulatedKernel> make_fused_emulation(const Config& config, std::string knobs) {
  return std::make_shared<const FusedKernel>(config, std::move(knobs));
}

}  // namespace thresher::arena
