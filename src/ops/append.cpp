#include "thresher/append.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "cpu/append.hpp"
#include "ops/cuda_call.hpp"
#include "ops/cuda_device_spec.hpp"
#include "ops/tensor_checks.hpp"
#include "reference/append_view.hpp"
#include "strategies/append/call.hpp"
#include "strategies/append/tensors.hpp"
#include "thresher/error.hpp"

namespace thresher {
namespace ops {
namespace {

void check_row_length(const char* argument, std::int64_t columns) {
  constexpr std::int64_t longest = 1024;
  if (columns < 16 || columns > longest || columns % 16 != 0) {
    refuse("problem.{} is {}, expected a multiple of 16 up to {}", argument, columns, longest);
  }
}

void check_written(const char* argument, const Tensor& tensor, Format format, const TensorShape& shape,
                   DeviceId device) {
  check_operand(argument, tensor, format, shape, device);
  if (tensor.elements() > 0) {
    check_no_overlap(argument, tensor);
  }
}

/// The output is the operand itself, or does not overlap it.
void check_in_place(const char* output, const Tensor& out, const char* argument, const Tensor& operand) {
  if (out.data != operand.data || out.strides != operand.strides) {
    check_not_overlapping(out, argument, operand, output);
  }
}

void check_numbers(const char* argument, const TokenNumbers& numbers, std::int64_t tokens) {
  if (numbers.bits != 32 && numbers.bits != 64) {
    refuse("{} have {} bits, expected 32 or 64", argument, numbers.bits);
  }
  if (tokens > 0 && numbers.data == nullptr) {
    refuse("{} has a null data pointer", argument);
  }
  if (!is_aligned(numbers.data, static_cast<std::size_t>(numbers.bits) / 8)) {
    refuse("{} starts at {}, expected an address that is a multiple of {} bytes", argument, fmt::ptr(numbers.data),
           numbers.bits / 8);
  }
}

void check_positions(const AppendProblem& problem, const AppendTensors& tensors, std::int64_t tokens) {
  const std::int64_t limit = problem.max_position > 0 ? problem.max_position - 1 : max_extent;
  for (std::int64_t token = 0; token < tokens; ++token) {
    const std::int64_t position = reference::number(tensors.positions, token);
    if (position < 0 || position > limit) {
      refuse("positions[{}] is {}, expected 0 to {}", token, position, limit);
    }
  }
}

void check_slots(const AppendProblem& problem, const TokenNumbers& slots, std::int64_t tokens) {
  const std::int64_t rows = problem.pages * problem.page_size;
  std::vector<std::int64_t> named;
  for (std::int64_t token = 0; token < tokens; ++token) {
    const std::int64_t slot = reference::number(slots, token);
    if (slot >= rows) {
      refuse("slots[{}] is {}, expected less than the {} rows of all pages, or a negative number for no row", token,
             slot, rows);
    }
    if (slot >= 0) {
      named.push_back(slot);
    }
  }
  std::sort(named.begin(), named.end());
  if (const auto twice = std::adjacent_find(named.begin(), named.end()); twice != named.end()) {
    refuse("slots name the row {} twice, expected each at most once", *twice);
  }
}

void check_pages_descale(const char* argument, const AppendProblem& problem, const Tensor& descale, DeviceId device) {
  if (descale.data == nullptr) {
    return;
  }
  if (reference::kv_format(problem) != Format::fp8_e4m3) {
    refuse("{} is given, but the pages are not fp8_e4m3: leave it empty", argument);
  }
  check_place(argument, descale, Format::fp32, {problem.kv_heads}, device, sizeof(float));
  if (descale.strides[0] < 0) {
    refuse("{} has stride {} along dimension 0, expected 0 or more", argument, descale.strides[0]);
  }
  for (std::int64_t head = 0; device.kind == DeviceKind::cpu && head < problem.kv_heads; ++head) {
    const float factor = reference::descale_of(descale, head);
    if (factor <= 0.0F || !std::isfinite(factor)) {
      refuse("{}[{}] is {}, expected a finite number above 0", argument, head, factor);
    }
  }
}

void check_table(const AppendProblem& problem, const Tensor& table, DeviceId device) {
  if (problem.max_position == 0) {
    if (table.data != nullptr) {
      refuse("cos_sin is given, but problem.max_position is 0 (no table): leave it empty");
    }
    return;
  }
  check_place("cos_sin", table, Format::fp32, {problem.max_position, reference::rotary_dim(problem)}, device,
              sizeof(float));
  check_strides("cos_sin", table, 1);
}

/// A tensor of a call and what it is called. An output may be the operand `in_place_of`.
struct Named {
  const char* name;
  const Tensor& tensor;
  const Tensor* in_place_of = nullptr;
};

/// Outputs must not overlap operands or one another. check_in_place has accepted q as q_out, and k as k_out.
void check_pages_not_overlapping(const AppendTensors& tensors, std::int64_t tokens, DeviceId device) {
  const auto numbers = [&](const TokenNumbers& of) {
    return Tensor::contiguous(const_cast<void*>(of.data), Format::int32, {tokens, of.bits / 32}, device);
  };
  const Tensor positions = numbers(tensors.positions);
  const Tensor slots = numbers(tensors.slots);
  const std::array outputs{Named{"q_out", tensors.q_out, &tensors.q}, Named{"k_out", tensors.k_out, &tensors.k},
                           Named{"k_cache", tensors.k_cache}, Named{"v_cache", tensors.v_cache}};
  const std::array operands{Named{"q", tensors.q},
                            Named{"k", tensors.k},
                            Named{"v", tensors.v},
                            Named{"cos_sin", tensors.cos_sin},
                            Named{"positions", positions},
                            Named{"slots", slots},
                            Named{"k_descale", tensors.k_descale},
                            Named{"v_descale", tensors.v_descale}};
  const auto check = [](const Named& out, const Named& other) {
    if (out.tensor.data != nullptr && other.tensor.data != nullptr) {
      check_not_overlapping(out.tensor, other.name, other.tensor, out.name);
    }
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (const Named& operand : operands) {
      if (outputs[i].in_place_of != &operand.tensor) {
        check(outputs[i], operand);
      }
    }
    for (std::size_t other = i + 1; other < outputs.size(); ++other) {
      check(outputs[i], outputs[other]);
    }
  }
}

void validate(const AppendProblem& problem) {
  check_attention_format("kv_format", reference::kv_format(problem), problem.format);
  check_extent("tokens", problem.tokens, 0);
  check_extent("heads", problem.heads, 1);
  check_extent("kv_heads", problem.kv_heads, 1);
  check_extent("page_size", problem.page_size, 1);
  check_extent("pages", problem.pages, 1);
  check_extent("max_position", problem.max_position, 0);
  check_row_length("head_dim", problem.head_dim);
  if (problem.value_dim != 0) {
    check_row_length("value_dim", problem.value_dim);
  }
  if (problem.rotary_dim < 0 || problem.rotary_dim > problem.head_dim || problem.rotary_dim % 2 != 0) {
    refuse("problem.rotary_dim is {}, expected an even number up to problem.head_dim, which is {}", problem.rotary_dim,
           problem.head_dim);
  }
  if (problem.pairs == RotaryPairs::none && (problem.rotary_dim != 0 || problem.max_position != 0)) {
    refuse("problem.pairs is none, but problem.rotary_dim is {} and problem.max_position {}: leave both 0",
           problem.rotary_dim, problem.max_position);
  }
  if (problem.theta != AppendProblem{}.theta && (problem.pairs == RotaryPairs::none || problem.max_position != 0)) {
    refuse("problem.theta is {}, but {}: leave it {}", problem.theta,
           problem.pairs == RotaryPairs::none ? "problem.pairs is none"
                                              : "problem.max_position asks for a table in its place",
           AppendProblem{}.theta);
  }
  if (!(problem.theta > 0.0F) || !std::isfinite(problem.theta)) {
    refuse("problem.theta is {}, expected a finite number above 0", problem.theta);
  }
}

/// The tensors of one run; on the CPU also the contents of positions, slots and descales.
void validate_run(const AppendProblem& problem, const AppendTensors& tensors, DeviceId device) {
  const std::int64_t tokens = tensors.k.rank == 3 ? tensors.k.shape[0] : 0;
  if (tokens < 0 || tokens > problem.tokens) {
    refuse("k has {} tokens, expected 0 to problem.tokens, which is {}", tokens, problem.tokens);
  }
  const TensorShape keys{tokens, problem.kv_heads, problem.head_dim};
  check_operand("k", tensors.k, problem.format, keys, device);
  check_operand("v", tensors.v, problem.format, {tokens, problem.kv_heads, reference::value_dim(problem)}, device);
  if (tensors.q.data != nullptr || tensors.q_out.data != nullptr) {
    const TensorShape queries{tokens, problem.heads, problem.head_dim};
    check_operand("q", tensors.q, problem.format, queries, device);
    check_written("q_out", tensors.q_out, problem.format, queries, device);
    check_in_place("q_out", tensors.q_out, "q", tensors.q);
  }
  if (tensors.k_out.data != nullptr) {
    check_written("k_out", tensors.k_out, problem.format, keys, device);
    check_in_place("k_out", tensors.k_out, "k", tensors.k);
  }
  const Format cache = reference::kv_format(problem);
  check_written("k_cache", tensors.k_cache, cache,
                {problem.pages, problem.page_size, problem.kv_heads, problem.head_dim}, device);
  check_written("v_cache", tensors.v_cache, cache,
                {problem.pages, problem.page_size, problem.kv_heads, reference::value_dim(problem)}, device);
  check_table(problem, tensors.cos_sin, device);
  check_pages_descale("k_descale", problem, tensors.k_descale, device);
  check_pages_descale("v_descale", problem, tensors.v_descale, device);
  check_numbers("slots", tensors.slots, tokens);
  const bool turns = problem.pairs != RotaryPairs::none;
  if (turns) {
    check_numbers("positions", tensors.positions, tokens);
  }
  check_pages_not_overlapping(tensors, tokens, device);
  if (device.kind == DeviceKind::cpu) {
    check_slots(problem, tensors.slots, tokens);
    if (turns) {
      check_positions(problem, tensors, tokens);
    }
  }
}

}  // namespace
}  // namespace ops

class Append::Backend {
 public:
  /// `threads` of the CPU; `call` is empty there.
  Backend(const AppendProblem& problem, DeviceId device, int threads, std::optional<ops::CudaCall> call)
      : problem_(problem), device_(device), threads_(threads), on_gpu_(std::move(call)) {}

