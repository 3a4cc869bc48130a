#include "strategies/attention/stream_k/launch.hpp"

#include <algorithm>
#include <cstddef>

#include "strategies/attention/launch.hpp"
#include "strategies/attention/stream_k/params.hpp"
#include "strategies/attention/tensors.hpp"

namespace thresher::strategies::attention {
namespace {

using pipeline::attention::StreamKConfig;

constexpr std::uint32_t merging_threads = 128;
constexpr std::int64_t rows_of_merging_block = 4;

static_assert(lengths_clamped == AttentionStatus::lengths && pages_clamped == AttentionStatus::pages &&
              offsets_clamped == AttentionStatus::offsets);

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

/// Pieces of the workspace.
struct Pieces {
  std::size_t status;
  std::size_t header;
  std::size_t left;
  std::size_t parts;
  std::size_t sums;
};

Pieces add_pieces(PlannedCall& call, const StreamKConfig& config, std::int64_t blocks) {
  const auto rows = static_cast<std::size_t>(2 * blocks * config.tile_rows());
  Pieces pieces{};
  pieces.status = add_status(call, static_cast<std::size_t>(blocks * config.loader_warps()));
  pieces.header = add_piece(call, "number of blocks", 4);
  pieces.left = add_piece(call, "items left", static_cast<std::size_t>(blocks) * sizeof(LeftItem));
  pieces.parts = add_piece(call, "parts", rows * static_cast<std::size_t>(config.value_dim) * sizeof(float));
  pieces.sums = add_piece(call, "sums of parts", rows * 2 * sizeof(float));
  return pieces;
}

int box_rows(const AttentionProblem& problem, const StreamKConfig& config) {
  return config.boxes ? page_box_rows(problem, config.keys()) : config.keys();
}

StreamKParams known_params(const AttentionProblem& problem, const StreamKConfig& config, int blocks) {
  StreamKParams params{};
  params.most_blocks = blocks;
  params.call = params_of(problem, {.tile_rows = config.rows});
  params.head_sets = static_cast<int>(problem.kv_heads / config.heads);
  params.group = divisor(problem.heads / problem.kv_heads);
  params.call.paging.box_shift = box_shift(box_rows(problem, config));
  return params;
}

}  // namespace

double most_units(const AttentionProblem& problem, const StreamKConfig& config) {
  const std::int64_t group = problem.heads / problem.kv_heads;
  const std::int64_t tiles = problem.queries * group / config.rows + problem.batch;
  const std::int64_t chunks = std::max<std::int64_t>(1, ceil_div(problem.keys, config.keys()));
  return static_cast<double>(tiles) * static_cast<double>(problem.kv_heads / config.heads) *
         static_cast<double>(chunks);
}

void add_stream_k(PlannedCall& call, const AttentionProblem& problem, const StreamKConfig& config,
                  const StreamKKernels& kernels, int blocks) {
  const int grid = static_cast<int>(std::min<double>(blocks, most_units(problem, config)));
  const Pieces pieces = add_pieces(call, config, grid);
  const auto bind = [problem, known = known_params(problem, config, grid), offsets = call.workspace, pieces](
                        const CallTensors& tensors, LaunchArguments& out) {
    StreamKParams params = known;
    add_tensors(params.call, problem, tensors);
    const auto piece = [&](std::size_t index) { return address(tensors.workspace) + offsets[index].offset; };
    params.call.paging.status = piece(pieces.status);
    params.header = piece(pieces.header);
    params.left = piece(pieces.left);
    params.parts = piece(pieces.parts);
    params.parts_sums = piece(pieces.sums);
    out.set(params);
  };
  KernelLaunch multiply;
  multiply.title = "attend to chunks";
  multiply.program = {.title = "attention stream_k",
                      .text = "#include \"strategies/attention/stream_k/device/kernel.hpp\"\n",
                      .kernels = {kernels.multiply, kernels.merge},
                      .options = {},
                      .only_arch = Arch::sm_90a};
  multiply.expression = kernels.multiply;
  multiply.block.x = static_cast<std::uint32_t>(config.threads());
  multiply.shared_bytes = config.shared_bytes(narrow(problem.batch));
  multiply.dependent = kernels.dependent_launch;
  multiply.persistent = true;
  multiply.bind = [=](const CallTensors& tensors, LaunchArguments& out) {
    bind(tensors, out);
    out.grid.x = grid;
    if (config.boxes) {
      const int rows = box_rows(problem, config);
      out.add_map(offsetof(StreamKParams, call) + offsetof(Params, key_map),
                  page_map(tensors.tensors[key_index], rows, all_panels, config.heads));
      out.add_map(offsetof(StreamKParams, call) + offsetof(Params, value_map),
                  page_map(tensors.tensors[value_index], rows, all_panels, config.heads));
    }
    return true;
  };
  KernelLaunch merge;
  merge.title = "merge parts";
  merge.program = multiply.program;
  merge.expression = kernels.merge;
  merge.block.x = merging_threads;
  merge.dependent = true;
  merge.persistent = true;
  merge.bind = [=](const CallTensors& tensors, LaunchArguments& out) {
    bind(tensors, out);
    out.grid.x = narrow(ceil_div(grid * config.tile_rows(), rows_of_merging_block));
    return true;
  };
  for (std::size_t index = 0; index < tensor_count; ++index) {
    const bool writes = index == output_index || index == lse_index;
    const Access access{Access::Memory::tensor, index, writes ? Access::Use::writes : Access::Use::reads_earlier};
    multiply.accesses.push_back(access);
    merge.accesses.push_back(access);
  }
  for (const std::size_t piece : {pieces.status, pieces.header, pieces.left, pieces.parts, pieces.sums}) {
    multiply.accesses.push_back({Access::Memory::workspace, piece, Access::Use::writes});
    if (piece != pieces.status) {
      merge.accesses.push_back({Access::Memory::workspace, piece, Access::Use::reads_earlier});
    }
  }
  call.steps.emplace_back(std::move(multiply));
  call.steps.emplace_back(std::move(merge));
}

}  // namespace thresher::strategies::attention
