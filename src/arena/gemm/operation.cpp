// The products in the arena, which are operations of one class: the dual GEMM, the GEMM, the grouped dual GEMM and the
// grouped GEMM. `plan` is fitted and tuned for the dual GEMM, and its kernels can be looked into.
#include <algorithm>
#include <functional>

#include "arena/gemm/arguments.hpp"
#include "arena/gemm/fields.hpp"
#include "arena/gemm/inputs.hpp"
#include "arena/gemm/judge.hpp"
#include "arena/gemm/kernel_variant.hpp"
#include "arena/gemm/options.hpp"
#include "arena/gemm/parts.hpp"
#include "arena/operation/planned_code.hpp"
#include "arena/operation/planned_runner.hpp"
#include "arena/operation/task_bytes.hpp"
#include "ops/cuda_device_spec.hpp"
#include "ops/forecast.hpp"
#include "ops/product_choice.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {
namespace {

/// A user without Thresher does this.
constexpr const char* baseline = "two_pass";

/// Problems are not made smaller than this along any side.
constexpr std::int64_t min_extent = 64;
/// A multiple of this suits every format's rows and scales.
constexpr std::int64_t extent_step = 32;

double as_double(std::int64_t value) { return static_cast<double>(value); }

double bytes_per_element(Format format, OperandRole role = OperandRole::tokens) {
  return format_traits(format).stored_bits(role) / 8;
}

double weight_bytes(const ProductTask& task, std::int64_t experts) {
  const GroupedProblem& p = task.problem;
  return (is_gated(p.activation) ? 2 : 1) * as_double(experts) * as_double(p.n) * as_double(p.k) *
         bytes_per_element(p.b, OperandRole::weights);
}

std::optional<Problem> smaller_dual_gemm(const ProductTask& task) {
  DualGemmProblem gemm = dual_gemm_of(task);
  std::int64_t& greatest = std::max({std::ref(gemm.n), std::ref(gemm.k), std::ref(gemm.m)}, std::less<std::int64_t>());
  if (greatest < 2 * min_extent) {
    return std::nullopt;
  }
  greatest = greatest / 2 / extent_step * extent_step;
  return problem_of(dense_task(gemm, task.scale_layout));
}

class ProductOperation final : public Operation {
 public:
  /// Dense: one expert owns every row. Dual: gate and up of each expert.
  ProductOperation(std::string_view name, bool is_dense, bool is_dual)
      : name_(name), is_dense_(is_dense), is_dual_(is_dual) {}

  // Its problems.
  [[nodiscard]] std::string_view name() const override { return name_; }
  void add_problems(const ProblemTable& tables, std::vector<Problem>& problems) const override {
    add_product_problems(is_dense_, is_dual_, tables, problems);
  }
  [[nodiscard]] std::vector<ProblemOption> options() const override {
    return options_of<ProductTask>(product_fields(is_dense_, is_dual_), completed, completed);
  }
  [[nodiscard]] Problem example() const override {
    if (is_dense_) {
      ProductTask task = dense_task(GemmProblem{
          .m = is_dual_ ? 200 : 70, .n = 72, .k = 208, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16});
      task.problem.activation = is_dual_ ? std::optional(Activation{}) : std::nullopt;
      return problem_of(std::move(task));
    }
    ProductTask task;
    task.problem = {.n = 72, .k = 208, .a = Format::bf16, .b = Format::bf16, .out = Format::bf16};
    task.problem.activation = is_dual_ ? std::optional(Activation{}) : std::nullopt;
    task.counts = {40, 0, 7, 21};
    return problem_of(completed(std::move(task)));
  }

  [[nodiscard]] std::string label(const Problem& problem) const override { return label_of(problem.as<ProductTask>()); }

  [[nodiscard]] Cost cost(const Problem& problem) const override {
    const auto& task = problem.as<ProductTask>();
    const GroupedProblem& p = task.problem;
    const double rows = as_double(task.owned_rows());
    const double rows_of_a = p.layout == RowLayout::gathered ? std::min(rows, as_double(p.tokens)) : rows;
    const double products = is_gated(p.activation) ? 2 : 1;
    return {2 * products * rows * as_double(p.n) * as_double(p.k),
            rows_of_a * as_double(p.k) * bytes_per_element(p.a) + weight_bytes(task, task.active_experts()) +
                rows * as_double(p.n) * bytes_per_element(p.out)};
  }

