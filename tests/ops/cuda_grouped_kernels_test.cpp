// The grouped strategies' kernels on a Hopper GPU, as their planned calls launch them, against the definition on the
// CPU: every layout of rows and every format, ragged and empty groups, graphs whose counts change, nonsense for bounds.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>

#include "ops/cuda_call.hpp"
#include "ops/cuda_device_spec.hpp"
#include "reference/plain_sums.hpp"
#include "runtime/stream.hpp"
#include "strategies/grouped_gemm/registry.hpp"
#include "strategies/grouped_gemm/tensors.hpp"
#include "support/grouped_checks.hpp"
#include "support/tensor_on_gpu.hpp"

#define SKIP_WITHOUT_HOPPER()                            \
  SKIP_WITHOUT_GPU();                                    \
  if (!runtime::device_properties(0).is(Arch::sm_90a)) { \
    GTEST_SKIP() << "these kernels are for Hopper GPUs"; \
  }                                                      \
  static_assert(true)

namespace thresher {
namespace {

namespace grouped = strategies::grouped_gemm;
using test::GroupedCase;
using test::GroupedForm;
using test::OnGpu;
using test::ragged_form;
using test::TensorOnGpu;
using test::with_layout;
using GroupedStrategy = strategies::Strategy<GroupedProblem>;

DeviceSpec device() { return ops::spec_of(Device::cuda(0)); }

/// A planned call on the operands of a case.
class GpuRun {
 public:
  GpuRun(GroupedCase& host, const strategies::PlannedCall& planned)
      : host_(host),
        b1_(host.weights().b1),
        b2_(host.weights().b2),
        bias1_(host.weights().bias1),
        bias2_(host.weights().bias2),
        a_(host.tensors().a),
        c_(host.tensors().c),
        groups_(groups_of(host)),
        row_ids_(host.tensors().row_ids),
        row_weights_(host.tensors().row_weights) {
    const std::string* const numerics = planned.knobs.find("numerics");
    numerics_ = numerics != nullptr && *numerics == "fast" ? Numerics::fast : Numerics::exact;
    GroupedWeights weights = host.weights();
    if (weights.up_global_scale != nullptr) {
      up_scales_ = std::make_unique<OnGpu>(
          std::vector<float>(weights.up_global_scale, weights.up_global_scale + host.problem().experts));
      weights.up_global_scale = static_cast<const float*>(up_scales_->data());
    }
    weights.b1 = b1_.tensor();
    weights.b2 = b2_.tensor();
    weights.bias1 = bias1_.tensor();
    weights.bias2 = bias2_.tensor();
    GroupedTensors tensors = host.tensors();
    tensors.a = a_.tensor();
    tensors.c = c_.tensor();
    (tensors.counts.rank > 0 ? tensors.counts : tensors.offsets) = groups_.tensor();
    tensors.row_ids = row_ids_.tensor();
    tensors.row_weights = row_weights_.tensor();
    tensors_ = grouped::in_order(weight_views(weights), tensors);
    if (planned.packing != nullptr) {
      packed_ = runtime::DeviceBuffer(0, planned.packed_bytes());
      const strategies::CallTensors of{tensors_, nullptr, packed_.data()};
      ops::CudaCall(*planned.packing, 0, of).run({}, of);
      runtime::synchronize({}, 0);
    }
    call_ = std::make_unique<ops::CudaCall>(planned, 0, strategies::CallTensors{tensors_, nullptr, packed_.data()});
    workspace_ = std::make_unique<OnGpu>(call_->workspace_bytes());
  }

  void enqueue(Stream stream) const { call_->run(stream, {tensors_, workspace_->data(), packed_.data()}); }

