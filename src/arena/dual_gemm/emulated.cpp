// The dual GEMM's kernels in the emulator.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "arena/dual_gemm/generate.hpp"
#include "arena/dual_gemm/judge.hpp"
#include "arena/dual_gemm/operation.hpp"
#include "arena/dual_gemm/task.hpp"
#include "arena/emulation/card_for.hpp"
#include "arena/emulation/dependent_launch.hpp"
#include "arena/emulation/planned_run.hpp"
#include "formats/scales.hpp"
#include "ops/forecast.hpp"
#include "strategies/gemm/registry.hpp"
#include "strategies/gemm/samples.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

using strategies::PlannedCall;
using Strategy = strategies::Strategy<strategies::gemm::ProductProblem>;

bool only_launches(const PlannedCall& call) {
  return std::all_of(call.steps.begin(), call.steps.end(), [](const strategies::Step& step) {
    return std::holds_alternative<strategies::KernelLaunch>(step);
  });
}

/// The launch that multiplies.
const strategies::KernelLaunch& last_launch(const PlannedCall& call) {
  return std::get<strategies::KernelLaunch>(call.steps.back());
}

/// Every code of a format with scales, so that no conversion is left out.
Distribution distribution(const DualGemmProblem& problem) {
  return bits(problem.b) < 16 ? Distribution::full_range : Distribution::normal;
}

/// Divides rows in NVFP4 by powers of two, so that no row's factor does for another's. Scales stay finite.
void vary_rows(HostTensor& tensor) {
  constexpr std::uint8_t one_exponent = 1U << 3;  // of e4m3
  constexpr std::int64_t powers = 5;
  const std::int64_t columns = tensor.shape[1] / formats::scale_block;
  for (std::int64_t row = 0; row < tensor.rows(); ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      std::uint8_t& code = tensor.scales[formats::scale_offset(row, column, columns, tensor.scale_layout)];
      const auto less = static_cast<std::uint8_t>(row % powers * one_exponent);
      code = code > less ? static_cast<std::uint8_t>(code - less) : std::uint8_t{0};
    }
  }
}

/// The operands of one call, and behind them its output.
std::vector<HostTensor> tensors_of(const DualGemmTask& task) {
  std::vector<HostTensor> tensors = dual_gemm_inputs(task, distribution(task.problem), 1);
  for (HostTensor& tensor : tensors) {
    if (tensor.format == Format::nvfp4) {
      vary_rows(tensor);
    }
  }
  tensors.push_back(make_host_tensor("c", task.problem.out, {task.problem.m, task.problem.n}));
  return tensors;
}

std::unique_ptr<EmulatedRun> run_of(PlannedCall call, const DualGemmTask& task) {
  const auto storage = std::make_shared<std::vector<HostTensor>>(tensors_of(task));
  constexpr std::array names{"a", "b1 (gate)", "b2 (up)", "c"};
  std::vector<strategies::NamedTensor> tensors;
  for (std::size_t i = 0; i < storage->size(); ++i) {
    tensors.push_back({names[i], (*storage)[i].view()});
  }
  const std::string* const numerics = call.knobs.find("numerics");
  const bool folds = numerics != nullptr && *numerics == name(Numerics::fast);
  const Maker maker{DeviceKind::cuda, folds ? Numerics::fast : Numerics::exact};
  return std::make_unique<PlannedRun>(std::move(call), std::move(tensors), [storage, problem = task.problem, maker] {
    return make_dual_gemm_judge(problem, distribution(problem), *storage, maker, 1)->judge({storage->back()});
  });
}

/// What a strategy launches with one set of knobs.
class PlannedKernel final : public EmulatedKernel {
 public:
  PlannedKernel(const Strategy& strategy, const DualGemmTask& task, Knobs knobs, const DeviceSpec& device)
      : strategy_(strategy), task_(task), knobs_(as_dependent(strategy, std::move(knobs))), device_(device) {}

  [[nodiscard]] std::string title() const override {
    return fmt::format("{} ({})", last_launch(call(task_.problem)).program.title, knobs_.text());
  }
  [[nodiscard]] std::string key() const override {
    std::string key;
    for (const strategies::Step& step : call(task_.problem).steps) {
      key += std::get<strategies::KernelLaunch>(step).expression + " ";
    }
    return key + std::string(thresher::name(task_.problem.a));
  }
  [[nodiscard]] std::string arguments(const Problem& problem) const override {
    const DualGemmProblem& gemm = dual_gemm(problem);
    return fmt::format(
        "dual_gemm --strategy {} --knobs \"{}\" --device {} --a {} --b {} --out {} --activation {} --m {} --n {} --k "
        "{}",
        strategy_.name(), knobs_.text(), device_.name, thresher::name(gemm.a), thresher::name(gemm.b),
        thresher::name(gemm.out), thresher::name(gemm.activation.kind), gemm.m, gemm.n, gemm.k);
  }

