#include "strategies/attention/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include "pipeline/attention/config.hpp"
#include "strategies/attention/tensors.hpp"

namespace thresher::strategies::attention {
namespace {

constexpr float log2_e = 1.44269504F;
constexpr std::int64_t unbounded_window = std::int64_t{1} << 29;

int window(std::int64_t width) {
  return static_cast<int>(width < 0 ? unbounded_window : std::min(width, unbounded_window));
}

Operand operand(const AttentionProblem& problem, const Tensor& tensor) {
  if (problem.variable_length) {
    return {device_address(tensor.data), 0, tensor.strides[1], tensor.strides[0]};
  }
  return {device_address(tensor.data), tensor.strides[0], tensor.strides[1], tensor.strides[2]};
}

/// A page takes the place of a sequence in a paged KV cache.
Operand key_operand(const AttentionProblem& problem, const Tensor& tensor) {
  return problem.page_size > 0
             ? Operand{device_address(tensor.data), tensor.strides[0], tensor.strides[2], tensor.strides[1]}
             : operand(problem, tensor);
}

Descale descale(const Tensor& tensor) {
  return tensor.data == nullptr ? Descale{}
                                : Descale{device_address(tensor.data), tensor.strides[0], tensor.strides[1]};
}

machine::ElementType element_type(Format format) {
  return format == Format::fp16   ? machine::ElementType::fp16
         : format == Format::bf16 ? machine::ElementType::bf16
                                  : machine::ElementType::uint8;
}

/// The map of a tensor whose rows are `columns` long. Its dimensions are the columns of a panel, rows, panels, and two
/// more. A panel has 128 bytes, or a whole row that has fewer.
class PanelMap {
 public:
  PanelMap(const Tensor& tensor, std::int64_t columns)
      : tensor_(tensor),
        element_(static_cast<std::uint32_t>(bits(tensor.format) / 8)),
        bytes_(static_cast<std::uint32_t>(
            pipeline::attention::panel_bytes_of(static_cast<int>(columns * static_cast<std::int64_t>(element_))))),
        panels_(static_cast<std::uint32_t>(columns) / columns_of_panel()) {}

  [[nodiscard]] std::uint32_t panels() const { return panels_; }

  struct Dimension {
    std::int64_t extent;
    std::int64_t stride;  ///< in elements
    int box;
  };
  [[nodiscard]] machine::TensorMapDescription description(const Dimension& rows, int box_panels, const Dimension& heads,
                                                          const Dimension& outer) const {
    const auto stride = [&](const Dimension& of) {  // the stride of a single element is not read
      return static_cast<std::uint64_t>(of.extent > 1 ? of.stride * element_ : 16);
    };
    const auto extent = [](const Dimension& of) { return static_cast<std::uint64_t>(of.extent); };
    const auto box = [](int of) { return static_cast<std::uint32_t>(of); };
    machine::TensorMapDescription map;
    map.address = device_address(tensor_.data);
    map.element = element_type(tensor_.format);
    map.swizzle = bytes_ == 128 ? machine::Swizzle::b128 : machine::Swizzle::b64;
    map.rank = 5;
    const std::uint64_t extents[5] = {columns_of_panel(), extent(rows), panels_, extent(heads), extent(outer)};
    const std::uint64_t strides[5] = {0, stride(rows), bytes_, stride(heads), stride(outer)};
    const std::uint32_t boxes[5] = {columns_of_panel(), box(rows.box), box(box_panels), box(heads.box), box(outer.box)};
    std::copy_n(extents, 5, map.extent);
    std::copy_n(strides, 5, map.stride_bytes);
    std::copy_n(boxes, 5, map.box);
    return map;
  }

 private:
  [[nodiscard]] std::uint32_t columns_of_panel() const { return bytes_ / element_; }

