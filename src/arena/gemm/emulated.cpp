// The kernels of the products in the emulator.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "arena/emulation/card_for.hpp"
#include "arena/emulation/dependent_launch.hpp"
#include "arena/emulation/planned_run.hpp"
#include "arena/gemm/fields.hpp"
#include "arena/gemm/inputs.hpp"
#include "arena/gemm/judge.hpp"
#include "arena/gemm/parts.hpp"
#include "arena/gemm/task.hpp"
#include "formats/scales.hpp"
#include "ops/forecast.hpp"
#include "strategies/gemm/samples.hpp"
#include "strategies/gemm/tensors.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

namespace tensors = strategies::gemm;
using strategies::PlannedCall;
using strategies::gemm::ProductProblem;
using Strategy = strategies::Strategy<ProductProblem>;

/// The emulator's counts for a problem that brings none: ragged groups, an empty one, one of a single row, and unowned
/// rows.
ProductTask ragged(const GroupedProblem& problem, std::optional<GateUpOrder> order) {
  ProductTask task;
  task.problem = problem;
  task.order = is_gated(problem.activation) ? order : std::nullopt;
  task.counts.assign(static_cast<std::size_t>(problem.experts), 0);
  const bool has_slots = problem.layout == RowLayout::slots;
  std::int64_t left = has_slots ? problem.rows * problem.experts : problem.rows;
  for (std::size_t expert = 0; expert < task.counts.size(); ++expert) {
    const std::int64_t share =
        has_slots ? problem.rows : std::max<std::int64_t>(left / 2, expert + 1 == task.counts.size() ? left : 1);
    task.counts[expert] = expert % 3 == 1 ? static_cast<std::int64_t>(expert % 2) : std::min(left, share);
    left -= task.counts[expert];
  }
  task.margin = !has_slots && left > 1 ? left / 2 : 0;
  task.problem.rows = has_slots ? problem.rows : 0;
  if (problem.layout == RowLayout::gathered) {
    task.skipped = 5;
    task.problem.tokens = std::max<std::int64_t>(problem.tokens, 1);
  }
  return completed(std::move(task));
}

/// A GEMM whose one expert owns every row.
ProductTask dense(const GroupedProblem& problem) {
  return dense_task(GemmProblem{.m = problem.rows,
                                .n = problem.n,
                                .k = problem.k,
                                .a = problem.a,
                                .b = problem.b,
                                .out = problem.out,
                                .bias = problem.bias,
                                .activation = problem.activation});
}