  [[nodiscard]] double working_bytes(const Problem& problem) const override {
    const auto& task = problem.as<ProductTask>();
    if (task.is_dual_gemm()) {
      return 8.0 * as_double(task.problem.n) *
             as_double(task.problem.k);  // in float32, for a strategy that expands them
    }
    return weight_bytes(task, task.problem.experts);  // packed
  }

  [[nodiscard]] std::optional<Problem> neighbour(const Problem& problem) const override {
    ProductTask near = problem.as<ProductTask>();
    near.routed.reset();
    near.problem.n += std::max(24, format_traits(near.problem.out).n_multiple);
    near.problem.k += 32;
    near.counts.front() += 3;
    if (!is_dense_) {
      near.counts.push_back(1);
    }
    return problem_of(completed(std::move(near)));
  }

  [[nodiscard]] std::optional<Problem> smaller(const Problem& problem) const override {
    if (is_dual_gemm()) {
      return smaller_dual_gemm(problem.as<ProductTask>());
    }
    ProductTask half = problem.as<ProductTask>();
    // Outputs that share scales stay whole.
    const std::int64_t n_step = std::max<std::int64_t>(extent_step, format_traits(half.problem.out).n_multiple);
    const bool halves_n = half.problem.n >= half.problem.k && half.problem.n >= 2 * n_step;
    std::int64_t& greatest = halves_n ? half.problem.n : half.problem.k;
    const std::int64_t max_rows = *std::max_element(half.counts.begin(), half.counts.end());
    if (max_rows >= 2 * min_extent && max_rows >= greatest) {
      half.routed.reset();
      for (std::int64_t& count : half.counts) {
        count = (count + 1) / 2;
      }
      half.problem.rows = half.problem.layout == RowLayout::slots ? (half.problem.rows + 1) / 2 : 0;
    } else if (greatest >= 2 * min_extent) {
      const std::int64_t step = halves_n ? n_step : extent_step;
      greatest = greatest / 2 / step * step;
    } else if (half.counts.size() >= 4) {
      half.routed.reset();
      half.counts.resize(half.counts.size() / 2);
      if (half.owned_rows() == 0) {
        half.counts.front() = 1;
      }
    } else {
      return std::nullopt;
    }
    return problem_of(completed(std::move(half)));
  }

  // Its data.
  [[nodiscard]] bool offers(const Problem& problem, Distribution distribution) const override {
    // The clamp keeps gates where σ is not 1, so nothing there is exact.
    const auto& activation = problem.as<ProductTask>().problem.activation;
    return distribution != Distribution::integers || !activation || activation->kind != ActivationKind::swiglu_clamped;
  }

  [[nodiscard]] std::vector<HostTensor> inputs(const Problem& problem, Distribution distribution,
                                               std::uint64_t seed) const override {
    return product_inputs(problem.as<ProductTask>(), distribution, seed);
  }

  [[nodiscard]] std::vector<HostTensor> outputs(const Problem& problem) const override {
    return product_outputs(problem.as<ProductTask>());
  }

  /// Weights of other experts, and rows with other signs: unowned rows stay where they are. No two sets of a dual GEMM
  /// hold the same pairs of rows.
  [[nodiscard]] std::vector<HostTensor> variation(const std::vector<HostTensor>& inputs,
                                                  std::size_t index) const override {
    if (is_dual_gemm()) {
      return Operation::variation(inputs, index);
    }
    std::vector<HostTensor> varied;
    Random random(derive_seed(index, "variation"));
    std::int64_t step = 1;
    for (const HostTensor& input : inputs) {
      varied.push_back(input.is_weight ? rotate_rows(input, static_cast<std::int64_t>(index) * step) : input);
      if (!input.is_weight) {
        flip_signs(varied.back(), random);
      }
      step += 2;
    }
    return varied;
  }

  [[nodiscard]] std::unique_ptr<Judge> judge(const Problem& problem, Distribution distribution,
                                             const std::vector<HostTensor>& inputs, const Maker& maker,
                                             std::uint64_t seed) const override {
    return make_product_judge(problem.as<ProductTask>(), distribution, inputs, maker, seed);
  }