  const Tensor& tensor_;
  std::uint32_t element_;  ///< bytes
  std::uint32_t bytes_;    ///< of a row in one panel
  std::uint32_t panels_;
};

/// Rows, heads, batch.
machine::TensorMapDescription tensor_map(const AttentionProblem& problem, const Tensor& tensor, int box_rows,
                                         int box_panels) {
  const bool variable = problem.variable_length;
  const Operand strides = operand(problem, tensor);
  return PanelMap(tensor, tensor.shape[variable ? 2 : 3])
      .description({tensor.shape[variable ? 0 : 2], strides.row_stride, box_rows}, box_panels,
                   {tensor.shape[1], strides.head_stride, 1},
                   {variable ? 1 : tensor.shape[0], strides.batch_stride, 1});
}

/// The bytes beside a row of a page may be another head's or page's.
machine::TensorMapDescription without_neighbours(machine::TensorMapDescription map) {
  map.promotion = machine::Promotion::b128;
  return map;
}

void add_maps(LaunchArguments& out, const AttentionProblem& problem, const Geometry& geometry, const Paging& paging,
              const CallTensors& call) {
  const auto add = [&](std::size_t offset, TensorIndex index, int box_rows, int box_panels) {
    out.add_map(offset, tensor_map(problem, call.tensors[index], box_rows, box_panels));
  };
  add(offsetof(Params, query_map), query_index, geometry.query_box_rows, geometry.query_box_panels);
  if (problem.page_size > 0) {
    const auto add_pages = [&](std::size_t offset, TensorIndex index) {
      const Tensor& tensor = call.tensors[index];
      const int rows = 1 << paging.box_shift;
      out.add_map(offset, paging.page_groups != 0 ? page_group_map(tensor, rows)
                                                  : page_map(tensor, rows, geometry.whole_rows ? all_panels : 1));
    };
    add_pages(offsetof(Params, key_map), key_index);
    add_pages(offsetof(Params, value_map), value_index);
    return;
  }
  add(offsetof(Params, key_map), key_index, geometry.key_share.keys, geometry.key_share.panels);
  add(offsetof(Params, value_map), value_index, geometry.value_share.keys, geometry.value_share.panels);
}

Extent3 grid(const AttentionProblem& problem, const Geometry& geometry, int query_tiles) {
  const auto batch = static_cast<std::uint32_t>(problem.variable_length ? 1 : problem.batch);
  const auto heads = static_cast<std::uint32_t>(problem.heads);
  const auto tiles = static_cast<std::uint32_t>(query_tiles);
  return geometry.grid_of_heads ? Extent3{heads * geometry.cluster, tiles, batch}
                                : Extent3{tiles * heads * batch * geometry.cluster, 1, 1};
}

void add_paging(Paging& paging, const CallTensors& call) {
  const Tensor& table = call.tensors[block_table_index];
  paging.block_table = device_address(table.data);
  paging.table_batch_stride = table.strides[0];
  paging.table_page_stride = table.strides[1];
  const Tensor& used = call.tensors[used_keys_index];
  paging.used_keys = device_address(used.data);
  paging.used_keys_stride = used.strides[0];
}

/// Boxes of whole rows have more than 8 of them only in maps of groups.
void add_page_groups(Paging& paging, const CallTensors& call) {
  const int groups = page_groups(call.tensors[key_index]);
  paging.page_groups = groups == page_groups(call.tensors[value_index]) ? groups : 0;
  if (paging.page_groups == 0) {
    paging.box_shift = box_shift(pipeline::attention::group_rows);
  }
}

}  // namespace

Divisor divisor(std::int64_t value) {
  const auto of = static_cast<std::uint64_t>(value);
  const auto shift = static_cast<std::uint32_t>(31 + std::bit_width(of - 1));
  return {static_cast<std::uint32_t>(of), static_cast<std::uint32_t>(((std::uint64_t{1} << shift) + of - 1) / of),
          shift};
}

int page_box_rows(const AttentionProblem& problem, int keys) {
  return static_cast<int>(std::min<std::int64_t>(problem.page_size & -problem.page_size, keys & -keys));
}

std::uint32_t box_shift(int rows) {
  return static_cast<std::uint32_t>(std::bit_width(static_cast<unsigned>(rows)) - 1);
}

machine::TensorMapDescription page_map(const Tensor& tensor, int rows, int panels, int heads) {
  const PanelMap map(tensor, tensor.shape[3]);
  return without_neighbours(map.description(
      {tensor.shape[1], tensor.strides[1], rows}, panels == all_panels ? static_cast<int>(map.panels()) : panels,
      {tensor.shape[2], tensor.strides[2], heads}, {tensor.shape[0], tensor.strides[0], 1}));
}

int page_groups(const Tensor& tensor) {
  const std::int64_t group = pipeline::attention::group_rows * tensor.strides[1];
  if (tensor.shape[0] == 1) {
    return static_cast<int>(tensor.shape[1] / pipeline::attention::group_rows);
  }
  const std::int64_t groups = group > 0 && tensor.strides[0] % group == 0 ? tensor.strides[0] / group : 0;
  return groups > 0 && groups <= std::numeric_limits<int>::max() / tensor.shape[0] ? static_cast<int>(groups) : 0;
}

machine::TensorMapDescription page_group_map(const Tensor& tensor, int rows) {
  constexpr int group_rows = pipeline::attention::group_rows;
  const PanelMap map(tensor, tensor.shape[3]);
  const std::int64_t groups = (tensor.shape[0] - 1) * page_groups(tensor) + tensor.shape[1] / group_rows;
  return without_neighbours(map.description({group_rows, tensor.strides[1], group_rows}, static_cast<int>(map.panels()),
                                            {groups, group_rows * tensor.strides[1], rows / group_rows},
                                            {tensor.shape[2], tensor.strides[2], 1}));
}

Params params_of(const AttentionProblem& p, const Geometry& geometry, const QueryRange& queries) {
  Params params{};
  params.batch = static_cast<int>(p.batch);
  params.heads = static_cast<int>(p.heads);
  params.group = static_cast<int>(p.heads / p.kv_heads);
  params.queries = static_cast<int>(p.queries);
  params.keys = static_cast<int>(p.keys);
  params.window_left = window(p.window_left);
  params.window_right = p.causal ? 0 : window(p.window_right);
  const float scale = effective_scale(p);
  const bool capped = p.softcap > 0.0F && scale != 0.0F;
  params.scale_log2 = (capped ? p.softcap : scale) * log2_e;
  params.inner_scale = capped ? scale / p.softcap : 0.0F;
  params.query_tiles = static_cast<int>(p.variable_length ? p.queries / geometry.tile_rows + p.batch
                                                          : ceil_div(p.queries, geometry.tile_rows));
  params.min_queries = queries.min;
  params.max_queries = queries.max;
  if (p.page_size > 0) {
    params.paging.pages = static_cast<int>(p.pages);
    params.paging.page = divisor(p.page_size);
    if (geometry.query_box_rows > 0) {
      params.paging.box_shift = box_shift(page_box_rows(p, geometry.key_share.keys));
    }
  }
  if (geometry.persistent && p.page_size > 0) {
    params.order = Order::by_tile;
  }
  if (geometry.persistent && !p.variable_length) {
    params.order = p.causal ? Order::paired_then_longest_first : Order::short_tiles_last;
    params.missing_rows = static_cast<int>(params.query_tiles * geometry.tile_rows) - params.queries;
  }
  return params;
}

void add_tensors(Params& params, const AttentionProblem& problem, const CallTensors& call) {
  params.q = operand(problem, call.tensors[query_index]);
  params.k = key_operand(problem, call.tensors[key_index]);
  params.v = key_operand(problem, call.tensors[value_index]);
  params.o = operand(problem, call.tensors[output_index]);
  const Tensor& lse = call.tensors[lse_index];
  if (lse.data != nullptr) {
    params.lse = device_address(lse.data);
    params.lse_batch_stride = problem.variable_length ? 0 : lse.strides[0];
    params.lse_head_stride = lse.strides[problem.variable_length ? 0 : 1];
  }
  params.query_descale = descale(call.tensors[query_descale_index]);
  params.key_descale = descale(call.tensors[key_descale_index]);
  params.value_descale = descale(call.tensors[value_descale_index]);
  if (const Tensor& sinks = call.tensors[sinks_index]; sinks.data != nullptr) {
    params.sinks = device_address(sinks.data);
    params.sinks_stride = sinks.strides[0];
  }
  if (problem.variable_length) {
    params.cu_seqlens_q = device_address(call.tensors[query_offsets_index].data);
    params.cu_seqlens_k = device_address(call.tensors[key_offsets_index].data);
    if (problem.page_size > 0) {
      add_paging(params.paging, call);
    }
  }
}

std::vector<Access> tensor_accesses() {
  std::vector<Access> all;
  for (std::size_t index = 0; index < tensor_count; ++index) {
    const bool writes = index == output_index || index == lse_index;
    all.push_back({Access::Memory::tensor, index, writes ? Access::Use::writes : Access::Use::depends_on_previous});
  }
  return all;
}

DeviceProgram device_program(std::string_view strategy, std::string_view header, std::vector<std::string> kernels) {
  return {.title = fmt::format("attention {}", strategy),
          .text = fmt::format("#include \"strategies/attention/{}\"\n", header),
          .kernels = std::move(kernels),
          .options = {},
          .only_arch = Arch::sm_90a};
}

void add_launch(PlannedCall& call, std::string_view strategy, const AttentionProblem& problem, AttentionKernel kernel,
                bool dependent, const DeviceSpec& device, const QueryRange& queries) {
  const Geometry geometry = kernel.geometry;
  KernelLaunch launch;
  launch.title = "attend";
  launch.program = device_program(strategy, kernel.header, {kernel.expression});
  launch.expression = std::move(kernel.expression);
  launch.block.x = geometry.threads;
  launch.cluster.x = geometry.cluster;
  launch.shared_bytes = geometry.shared_bytes;
  launch.registers = geometry.registers;
  launch.dependent = dependent;
  launch.persistent = geometry.persistent;
  launch.accesses = tensor_accesses();
  launch.expected = std::move(kernel.expected);
  std::optional<std::size_t> status_offset;
  if (problem.page_size > 0 && geometry.persistent) {
    constexpr std::size_t max_threads = 2048;  // of a multiprocessor
    const std::size_t blocks = static_cast<std::size_t>(device.multiprocessors) * (max_threads / geometry.threads);
    const std::size_t piece = add_status(call, blocks);
    status_offset = call.workspace[piece].offset;
    launch.accesses.push_back({Access::Memory::workspace, piece, Access::Use::writes});
  }
  launch.bind = [problem, geometry, known = params_of(problem, geometry, queries), status_offset](
                    const CallTensors& tensors, LaunchArguments& out) {
    Params params = known;
    add_tensors(params, problem, tensors);
    if (geometry.whole_rows) {
      add_page_groups(params.paging, tensors);
    }
    if (status_offset) {
      params.paging.status = device_address(tensors.workspace) + *status_offset;
    }
    out.set(params);
    out.grid = grid(problem, geometry, params.query_tiles);
    if (geometry.query_box_rows > 0) {
      add_maps(out, problem, geometry, params.paging, tensors);
    }
    return true;
  };
  call.steps.emplace_back(std::move(launch));
}

bool has_fp8_keys(const AttentionProblem& problem) { return effective_kv_format(problem) == Format::fp8_e4m3; }

bool has_fp8_queries(const AttentionProblem& problem) { return effective_q_format(problem) == Format::fp8_e4m3; }

bool has_general_logits(const AttentionProblem& problem) {
  return problem.softcap > 0.0F || !(effective_scale(problem) > 0.0F);
}

KernelFormats formats_of(const AttentionProblem& problem) {
  return {problem.format, effective_q_format(problem), effective_kv_format(problem)};
}

Logits logits_of(const AttentionProblem& problem) {
  return has_general_logits(problem) ? Logits::general : Logits::direct;
}

std::string logits_argument(Logits logits) {
  return std::string("thresher::strategies::attention::Logits::") + (logits == Logits::general ? "general" : "direct");
}

}  // namespace thresher::strategies::attention