  [[nodiscard]] std::vector<Problem> edges() const override {
    std::vector<Problem> all;
    for (const strategies::gemm::ProductProblem& edge : strategy_.edges(task_.problem, knobs_, device_)) {
      all.push_back(problem_of(DualGemmTask{edge, task_.scale_layout}));
    }
    return all;
  }

  void check(const Problem& wanted) const override { (void)taken(wanted); }

  [[nodiscard]] std::unique_ptr<EmulatedRun> on(const Problem& wanted) const override {
    const DualGemmTask task = taken(wanted);
    return run_of(call(task.problem), task);
  }

 private:
  /// The wanted shape in this kernel's formats.
  [[nodiscard]] DualGemmTask taken(const Problem& wanted) const {
    DualGemmTask task = task_;
    task.problem.m = dual_gemm(wanted).m;
    task.problem.n = dual_gemm(wanted).n;
    task.problem.k = dual_gemm(wanted).k;
    task.scale_layout = wanted.as<DualGemmTask>().scale_layout;
    require_multiples(task);
    return task;
  }
  [[nodiscard]] PlannedCall call(const DualGemmProblem& problem) const {
    return strategy_.plan(problem, knobs_, device_);
  }

  static void require_multiples(const DualGemmTask& task) {
    const DualGemmProblem& gemm = task.problem;
    const int multiple = std::max(format_traits(gemm.a).k_multiple, format_traits(gemm.b).k_multiple);
    if (gemm.m < 1 || gemm.n < 1 || gemm.k < multiple || gemm.k % multiple != 0) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} cannot be emulated: m and n are at least 1, k is a multiple of {}", label_of(task),
                              multiple));
    }
  }

  const Strategy& strategy_;
  DualGemmTask task_;
  Knobs knobs_;
  DeviceSpec device_;
};

class DualGemmEmulation final : public EmulatedOperation {
 public:
  [[nodiscard]] std::vector<std::string> strategies() const override {
    std::vector<std::string> names;
    for (const Strategy* strategy :
         strategies::gemm::strategies_of(strategies::gemm::Product::dual_gemm, DeviceKind::cuda)) {
      if (!dense_samples(*strategy).empty()) {
        names.emplace_back(strategy->name());
      }
    }
    return names;
  }

  [[nodiscard]] Emulation planned(const Problem& problem, const PlanRequest& request,
                                  const DeviceSpec& device) const override {
    const DualGemmOptions options{.strategy = request.strategy, .knobs = Knobs::parse(request.knobs)};
    const PlannedCall call = ops::planned_call(dual_gemm(problem), options, device);
    if (!only_launches(call)) {
      return {nullptr, "its products are a library's kernels (cuBLASLt), not Thresher's"};
    }
    return {std::make_shared<const PlannedKernel>(named(call.strategy), problem.as<DualGemmTask>(), call.knobs, device),
            ""};
  }

  [[nodiscard]] std::vector<std::shared_ptr<const EmulatedKernel>> samples(
      const std::string& wanted, const DeviceSpec* wanted_card) const override {
    std::vector<std::shared_ptr<const EmulatedKernel>> found;
    const Strategy& strategy = named(wanted);
    for (const auto& sample : dense_samples(strategy)) {
      if (const DeviceSpec* card = card_for(strategy, sample.problem, wanted_card)) {
        found.push_back(
            std::make_shared<const PlannedKernel>(strategy, DualGemmTask{sample.problem}, sample.knobs, *card));
      }
    }
    return found;
  }

 private:
  static std::vector<strategies::Sample<strategies::gemm::ProductProblem>> dense_samples(const Strategy& strategy) {
    return strategies::gemm::dense_or_not(strategy.samples(), true);
  }
  static const Strategy& named(const std::string& name) {
    return *strategies::find_strategy<strategies::gemm::ProductProblem>(
        strategies::gemm::strategies_of(strategies::gemm::Product::dual_gemm, DeviceKind::cuda), name);
  }
};

}  // namespace

const EmulatedOperation* DualGemmOperation::emulated() const {
  static const DualGemmEmulation kernels;
  return &kernels;
}

}  // namespace thresher::arena