  [[nodiscard]] std::unique_ptr<Inspector> inspector(const Problem& problem, Distribution distribution,
                                                     const std::vector<HostTensor>& inputs, const Maker& maker,
                                                     std::uint64_t seed) const override {
    return make_product_inspector(problem.as<ProductTask>(), distribution, inputs, maker, seed);
  }

  [[nodiscard]] std::vector<HostTensor> activations(const Problem& problem, Distribution distribution,
                                                    std::uint64_t seed) const override {
    return product_activations(problem.as<ProductTask>(), distribution, seed);
  }

  [[nodiscard]] std::optional<std::vector<HostTensor>> rearranged(const Problem& problem, Distribution distribution,
                                                                  std::uint64_t change,
                                                                  std::uint64_t seed) const override {
    if (is_dense_) {
      return std::nullopt;  // there is nothing that a kernel could have remembered
    }
    const auto& task = problem.as<ProductTask>();
    return product_activations(task, other_counts(task, change, seed), distribution, derive_seed(seed, "rearranged"));
  }

  [[nodiscard]] bool uses_every_element(const Problem& problem) const override {
    const auto& task = problem.as<ProductTask>();
    return task.problem.layout == RowLayout::packed && task.margin == 0 &&
           task.active_experts() == task.problem.experts;
  }

  // Its strategies.
  /// The baseline comes first.
  [[nodiscard]] std::vector<std::string> contestants(DeviceKind kind) const override {
    std::vector<std::string> known = strategy_names(strategies::gemm::strategies_of(product(), kind));
    if (is_dual_gemm()) {
      std::stable_partition(known.begin(), known.end(), [](const std::string& name) { return name == baseline; });
    }
    return known;
  }

  void check(const ContestantSpec& spec, const Device& device) const override {
    require_known(spec, device, contestants(device.kind()));
    if (is_dual_gemm()) {
      ops::check_knobs(device, dual_gemm(example()), plan_options(spec));
    }
  }

  [[nodiscard]] Numerics numerics(const ContestantSpec& spec) const override {
    return ops::numerics_of(plan_options(spec).knobs);
  }

  [[nodiscard]] std::string unsupported_reason(const Problem& problem, const ContestantSpec& spec,
                                               const Device& device) const override {
    return ops::unsupported_reason(device.kind(), ops::spec_of(device), product_problem(problem.as<ProductTask>()),
                                   plan_options(spec));
  }

  [[nodiscard]] std::string obstacle(const Problem& problem, const ContestantSpec& spec,
                                     const Device& device) const override {
    return ops::product_obstacle(device, product_problem(problem.as<ProductTask>()), plan_options(spec));
  }

  [[nodiscard]] PlanRequest plan_request(const ContestantSpec& spec) const override {
    const DualGemmOptions options = plan_options(spec);
    return {options.strategy, options.knobs.text()};
  }

  [[nodiscard]] MachineCode machine_code(const Problem& problem, const ContestantSpec& spec,
                                         const DeviceSpec& device) const override {
    return machine_code_of(ops::planned_call(product_problem(problem.as<ProductTask>()), plan_options(spec), device),
                           std::string(thresher::name(device.arch)));
  }

  [[nodiscard]] std::unique_ptr<Runner> prepare(const Problem& problem, const ContestantSpec& spec,
                                                const Device& device, Memory& memory,
                                                const std::vector<DeviceSet>& sets) const override {
    const auto& task = problem.as<ProductTask>();
    const DualGemmOptions options = plan_options(spec);
    const auto matrices = [](const FindTensor& find) { return MatrixCall{find("a"), find("c")}; };
    if (task.is_dual_gemm()) {
      const auto make_plan = [&](const FindTensor& find) {
        return plan(device, dual_gemm_of(task), find("b1"), find("b2"), options);
      };
      return make_planned_runner(memory, sets, "b1", make_plan, matrices);
    }
    if (task.is_dense) {
      const auto make_plan = [&](const FindTensor& find) {
        const GroupedWeights weights = grouped_weights(task, find);
        return plan(device, gemm_of(task),
                    GemmWeights{.b = only_matrix(weights.b1), .bias = only_matrix(weights.bias1)}, options);
      };
      return make_planned_runner(memory, sets, "b1", make_plan, matrices);
    }
    const auto make_plan = [&](const FindTensor& find) {
      return plan(device, task.problem, grouped_weights(task, find), options);
    };
    return make_planned_runner(memory, sets, "b1", make_plan,
                               [&](const FindTensor& find) { return grouped_tensors(task, find); });
  }