/// Whether a GEMM has all of it.
bool may_be_dense(const ProductProblem& problem) {
  const bool has_all_rows = problem.is_dense() || problem.layout == strategies::gemm::ProductRows::contiguous;
  return has_all_rows && problem.matrices() == 1 && !problem.row_weights;
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

/// The tensors of one call.
struct CallStorage {
  CallStorage(const ProductTask& task, Distribution distribution)
      : inputs(product_inputs(task, distribution, 1)), outputs(product_outputs(task)) {
    for (HostTensor& tensor : inputs) {
      if (task.is_dual_gemm() && tensor.format == Format::nvfp4) {
        vary_rows(tensor);
      }
    }
  }

  /// In the order of the planned call.
  [[nodiscard]] std::vector<strategies::NamedTensor> tensors(const ProductTask& task) const {
    constexpr std::array names{"a",       "b1 (gate)", "b2 (up)", "c",          "gate bias",
                               "up bias", "offsets",   "row_ids", "row_weights"};
    const FindTensor find = find_in(inputs, outputs);
    return task.is_dual_gemm() ? named_tensors(names, std::array{find("a"), find("b1"), find("b2"), find("c")})
                               : named_tensors(names, tensors::in_order(weight_views(grouped_weights(task, find)),
                                                                        grouped_tensors(task, find)));
  }

  std::vector<HostTensor> inputs;
  std::vector<HostTensor> outputs;
};

std::unique_ptr<EmulatedRun> run_of(PlannedCall call, const ProductTask& task) {
  const Distribution distribution = emulated_distribution(task.problem.b);
  const auto storage = std::make_shared<CallStorage>(task, distribution);
  const std::string* const numerics = call.knobs.find("numerics");
  const bool folds = numerics != nullptr && *numerics == name(Numerics::fast);
  const Maker maker{DeviceKind::cuda, folds ? Numerics::fast : Numerics::exact};
  return std::make_unique<PlannedRun>(std::move(call), storage->tensors(task), [storage, task, distribution, maker] {
    return make_product_judge(task, distribution, storage->inputs, maker, 1)->judge(storage->outputs);
  });
}

/// The launches of a strategy with one set of knobs.
class PlannedKernel final : public EmulatedKernel {
 public:
  PlannedKernel(const Strategy& strategy, ProductTask task, const Knobs& knobs, const DeviceSpec& device)
      : strategy_(strategy),
        task_(std::move(task)),
        knobs_(task_.is_dual_gemm() ? as_dependent(strategy, knobs) : knobs),
        device_(device) {}

  [[nodiscard]] std::string title() const override {
    const PlannedCall planned = call(task_);
    // Behind a grouped product there may be a launch that quantizes its output.
    const auto product = std::find_if(planned.steps.begin(), planned.steps.end(), [](const strategies::Step& step) {
      return std::get<strategies::KernelLaunch>(step).persistent;
    });
    const bool is_last = task_.is_dual_gemm() || product == planned.steps.end();
    const auto& launch = std::get<strategies::KernelLaunch>(is_last ? planned.steps.back() : *product);
    return fmt::format("{} ({})", launch.program.title, knobs_.text());
  }
  [[nodiscard]] std::string key() const override {
    const GroupedProblem& p = task_.problem;
    return fmt::format("{} {} {}", kernel_expressions(call(task_)), thresher::name(p.a),
                       task_.is_dual_gemm() ? "" : thresher::name(p.layout));
  }
  [[nodiscard]] std::string arguments(const Problem& problem) const override {
    const auto& task = problem.as<ProductTask>();
    const Fields<ProductTask> fields = product_fields(task.is_dense, is_gated(task.problem.activation));
    return fmt::format("{} --strategy {} --knobs \"{}\" --device {}{}", problem.operation().name(), strategy_.name(),
                       knobs_.text(), device_.name, arguments_of(fields, task));
  }

  [[nodiscard]] std::vector<Problem> edges() const override {
    std::vector<Problem> all;
    for (const ProductProblem& edge : strategy_.edges(product_problem(task_), knobs_, device_)) {
      all.push_back(problem_of(task_.is_dual_gemm() ? dense_task(edge.dual_gemm(), task_.scale_layout)
                               : task_.is_dense     ? dense(edge.grouped())
                                                    : ragged(edge.grouped(), task_.order)));
    }
    return all;
  }

  void check(const Problem& wanted) const override { (void)taken(wanted); }

  [[nodiscard]] std::unique_ptr<EmulatedRun> on(const Problem& wanted) const override {
    const ProductTask task = taken(wanted);
    return run_of(call(task), task);
  }

 private:
  /// The wanted shape and counts in this kernel's formats.
  [[nodiscard]] ProductTask taken(const Problem& wanted) const {
    ProductTask task = wanted.as<ProductTask>();
    const GroupedProblem& own = task_.problem;
    task.problem.a = own.a;
    task.problem.b = own.b;
    task.problem.out = own.out;
    task.problem.activation = own.activation;
    task.problem.bias = own.bias;
    task.problem.row_weights = own.row_weights;
    task.problem.layout = own.layout;
    task.order = task_.order;
    task.is_dense = task_.is_dense;
    if (task.problem.layout == RowLayout::gathered && task.problem.tokens == 0) {
      task.problem.tokens = task.owned_rows();
    }
    task = completed(std::move(task));
    require_extents(task);
    return task;
  }

  static void require_extents(const ProductTask& task) {
    const GroupedProblem& p = task.problem;
    const int multiple = std::max(format_traits(p.a).k_multiple, format_traits(p.b).k_multiple);
    const bool is_dual = task.is_dual_gemm();
    if (p.n < 1 || p.k < multiple || p.k % multiple != 0 || (is_dual && p.rows < 1)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} cannot be emulated: {} at least 1, k is a multiple of {}", label_of(task),
                              is_dual ? "m and n are" : "n is", multiple));
    }
  }

  [[nodiscard]] PlannedCall call(const ProductTask& task) const {
    return strategy_.plan(product_problem(task), knobs_, device_);
  }

  const Strategy& strategy_;
  ProductTask task_;
  Knobs knobs_;
  DeviceSpec device_;
};