  /// Runs it and looks at everything it may have touched; empty when C and the status are right.
  std::string run_and_judge() {
    c_.values().fill(0xFF);
    enqueue({});
    runtime::synchronize({}, 0);
    return judged();
  }
  std::string judged() {
    fetch();
    for (const TensorOnGpu* tensor : {&b1_, &b2_, &bias1_, &bias2_, &a_, &c_, &groups_, &row_ids_, &row_weights_}) {
      if (!tensor->guards_intact()) {
        return "memory around a tensor was written";
      }
    }
    if (!workspace_->guards_intact()) {
      return "memory around the workspace was written";
    }
    const GroupedStatus status = grouped::status_in(workspace_->download<std::uint32_t>());
    const GroupedStatus wanted = reference::owned_rows(host_.problem(), host_.tensors()).status;
    if (status != wanted) {
      return "status: " + status.explain() + ", expected: " + wanted.explain();
    }
    const reference::PlainSums sums =
        reference::plain_sums(host_.problem().a, host_.problem().b, numerics_, DeviceKind::cuda);
    return test::wrong_rows(host_, sums.is_folded ? Numerics::fast : Numerics::exact, sums.accumulation);
  }
  /// Other groups for the calls that follow, on the GPU and for the judge.
  void regroup(const std::vector<std::int32_t>& groups) {
    host_.groups() = groups;
    runtime::copy(groups_.values().data(), groups.data(), groups.size() * sizeof(std::int32_t), 0);
  }
  void poison() const { c_.values().fill(0xFF); }
  [[nodiscard]] std::vector<std::uint8_t> bytes() const { return c_.values().download<std::uint8_t>(); }

 private:
  static Tensor groups_of(GroupedCase& host) {
    const GroupedTensors tensors = host.tensors();
    return tensors.counts.rank > 0 ? tensors.counts : tensors.offsets;
  }
  void fetch() {
    const std::vector<std::uint8_t> bytes = this->bytes();
    std::copy(bytes.begin(), bytes.end(), static_cast<std::uint8_t*>(host_.tensors().c.data));
  }

