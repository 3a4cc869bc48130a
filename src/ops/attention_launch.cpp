#include "ops/attention_launch.hpp"

#include <algorithm>

namespace thresher::ops {
namespace {

namespace device_code = strategies::attention;
using pipeline::attention::SplitConfig;
using pipeline::attention::StreamConfig;

constexpr float log2_e = 1.44269504F;
constexpr std::int64_t unbounded_window = std::int64_t{1} << 29;

std::int64_t ceil_div(std::int64_t value, std::int64_t divisor) { return (value + divisor - 1) / divisor; }

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

int window(std::int64_t width) {
  return static_cast<int>(width < 0 ? unbounded_window : std::min(width, unbounded_window));
}

device_code::Operand operand(const AttentionProblem& problem, const Tensor& tensor) {
  if (problem.variable_length) {
    return {address(tensor.data), 0, tensor.strides[1], tensor.strides[0]};
  }
  return {address(tensor.data), tensor.strides[0], tensor.strides[1], tensor.strides[2]};
}

machine::TensorMapDescription map(const AttentionProblem& problem, const Tensor& tensor, int box_rows, int box_panels) {
  const bool variable = problem.variable_length;
  const auto rows = static_cast<std::uint64_t>(tensor.shape[variable ? 0 : 2]);
  const device_code::Operand strides = operand(problem, tensor);
  const auto bytes = [](std::uint64_t extent, std::int64_t stride) {  // of a single element no stride is looked at
    return static_cast<std::uint64_t>(extent > 1 ? stride * 2 : 16);
  };
  machine::TensorMapDescription description;
  description.address = strides.data;
  description.element = tensor.format == Format::fp16 ? machine::ElementType::fp16 : machine::ElementType::bf16;
  description.swizzle = machine::Swizzle::b128;
  description.rank = 5;
  const std::uint64_t extents[5] = {pipeline::attention::panel_columns, rows,
                                    static_cast<std::uint64_t>(problem.head_dim) / pipeline::attention::panel_columns,
                                    static_cast<std::uint64_t>(tensor.shape[1]),
                                    variable ? 1 : static_cast<std::uint64_t>(tensor.shape[0])};
  const std::uint64_t byte_strides[5] = {0, bytes(extents[1], strides.row_stride), pipeline::attention::panel_row_bytes,
                                         bytes(extents[3], strides.head_stride),
                                         bytes(extents[4], strides.batch_stride)};
  const std::uint32_t box[5] = {pipeline::attention::panel_columns, static_cast<std::uint32_t>(box_rows),
                                static_cast<std::uint32_t>(box_panels), 1, 1};
  std::copy_n(extents, 5, description.extent);
  std::copy_n(byte_strides, 5, description.stride_bytes);
  std::copy_n(box, 5, description.box);
  return description;
}

}  // namespace

AttentionGeometry attention_geometry(const AttentionChoice& choice) {
  if (choice.strategy == "pipelined") {
    const StreamConfig& c = choice.stream;
    return {.tile_rows = c.rows() * c.cluster,
            .query_box_rows = c.rows(),
            .key_box_rows = c.copied_keys(),
            .key_box_panels = c.copied_panels(),
            .threads = static_cast<unsigned>(c.threads()),
            .cluster = static_cast<unsigned>(c.cluster),
            .shared_bytes = c.shared_bytes(),
            .persistent = true};
  }
  if (choice.strategy == "split") {
    const SplitConfig& c = choice.split;
    return {.tile_rows = SplitConfig::rows,
            .query_box_rows = SplitConfig::rows,
            .key_box_rows = SplitConfig::chunk,
            .key_box_panels = c.head_dim / pipeline::attention::panel_columns,
            .threads = SplitConfig::threads,
            .cluster = static_cast<unsigned>(c.cluster),
            .shared_bytes = c.shared_bytes()};
  }
  if (choice.strategy == "simple") {
    return {.tile_rows = device_code::simple_warps, .threads = device_code::simple_warps * 32, .copies = false};
  }
  const bool stages = choice.staging != device_code::Staging::none;
  return {.tile_rows = device_code::row_threads,
          .threads = device_code::row_threads,
          .shared_bytes = stages ? device_code::staged_bytes : 0,
          .copies = false};
}

device_code::Logits attention_logits(const AttentionProblem& problem) {
  return problem.softcap == 0.0F && effective_scale(problem) > 0.0F ? device_code::Logits::direct
                                                                    : device_code::Logits::general;
}

strategies::DeviceProgram attention_program(const AttentionProblem& problem, const AttentionChoice& choice) {
  const device_code::Logits logits = attention_logits(problem);
  const auto head_dim = static_cast<int>(problem.head_dim);
  return choice.strategy == "pipelined" ? device_code::pipelined_program(problem.format, choice.stream, logits)
         : choice.strategy == "split"   ? device_code::split_program(problem.format, choice.split, logits)
         : choice.strategy == "simple"  ? device_code::simple_program(problem.format, head_dim)
                                        : device_code::rows_program(problem.format, choice.staging);
}

device_code::Params attention_constants(const AttentionProblem& p, const AttentionGeometry& geometry) {
  device_code::Params params{};
  params.batch = static_cast<int>(p.batch);
  params.heads = static_cast<int>(p.heads);
  params.group = static_cast<int>(p.heads / p.kv_heads);
  params.queries = static_cast<int>(p.queries);
  params.keys = static_cast<int>(p.keys);
  params.window_left = window(p.window_left);
  params.window_right = p.causal ? 0 : window(p.window_right);
  if (p.causal && p.window_right >= 0) {
    params.window_right = static_cast<int>(std::min<std::int64_t>(p.window_right, 0));
  }
  const float scale = effective_scale(p);
  const bool capped = p.softcap > 0.0F && scale != 0.0F;
  params.scale_log2 = (capped ? p.softcap : scale) * log2_e;
  params.inner_scale = capped ? scale / p.softcap : 0.0F;
  params.query_tiles = static_cast<int>(p.variable_length ? p.queries / geometry.tile_rows + p.batch
                                                          : ceil_div(p.queries, geometry.tile_rows));
  if (geometry.persistent && !p.variable_length) {
    params.order = p.causal ? device_code::Order::paired_then_longest_first : device_code::Order::short_tiles_last;
    params.missing_rows = params.query_tiles * geometry.tile_rows - params.queries;
  }
  return params;
}

void add_tensors(device_code::Params& params, const AttentionProblem& problem, const AttentionTensors& tensors) {
  params.q = operand(problem, tensors.q);
  params.k = operand(problem, tensors.k);
  params.v = operand(problem, tensors.v);
  params.o = operand(problem, tensors.o);
  if (tensors.lse.data != nullptr) {
    params.lse = address(tensors.lse.data);
    params.lse_batch_stride = problem.variable_length ? 0 : tensors.lse.strides[0];
    params.lse_head_stride = tensors.lse.strides[problem.variable_length ? 0 : 1];
  }
  if (problem.variable_length) {
    params.cu_seqlens_q = address(tensors.cu_seqlens_q.data);
    params.cu_seqlens_k = address(tensors.cu_seqlens_k.data);
  }
}

AttentionGrid attention_grid(const AttentionProblem& problem, const AttentionChoice& choice,
                             const AttentionGeometry& geometry, const device_code::Params& constants) {
  const auto batch = static_cast<unsigned>(problem.variable_length ? 1 : problem.batch);
  const auto heads = static_cast<unsigned>(problem.heads);
  if (choice.strategy == "split") {
    return {heads * geometry.cluster, static_cast<unsigned>(constants.query_tiles), batch};
  }
  return {static_cast<unsigned>(constants.query_tiles) * heads * batch * geometry.cluster};
}

machine::TensorMapDescription query_map(const AttentionProblem& problem, const AttentionGeometry& geometry,
                                        const Tensor& tensor) {
  const int panels = static_cast<int>(problem.head_dim) / pipeline::attention::panel_columns;
  return map(problem, tensor, geometry.query_box_rows, panels);
}

machine::TensorMapDescription key_map(const AttentionProblem& problem, const AttentionGeometry& geometry,
                                      const Tensor& tensor) {
  return map(problem, tensor, geometry.key_box_rows, geometry.key_box_panels);
}

}  // namespace thresher::ops