  [[nodiscard]] PlannerResult outlook(const Problem& problem, const ContestantSpec& spec, const DeviceSpec& device,
                                      const planner::Calibration& calibration) const override {
    const DualGemmOptions options = plan_options(spec);
    const strategies::gemm::ProductProblem p = product_problem(problem.as<ProductTask>());
    try {
      if (std::string obstacle = ops::unsupported_reason(DeviceKind::cuda, device, p, options); !obstacle.empty()) {
        return {.infeasible_reasons = {std::move(obstacle)}, .is_for_other_formats = true};
      }
      const strategies::PlannedCall call = ops::planned_call(p, options, device);
      return {.work = call.work, .prediction = ops::forecast(call, device, calibration)};
    } catch (const Error& error) {
      if (error.code() == ErrorCode::invalid_argument && is_dual_gemm()) {
        throw;  // an unknown strategy, knob or value
      }
      return {.infeasible_reasons = {error.what()}};
    }
  }

  [[nodiscard]] const EmulatedOperation* emulated() const override { return product_emulation(is_dense_, is_dual_); }
  [[nodiscard]] std::vector<CalibrationCase> calibration_cases() const override {
    return is_dual_gemm() ? dual_gemm_calibration_cases() : std::vector<CalibrationCase>{};
  }
  [[nodiscard]] const TunedChoices* tuned_choices() const override {
    return is_dual_gemm() ? dual_gemm_tuned_choices() : nullptr;
  }
  [[nodiscard]] PreparedVariant prepare_variant(const Problem& problem, const PlanRequest& request,
                                                const Device& device, Memory& memory,
                                                const std::vector<DeviceSet>& sets,
                                                const KernelVariant& variant) const override {
    if (!is_dual_gemm()) {
      return Operation::prepare_variant(problem, request, device, memory, sets, variant);
    }
    const DualGemmOptions options{.strategy = request.strategy, .knobs = Knobs::parse(request.knobs)};
    auto runner = make_planned_runner(
        memory, sets, "b1",
        [&](const FindTensor& find) {
          return DualGemm(dual_gemm(problem),
                          plan_variant(device, dual_gemm(problem), find("b1"), find("b2"), options, variant));
        },
        [](const FindTensor& find) { return MatrixCall{find("a"), find("c")}; });
    std::string strategy = runner->first_plan().strategy();
    return {std::move(runner), std::move(strategy)};
  }

  [[nodiscard]] std::vector<Argument> arguments(const Problem& problem, const FindTensor& find) const override {
    return product_arguments(problem.as<ProductTask>(), find);
  }
  [[nodiscard]] std::string formats_text(const Problem& problem) const override {
    return arena::formats_text(problem.as<ProductTask>());
  }
  [[nodiscard]] std::string bytes(const Problem& problem) const override { return bytes_of(problem.as<ProductTask>()); }
  [[nodiscard]] Problem from_bytes(std::string_view bytes) const override {
    return problem_of(task_from<ProductTask>(bytes));
  }

 private:
  [[nodiscard]] bool is_dual_gemm() const noexcept { return is_dense_ && is_dual_; }
  [[nodiscard]] strategies::gemm::Product product() const noexcept { return product_kind(is_dense_, is_dual_); }

  std::string_view name_;
  bool is_dense_;
  bool is_dual_;
};

}  // namespace

const Operation& dual_gemm_operation() {
  static const ProductOperation operation("dual_gemm", true, true);
  return operation;
}

const Operation& gemm_operation() {
  static const ProductOperation operation("gemm", true, false);
  return operation;
}

const Operation& grouped_dual_gemm_operation() {
  static const ProductOperation operation("grouped_dual_gemm", false, true);
  return operation;
}

const Operation& grouped_gemm_operation() {
  static const ProductOperation operation("grouped_gemm", false, false);
  return operation;
}

}  // namespace thresher::arena
