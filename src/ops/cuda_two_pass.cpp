#include "ops/cuda_two_pass.hpp"

#include <optional>

#include "ops/cuda_programs.hpp"
#include "ops/cuda_weights.hpp"
#include "runtime/cublaslt.hpp"
#include "runtime/driver.hpp"
#include "runtime/stream.hpp"
#include "strategies/dual_gemm/two_pass/parameters.hpp"
#include "strategies/dual_gemm/two_pass/program.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

namespace device_code = strategies::dual_gemm::two_pass;

constexpr std::int64_t product_alignment_bytes = 16;
constexpr std::size_t piece_alignment = 256;
constexpr std::int64_t intermediate_padding = 32;  // elements: every float32 row starts at a multiple of 128 bytes

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// The format in which both operands enter the product, without losing a bit: value×scale of NVFP4 fits fp16 and bf16;
/// fp16 and bf16 together fit only float32.
Format product_format(Format a, Format b) {
  if (a == b) {
    return a == Format::nvfp4 ? Format::fp16 : a;
  }
  if (a == Format::nvfp4) {
    return b;
  }
  return b == Format::nvfp4 ? a : Format::fp32;
}

bool product_can_read(const Tensor& matrix, Format product) {
  const std::int64_t row_bytes = matrix.strides[0] * bits(matrix.format) / 8;
  return matrix.format == product && (matrix.shape[0] <= 1 || row_bytes % product_alignment_bytes == 0) &&
         reinterpret_cast<std::uintptr_t>(matrix.data) % product_alignment_bytes == 0;
}

/// Pieces of one workspace, each aligned.
class Pieces {
 public:
  std::size_t add(std::int64_t bytes) {
    const std::size_t offset = total_;
    total_ += (static_cast<std::size_t>(bytes) + piece_alignment - 1) / piece_alignment * piece_alignment;
    return offset;
  }
  [[nodiscard]] std::size_t total() const { return total_; }

 private:
  std::size_t total_ = 0;
};

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

runtime::LaunchConfig cover(std::int64_t threads, Stream stream) {
  const std::int64_t blocks = (threads + device_code::threads - 1) / device_code::threads;
  constexpr std::int64_t most_blocks = (std::int64_t{1} << 31) - 1;
  if (blocks > most_blocks) {
    throw Error(ErrorCode::unsupported, "a matrix needs " + std::to_string(blocks) +
                                            " blocks of two_pass, a GPU takes " + std::to_string(most_blocks) +
                                            " at once: split the problem");
  }
  runtime::LaunchConfig config;
  config.grid.x = static_cast<unsigned>(blocks);
  config.block.x = device_code::threads;
  config.stream = stream;
  return config;
}

class CudaTwoPass final : public DualGemm::Backend {
 public:
  CudaTwoPass(const Device& device, const DualGemmProblem& problem, const Tensor& b1_gate, const Tensor& b2_up,
              std::shared_ptr<const PackedWeights::Storage> weights)
      : Backend(problem, device.id(), "two_pass"),
        b1_gate_(b1_gate),
        b2_up_(b2_up),
        weights_(std::move(weights)),
        product_(product_format(problem.a, problem.b)),
        intermediate_stride_(round_up(problem.n, intermediate_padding)),
        widen_a_(widening_kernel(problem.a)),
        widen_b_(widening_kernel(problem.b)),
        activate_(kernel(device_code::activate_kernel(problem.activation.kind, problem.out))) {
    if (problem.m == 0 || problem.n == 0) {
      return;
    }
    require_matrix_on_gpu(b1_gate, ordinal(), "b1 (gate)");
    require_matrix_on_gpu(b2_up, ordinal(), "b2 (up)");
    gate_product_.emplace(ordinal(), product_shape(b1_gate));
    up_product_.emplace(ordinal(), product_shape(b2_up));
    arrange();
    load_kernels();
  }

  [[nodiscard]] std::size_t workspace_bytes() const override { return workspace_bytes_; }
  [[nodiscard]] std::size_t data_alignment() const override { return product_alignment_bytes; }

  void run_prepared(Stream stream, const Tensor& a, const Tensor& c, void* workspace) const override {
    runtime::require_on_gpu(a.data, ordinal(), "a");
    runtime::require_on_gpu(c.data, ordinal(), "c");
    runtime::require_on_gpu(workspace, ordinal(), "workspace");
    enqueue(stream, a, c, static_cast<std::byte*>(workspace));
  }

 private:
  [[nodiscard]] int ordinal() const { return device().ordinal; }

  [[nodiscard]] runtime::Kernel kernel(const std::string& expression) const {
    return load_program(ordinal(), device_code::program()).kernel(expression);
  }

  [[nodiscard]] runtime::Kernel widening_kernel(Format from) const {
    if (from == Format::nvfp4) {
      return kernel(device_code::widen_nvfp4_kernel(product_));
    }
    return kernel(from == product_ ? device_code::copy_rows_kernel() : device_code::widen_to_float_kernel(from));
  }

  [[nodiscard]] runtime::MatmulShape product_shape(const Tensor& weights) const {
    const DualGemmProblem& p = problem();
    return {.m = p.m,
            .n = p.n,
            .k = p.k,
            .input = product_,
            .a_row_stride = p.k,
            .b_row_stride = product_can_read(weights, product_) ? weights.strides[0] : p.k,
            .d_row_stride = intermediate_stride_};
  }