  [[nodiscard]] const AppendProblem& problem() const noexcept { return problem_; }
  [[nodiscard]] DeviceId device() const noexcept { return device_; }
  /// Enqueues one call. The tensors are validated, and there is at least one token.
  void run(Stream stream, const AppendTensors& tensors) const {
    if (on_gpu_) {
      const auto in_order = strategies::append::in_order(tensors);
      on_gpu_->run(stream, {in_order});
    } else {
      cpu::append(problem_, tensors, threads_);
    }
  }

 private:
  AppendProblem problem_;
  DeviceId device_;
  int threads_;
  std::optional<ops::CudaCall> on_gpu_;
};

Append plan(const Device& device, const AppendProblem& problem, const AppendOptions& options) {
  ops::validate(problem);
  ops::check_threads(options.threads);
  std::optional<ops::CudaCall> call;
  if (device.kind() == DeviceKind::cuda) {
    const DeviceSpec spec = ops::spec_of(device);
    if (const std::optional<std::string> obstacle = strategies::append::obstacle(problem, spec)) {
      throw Error(ErrorCode::unsupported, *obstacle);
    }
    call.emplace(strategies::append::append_call(problem, spec), device.id().ordinal, strategies::CallTensors{});
  }
  return Append(std::make_shared<const Append::Backend>(problem, device.id(), options.threads, std::move(call)));
}

void Append::run(Stream stream, const AppendTensors& tensors) const {
  ops::validate_run(problem(), tensors, backend_->device());
  if (tensors.k.shape[0] > 0) {
    backend_->run(stream, tensors);
  }
}

const AppendProblem& Append::problem() const noexcept { return backend_->problem(); }

}  // namespace thresher