  GroupedCase& host_;
  Numerics numerics_ = Numerics::exact;
  TensorOnGpu b1_;
  TensorOnGpu b2_;
  TensorOnGpu bias1_;
  TensorOnGpu bias2_;
  TensorOnGpu a_;
  TensorOnGpu c_;
  TensorOnGpu groups_;
  TensorOnGpu row_ids_;
  TensorOnGpu row_weights_;
  std::unique_ptr<OnGpu> up_scales_;
  std::array<Tensor, grouped::tensor_count> tensors_;
  runtime::DeviceBuffer packed_;
  std::unique_ptr<ops::CudaCall> call_;
  std::unique_ptr<OnGpu> workspace_;
};

/// `act(strategy, knobs)` for every strategy made for the problem, and every configuration that it would choose from.
template <class Act>
void for_every_choice(const GroupedProblem& problem, const Act& act) {
  const DeviceSpec here = device();
  for (const GroupedStrategy* const strategy : grouped::strategies_of(DeviceKind::cuda)) {
    if (!strategy->not_made_for(problem, here)) {
      std::vector<Knobs> all = strategy->candidates(problem, {}, here);
      if (bits(problem.b) < 16) {
        const std::vector<Knobs> fast = strategy->candidates(problem, {{"numerics", "fast"}}, here);
        all.insert(all.end(), fast.begin(), fast.end());
      }
      for (const Knobs& knobs : all) {
        SCOPED_TRACE(std::string(strategy->name()) + " " + knobs.text());
        act(*strategy, knobs);
      }
    }
  }
}

std::string judged(const GroupedProblem& problem, const GroupedForm& form, const GroupedStrategy& strategy,
                   const Knobs& knobs) {
  GroupedCase host(problem, form);
  return GpuRun(host, strategy.plan(problem, knobs, device())).run_and_judge();
}

/// Kinds of operands that strategies are made for.
struct Operands {
  Format a;
  Format b;
  Format out;
};
constexpr Operands all_operands[] = {
    {Format::bf16, Format::bf16, Format::bf16},       {Format::fp16, Format::fp16, Format::fp16},
    {Format::fp16, Format::nvfp4, Format::fp16},      {Format::bf16, Format::nvfp4, Format::bf16},
    {Format::nvfp4, Format::nvfp4, Format::bf16},     {Format::fp8_tensor, Format::fp8_tensor, Format::bf16},
    {Format::fp8_row, Format::fp8_row, Format::fp16}, {Format::fp8_block, Format::fp8_block, Format::bf16}};

/// A test of each kind: their kernels take a while to compile.
using CudaGroupedKernelsOf = ::testing::TestWithParam<Operands>;
INSTANTIATE_TEST_SUITE_P(All, CudaGroupedKernelsOf, ::testing::ValuesIn(all_operands),
                         [](const auto& of) { return fmt::format("{}_with_{}", name(of.param.a), name(of.param.b)); });

GroupedProblem problem_of(const Operands& operands, bool is_dual) {
  GroupedProblem problem{
      .experts = 5, .rows = 301, .n = 200, .k = 528, .a = operands.a, .b = operands.b, .out = operands.out};
  if (is_dual) {
    problem.activation = Activation{};
  }
  return problem;
}

TEST_P(CudaGroupedKernelsOf, EveryLayoutAndFormat) {
  SKIP_WITHOUT_HOPPER();
  const Operands& operands = GetParam();
  for (const bool is_dual : {true, false}) {
    for (const RowLayout layout : all_row_layouts) {
      const GroupedProblem problem = with_layout(problem_of(operands, is_dual), layout);
      for_every_choice(problem, [&](const GroupedStrategy& strategy, const Knobs& knobs) {
        EXPECT_EQ(judged(problem, ragged_form(problem), strategy, knobs), "")
            << name(operands.a) << " with " << name(operands.b) << ", " << name(layout);
      });
    }
  }
}

/// Scales of 1 × 128 one behind the other for each 128 along K, as kernels for Hopper usually take them.
TEST(CudaGroupedKernels, ScalesThatLieColumnByColumn) {
  SKIP_WITHOUT_HOPPER();
  for (const RowLayout layout : all_row_layouts) {
    const GroupedProblem problem =
        with_layout(problem_of({Format::fp8_block, Format::fp8_block, Format::bf16}, true), layout);
    GroupedForm form = ragged_form(problem);
    form.layout.scales = ScaleLayout::column_major;
    for_every_choice(problem, [&](const GroupedStrategy& strategy, const Knobs& knobs) {
      EXPECT_EQ(judged(problem, form, strategy, knobs), "") << name(layout);
    });
  }
}

TEST_P(CudaGroupedKernelsOf, BiasesRowWeightsAndEveryActivation) {
  SKIP_WITHOUT_HOPPER();
  const Operands& operands = GetParam();
  for (const ActivationKind kind : {ActivationKind::gelu_tanh, ActivationKind::swiglu_clamped}) {
    for (const std::optional<GateUpOrder> order : {std::optional<GateUpOrder>{}, std::optional(GateUpOrder::up_first),
                                                   std::optional(GateUpOrder::interleaved)}) {
      GroupedProblem problem = problem_of(operands, true);
      if (problem.b == Format::fp8_block && order) {  // gate and up in one tensor may not share a scale
        if (*order == GateUpOrder::interleaved) {
          continue;
        }
        problem.n = 256;
      }
      problem.activation->kind = kind;
      problem.bias = true;
      problem.row_weights = true;
      problem.out = kind == ActivationKind::gelu_tanh ? Format::fp32 : operands.out;
      GroupedForm form = ragged_form(problem);
      form.order = order;
      form.bias_format = order ? Format::bf16 : Format::fp32;
      for_every_choice(problem, [&](const GroupedStrategy& strategy, const Knobs& knobs) {
        EXPECT_EQ(judged(problem, form, strategy, knobs), "") << name(kind);
      });
    }
  }
}

TEST_P(CudaGroupedKernelsOf, AnyNumberOfExperts) {
  SKIP_WITHOUT_HOPPER();
  const Operands& operands = GetParam();
  for (const std::int64_t experts : {1, 2, 31, 33, 128, 512, 1024}) {
    GroupedProblem problem = problem_of(operands, true);
    problem.experts = experts;
    problem.n = 40;
    problem.k = 80;
    for_every_choice(problem, [&](const GroupedStrategy& strategy, const Knobs& knobs) {
      EXPECT_EQ(judged(problem, ragged_form(problem), strategy, knobs), "") << experts;
    });
  }
}

TEST_P(CudaGroupedKernelsOf, EdgeShapes) {
  SKIP_WITHOUT_HOPPER();
  const Operands& operands = GetParam();
  for (const auto& [n, k] : {std::pair{1, 16}, {8, 16}, {24, 64}, {65, 80}, {136, 208}, {500, 1040}}) {
    for (const std::int64_t rows : {1, 2, 17, 64, 65, 129}) {
      GroupedProblem problem = problem_of(operands, rows % 2 == 1);
      problem.rows = rows;
      problem.n = n;
      problem.k = k;
      for_every_choice(problem, [&](const GroupedStrategy& strategy, const Knobs& knobs) {
        EXPECT_EQ(judged(problem, ragged_form(problem), strategy, knobs), "") << rows << "x" << n << "x" << k;
      });
    }
  }
}

TEST_P(CudaGroupedKernelsOf, TheSameBitsInAThousandRuns) {
  SKIP_WITHOUT_HOPPER();
  const Operands& operands = GetParam();
  GroupedProblem problem = problem_of(operands, true);
  problem.rows = 700;
  problem.n = 520;
  for_every_choice(problem, [&](const GroupedStrategy& strategy, const Knobs& knobs) {
    GroupedCase host(problem, ragged_form(problem));
    GpuRun run(host, strategy.plan(problem, knobs, device()));
    ASSERT_EQ(run.run_and_judge(), "");
    const std::vector<std::uint8_t> first = run.bytes();
    for (int repeat = 0; repeat < 1000; ++repeat) {
      run.enqueue({});
      if (repeat % 50 == 49) {
        runtime::synchronize({}, 0);
        ASSERT_EQ(run.bytes(), first) << repeat;
      }
    }
  });
}

TEST_P(CudaGroupedKernelsOf, AGraphServesOtherCounts) {
  SKIP_WITHOUT_HOPPER();
  const Operands& operands = GetParam();
  for (const RowLayout layout : {RowLayout::packed, RowLayout::slots}) {
    const GroupedProblem problem = with_layout(problem_of(operands, true), layout);
    for_every_choice(problem, [&](const GroupedStrategy& strategy, const Knobs& knobs) {
      GroupedCase host(problem, ragged_form(problem));
      GpuRun run(host, strategy.plan(problem, knobs, device()));
      const runtime::Graph graph = runtime::Graph::capture(0, [&](Stream stream) { run.enqueue(stream); });
      const runtime::OwnedStream stream(0);
      const std::vector<std::vector<std::int32_t>> all_groups =
          layout == RowLayout::slots
              ? std::vector<std::vector<std::int32_t>>{{0, 0, 0, 0, 0}, {301, 1, 0, 64, 65}, {8, 9, 16, 17, 300}}
              : std::vector<std::vector<std::int32_t>>{
                    {0, 0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, 301}, {3, 11, 20, 84, 213, 300}};
      for (const std::vector<std::int32_t>& groups : all_groups) {
        run.regroup(groups);
        run.poison();
        graph.launch(stream.get());
        stream.synchronize();
        EXPECT_EQ(run.judged(), "");
      }
    });
  }
}

TEST_P(CudaGroupedKernelsOf, NonsenseForBoundsTouchesNothingElse) {
  SKIP_WITHOUT_HOPPER();
  constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
  const Operands& operands = GetParam();
  for (const RowLayout layout : all_row_layouts) {
    const GroupedProblem problem = with_layout(problem_of(operands, true), layout);
    for_every_choice(problem, [&](const GroupedStrategy& strategy, const Knobs& knobs) {
      GroupedForm form = ragged_form(problem);
      for (std::size_t row = 0; row < form.row_ids.size(); row += 3) {
        form.row_ids[row] = row % 2 == 0 ? most : least;
      }
      GroupedCase host(problem, form);
      GpuRun run(host, strategy.plan(problem, knobs, device()));
      for (std::vector<std::int32_t> groups : {std::vector<std::int32_t>{least, most, 0, -1, 300, 5},
                                               {40, 20, 1000, 7, most, most},
                                               {most, most, least, least, 1, 2}}) {
        groups.resize(host.groups().size());
        run.regroup(groups);
        EXPECT_EQ(run.run_and_judge(), "") << name(layout);
      }
    });
  }
}

}  // namespace
}  // namespace thresher