  void arrange() {
    const DualGemmProblem& p = problem();
    const std::int64_t product_bytes = bits(product_) / 8;
    const bool reads_weights = product_can_read(b1_gate_, product_) && product_can_read(b2_up_, product_);
    Pieces pieces;
    wide_a_at_ = pieces.add(p.m * p.k * product_bytes);
    wide_b_at_ = pieces.add(reads_weights ? 0 : p.n * p.k * product_bytes);
    gate_at_ = pieces.add(p.m * intermediate_stride_ * 4);
    up_at_ = pieces.add(p.m * intermediate_stride_ * 4);
    product_at_ = pieces.add(
        static_cast<std::int64_t>(std::max(gate_product_->workspace_bytes(), up_product_->workspace_bytes())));
    workspace_bytes_ = pieces.total();
  }

  /// Loads the library's kernels now; stand-in addresses are never followed.
  void load_kernels() const {
    auto* const stand_in = reinterpret_cast<void*>(std::uintptr_t{piece_alignment});
    const DualGemmProblem& p = problem();
    Tensor a = Tensor::contiguous(stand_in, p.a, {p.m, p.k}, device());
    a.scales.data = stand_in;
    const Tensor c = Tensor::contiguous(stand_in, p.out, {p.m, p.n}, device());
    runtime::load_kernels(ordinal(), [&](Stream stream) { enqueue(stream, a, c, static_cast<std::byte*>(stand_in)); });
  }

  void enqueue(Stream stream, const Tensor& a, const Tensor& c, std::byte* workspace) const {
    void* const gate = workspace + gate_at_;
    void* const up = workspace + up_at_;
    const Tensor wide_a = widened(stream, widen_a_, a, workspace + wide_a_at_);
    const auto product = [&](const runtime::Matmul& matmul, const Tensor& weights, void* result) {
      const Tensor wide_b = widened(stream, widen_b_, weights, workspace + wide_b_at_);
      matmul.run(stream, problem().m, wide_a.data, wide_a.strides[0], wide_b.data, result, workspace + product_at_);
    };
    product(*gate_product_, b1_gate_, gate);
    product(*up_product_, b2_up_, up);
    activate(stream, gate, up, a, c);
  }

  /// The matrix as the product reads it: itself, or a contiguous copy at `space`.
  [[nodiscard]] Tensor widened(Stream stream, const runtime::Kernel& kernel, const Tensor& matrix, void* space) const {
    if (product_can_read(matrix, product_)) {
      return matrix;
    }
    const bool is_nvfp4 = matrix.format == Format::nvfp4;
    const auto elements_per_thread =
        is_nvfp4 ? device_code::nvfp4_elements_per_thread : device_code::plain_elements_per_thread;
    device_code::WidenParameters parameters{};
    parameters.values = address(matrix.data);
    parameters.row_bytes = matrix.strides[0] * bits(matrix.format) / 8;
    parameters.out = address(space);
    parameters.rows = static_cast<std::uint32_t>(matrix.shape[0]);
    parameters.threads_per_row = static_cast<std::uint32_t>(matrix.shape[1] / elements_per_thread);
    if (is_nvfp4) {
      parameters.scales = address(matrix.scales.data);
      parameters.scales_per_row = parameters.threads_per_row;
      parameters.scales_blocked = matrix.scales.layout == ScaleLayout::blocked ? 1 : 0;
    }
    kernel.launch_with(cover(matrix.shape[0] * parameters.threads_per_row, stream), parameters);
    return Tensor::contiguous(space, product_, {matrix.shape[0], matrix.shape[1]}, matrix.device);
  }

  void activate(Stream stream, const void* gate, const void* up, const Tensor& a, const Tensor& c) const {
    const Activation& activation = problem().activation;
    device_code::ActivateParameters parameters{};
    parameters.gate = address(gate);
    parameters.up = address(up);
    parameters.intermediate_stride = intermediate_stride_;
    parameters.out = address(c.data);
    parameters.out_stride = c.strides[0];
    parameters.rows = static_cast<std::uint32_t>(problem().m);
    parameters.columns = static_cast<std::uint32_t>(problem().n);
    parameters.vector_stores = c.strides[0] % device_code::outputs_per_thread == 0 ? 1 : 0;
    parameters.alpha = activation.alpha;
    parameters.limit = activation.limit;
    parameters.up_offset = activation.up_offset;
    parameters.a_scale = address(a.global_scale);
    parameters.gate_scale = address(b1_gate_.global_scale);
    parameters.up_scale = address(b2_up_.global_scale);
    const std::int64_t threads_per_row =
        (problem().n + device_code::outputs_per_thread - 1) / device_code::outputs_per_thread;
    activate_.launch_with(cover(problem().m * threads_per_row, stream), parameters);
  }

  Tensor b1_gate_;
  Tensor b2_up_;
  std::shared_ptr<const PackedWeights::Storage> weights_;  // keeps the weights' memory alive
  Format product_;
  std::int64_t intermediate_stride_;
  runtime::Kernel widen_a_;
  runtime::Kernel widen_b_;
  runtime::Kernel activate_;
  std::optional<runtime::Matmul> gate_product_;
  std::optional<runtime::Matmul> up_product_;
  std::size_t wide_a_at_ = 0;
  std::size_t wide_b_at_ = 0;
  std::size_t gate_at_ = 0;
  std::size_t up_at_ = 0;
  std::size_t product_at_ = 0;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace

std::shared_ptr<const DualGemm::Backend> make_cuda_two_pass(const Device& device, const DualGemmProblem& problem,
                                                            const Tensor& b1_gate, const Tensor& b2_up,
                                                            std::shared_ptr<const PackedWeights::Storage> weights) {
  return std::make_shared<const CudaTwoPass>(device, problem, b1_gate, b2_up, std::move(weights));
}

}  // namespace thresher::ops
