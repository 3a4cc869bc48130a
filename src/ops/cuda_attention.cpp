// Attention on an NVIDIA GPU of compute capability 9.0.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "kernels/attention/program.hpp"
#include "ops/attention_backend.hpp"
#include "ops/attention_choice.hpp"
#include "ops/cuda_programs.hpp"
#include "runtime/driver.hpp"
#include "runtime/tensor_map.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {
namespace {

namespace device_code = kernels::attention;
using pipeline::attention::SplitConfig;
using pipeline::attention::StreamConfig;

constexpr float log2_e = 1.44269504F;
/// Lengths stay below it, so that the kernels' 32-bit sums of lengths and windows cannot overflow.
constexpr std::int64_t most_rows = std::int64_t{1} << 28;
constexpr std::int64_t unbounded_window = std::int64_t{1} << 29;
std::int64_t ceil_div(std::int64_t value, std::int64_t divisor) { return (value + divisor - 1) / divisor; }

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

/// Rows, columns and blocks as a strategy copies and launches them.
struct Geometry {
  std::int64_t tile_rows = 0;  ///< queries of one piece of work
  int query_box_rows = 0;      ///< what one copy brings
  int key_box_rows = 0;
  int key_box_panels = 0;
  unsigned threads = 0;
  unsigned cluster = 1;
  unsigned shared_bytes = 0;
  bool persistent = false;
  bool copies = true;  ///< uses tensor maps
};

Geometry geometry_of(const AttentionChoice& choice) {
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
  return {.tile_rows = device_code::simple_warps, .threads = device_code::simple_warps * 32, .copies = false};
}

class CudaAttention final : public Attention::Backend {
 public:
  CudaAttention(const Device& device, const AttentionProblem& problem, const AttentionChoice& choice,
                bool dependent_launch)
      : Backend(problem, device.id(), choice.strategy),
        geometry_(geometry_of(choice)),
        logits_(problem.softcap == 0.0F && effective_scale(problem) > 0.0F ? device_code::Logits::direct
                                                                           : device_code::Logits::general),
        kernel_(load(choice)) {
    fill_constants();
    if (geometry_.shared_bytes > 0) {
      kernel_.allow_dynamic_shared(geometry_.shared_bytes);
    }
    config_.block.x = geometry_.threads;
    config_.cluster.x = geometry_.cluster;
    config_.dynamic_shared_bytes = geometry_.shared_bytes;
    config_.dependent_launch = dependent_launch;
    const std::int64_t tiles = constants_.folded != 0 ? ceil_div(constants_.query_tiles, 2) : constants_.query_tiles;
    const std::int64_t pieces = tiles * problem.heads * (problem.variable_length ? 1 : problem.batch);
    if (choice.strategy == "split") {
      config_.grid = {static_cast<unsigned>(problem.heads) * geometry_.cluster,
                      static_cast<unsigned>(constants_.query_tiles),
                      static_cast<unsigned>(problem.variable_length ? 1 : problem.batch)};
    } else {
      config_.grid.x = static_cast<unsigned>(pieces) * geometry_.cluster;
    }
    if (geometry_.persistent && pieces > 0) {
      config_.grid.x = std::min(config_.grid.x, resident_blocks());
    }
  }

  [[nodiscard]] std::size_t workspace_bytes() const override { return 0; }

  void run(Stream stream, const AttentionTensors& tensors, void*) const override {
    const runtime::ContextGuard guard(device().ordinal);
    device_code::Params params = constants_;
    params.q = operand(tensors.q);
    params.k = operand(tensors.k);
    params.v = operand(tensors.v);
    params.o = operand(tensors.o);
    if (tensors.lse.data != nullptr) {
      params.lse = address(tensors.lse.data);
      params.lse_batch_stride = problem().variable_length ? 0 : tensors.lse.strides[0];
      params.lse_head_stride = tensors.lse.strides[problem().variable_length ? 0 : 1];
    }
    if (problem().variable_length) {
      params.cu_seqlens_q = address(tensors.cu_seqlens_q.data);
      params.cu_seqlens_k = address(tensors.cu_seqlens_k.data);
    }
    if (geometry_.copies) {
      const int panels = static_cast<int>(problem().head_dim) / pipeline::attention::panel_columns;
      params.query_map = map(tensors.q, geometry_.query_box_rows, panels);
      params.key_map = map(tensors.k, geometry_.key_box_rows, geometry_.key_box_panels);
      params.value_map = map(tensors.v, geometry_.key_box_rows, geometry_.key_box_panels);
    }
    runtime::LaunchConfig config = config_;
    config.stream = stream;
    kernel_.launch_with(config, params);
  }

 private:
  [[nodiscard]] runtime::Kernel load(const AttentionChoice& choice) const {
    const kernels::DeviceProgram program =
        choice.strategy == "pipelined" ? device_code::pipelined_program(problem().format, choice.stream, logits_)
        : choice.strategy == "split"
            ? device_code::split_program(problem().format, choice.split, logits_)
            : device_code::simple_program(problem().format, static_cast<int>(problem().head_dim));
    return load_program(device().ordinal, program).kernel(program.kernels.front());
  }

  [[nodiscard]] unsigned resident_blocks() const {
    if (geometry_.cluster > 1) {
      return static_cast<unsigned>(kernel_.resident_clusters(config_)) * geometry_.cluster;
    }
    return static_cast<unsigned>(
        kernel_.blocks_per_multiprocessor(static_cast<int>(geometry_.threads), geometry_.shared_bytes) *
        runtime::device_properties(device().ordinal).multiprocessors);
  }

