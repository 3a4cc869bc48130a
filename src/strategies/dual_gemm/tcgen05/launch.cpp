#include "strategies/dual_gemm/tcgen05/launch.hpp"

#include <cstddef>

#include "strategies/dual_gemm/tcgen05/device/pack.hpp"
#include "strategies/dual_gemm/tcgen05/host/work.hpp"
#include "strategies/dual_gemm/tcgen05/launches.hpp"
#include "strategies/dual_gemm/tcgen05/program.hpp"
#include "strategies/gemm/nvfp4_operands.hpp"
#include "strategies/gemm/tensors.hpp"

namespace thresher::strategies::dual_gemm::tcgen05 {
namespace {

enum PackedPiece : std::size_t { codes_piece, scales_piece };
enum WorkspacePieces : std::size_t { token_codes_piece, token_scales_piece };

/// A change of device/layout.hpp is another name.
constexpr const char* layout_name = "nvfp4-sm100-1";

u64 address_in(const void* memory, std::size_t offset) { return device_address(memory) + offset; }

Extents extents_of(const CallTensors& call) {
  const Tensor& gate = gate_of(call);
  return {narrow(tokens_of(call).shape[0]), narrow(gate.shape[0]), narrow(gate.shape[1])};
}

std::vector<WorkspacePiece> packed_pieces(u32 n, u32 k) {
  std::vector<WorkspacePiece> pieces;
  add_piece(pieces, "packed codes", packed_code_bytes(n, k));
  add_piece(pieces, "packed scales", packed_scale_bytes(n, k));
  return pieces;
}

/// Where the scales lie in what was packed of weights [n, k]. Blocks of codes are whole pieces, so nothing lies
/// between.
std::size_t packed_scales_offset(u32 n, u32 k) { return packed_code_bytes(n, k); }

void add_reads(std::vector<Access>& accesses, std::size_t tensor, Access::Use use) {
  accesses.push_back({Access::Memory::tensor, tensor, use});
  accesses.push_back({Access::Memory::scales, tensor, use});
}

KernelLaunch preparation_launch(std::string title, const std::string& expression, u32 threads) {
  KernelLaunch launch;
  launch.title = std::move(title);
  launch.program = preparation_program();
  launch.expression = expression;
  launch.block.x = threads;
  launch.expected.uses_shared_memory = false;  // it only moves bytes
  return launch;
}

// --- packing

KernelLaunch packing_launch() {
  KernelLaunch launch = preparation_launch("pack the weights", pack_kernel_name(), pack_threads);
  add_reads(launch.accesses, gate_index, Access::Use::reads);
  add_reads(launch.accesses, up_index, Access::Use::reads);
  launch.accesses.push_back({Access::Memory::packed, codes_piece, Access::Use::writes});
  launch.accesses.push_back({Access::Memory::packed, scales_piece, Access::Use::writes});
  launch.bind = [](const CallTensors& call, LaunchArguments& out) {
    const u32 n = narrow(gate_of(call).shape[0]);
    const u32 k = narrow(gate_of(call).shape[1]);
    PackParams params{};
    params.gate = weight_matrix(gate_of(call));
    params.up = weight_matrix(up_of(call));
    params.codes = {device_address(call.packed)};
    params.scales = {address_in(call.packed, packed_scales_offset(n, k))};
    params.k_steps = k_steps(k);
    out.set(params);
    out.grid.x = row_tiles(n) * k_steps(k);
    return true;
  };
  return launch;
}

PlannedCall packing_call(u32 n, u32 k) {
  PlannedCall call;
  call.strategy = "tcgen05";
  call.packed = packed_pieces(n, k);
  call.steps.emplace_back(packing_launch());
  return call;
}

// --- preparing tokens

/// A grid without blocks, which nobody launches, where the tokens are read as they came.
KernelLaunch preparing(const Config& config, std::size_t scales_at) {
  KernelLaunch launch = preparation_launch("prepare the tokens", prepare_tokens_kernel_name(), prepare_threads);
  launch.dependent = config.dependent_launch;
  add_reads(launch.accesses, tokens_index, Access::Use::depends_on_previous);
  launch.accesses.push_back({Access::Memory::workspace, token_codes_piece, Access::Use::writes});
  launch.accesses.push_back({Access::Memory::workspace, token_scales_piece, Access::Use::writes});
  launch.bind = [config, scales_at](const CallTensors& call, LaunchArguments& out) {
    PrepareTokensParams params = prepare_params(config, tokens_of(call));
    params.codes = {device_address(call.workspace)};
    params.scales = {address_in(call.workspace, scales_at)};
    out.set(params);
    out.grid.x = reads_in_place(config, tokens_of(call)) ? 0 : prepare_blocks(params);
    return true;
  };
  return launch;
}

// --- the product

/// A slot of the ring: four products of 64 along K, each behind the copies of its scales, in a loop that one thread
/// runs. Weights and tokens, and the scales of both, come through tensor maps. One ring and one accumulator are
/// committed to. A warp of the finishing four loads its 32 lanes of the columns that it stages at a time, in a loop;
/// those of a split send theirs in another.
Expectations expectations(const Config& config) {
  Expectations expected;
  expected.matrix_kind = "UTCOMMA";
  expected.min_matrix_instructions = static_cast<int>(slot_products);
  expected.min_tma_loads = 4;
  expected.tensor.products = static_cast<int>(slot_products);
  expected.tensor.scale_copies = static_cast<int>(slot_scale_blocks * (1 + token_scale_groups(config)));
  expected.tensor.is_pair = config.blocks == 2;
  expected.tensor.min_commits = 2;
  constexpr std::int64_t warp_lanes = 32;
  expected.tensor.loaded_bytes =
      warp_lanes * (staged_tokens(config) + pipeline::sent_columns(shape_of(config))) * sizeof(float);
  return expected;
}

struct Product {
  Config config;
  Activation activation;
  std::size_t scales_at;  ///< of the tokens, in the workspace

