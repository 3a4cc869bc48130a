#include "strategies/dual_gemm/packed/launch.hpp"

#include <cstddef>

#include "strategies/dual_gemm/packed/device/pack.hpp"
#include "strategies/dual_gemm/packed/host/work.hpp"
#include "strategies/dual_gemm/packed/launches.hpp"
#include "strategies/dual_gemm/packed/program.hpp"
#include "strategies/gemm/tensors.hpp"
#include "strategies/launch_registers.hpp"

namespace thresher::strategies::dual_gemm::packed {
namespace {

enum PackedPiece : std::size_t { blocks_piece, row_factors_piece };
enum WorkspacePieces : std::size_t { tokens_piece, token_factors_piece };

/// A change of device/exact_layout.hpp or device/fast_layout.hpp is another name.
const char* layout_name(Numerics numerics) {
  return numerics == Numerics::fast ? "nvfp4-fast-sm90-1" : "nvfp4-exact-sm90-1";
}

std::uint64_t address_in(const void* memory, std::size_t offset) { return device_address(memory) + offset; }

std::vector<WorkspacePiece> packed_pieces(Numerics numerics, std::int64_t n, std::int64_t k) {
  std::vector<WorkspacePiece> pieces;
  if (numerics == Numerics::fast) {
    add_piece(pieces, "packed weights", factors_offset(n, k));
    add_piece(pieces, "row factors", packed_bytes(numerics, n, k) - factors_offset(n, k));
  } else {
    add_piece(pieces, "packed weights", packed_bytes(numerics, n, k));
  }
  return pieces;
}

void add_reads(std::vector<Access>& accesses, std::size_t tensor, Format format, Access::Use use) {
  accesses.push_back({Access::Memory::tensor, tensor, use});
  if (format == Format::nvfp4) {
    accesses.push_back({Access::Memory::scales, tensor, use});
  }
}

KernelLaunch preparation_launch(std::string title, const std::string& expression, std::uint32_t threads) {
  KernelLaunch launch;
  launch.title = std::move(title);
  launch.program = preparation_program();
  launch.expression = expression;
  launch.block.x = threads;
  launch.expected.uses_shared_memory = false;  // it only converts
  return launch;
}

// --- packing

KernelLaunch packing_launch(Numerics numerics, std::string title, const std::string& expression, bool makes_factors) {
  const std::vector<WorkspacePiece> pieces = packed_pieces(numerics, 0, 0);
  KernelLaunch launch = preparation_launch(std::move(title), expression, threads);
  add_reads(launch.accesses, gate_index, Format::nvfp4, Access::Use::reads);
  add_reads(launch.accesses, up_index, Format::nvfp4, Access::Use::reads);
  const auto piece = makes_factors ? row_factors_piece : blocks_piece;
  launch.accesses.push_back({Access::Memory::packed, piece, Access::Use::writes});
  if (numerics == Numerics::fast && !makes_factors) {
    launch.accesses.push_back({Access::Memory::packed, row_factors_piece, Access::Use::reads});
  }
  launch.bind = [numerics, makes_factors](const CallTensors& call, LaunchArguments& out) {
    const std::int64_t n = gate_of(call).shape[0];
    const std::int64_t k = gate_of(call).shape[1];
    PackParams params{};
    params.gate = matrix_of(gate_of(call));
    params.up = matrix_of(up_of(call));
    params.packed = {device_address(call.packed)};
    params.k_blocks = weight_k_blocks(numerics, k);
    if (numerics == Numerics::fast) {
      params.row_factors = {address_in(call.packed, factors_offset(n, k))};
    }
    out.set(params);
    out.grid.x = makes_factors ? row_factor_blocks(n) : packing_blocks(numerics, n, k);
    return true;
  };
  return launch;
}

// --- preparing tokens

bool folds(const Config& config) { return config.numerics == Numerics::fast; }

/// Tokens to e4m3, a factor for each.
KernelLaunch folding(const ProductProblem& problem, std::size_t factors_at) {
  KernelLaunch launch =
      preparation_launch("fold the tokens", fold_tokens_kernel_name(token_format(problem.a)), fold_threads);
  launch.shared_bytes = fold_shared_bytes;
  launch.expected.uses_shared_memory = true;
  launch.accesses.push_back({Access::Memory::workspace, token_factors_piece, Access::Use::writes});
  launch.bind = [factors_at](const CallTensors& call, LaunchArguments& out) {
    FoldTokensParams params = fold_params(tokens_of(call));
    params.out = {device_address(call.workspace)};
    params.factors = {address_in(call.workspace, factors_at)};
    out.set(params);
    out.grid.x = params.tokens.rows;
    return true;
  };
  return launch;
}

/// NVFP4 tokens to 16 bits with zeros beyond K.
KernelLaunch widening() {
  KernelLaunch launch = preparation_launch("widen the tokens", widen_tokens_kernel_name(), widen_threads);
  launch.bind = [](const CallTensors& call, LaunchArguments& out) {
    WidenTokensParams params = widen_params(tokens_of(call));
    params.out = {device_address(call.workspace)};
    out.set(params);
    out.grid.x = widen_blocks(tokens_of(call));
    return true;
  };
  return launch;
}

/// 16-bit tokens to rows of whole blocks with zeros beyond K.
KernelLaunch padding() {
  KernelLaunch launch = preparation_launch("pad the tokens", pad_tokens_kernel_name(), pad_threads);
  launch.bind = [](const CallTensors& call, LaunchArguments& out) {
    WidenTokensParams params = widen_params(tokens_of(call));
    params.out = {device_address(call.workspace)};
    out.set(params);
    out.grid.x = pad_blocks(params.row_blocks) * params.tokens.rows;
    return true;
  };
  return launch;
}

KernelLaunch preparing(const ProductProblem& problem, const Config& config, std::size_t factors_at) {
  const Preparation kind = preparation_of(config, problem.a, problem.k);
  KernelLaunch launch = kind == Preparation::fold    ? folding(problem, factors_at)
                        : kind == Preparation::widen ? widening()
                                                     : padding();
  launch.dependent = config.dependent_launch;
  add_reads(launch.accesses, tokens_index, problem.a, Access::Use::depends_on_previous);
  launch.accesses.push_back({Access::Memory::workspace, tokens_piece, Access::Use::writes});
  return launch;
}

// --- the product

/// One slot of the ring: 64 rows of weights (32 gate, 32 up) a warpgroup, 32 bytes along K an instruction, all tokens
/// of the tile at once. Weights come in bulk, tokens through a tensor map.
Expectations expectations(const Config& config) {
  const int instruction_k = folds(config) ? 32 : 16;
  Expectations expected;
  expected.matrix_kind = folds(config) ? "QGMMA" : "HGMMA";
  expected.min_matrix_instructions = config.blocks_per_slot * static_cast<int>(weight_block_k(config)) / instruction_k;
  expected.min_tma_loads = 2;
  return expected;
}

struct Product {
  Config config;
  Activation activation;
  bool prepared;           ///< tokens are read from the workspace
  std::size_t factors_at;  ///< of the tokens, in the workspace

