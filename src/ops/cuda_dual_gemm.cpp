#include "ops/cuda_dual_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ops/cuda_call.hpp"
#include "runtime/driver.hpp"
#include "strategies/gemm/tensors.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

namespace tensors = strategies::dual_gemm;

std::int64_t row_bytes(const Tensor& tensor) { return tensor.strides[0] * bits(tensor.format) / 8; }

class CudaDualGemm final : public DualGemm::Backend {
 public:
  CudaDualGemm(const Device& device, const DualGemmProblem& problem, std::vector<PlannedRows> calls,
               CudaOperands operands)
      : Backend(problem, device.id(), calls.back().call.strategy), operands_(std::move(operands)) {
    if (problem.m > 0 && problem.n > 0) {
      load_programs(this->device().ordinal, calls);
    }
    for (PlannedRows& planned : calls) {
      data_alignment_ = std::max(data_alignment_, planned.call.data_alignment);
      if (problem.m > 0 && problem.n > 0) {
        load(std::move(planned));
      }
    }
  }

  [[nodiscard]] std::size_t workspace_bytes() const override { return workspace_bytes_; }
  [[nodiscard]] std::size_t data_alignment() const override { return data_alignment_; }

  void run(Stream stream, const Tensor& a, const Tensor& c, void* workspace) const override {
    run_from(0, call_for(a.shape[0]), stream, a, c, workspace);
  }

  void prepare(Stream stream, const Tensor& a, void* workspace) const override {
    const CudaCall& call = call_for(a.shape[0]);
    if (call.planned().preparation_steps > 0) {
      require_on_gpu(a.data, "a");
      require_on_gpu(workspace, "workspace");
      const Tensors all = with(a, Tensor{});
      call.run(stream, {all, workspace, operands_.packed}, 0, call.planned().preparation_steps);
    }
  }

  void run_prepared(Stream stream, const Tensor& a, const Tensor& c, void* workspace) const override {
    const CudaCall& call = call_for(a.shape[0]);
    run_from(call.planned().preparation_steps, call, stream, a, c, workspace);
  }

 private:
  using Tensors = std::array<Tensor, tensors::dense_tensor_count>;

  void run_from(std::size_t first_step, const CudaCall& call, Stream stream, const Tensor& a, const Tensor& c,
                void* workspace) const {
    require_on_gpu(a.data, "a");
    require_on_gpu(c.data, "c");
    if (call.workspace_bytes() > 0) {
      require_on_gpu(workspace, "workspace");
    }
    require_aligned(call.planned(), a);
    const Tensors all = with(a, c);
    call.run(stream, {all, workspace, operands_.packed}, first_step);
  }

  void load(PlannedRows planned) {
    const DualGemmProblem& p = problem();
    const Tensors example =
        with(stand_in(p.a, planned.rows, p.k, device()), stand_in(p.out, planned.rows, p.n, device()));
    rows_.push_back(planned.rows);
    calls_.emplace_back(std::move(planned.call), device().ordinal,
                        strategies::CallTensors{example, nullptr, operands_.packed});
    workspace_bytes_ = std::max(workspace_bytes_, calls_.back().workspace_bytes());
  }

  [[nodiscard]] const CudaCall& call_for(std::int64_t rows) const {
    return calls_[static_cast<std::size_t>(std::lower_bound(rows_.begin(), rows_.end(), rows) - rows_.begin())];
  }

  [[nodiscard]] Tensors with(const Tensor& a, const Tensor& c) const {
    return {a, operands_.b1_gate, operands_.b2_up, c};
  }

  void require_on_gpu(const void* pointer, const char* argument) const {
    runtime::require_on_gpu(pointer, device().ordinal, argument);
  }

  static void require_aligned(const strategies::PlannedCall& call, const Tensor& a) {
    for (const strategies::Alignment& alignment : call.alignments) {
      const auto bytes = static_cast<std::int64_t>(alignment.row_bytes);
      if (alignment.tensor == tensors::tokens_index && row_bytes(a) % bytes != 0) {
        throw Error(ErrorCode::invalid_argument,
                    fmt::format("a has rows {} elements apart, this plan needs a multiple of {}: pad them",
                                a.strides[0], bytes * 8 / bits(a.format)));
      }
    }
  }

  CudaOperands operands_;
  std::vector<std::int64_t> rows_;  ///< ascending; calls_ has the same order
  std::vector<CudaCall> calls_;
  std::size_t workspace_bytes_ = 0;
  std::size_t data_alignment_ = 1;
};

}  // namespace

Tensor stand_in(Format format, std::int64_t rows, std::int64_t columns, DeviceId device) {
  Tensor tensor = Tensor::contiguous(stand_in_address(), format, {rows, columns}, device);
  tensor.scales.data = stand_in_address();
  return tensor;
}

std::string weights_obstacle(const strategies::PlannedCall& call, const Tensor& b1_gate, const Tensor& b2_up) {
  for (const strategies::Alignment& alignment : call.alignments) {
    if (alignment.tensor != tensors::gate_index && alignment.tensor != tensors::up_index) {
      continue;
    }
    const bool is_gate = alignment.tensor == tensors::gate_index;
    const Tensor& tensor = is_gate ? b1_gate : b2_up;
    const char* const name = is_gate ? "b1 (gate)" : "b2 (up)";
    const auto bytes = static_cast<std::int64_t>(alignment.row_bytes);
    if (strategies::device_address(tensor.data) % alignment.row_bytes != 0) {
      return fmt::format("{} is not aligned to {} bytes", name, bytes);
    }
    if (tensor.shape[0] > 1 && row_bytes(tensor) % bytes != 0) {
      return fmt::format("{} has rows {} elements apart, not a multiple of {}", name, tensor.strides[0],
                         bytes * 8 / bits(tensor.format));
    }
  }
  return "";
}

std::shared_ptr<const DualGemm::Backend> make_cuda_dual_gemm(const Device& device, const DualGemmProblem& problem,
                                                             std::vector<PlannedRows> calls, CudaOperands operands) {
  return std::make_shared<const CudaDualGemm>(device, problem, std::move(calls), std::move(operands));
}

}  // namespace thresher::ops
