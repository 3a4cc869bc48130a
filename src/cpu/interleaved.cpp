#include "cpu/interleaved.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "core/integers.hpp"
#include "cpu/finish.hpp"
#include "cpu/panel.hpp"
#include "cpu/parallel.hpp"
#include "cpu/workspace.hpp"
#include "formats/elements.hpp"

namespace thresher::cpu {
namespace {

// A chunk of A, a chunk of one block of weights and that block's two products stay in a core's cache of some 2 MiB.
constexpr std::int64_t max_rows = 512;
constexpr std::int64_t max_depth = 512;
constexpr std::int64_t max_products = 65536;  // of one matrix, row_chunk × block_columns

std::size_t size(std::int64_t count) noexcept { return static_cast<std::size_t>(count); }

}  // namespace

Blocking Blocking::choose(const InterleavedShape& shape, int threads) noexcept {
  Blocking cut{};
  cut.row_chunks = std::max<std::int64_t>(1, ceil_div(shape.m, max_rows));
  cut.row_chunk = std::max<std::int64_t>(16, round_up(ceil_div(shape.m, cut.row_chunks), 16));
  cut.depth_chunks = std::max<std::int64_t>(1, ceil_div(shape.k, max_depth));
  cut.depth_chunk = round_up(ceil_div(shape.k, cut.depth_chunks), 32);
  cut.depth_chunks = ceil_div(shape.k, cut.depth_chunk);
  const std::int64_t max_columns = std::min<std::int64_t>(256, max_products / cut.row_chunk);
  // N may be 0: then there is no block, and neither count may be used as a divisor before.
  cut.blocks = std::max<std::int64_t>(1, round_up(ceil_div(shape.n, max_columns), threads));
  cut.block_columns = std::max<std::int64_t>(16, round_up(ceil_div(shape.n, cut.blocks), 16));
  cut.blocks = ceil_div(shape.n, cut.block_columns);
  return cut;
}

/// One call of run: the operands, and flags that its threads set.
struct InterleavedGemm::Run {
  const InterleavedCall& call;
  void* workspace;
  std::mutex range_mutex{};
  ExponentRange a_range{};
  std::atomic<bool> exact{true};
};

InterleavedGemm::InterleavedGemm(const InterleavedShape& shape, ProductType type, int threads)
    : shape_(shape),
      type_(type),
      threads_(threads),
      blocking_(Blocking::choose(shape, threads)),
      product_({.type = type,
                .rows = blocking_.block_columns,
                .columns = blocking_.row_chunk,
                .depth = blocking_.depth_chunk},
               Product::PanelChoice::fastest, 1),
      a_planes_(type == ProductType::bf16 ? bf16_planes(shape.a) : 1),
      b_planes_(type == ProductType::bf16 ? bf16_planes(shape.b) : 1),
      pack_rows_(product_.panel_layout().block_columns > 0 ? product_.panel_layout().block_columns : 16),
      weight_slots_(blocking_.row_chunks > 1 ? shape.matrices * blocking_.depth_chunks : 1),
      panel_bytes_(round_up_bytes(product_.panel_bytes())),
      slot_plane_bytes_(round_up_bytes(size(blocking_.block_columns * blocking_.depth_chunk) * element_bytes(type))) {
  slot_bytes_ = size(b_planes_) * slot_plane_bytes_;
  lay_out_workspace();
}

void InterleavedGemm::lay_out_workspace() noexcept {
  const std::size_t rows_to_pack = size(a_planes_ * pack_rows_ * blocking_.depth_chunk) * element_bytes(type_);
  const std::size_t products = size(blocking_.block_columns * blocking_.row_chunk) * sizeof(float);
  WorkspaceLayout layout;
  parts_.planes = layout.add(std::max(size(weight_slots_) * slot_bytes_, rows_to_pack));
  parts_.gate = layout.add(products);
  parts_.up = layout.add(products);
  parts_.product_scratch = layout.add(product_.scratch_bytes());
  parts_.finish_scratch = layout.add(size(transposed_scratch_floats(blocking_.block_columns)) * sizeof(float));
  parts_.bytes = layout.bytes();
}

std::size_t InterleavedGemm::panel_offset(std::int64_t plane, std::int64_t row_chunk,
                                          std::int64_t depth_chunk) const noexcept {
  return size((plane * blocking_.row_chunks + row_chunk) * blocking_.depth_chunks + depth_chunk) * panel_bytes_;
}

std::size_t InterleavedGemm::thread_offset(int thread) const noexcept {
  return panel_offset(a_planes_, 0, 0) + static_cast<std::size_t>(thread) * parts_.bytes;
}

std::size_t InterleavedGemm::workspace_bytes(int team) const noexcept { return thread_offset(team); }

Slice InterleavedGemm::slice(const MatrixRows& operand, std::int64_t first_row, std::int64_t rows,
                             std::int64_t depth_chunk) const noexcept {
  const std::int64_t first_k = depth_chunk * blocking_.depth_chunk;
  return {.first_row = first_row,
          .rows = rows,
          .first_k = first_k,
          .depth = std::min(blocking_.depth_chunk, shape_.k - first_k),
          .padded_depth = blocking_.depth_chunk,
          .of = operand.rows};
}

ExponentRange InterleavedGemm::convert(const Tensor& operand, const Slice& slice, std::byte* planes,
                                       std::size_t plane_bytes) const {
  if (type_ == ProductType::float32) {
    to_float32(operand, slice, reinterpret_cast<float*>(planes));
    return {};
  }
  return to_bf16(operand, slice, reinterpret_cast<std::uint16_t*>(planes),
                 reinterpret_cast<std::uint16_t*>(planes + plane_bytes));
}

/// Packs `pack_rows_` rows of one chunk of A.
void InterleavedGemm::pack(Run& run, std::int64_t task, int thread) const {
  const std::int64_t row_groups = ceil_div(blocking_.row_chunk, pack_rows_);
  const std::int64_t group = task % row_groups;
  const std::int64_t depth_chunk = task / row_groups % blocking_.depth_chunks;
  const std::int64_t row_chunk = task / row_groups / blocking_.depth_chunks;

  const std::size_t group_bytes = size(pack_rows_ * blocking_.depth_chunk) * element_bytes(type_);
  auto* rows = part<std::byte>(run.workspace, thread_offset(thread) + parts_.planes);
  const std::int64_t first_row = row_chunk * blocking_.row_chunk + group * pack_rows_;
  const ExponentRange range =
      convert(run.call.a.matrix, slice(run.call.a, first_row, pack_rows_, depth_chunk), rows, group_bytes);
  for (std::int64_t plane = 0; plane < a_planes_; ++plane) {
    auto* panel =
        part<std::byte>(run.workspace, panel_offset(plane, row_chunk, depth_chunk)) + size(group) * group_bytes;
    const std::byte* plane_rows = rows + size(plane) * group_bytes;
    if (product_.panel_layout().block_columns > 0) {
      const auto units = static_cast<std::int64_t>(group_bytes / sizeof(std::uint32_t)) / pack_rows_;
      pack_panel_block(reinterpret_cast<const std::uint32_t*>(plane_rows), units, pack_rows_,
                       reinterpret_cast<std::uint32_t*>(panel));
    } else {
      std::memcpy(panel, plane_rows, group_bytes);
    }
  }
  const std::lock_guard lock(run.range_mutex);
  run.a_range.include(range);
}

ExponentRange InterleavedGemm::convert_weights(const MatrixRows& weights, std::int64_t block, std::int64_t depth_chunk,
                                               std::byte* planes) const {
  // The pieces of rows are too short for the CPU's prefetcher, and their loads would take half the time of
  // dequantization: prefetch a group of rows ahead.
  constexpr std::int64_t group = 8;
  ExponentRange range;
  for (std::int64_t row = 0; row < blocking_.block_columns; row += group) {
    const std::int64_t first_row = block * blocking_.block_columns + row;
    const std::size_t offset = size(row * blocking_.depth_chunk) * element_bytes(type_);
    if (row + group < blocking_.block_columns) {
      prefetch(weights.matrix, slice(weights, first_row + group, group, depth_chunk));
    }
    range.include(
        convert(weights.matrix, slice(weights, first_row, group, depth_chunk), planes + offset, slot_plane_bytes_));
  }
  return range;
}

/// Adds weights · Aᵀ over one chunk of depth to `out`, or stores it at the first depth. The low planes come first, so
/// that their small sums are rounded finely. False: the products would not be exact.
bool InterleavedGemm::multiply_chunk(Run& run, const MatrixRows& weights, std::byte* planes, bool planes_ready,
                                     std::int64_t block, std::int64_t row_chunk, std::int64_t depth_chunk, float* out,
                                     void* scratch) const {
  if (!planes_ready) {
    const ExponentRange range = convert_weights(weights, block, depth_chunk, planes);
    if (type_ == ProductType::bf16 && !exact_in_bf16(shape_.a, run.a_range, shape_.b, range)) {
      return false;
    }
  }
  bool accumulate = depth_chunk > 0;
  for (std::int64_t b_plane = b_planes_ - 1; b_plane >= 0; --b_plane) {
    for (std::int64_t a_plane = a_planes_ - 1; a_plane >= 0; --a_plane) {
      const auto* panel = part<std::byte>(run.workspace, panel_offset(a_plane, row_chunk, depth_chunk));
      product_.run(planes + size(b_plane) * slot_plane_bytes_, panel, out, accumulate, scratch);
      accumulate = true;
    }
  }
  return true;
}

void InterleavedGemm::compute_block(Run& run, std::int64_t block, int thread) const {
  const std::size_t base = thread_offset(thread);
  auto* slots = part<std::byte>(run.workspace, base + parts_.planes);
  auto* gate = part<float>(run.workspace, base + parts_.gate);
  auto* up = part<float>(run.workspace, base + parts_.up);
  auto* scratch = part<std::byte>(run.workspace, base + parts_.product_scratch);
  const auto slot = [&](std::int64_t index) { return slots + size(index % weight_slots_) * slot_bytes_; };

  const std::int64_t rows = run.call.c.shape[0];
  const bool has_up = shape_.matrices == 2;
  const std::int64_t row_chunks = ceil_div(rows, blocking_.row_chunk);
  for (std::int64_t row_chunk = 0; row_chunk < row_chunks && run.exact; ++row_chunk) {
    const bool ready = row_chunk > 0;
    for (std::int64_t depth = 0; depth < blocking_.depth_chunks; ++depth) {
      const std::int64_t first = shape_.matrices * depth;
      if (!multiply_chunk(run, run.call.b1_gate, slot(first), ready, block, row_chunk, depth, gate, scratch) ||
          (has_up &&
           !multiply_chunk(run, run.call.b2_up, slot(first + 1), ready, block, row_chunk, depth, up, scratch))) {
        run.exact = false;
        return;
      }
    }
    const std::int64_t first_row = row_chunk * blocking_.row_chunk;
    const std::int64_t first_column = block * blocking_.block_columns;
    finish_transposed(run.call.finish, gate, has_up ? up : gate, blocking_.row_chunk,
                      std::min(blocking_.row_chunk, rows - first_row),
                      std::min(blocking_.block_columns, shape_.n - first_column), run.call.c, first_row, first_column,
                      part<float>(run.workspace, base + parts_.finish_scratch));
  }
}

bool InterleavedGemm::run(const InterleavedCall& call, void* workspace, int team) const {
  Run run{.call = call, .workspace = workspace};
  const std::int64_t row_chunks = ceil_div(call.c.shape[0], blocking_.row_chunk);
  const std::int64_t pack_tasks = ceil_div(blocking_.row_chunk, pack_rows_) * blocking_.depth_chunks * row_chunks;
  parallel_for(team, pack_tasks, [&](std::int64_t task, int thread) { pack(run, task, thread); });
  parallel_for(team, blocking_.blocks, [&](std::int64_t block, int thread) { compute_block(run, block, thread); });
  return run.exact;
}

InterleavedDualGemm::InterleavedDualGemm(const DualGemmProblem& problem, ProductType type, int threads)
    : activation_(problem.activation),
      gemm_({.m = problem.m, .n = problem.n, .k = problem.k, .a = problem.a, .b = problem.b}, type, threads) {}

bool InterleavedDualGemm::run(const Tensor& a, const Tensor& b1_gate, const Tensor& b2_up, const Tensor& c,
                              void* workspace) const {
  const double a_scale = formats::global_scale(a);
  return gemm_.run({.a = {a},
                    .b1_gate = {b1_gate},
                    .b2_up = {b2_up},
                    .c = c,
                    .finish = {.activation = activation_,
                               .gate_scale = a_scale * formats::global_scale(b1_gate),
                               .up_scale = a_scale * formats::global_scale(b2_up)}},
                   workspace, gemm_.threads());
}

}  // namespace thresher::cpu
