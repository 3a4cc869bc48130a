#include "arena/moe_layer/emulated_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <span>
#include <utility>

#include "arena/emulation/host_kernel.hpp"
#include "arena/emulation/planned_run.hpp"
#include "arena/moe_layer/inputs.hpp"
#include "arena/moe_layer/judge.hpp"
#include "core/grouped_weights.hpp"
#include "ops/layer_parts.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/host/emulated_call.hpp"
#include "strategies/moe_layer/tensors.hpp"

namespace thresher::arena {
namespace {

namespace grouped = strategies::gemm;
namespace layer = strategies::moe_layer;
using strategies::EmulatedCall;
using strategies::PlannedCall;

constexpr std::array gate_up_names{"x",        "gate",    "up",          "intermediate", "gate bias",
                                   "up bias",  "offsets", "row_ids",     "row_weights",  "profile",
                                   "topk_ids", "inverse", "x in 16 bits"};
constexpr std::array down_names{"intermediate", "down",    "no up",   "rows",       "down bias",
                                "no up bias",   "offsets", "row_ids", "row_weights"};

/// The tensors between the launches of a call.
class Between {
 public:
  explicit Between(const LayerTask& task)
      : offsets_(static_cast<std::size_t>(task.problem.experts) + 1),
        row_ids_(static_cast<std::size_t>(task.choices())),
        inverse_(static_cast<std::size_t>(task.choices())),
        rows_(make_host_tensor("rows", task.problem.rows, {task.choices(), task.problem.hidden_size})) {
    const MoeProblem& p = task.problem;
    std::vector<strategies::WorkspacePiece> pieces;
    const ops::Intermediate hidden(Device::cpu(), p.intermediate, p.intermediate_scale, task.choices(),
                                   p.intermediate_size, pieces);
    constexpr std::size_t alignment = 256;
    workspace_.resize(strategies::total_bytes(pieces) + alignment);
    const std::size_t over = reinterpret_cast<std::uintptr_t>(workspace_.data()) % alignment;
    intermediate_ = hidden.tensor(task.choices(), workspace_.data() + (alignment - over) % alignment);
    scale_ = p.intermediate_scale;
    intermediate_.global_scale = intermediate_.global_scale == nullptr ? nullptr : &scale_;
  }
  Between(const Between&) = delete;

  [[nodiscard]] const Tensor& intermediate() const noexcept { return intermediate_; }
  [[nodiscard]] Tensor rows() const { return rows_.view(); }
  [[nodiscard]] Tensor offsets() { return list(offsets_); }
  [[nodiscard]] Tensor row_ids() { return list(row_ids_); }
  /// The inverse permutation, in the shape of the top-k assignments.
  [[nodiscard]] Tensor inverse(Tensor choices) {
    choices.data = inverse_.data();
    return choices;
  }

 private:
  static Tensor list(std::vector<std::int32_t>& values) {
    return Tensor::contiguous(values.data(), Format::int32, {std::ssize(values)});
  }

  std::vector<std::int32_t> offsets_;
  std::vector<std::int32_t> row_ids_;
  std::vector<std::int32_t> inverse_;
  HostTensor rows_;
  std::vector<std::byte> workspace_;
  Tensor intermediate_;
  float scale_ = 1.0F;
};

class LayerRun final : public EmulatedRun {
 public:
  LayerRun(const LayerTask& task, LayerCalls calls)
      : task_(task),
        distribution_(emulated_distribution(task.problem.gate_up)),
        inputs_(layer_inputs(task, distribution_, 1)),
        outputs_(layer_outputs_of(task)),
        between_(task) {
    if (task.is_dense) {
      add_dense(std::move(calls));
    } else {
      add_of_experts(std::move(calls));
    }
  }

  [[nodiscard]] emulator::Report run(const emulator::Options& options) override {
    for (EmulatedCall& call : calls_) {
      call.poison_outputs();
    }
    emulator::Report report;
    for (EmulatedCall& call : calls_) {
      report = call.run(options);
      if (!report.clean()) {
        break;
      }
    }
    return report;
  }
  [[nodiscard]] std::span<const std::uint8_t> output() const override { return calls_.back().output(); }
  [[nodiscard]] std::string wrong() const override {
    const Finding finding = make_layer_judge(task_, inputs_, {DeviceKind::cuda, Numerics::exact}, 1)->judge(outputs_);
    return finding.correct ? "" : fmt::format("{}: {}", finding.fault, finding.sentence);
  }

 private:
  [[nodiscard]] FindTensor finder() const { return find_in(inputs_, outputs_); }

  void add(PlannedCall call, const auto& names, const auto& tensors) {
    calls_.emplace_back(std::move(call), named_tensors(names, tensors), [](const strategies::KernelLaunch& launch) {
      return host_kernel(launch.program, launch.expression);
    });
  }

  void add_of_experts(LayerCalls calls) {
    const MoeTensors of = layer_tensors(finder());
    const GroupedTensors first{
        .a = of.x, .c = between_.intermediate(), .offsets = between_.offsets(), .row_ids = between_.row_ids()};
    const GroupedTensors second{.a = between_.intermediate(), .c = between_.rows(), .offsets = between_.offsets()};
    const Tensor inverse = between_.inverse(of.topk_ids);
    add(std::move(calls.gate_up), gate_up_names,
        layer::in_order(weight_views(gate_up_weights(task_, finder())), first, {of.topk_ids, inverse}));
    add(std::move(calls.down), down_names, grouped::in_order(weight_views(down_weights(task_, finder())), second));
    add(std::move(*calls.combine), layer::combine_names, std::array{between_.rows(), inverse, of.topk_weights, of.out});
  }

  void add_dense(LayerCalls calls) {
    const MoeTensors of = layer_tensors(finder());
    const GatedMlpWeights weights = gated_mlp_weights(finder());
    add(std::move(calls.gate_up), gate_up_names, std::array{of.x, weights.gate, weights.up, between_.intermediate()});
    add(std::move(calls.down), down_names,
        grouped::in_order(weight_views(down_weights(task_, finder())), {.a = between_.intermediate(), .c = of.out}));
  }

  LayerTask task_;
  Distribution distribution_;
  std::vector<HostTensor> inputs_;
  std::vector<HostTensor> outputs_;
  Between between_;
  std::deque<EmulatedCall> calls_;  ///< in the order of the stream
};

}  // namespace

std::unique_ptr<EmulatedRun> emulated_layer(const LayerTask& task, LayerCalls calls) {
  return std::make_unique<LayerRun>(task, std::move(calls));
}

}  // namespace thresher::arena