  void bind(const CallTensors& call, LaunchArguments& out) const {
    const Tensor& tokens = tokens_of(call);
    const Extents extents{tokens.shape[0], gate_of(call).shape[0], gate_of(call).shape[1]};
    Params params = scalars(config, extents, output_of(call).strides[0], activation);
    params.weights = {device_address(call.packed)};
    params.c = {device_address(output_of(call).data)};
    params.profile = {profile_address(call)};
    params.token_scale = {device_address(tokens.global_scale)};
    params.gate_scale = {device_address(gate_of(call).global_scale)};
    params.up_scale = {device_address(up_of(call).global_scale)};
    if (folds(config)) {
      params.row_factors = {address_in(call.packed, factors_offset(extents.n, extents.k))};
      params.token_factors = {address_in(call.workspace, factors_at)};
    }
    params.ragged_slot = prepared ? no_ragged_slot : ragged_slot(config, extents.k);
    out.set(params);
    out.grid.x = blocks(config, params);
    const std::int64_t row_bytes =
        prepared ? prepared_tokens(config.numerics, extents.m, extents.k).row_bytes : tokens.strides[0] * 2;
    const std::uint64_t address = device_address(prepared ? call.workspace : tokens.data);
    out.add_map(offsetof(Params, tokens), tokens_map(config, extents, address, row_bytes));
    if (params.ragged_slot != no_ragged_slot) {
      out.add_map(offsetof(Params, ragged_tokens), ragged_tokens_map(config, extents, address, row_bytes));
    }
  }

