#include "cli/layer_weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "core/printable.hpp"
#include "formats/weight_parts.hpp"
#include "thresher/error.hpp"

namespace thresher::cli {
namespace {

using formats::FeedForwardKind;
using formats::FeedForwardMatrices;

[[noreturn]] void reject(const std::string& sentence) { throw Error(ErrorCode::invalid_argument, sentence); }

void expect(const PlacedMatrix& matrix, Format format, const PlacedMatrix::Extents& extents, const PlacedMatrix& gate) {
  if (matrix.format != format || matrix.extents != extents) {
    reject(fmt::format("{} is {} [{}, {}], expected {} [{}, {}] beside the gate, {}", matrix.source,
                       name(matrix.format), matrix.extents[0], matrix.extents[1], name(format), extents[0], extents[1],
                       gate.source));
  }
}

/// [E,K,2N] and [E,N,K] instead of [E,2N,K] and [E,K,N]: rows and columns exchanged.
bool are_transposed(const formats::Stack& gate_up, const formats::Stack& down) {
  return gate_up.shape()[1] == down.shape()[2] && gate_up.shape()[2] == 2 * down.shape()[1];
}

/// Whether each matrix has two global scales, for gate and for up.
bool has_two_scales(const formats::Checkpoint& checkpoint, const std::string& name) {
  const std::string scales = formats::WeightParts(checkpoint, name).global_scale_name();
  return checkpoint.has(scales) && checkpoint.find(scales).tensor->shape.size() == 2;
}

}  // namespace

PlacedMatrix::PlacedMatrix(const formats::Operand& operand, const Device& device)
    : source(operand.source()),
      format(operand.format()),
      extents{operand.rows(), operand.k()},
      stored(operand.stored_as()),
      there(std::make_unique<const ops::DeviceTensor>(operand.view(), device)) {}

PlacedMatrix::PlacedMatrix(const formats::Stack& stack, const Device& device)
    : source(stack.source()),
      format(stack.format()),
      extents{stack.shape()[1], stack.shape()[2]},
      stored(stack.stored_as()),
      there(std::make_unique<const ops::DeviceTensor>(stack.view(), device)) {}

LayerWeights::LayerWeights(const formats::Checkpoint& checkpoint, formats::FeedForwardNames names, ScaleLayout layout,
                           const Device& device)
    : names_(std::move(names)) {
  switch (names_.kind) {
    case FeedForwardKind::matrices: load_matrices(checkpoint, layout, device); break;
    case FeedForwardKind::fused: load_fused(checkpoint, layout, device); break;
    case FeedForwardKind::stacks: load_stacks(checkpoint, layout, device); break;
    case FeedForwardKind::blocks: load_blocks(checkpoint, device); break;
  }
  check();
}

template <class Matrix>
void LayerWeights::place_gate_and_up(Matrix gate, Matrix up, const Device& device) {
  formats::hold_alike(gate, up);
  matrices_.emplace_back(gate, device);
  matrices_.emplace_back(up, device);
}

void LayerWeights::load_matrices(const formats::Checkpoint& checkpoint, ScaleLayout layout, const Device& device) {
  const auto load_all = [&](const auto& load) {
    if (names_.is_gated()) {
      place_gate_and_up(load(&FeedForwardMatrices::gate), load(&FeedForwardMatrices::up), device);
    } else {
      matrices_.emplace_back(load(&FeedForwardMatrices::up), device);
    }
    matrices_.emplace_back(load(&FeedForwardMatrices::down), device);
  };
  if (!names_.has_experts) {
    load_all([&](std::string FeedForwardMatrices::* of) {
      return formats::load_operand(checkpoint, names_.matrices.front().*of, layout);
    });
    return;
  }
  load_all([&](std::string FeedForwardMatrices::* of) {
    std::vector<std::string> total_experts;
    for (const FeedForwardMatrices& expert : names_.matrices) {
      total_experts.push_back(expert.*of);
    }
    return formats::load_experts(checkpoint, total_experts, layout);
  });
}

void LayerWeights::load_fused(const formats::Checkpoint& checkpoint, ScaleLayout layout, const Device& device) {
  formats::GateUp both = formats::load_gate_up(checkpoint, names_.gate_up, GateUpOrder::gate_first, layout);
  place_gate_and_up(std::move(both.gate), std::move(both.up), device);
  matrices_.emplace_back(formats::load_operand(checkpoint, names_.down, layout), device);
}

void LayerWeights::load_stacks(const formats::Checkpoint& checkpoint, ScaleLayout layout, const Device& device) {
  const bool are_two = has_two_scales(checkpoint, names_.gate_up);
  formats::Stack gate_up = load_stack(checkpoint, names_.gate_up, formats::StackKind::weights, layout, are_two ? 2 : 1);
  formats::Stack down = load_stack(checkpoint, names_.down, formats::StackKind::weights, layout);
  const bool is_transposed = are_transposed(gate_up, down);
  if (is_transposed != names_.is_gpt_oss) {
    reject(
        fmt::format("{} is [{}] beside {} [{}] {} biases, expected [experts, 2N, K] and [experts, K, N] without, or "
                    "gpt-oss's [experts, K, 2N] and [experts, N, K] with them",
                    gate_up.source(), fmt::join(gate_up.shape(), ", "), down.source(), fmt::join(down.shape(), ", "),
                    names_.is_gpt_oss ? "with" : "without"));
  }
  if (is_transposed) {
    gate_up.transpose();
    down.transpose();
    order_ = GateUpOrder::interleaved;
  }
  if (are_two) {
    formats::Stack up = gate_up;
    up.keep_every_second_global_scale(1);
    gate_up.keep_every_second_global_scale(0);
    up_scales_ = std::make_unique<const ops::DeviceTensor>(formats::numbers_of(up.global_scales()).view(), device);
  }
  matrices_.emplace_back(gate_up, device);
  matrices_.emplace_back(down, device);
  if (is_transposed) {
    for (const std::string& name : {names_.gate_up, names_.down}) {
      load_bias(checkpoint, formats::WeightParts(checkpoint, name).bias_name(), device);
    }
  }
}

void LayerWeights::load_blocks(const formats::Checkpoint& checkpoint, const Device& device) {
  order_ = GateUpOrder::interleaved;
  for (const auto& [name, bias] :
       {std::pair{names_.gate_up, names_.gate_up_bias}, std::pair{names_.down, names_.down_bias}}) {
    matrices_.emplace_back(formats::load_mxfp4_blocks(checkpoint, name), device);
    load_bias(checkpoint, bias, device);
  }
}

/// Loads the bias of the first matrix without one.
void LayerWeights::load_bias(const formats::Checkpoint& checkpoint, const std::string& name, const Device& device) {
  const PlacedMatrix& matrix = matrices_[biases_.size()];
  const formats::Stack bias = formats::load_numbers(checkpoint, name);
  if (bias.shape() != std::vector{matrix.tensor().shape[0], matrix.extents[0]}) {
    reject(fmt::format("{} is not [{}, {}], as it must be beside {}", bias.source(), matrix.tensor().shape[0],
                       matrix.extents[0], matrix.source));
  }
  biases_.push_back(std::make_unique<const ops::DeviceTensor>(bias.view(), device));
}

void LayerWeights::check() const {
  if (is_in_one()) {
    if (gate().extents[0] % 2 != 0) {
      reject(fmt::format("{} has {} rows, expected an even number: of gate and up", gate().source, gate().extents[0]));
    }
    if (down().tensor().shape[0] != experts()) {
      reject(fmt::format("{} has {} experts, but {} has {}", down().source, down().tensor().shape[0], gate().source,
                         experts()));
    }
  } else {
    expect(up(), gate().format, gate().extents, gate());
  }
  expect(down(), down().format, {hidden_size(), intermediate_size()}, gate());
}

Tensor LayerWeights::bias(std::size_t matrix) const { return biases_.empty() ? Tensor{} : biases_[matrix]->tensor(); }

GroupedWeights LayerWeights::of_gate_up() const {
  GroupedWeights weights{.b1 = gate().tensor(), .bias1 = bias(0)};
  if (!is_in_one()) {
    weights.b2 = names_.is_gated() ? up().tensor() : Tensor{};
    return weights;
  }
  weights.order = order_;
  weights.up_global_scale = up_scales_ == nullptr ? nullptr : static_cast<const float*>(up_scales_->tensor().data);
  return weights;
}

GroupedWeights LayerWeights::of_down() const { return {.b1 = down().tensor(), .bias1 = bias(1)}; }

std::string LayerWeights::found(const std::string& activation) const {
  const std::string stored =
      gate().stored == up().stored ? gate().stored : fmt::format("{} and {}", gate().stored, up().stored);
  return fmt::format("{}, {}, {} [{}, {}] {}, down [{}, {}] {}, {}{}", printable(names_.block),
                     names_.has_experts ? fmt::format("{} expert{}", experts(), experts() == 1 ? "" : "s") : "dense",
                     names_.is_gated() ? "gate and up" : "up", intermediate_size(), hidden_size(), stored,
                     hidden_size(), intermediate_size(), down().stored, activation,
                     names_.left_out.empty() ? "" : fmt::format("; {} left out", names_.left_out));
}

}  // namespace thresher::cli
