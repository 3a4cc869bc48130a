#include "cpu/grouped_gemm.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

#include "cpu/interleaved.hpp"
#include "cpu/parallel.hpp"
#include "cpu/workspace.hpp"
#include "formats/elements.hpp"
#include "formats/quantize_row.hpp"
#include "thresher/error.hpp"

namespace thresher::cpu {
namespace {

/// Rows of one expert for which products are planned; larger experts use the problem's rows.
constexpr std::array<std::int64_t, 3> planned_rows{16, 64, 256};
/// All threads share an expert with more rows.
constexpr std::int64_t max_rows_of_one = planned_rows.back();

double product_scale(const Tensor& a, const Tensor& matrix) {
  return formats::global_scale(a) * formats::global_scale(matrix);
}

MatrixRows rows_of(const Tensor& view, std::int64_t expert) {
  const ExpertMatrix of = expert_matrix(view, expert);
  return {of.matrix, {.step = of.row_step}};
}

Bias bias_of(const Tensor& view, std::int64_t expert) {
  if (view.rank == 0) {
    return {};
  }
  const auto* bytes = static_cast<const std::byte*>(view.data) + expert * view.strides[0] * bits(view.format) / 8;
  return {bytes, view.format, view.strides[1]};
}

/// The rows of one expert: its rows of A and its rows of C.
struct GroupRowsOf {
  MatrixRows a;
  Tensor c;
  const std::int64_t* tokens = nullptr;  ///< if rows may be skipped
};

Tensor first_rows(Tensor matrix, std::int64_t count) {
  matrix.shape[0] = count;
  return matrix;
}

GroupRowsOf group_of(const GroupedTensors& tensors, const reference::OwnedRows& owned, std::int64_t expert) {
  const reference::GroupRows& group = owned.groups[static_cast<std::size_t>(expert)];
  if (tensors.a.rank == 3) {
    return {{slot_matrix(tensors.a, expert), {.most = group.count}},
            first_rows(slot_matrix(tensors.c, expert), group.count)};
  }
  const std::span<const std::int64_t> listed(owned.tokens.data() + group.first, static_cast<std::size_t>(group.count));
  Tensor c = first_rows(tensors.c, group.count);
  c.data = static_cast<std::byte*>(c.data) + group.first * c.strides[0] * bits(c.format) / 8;
  return {{tensors.a, {.listed = listed, .is_listed = true}}, c, listed.data()};
}

}  // namespace

/// One expert's products for up to this many rows, in the CPU's native product type. Values that are not exact in bf16
/// are multiplied in float32.
class GroupedGemmKernel::PlannedRows {
 public:
  PlannedRows(const GroupedProblem& problem, std::int64_t rows, int threads)
      : rows_(rows), first_(shape_of(problem, rows), product_type_of(problem.a, problem.b), threads) {
    if (product_type_of(problem.a, problem.b) == ProductType::bf16 && may_be_inexact_in_bf16(problem.a, problem.b)) {
      in_float32_.emplace(shape_of(problem, rows), ProductType::float32, threads);
    }
  }

  [[nodiscard]] std::int64_t rows() const noexcept { return rows_; }
  [[nodiscard]] std::size_t workspace_bytes(int team) const noexcept {
    return std::max(first_.workspace_bytes(team), in_float32_ ? in_float32_->workspace_bytes(team) : 0);
  }
  void run(const InterleavedCall& call, void* workspace, int team) const {
    if (!first_.run(call, workspace, team) && (!in_float32_ || !in_float32_->run(call, workspace, team))) {
      throw Error(ErrorCode::internal, "a CPU grouped GEMM was refused in bf16 and has no float32 form");
    }
  }

 private:
  static InterleavedShape shape_of(const GroupedProblem& problem, std::int64_t rows) {
    return {.m = rows,
            .n = problem.n,
            .k = problem.k,
            .a = problem.a,
            .b = problem.b,
            .matrices = is_gated(problem.activation) ? 2 : 1};
  }