  [[nodiscard]] std::vector<Access> accesses(Format tokens) const {
    std::vector<Access> all{{Access::Memory::packed, blocks_piece, Access::Use::reads}};
    if (prepared) {
      all.push_back({Access::Memory::workspace, tokens_piece, Access::Use::depends_on_previous});
    } else {
      all.push_back({Access::Memory::tensor, tokens_index, Access::Use::depends_on_previous});
    }
    if (folds(config)) {
      all.push_back({Access::Memory::packed, row_factors_piece, Access::Use::reads});
      all.push_back({Access::Memory::workspace, token_factors_piece, Access::Use::depends_on_previous});
    }
    if (tokens == Format::nvfp4) {
      all.push_back({Access::Memory::global_scale, tokens_index, Access::Use::depends_on_previous});
    }
    all.push_back({Access::Memory::global_scale, gate_index, Access::Use::reads});
    all.push_back({Access::Memory::global_scale, up_index, Access::Use::reads});
    all.push_back({Access::Memory::tensor, output_index, Access::Use::writes});
    if (config.profiled) {
      all.push_back({Access::Memory::tensor, profile_index, Access::Use::writes});
    }
    return all;
  }
};

KernelLaunch multiplying(const ProductProblem& problem, const Product& product) {
  const Config& config = product.config;
  KernelLaunch launch;
  launch.title = "multiply";
  launch.program = program(config);
  launch.expression = kernel_name(config);
  launch.block.x = static_cast<std::uint32_t>(launch_threads(config));
  launch.cluster.x = static_cast<std::uint32_t>(config.split_k);
  launch.shared_bytes = static_cast<std::uint32_t>(shared_bytes(config));
  launch.registers = registers_at_launch(static_cast<int>(launch_threads(config)) * config.blocks_resident,
                                         config.loader_registers, config.math_registers);
  launch.dependent = config.dependent_launch;
  launch.accesses = product.accesses(problem.a);
  launch.bind = [product](const CallTensors& call, LaunchArguments& out) {
    product.bind(call, out);
    return true;
  };
  launch.expected = expectations(config);
  return launch;
}

}  // namespace

PlannedCall packing_call(Numerics numerics, std::int64_t n, std::int64_t k) {
  PlannedCall call;
  call.strategy = "packed";
  call.packed = packed_pieces(numerics, n, k);
  if (numerics == Numerics::fast) {
    call.steps.emplace_back(packing_launch(numerics, "find the rows' factors", row_factors_kernel_name(), true));
  }
  call.steps.emplace_back(packing_launch(
      numerics, "pack the weights", numerics == Numerics::fast ? pack_fast_kernel_name() : pack_kernel_name(), false));
  return call;
}

PlannedCall planned_call(const ProductProblem& problem, const Config& config) {
  PlannedCall call;
  call.strategy = "packed";
  call.work = work(problem, config);
  call.knobs = knob_table().knobs(config);
  call.packed = packed_pieces(config.numerics, problem.n, problem.k);
  call.packed_layout = layout_name(config.numerics);
  call.packing = std::make_shared<const PlannedCall>(packing_call(config.numerics, problem.n, problem.k));
  call.data_alignment = tma_alignment_bytes;
  const Preparation kind = preparation_of(config, problem.a, problem.k);
  Product product{config, *problem.activation, kind != Preparation::none, 0};
  if (product.prepared) {
    const PreparedTokens tokens = prepared_tokens(config.numerics, problem.rows, problem.k);
    add_piece(call, "prepared tokens", static_cast<std::size_t>(problem.rows * tokens.row_bytes));
    if (folds(config)) {
      add_piece(call, "token factors", static_cast<std::size_t>(problem.rows) * sizeof(float));
      product.factors_at = call.workspace[token_factors_piece].offset;
    }
    call.steps.emplace_back(preparing(problem, config, product.factors_at));
    call.preparation_steps = 1;
  }
  if (kind == Preparation::none || kind == Preparation::pad) {
    call.alignments = {{tokens_index, tma_alignment_bytes}};
  }
  call.steps.emplace_back(multiplying(problem, product));
  return call;
}

}  // namespace thresher::strategies::dual_gemm::packed
