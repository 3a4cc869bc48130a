#include "strategies/grouped_gemm/columns/launch.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>

#include "pipeline/grouped/tokens.hpp"
#include "strategies/grouped_gemm/columns/host/work.hpp"
#include "strategies/grouped_gemm/columns/params.hpp"
#include "strategies/grouped_gemm/columns/program.hpp"
#include "strategies/grouped_gemm/host/gather.hpp"
#include "strategies/grouped_gemm/tensors.hpp"

namespace thresher::strategies::grouped_gemm::columns {
namespace {

constexpr std::size_t copy_engine_bytes = 16;

machine::ElementType element_type(const Config& config) {
  return config.operand == Number::bf16 ? machine::ElementType::bf16 : machine::ElementType::fp16;
}

machine::TensorMapDescription weights_map(const Config& config, const Tensor& view) {
  constexpr std::int64_t bytes = 2;
  machine::TensorMapDescription map;
  map.address = address_of(view.data);
  map.element = element_type(config);
  map.swizzle = machine::Swizzle::b128;
  map.rank = 3;
  map.extent[0] = static_cast<std::uint64_t>(view.shape[2]);
  map.extent[1] = static_cast<std::uint64_t>(view.shape[1]);
  map.extent[2] = static_cast<std::uint64_t>(view.shape[0]);
  map.stride_bytes[1] = static_cast<std::uint64_t>(view.strides[1] * bytes);
  map.stride_bytes[2] = static_cast<std::uint64_t>(view.strides[0] * bytes);
  map.box[0] = panel_k;
  map.box[1] = static_cast<std::uint32_t>(weight_box_rows(config));
  map.box[2] = 1;
  return map;
}

/// One slot of the ring: two instructions of 64 rows of weights for each 16 along K, of each width that tiles have.
Expectations expectations(const Config& config) {
  Expectations expected;
  expected.matrix_kind = "HGMMA";
  expected.min_matrix_instructions = 2 * config.block_k / 16;
  expected.min_tma_loads = 3;
  return expected;
}

struct Product {
  GroupedProblem problem;
  Config config;
  std::int64_t most_blocks = 0;
  std::optional<RowsInWorkspace> gathered{};

  void bind(const CallTensors& call, LaunchArguments& out) const {
    const CallExtents extents = extents_of(call);
    Params params{};
    params.groups = group_params(call, tile_outputs(config));
    params.finish = finish_params(problem, call);
    params.profile = {profile_address(call)};
    params.k = static_cast<std::uint32_t>(extents.k);
    out.set(params);
    out.grid.x = static_cast<std::uint32_t>(
        std::min(most_blocks, most_tiles(extents, config.block_tokens, tile_outputs(config))));
    const machine::ElementType element = element_type(config);
    const TokenRows tokens =
        gathered ? token_rows(call, *gathered, element, extents.k) : token_rows(call, element);
    out.add_map(offsetof(Params, few_tokens), tokens_map(tokens, pipeline::few_token_rows));
    out.add_map(offsetof(Params, many_tokens), tokens_map(tokens, pipeline::many_token_rows));
  }

  void bind_weights(const CallTensors& call, LaunchArguments& out) const {
    out.add_map(offsetof(Params, gate), weights_map(config, call.tensors[gate_index]));
    if (config.matrices == 2) {
      out.add_map(offsetof(Params, up), weights_map(config, call.tensors[up_index]));
    }
  }

  [[nodiscard]] std::vector<Access> accesses() const {
    std::vector<Access> all;
    if (gathered) {
      all.push_back({Access::Memory::workspace, gathered->piece, Access::Use::reads_earlier});
    } else {
      all.push_back({Access::Memory::tensor, tokens_index, Access::Use::reads});
    }
    all.push_back({Access::Memory::tensor, gate_index, Access::Use::reads});
    if (config.matrices == 2) {
      all.push_back({Access::Memory::tensor, up_index, Access::Use::reads});
    }
    add_common_accesses(problem, all);
    if (config.profiled) {
      all.push_back({Access::Memory::tensor, profile_index, Access::Use::writes});
    }
    return all;
  }
};

KernelLaunch multiplying(const Product& product) {
  const Config& config = product.config;
  KernelLaunch launch;
  launch.title = "multiply";
  launch.program = program(config);
  launch.expression = kernel_expression(config);
  launch.block.x = static_cast<std::uint32_t>(pipeline::threads(shape_of(config)));
  launch.shared_bytes = static_cast<std::uint32_t>(shared_bytes(config, product.problem.experts));
  launch.dependent = config.dependent_launch;
  launch.persistent = true;
  launch.accesses = product.accesses();
  launch.bind = [product](const CallTensors& call, LaunchArguments& out) {
    product.bind(call, out);
    return true;
  };
  launch.bind_weights = [product](const CallTensors& call, LaunchArguments& out) { product.bind_weights(call, out); };
  launch.expected = expectations(config);
  return launch;
}

}  // namespace

PlannedCall planned_call(const GroupedProblem& problem, const Config& config, int multiprocessors) {
  PlannedCall call;
  call.strategy = "columns";
  call.knobs = knob_table().knobs(config);
  call.work = work(problem, config);
  Product product{problem, config, std::int64_t{multiprocessors} * config.blocks_resident};
  add_status(problem, product.most_blocks, call);
  if (config.gathered) {
    product.gathered = add_gathering(problem, std::nullopt, config.dependent_launch, call);
  }
  call.steps.emplace_back(multiplying(product));
  call.data_alignment = copy_engine_bytes;
  call.alignments = {{tokens_index, copy_engine_bytes}, {gate_index, copy_engine_bytes}, {up_index, copy_engine_bytes}};
  return call;
}

}  // namespace thresher::strategies::grouped_gemm::columns