  void bind(const CallTensors& call, LaunchArguments& out) const {
    const Tensor& tokens = tokens_of(call);
    const Extents extents = extents_of(call);
    const TokenOperand operand =
        reads_in_place(config, tokens)
            ? given_tokens(tokens)
            : prepared_tokens(config, extents, device_address(call.workspace), address_in(call.workspace, scales_at));
    Params params = scalars(config, extents, output_of(call).strides[0], activation);
    params.scale_bytes = {operand.scales};
    params.c = {device_address(output_of(call).data)};
    params.profile = {profile_address(call)};
    params.token_scale = {device_address(tokens.global_scale)};
    params.gate_scale = {device_address(gate_of(call).global_scale)};
    params.up_scale = {device_address(up_of(call).global_scale)};
    out.set(params);
    out.grid.x = blocks(config, params);
    out.add_map(offsetof(Params, tokens), tokens_map(config, extents, operand));
    out.add_map(offsetof(Params, token_scales), token_scales_map(config, extents, operand));
  }

  static void bind_weights(const CallTensors& call, LaunchArguments& out) {
    const Extents extents = extents_of(call);
    out.add_map(offsetof(Params, weights), weights_map(extents, device_address(call.packed)));
    out.add_map(offsetof(Params, weight_scales),
                weight_scales_map(extents, address_in(call.packed, packed_scales_offset(extents.n, extents.k))));
  }

  [[nodiscard]] std::vector<Access> accesses() const {
    std::vector<Access> all{{Access::Memory::packed, codes_piece, Access::Use::reads},
                            {Access::Memory::packed, scales_piece, Access::Use::reads},
                            {Access::Memory::workspace, token_codes_piece, Access::Use::depends_on_previous},
                            {Access::Memory::workspace, token_scales_piece, Access::Use::depends_on_previous},
                            {Access::Memory::global_scale, tokens_index, Access::Use::depends_on_previous},
                            {Access::Memory::global_scale, gate_index, Access::Use::reads},
                            {Access::Memory::global_scale, up_index, Access::Use::reads},
                            {Access::Memory::tensor, output_index, Access::Use::writes}};
    if (config.unsigned_scales) {
      add_reads(all, tokens_index, Access::Use::depends_on_previous);
    }
    if (config.profiled) {
      all.push_back({Access::Memory::tensor, profile_index, Access::Use::writes});
    }
    return all;
  }
};

KernelLaunch multiplying(const Product& product) {
  const pipeline::TensorShape shape = shape_of(product.config);
  KernelLaunch launch;
  launch.title = "multiply";
  launch.program = program(product.config);
  launch.expression = kernel_name(product.config);
  launch.block.x = static_cast<u32>(pipeline::threads(shape));
  launch.cluster.x = static_cast<u32>(pipeline::cluster_blocks(shape));
  launch.shared_bytes = static_cast<u32>(pipeline::shared_bytes(shape));
  launch.dependent = product.config.dependent_launch;
  launch.persistent = product.config.persistent;
  launch.accesses = product.accesses();
  launch.bind = [product](const CallTensors& call, LaunchArguments& out) {
    product.bind(call, out);
    return true;
  };
  launch.bind_weights = Product::bind_weights;
  launch.expected = expectations(product.config);
  return launch;
}

}  // namespace

PlannedCall planned_call(const ProductProblem& problem, const Config& config) {
  const u32 m = narrow(problem.rows);
  const u32 n = narrow(problem.n);
  const u32 k = narrow(problem.k);
  PlannedCall call;
  call.strategy = "tcgen05";
  call.work = work(problem, config);
  call.knobs = knob_table().knobs(config);
  call.packed = packed_pieces(n, k);
  call.packed_layout = layout_name;
  call.packing = std::make_shared<const PlannedCall>(packing_call(n, k));
  call.data_alignment = 16;
  add_piece(call, "prepared tokens", m * prepared_row_bytes(k));
  add_piece(call, "prepared scales", prepared_scale_bytes(m, k, narrow(config.block_tokens)));
  const std::size_t scales_at = call.workspace[token_scales_piece].offset;
  call.steps.emplace_back(preparing(config, scales_at));
  call.preparation_steps = 1;
  call.steps.emplace_back(multiplying({config, *problem.activation, scales_at}));
  return call;
}

}  // namespace thresher::strategies::dual_gemm::tcgen05
