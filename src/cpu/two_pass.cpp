#include "cpu/two_pass.hpp"

#include <algorithm>
#include <mutex>

#include "cpu/finish.hpp"
#include "cpu/parallel.hpp"
#include "cpu/workspace.hpp"
#include "formats/elements.hpp"

namespace thresher::cpu {
namespace {

constexpr std::int64_t rows_per_task = 16;

std::size_t size(std::int64_t count) noexcept { return static_cast<std::size_t>(count); }

}  // namespace

TwoPassDualGemm::TwoPassDualGemm(const DualGemmProblem& problem, ProductType type, int threads)
    : problem_(problem),
      type_(type),
      threads_(threads),
      product_({.type = type, .rows = std::max<std::int64_t>(1, problem.m), .columns = problem.n, .depth = problem.k},
               Product::PanelChoice::row_major, threads) {
  WorkspaceLayout layout;
  a_ = dense_planes(problem.m, problem.a);
  a_.offset = layout.add(size(a_.count) * a_.plane_bytes);
  for (Planes& b : b_) {
    b = dense_planes(problem.n, problem.b);
    b.offset = layout.add(size(b.count) * b.plane_bytes);
  }
  const std::size_t products = size(problem.m * problem.n) * sizeof(float);
  gate_ = layout.add(products);
  up_ = layout.add(products);
  scratch_ = layout.add(product_.scratch_bytes());
  workspace_bytes_ = layout.bytes();
}

TwoPassDualGemm::Planes TwoPassDualGemm::dense_planes(std::int64_t rows, Format format) const noexcept {
  return {.offset = 0,
          .plane_bytes = round_up_bytes(size(rows * problem_.k) * element_bytes(type_)),
          .count = type_ == ProductType::bf16 ? bf16_planes(format) : 1};
}

ExponentRange TwoPassDualGemm::convert(const Tensor& operand, const Planes& planes, void* workspace) const {
  ExponentRange range;
  std::mutex range_mutex;
  auto* first_plane = part<std::byte>(workspace, planes.offset);
  const std::int64_t rows = operand.shape[0];
  parallel_for(threads_, (rows + rows_per_task - 1) / rows_per_task, [&](std::int64_t task, int) {
    const std::int64_t first_row = task * rows_per_task;
    const Slice slice{.first_row = first_row,
                      .rows = std::min(rows_per_task, rows - first_row),
                      .first_k = 0,
                      .depth = problem_.k,
                      .padded_depth = problem_.k};
    std::byte* out = first_plane + size(first_row * problem_.k) * element_bytes(type_);
    if (type_ == ProductType::float32) {
      to_float32(operand, slice, reinterpret_cast<float*>(out));
      return;
    }
    const ExponentRange met = to_bf16(operand, slice, reinterpret_cast<std::uint16_t*>(out),
                                      reinterpret_cast<std::uint16_t*>(out + planes.plane_bytes));
    const std::lock_guard lock(range_mutex);
    range.include(met);
  });
  return range;
}

/// The low planes come first, so that their small sums are rounded finely.
void TwoPassDualGemm::multiply(const Planes& weights, std::size_t out_offset, void* workspace) const {
  bool accumulate = false;
  for (std::int64_t b_plane = weights.count - 1; b_plane >= 0; --b_plane) {
    for (std::int64_t a_plane = a_.count - 1; a_plane >= 0; --a_plane) {
      product_.run(part<std::byte>(workspace, a_.offset + size(a_plane) * a_.plane_bytes),
                   part<std::byte>(workspace, weights.offset + size(b_plane) * weights.plane_bytes),
                   part<float>(workspace, out_offset), accumulate, part<std::byte>(workspace, scratch_));
      accumulate = true;
    }
  }
}

bool TwoPassDualGemm::run(const Tensor& a, const Tensor& b1_gate, const Tensor& b2_up, const Tensor& c,
                          void* workspace) const {
  const ExponentRange a_range = convert(a, a_, workspace);
  ExponentRange b_range = convert(b1_gate, b_[0], workspace);
  b_range.include(convert(b2_up, b_[1], workspace));
  if (type_ == ProductType::bf16 && !exact_in_bf16(problem_.a, a_range, problem_.b, b_range)) {
    return false;
  }
  const std::array outputs{gate_, up_};
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    // In this thread, but in the floating-point environment of a body.
    parallel_for(1, 1, [&](std::int64_t, int) { multiply(b_[i], outputs[i], workspace); });
  }
  const double a_scale = formats::global_scale(a);
  const Finish finish{.activation = problem_.activation,
                      .gate_scale = a_scale * formats::global_scale(b1_gate),
                      .up_scale = a_scale * formats::global_scale(b2_up)};
  parallel_for(threads_, a.shape[0], [&](std::int64_t row, int) {
    auto* out = static_cast<std::byte*>(c.data) + row * c.strides[0] * (bits(c.format) / 8);
    finish_row(finish, part<float>(workspace, gate_) + row * problem_.n, part<float>(workspace, up_) + row * problem_.n,
               problem_.n, c.format, out);
  });
  return true;
}

}  // namespace thresher::cpu