  std::int64_t rows_;
  InterleavedGemm first_;
  std::optional<InterleavedGemm> in_float32_;
};

GroupedGemmKernel::GroupedGemmKernel(const GroupedProblem& problem, int threads)
    : problem_(problem), threads_(resolve_threads(threads)) {
  for (const std::int64_t rows : planned_rows) {
    if (rows < problem.rows) {
      planned_rows_.push_back(std::make_unique<const PlannedRows>(problem, rows, threads_));
    }
  }
  planned_rows_.push_back(
      std::make_unique<const PlannedRows>(problem, std::max<std::int64_t>(problem.rows, 1), threads_));
}

GroupedGemmKernel::~GroupedGemmKernel() = default;

const GroupedGemmKernel::PlannedRows& GroupedGemmKernel::planned_for(std::int64_t rows) const {
  return **std::find_if(planned_rows_.begin(), planned_rows_.end(),
                        [&](const auto& one) { return one->rows() >= rows; });
}

std::size_t GroupedGemmKernel::bytes_of_one() const noexcept {
  std::size_t most = 0;
  for (const auto& planned : planned_rows_) {
    most = planned->rows() <= max_rows_of_one ? std::max(most, planned->workspace_bytes(1)) : most;
  }
  return most;
}

std::size_t GroupedGemmKernel::workspace_bytes() const noexcept {
  const std::size_t of_products = round_up_bytes(product_bytes());
  if (!format_traits(problem_.out).is_quantized_output()) {
    return of_products;
  }
  const std::int64_t slots = problem_.layout == RowLayout::slots ? problem_.experts : 1;
  return of_products + static_cast<std::size_t>(slots * problem_.rows * problem_.n) * sizeof(float);
}

std::size_t GroupedGemmKernel::product_bytes() const noexcept {
  std::size_t most = static_cast<std::size_t>(threads_) * bytes_of_one();
  for (const auto& planned : planned_rows_) {
    most = std::max(most, planned->workspace_bytes(threads_));
  }
  return most;
}

void GroupedGemmKernel::run_expert(const WeightViews& weights, const GroupedTensors& tensors,
                                   const reference::OwnedRows& owned, std::int64_t expert, void* workspace,
                                   int team) const {
  const reference::GroupRows& group = owned.groups[static_cast<std::size_t>(expert)];
  const GroupRowsOf rows = group_of(tensors, owned, expert);
  InterleavedCall call{.a = rows.a,
                       .b1_gate = rows_of(weights.gate, expert),
                       .b2_up = {},
                       .c = rows.c,
                       .finish = {.activation = problem_.activation, .gate_scale = 1, .up_scale = 1}};
  call.finish.gate_scale = product_scale(rows.a.matrix, call.b1_gate.matrix);
  call.finish.gate_bias = bias_of(weights.gate_bias, expert);
  if (is_gated(problem_.activation)) {
    call.b2_up = rows_of(weights.up, expert);
    call.finish.up_scale = product_scale(rows.a.matrix, call.b2_up.matrix);
    call.finish.up_bias = bias_of(weights.up_bias, expert);
  }
  if (problem_.row_weights) {
    call.finish.row_weights = static_cast<const float*>(tensors.row_weights.data) + group.first;
  }
  call.finish.tokens = rows.tokens;
  planned_for(group.count).run(call, workspace, team);
}

void GroupedGemmKernel::multiply(const WeightViews& weights, const GroupedTensors& tensors,
                                 const reference::OwnedRows& owned, void* workspace) const {
  std::int64_t all_rows = 0;
  for (const reference::GroupRows& group : owned.groups) {
    all_rows += group.count;
  }
  std::vector<std::int64_t> of_one_thread;
  for (std::int64_t expert = 0; expert < problem_.experts; ++expert) {
    const std::int64_t rows = owned.groups[static_cast<std::size_t>(expert)].count;
    if (rows > max_rows_of_one || rows * threads_ > all_rows) {
      run_expert(weights, tensors, owned, expert, workspace, threads_);
    } else if (rows > 0) {
      of_one_thread.push_back(expert);
    }
  }
  const std::size_t bytes = bytes_of_one();
  parallel_for(threads_, std::ssize(of_one_thread), [&](std::int64_t index, int thread) {
    run_expert(weights, tensors, owned, of_one_thread[static_cast<std::size_t>(index)],
               static_cast<std::byte*>(workspace) + static_cast<std::size_t>(thread) * bytes, 1);
  });
}

void GroupedGemmKernel::quantize_output(const Tensor& values, const Tensor& c,
                                        const reference::OwnedRows& owned) const {
  const std::int64_t rows_of_a_matrix = c.rank == 3 ? c.shape[1] : c.shape[0];
  parallel_for(threads_, std::ssize(owned.tokens), [&](std::int64_t row, int) {
    if (owned.tokens[static_cast<std::size_t>(row)] < 0) {
      return;
    }
    const Tensor matrix = c.rank == 3 ? slot_matrix(c, row / rows_of_a_matrix) : c;
    formats::quantize_row(
        matrix, row % rows_of_a_matrix,
        {static_cast<const float*>(values.data) + row * problem_.n, static_cast<std::size_t>(problem_.n)});
  });
}

GroupedStatus GroupedGemmKernel::run(const WeightViews& weights, const GroupedTensors& tensors, void* workspace) const {
  const reference::OwnedRows owned = reference::owned_rows(problem_, tensors);
  if (!format_traits(problem_.out).is_quantized_output()) {
    multiply(weights, tensors, owned, workspace);
    return owned.status;
  }
  const Tensor& c = tensors.c;
  GroupedTensors in_float32 = tensors;
  in_float32.c = Tensor::contiguous(static_cast<std::byte*>(workspace) + round_up_bytes(product_bytes()), Format::fp32,
                                    std::span(c.shape.data(), static_cast<std::size_t>(c.rank)));
  multiply(weights, in_float32, owned, workspace);
  quantize_output(in_float32.c, c, owned);
  return owned.status;
}

}  // namespace thresher::cpu