  /// What the problem alone determines.
  void fill_constants() {
    const AttentionProblem& p = problem();
    constants_.batch = static_cast<int>(p.batch);
    constants_.heads = static_cast<int>(p.heads);
    constants_.group = static_cast<int>(p.heads / p.kv_heads);
    constants_.queries = static_cast<int>(p.queries);
    constants_.keys = static_cast<int>(p.keys);
    constants_.window_left = window(p.window_left);
    constants_.window_right = p.causal ? 0 : window(p.window_right);
    if (p.causal && p.window_right >= 0) {
      constants_.window_right = static_cast<int>(std::min<std::int64_t>(p.window_right, 0));
    }
    const float scale = effective_scale(p);
    const bool capped = p.softcap > 0.0F && scale != 0.0F;
    constants_.scale_log2 = (capped ? p.softcap : scale) * log2_e;
    constants_.inner_scale = capped ? scale / p.softcap : 0.0F;
    constants_.query_tiles = static_cast<int>(p.variable_length ? p.queries / geometry_.tile_rows + p.batch
                                                                : ceil_div(p.queries, geometry_.tile_rows));
    constants_.folded = geometry_.persistent && p.causal && !p.variable_length ? 1 : 0;
  }

  static int window(std::int64_t width) {
    return static_cast<int>(width < 0 ? unbounded_window : std::min(width, unbounded_window));
  }

  [[nodiscard]] device_code::Operand operand(const Tensor& tensor) const {
    if (problem().variable_length) {
      return {address(tensor.data), 0, tensor.strides[1], tensor.strides[0]};
    }
    return {address(tensor.data), tensor.strides[0], tensor.strides[1], tensor.strides[2]};
  }

  /// 64 columns, rows, panels of 64 columns, heads, batch. A tensor without rows has no map; nothing of it is copied.
  [[nodiscard]] device_code::TensorMap map(const Tensor& tensor, int box_rows, int box_panels) const {
    if (tensor.elements() == 0) {
      return {};
    }
    const bool variable = problem().variable_length;
    const std::int64_t rows = tensor.shape[variable ? 0 : 2];
    const std::int64_t heads = tensor.shape[1];
    const std::int64_t batch = variable ? 1 : tensor.shape[0];
    const device_code::Operand strides = operand(tensor);
    const auto bytes = [](std::int64_t extent, std::int64_t stride) {  // of a single element no stride is looked at
      return static_cast<std::uint64_t>(extent > 1 ? stride * 2 : 16);
    };
    const std::array<std::uint64_t, 5> extents{
        pipeline::attention::panel_columns, static_cast<std::uint64_t>(rows),
        static_cast<std::uint64_t>(problem().head_dim) / pipeline::attention::panel_columns,
        static_cast<std::uint64_t>(heads), static_cast<std::uint64_t>(batch)};
    const std::array<std::uint64_t, 4> byte_strides{
        bytes(rows, strides.row_stride), pipeline::attention::panel_row_bytes, bytes(heads, strides.head_stride),
        bytes(batch, strides.batch_stride)};
    const std::array<std::uint32_t, 5> box{pipeline::attention::panel_columns, static_cast<std::uint32_t>(box_rows),
                                           static_cast<std::uint32_t>(box_panels), 1, 1};
    return std::bit_cast<device_code::TensorMap>(runtime::encode_tiled(
        {.data = tensor.data,
         .element = tensor.format == Format::fp16 ? runtime::TensorElement::fp16 : runtime::TensorElement::bf16,
         .extents = extents,
         .byte_strides = byte_strides,
         .box = box,
         .swizzle = runtime::TensorSwizzle::bytes128}));
  }

  Geometry geometry_;
  device_code::Logits logits_;
  runtime::Kernel kernel_;
  device_code::Params constants_{};
  runtime::LaunchConfig config_;
};

class CudaAttentionOperations final : public AttentionOperations {
 public:
  [[nodiscard]] std::vector<std::string> strategies() const override { return {"pipelined", "split", "simple"}; }

  [[nodiscard]] std::string obstacle(const Device& device, const AttentionProblem& problem,
                                     const AttentionOptions& options) const override {
    try {
      (void)choose(device, problem, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  [[nodiscard]] std::shared_ptr<const Attention::Backend> plan(const Device& device, const AttentionProblem& problem,
                                                               const AttentionOptions& options) const override {
    return std::make_shared<CudaAttention>(device, problem, choose(device, problem, options), options.dependent_launch);
  }

 private:
  /// Throws Error for what this GPU or the strategy asked for cannot take.
  static AttentionChoice choose(const Device& device, const AttentionProblem& problem,
                                const AttentionOptions& options) {
    const runtime::DeviceProperties& properties = runtime::device_properties(device.id().ordinal);
    if (properties.capability_major != 9) {
      throw Error(ErrorCode::unsupported,
                  fmt::format("attention runs on GPUs of compute capability 9.0 (Hopper), {} has {}.{}: plan on "
                              "Device::cpu()",
                              properties.name, properties.capability_major, properties.capability_minor));
    }
    for (const auto& [argument, rows] : {std::pair{"queries", problem.queries}, std::pair{"keys", problem.keys}}) {
      if (rows >= most_rows) {
        throw Error(ErrorCode::unsupported,
                    fmt::format("problem.{} is {}, a GPU takes less than {}", argument, rows, most_rows));
      }
    }
    return choose_attention(problem, options, properties.multiprocessors);
  }
};

}  // namespace

const AttentionOperations& cuda_attention_operations() {
  static const CudaAttentionOperations operations;
  return operations;
}

}  // namespace thresher::ops