class ProductEmulation final : public EmulatedOperation {
 public:
  ProductEmulation(bool is_dense, bool is_dual) : is_dense_(is_dense), is_dual_(is_dual) {}

  [[nodiscard]] std::vector<std::string> strategies() const override {
    std::vector<std::string> names = strategy_names(all());
    std::erase_if(names, [&](const std::string& name) { return samples(name, nullptr).empty(); });
    return names;
  }

  [[nodiscard]] Emulation planned(const Problem& problem, const PlanRequest& request,
                                  const DeviceSpec& device) const override {
    const auto& task = problem.as<ProductTask>();
    const DualGemmOptions options{.strategy = request.strategy, .knobs = Knobs::parse(request.knobs)};
    const PlannedCall call = ops::planned_call(product_problem(task), options, device);
    if (!only_launches(call)) {
      return {nullptr, library_kernels};
    }
    return {std::make_shared<const PlannedKernel>(named(call.strategy), task, call.knobs, device), ""};
  }

  [[nodiscard]] std::vector<std::shared_ptr<const EmulatedKernel>> samples(
      const std::string& wanted, const DeviceSpec* wanted_card) const override {
    std::vector<std::shared_ptr<const EmulatedKernel>> found;
    const Strategy& strategy = named(wanted);
    for (const auto& sample : strategy.samples()) {
      const DeviceSpec* const card = card_for(strategy, sample.problem, wanted_card);
      if (card != nullptr && is_ours(sample.problem)) {
        found.push_back(std::make_shared<const PlannedKernel>(strategy, task_of(sample.problem), sample.knobs, *card));
      }
    }
    return found;
  }

 private:
  [[nodiscard]] strategies::Strategies<ProductProblem> all() const {
    return strategies::gemm::strategies_of(product_kind(is_dense_, is_dual_), DeviceKind::cuda);
  }
  [[nodiscard]] const Strategy& named(const std::string& name) const {
    return *strategies::find_strategy<ProductProblem>(all(), name);
  }

  [[nodiscard]] bool is_ours(const ProductProblem& problem) const {
    return is_dense_ && !is_dual_ ? may_be_dense(problem)
                                  : problem.is_dense() == is_dense_ && (problem.matrices() == 2) == is_dual_;
  }
  [[nodiscard]] ProductTask task_of(const ProductProblem& problem) const {
    return !is_dense_ ? ragged(problem.grouped(), std::nullopt)
           : is_dual_ ? dense_task(problem.dual_gemm())
                      : dense(problem.grouped());
  }

  bool is_dense_;
  bool is_dual_;
};

}  // namespace

const EmulatedOperation* product_emulation(bool is_dense, bool is_dual) {
  static const std::array<ProductEmulation, 4> kinds{ProductEmulation{false, false}, ProductEmulation{false, true},
                                                     ProductEmulation{true, false}, ProductEmulation{true, true}};
  const ProductEmulation& kernels = kinds[(is_dense ? 2 : 0) + (is_dual ? 1 : 0)];
  return kernels.strategies().empty() ? nullptr : &kernels;
}

}  // namespace thresher::arena
