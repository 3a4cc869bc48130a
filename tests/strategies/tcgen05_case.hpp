#pragma once
// The kernels of the dual GEMM on tcgen05 in the emulator, without the strategy's plan: packing, preparing tokens and
// the product, and what the product must be bit for bit.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "core/integers.hpp"
#include "strategies/direct_launch.hpp"
#include "strategies/gemm/nvfp4_operands.hpp"
#include "strategies/gemm/tcgen05/device/block_scaled.hpp"
#include "strategies/gemm/tcgen05/device/prepare.hpp"
#include "support/dual_gemm_case.hpp"

namespace thresher::strategies::gemm::tcgen05::block_scaled::test {

using strategies::test::address_of;
using strategies::test::map_of;
using strategies::test::Memory;
using strategies::test::options;
using thresher::test::DualGemmCase;

struct Extents {
  u32 m;
  u32 n;
  u32 k;
};

/// A call's operands packed and prepared, for products of many schedules.
class Call {
 public:
  Call(DualGemmCase& host, const Config& config)
      : host_(host),
        config_(config),
        extents_{static_cast<u32>(host.problem.m), static_cast<u32>(host.problem.n), static_cast<u32>(host.problem.k)},
        weights_(packed_code_bytes(extents_.n, extents_.k)),
        weight_scales_(packed_scale_bytes(extents_.n, extents_.k)),
        tokens_(extents_.m * prepared_row_bytes(extents_.k)),
        token_scales_(prepared_scale_bytes(extents_.m, extents_.k, block_tokens())) {}

  /// What packing and preparing find.
  std::vector<emulator::Finding> prepare(std::uint64_t seed) {
    std::vector<emulator::Finding> found = pack(seed);
    if (!reads_as_given()) {
      const auto more = prepare_tokens(seed);
      found.insert(found.end(), more.begin(), more.end());
    }
    return found;
  }

  /// What one product finds.
  template <Config config>
  emulator::Report multiply(std::uint64_t seed) {
    DenseParams params = product_params();
    profile_.assign(std::size_t{blocks_of<config>(params)} * profile_words<config>(), 0);
    params.profile = {address_of(profile_.data())};
    emulator::GlobalMemory memory;
    memory.add("weights", weights_.data(), weights_.size(), emulator::Use::input);
    memory.add("weight scales", weight_scales_.data(), weight_scales_.size(), emulator::Use::input);
    if (reads_as_given()) {
      add_operand(memory, "tokens", host_.a.view(), emulator::Use::earlier_input);
    } else {
      memory.add("tokens", tokens_.data(), tokens_.size(), emulator::Use::earlier_input);
      memory.add("token scales", token_scales_.data(), token_scales_.size(), emulator::Use::earlier_input);
    }
    for (Tensor tensor : {host_.a.view(), host_.b1_gate.view(), host_.b2_up.view()}) {
      if (tensor.global_scale != nullptr) {
        memory.add("global scale", tensor.global_scale, sizeof(float), emulator::Use::input);
      }
    }
    memory.add("c", host_.c.bytes().data(), host_.c.bytes().size(), emulator::Use::output);
    if (config.profiled) {
      memory.add("profile", profile_.data(), profile_.size() * sizeof(u64), emulator::Use::output);
    }
    emulator::LaunchShape shape;
    shape.grid.x = blocks_of<config>(params);
    shape.cluster.x = static_cast<u32>(pipeline::cluster_blocks(shape_of(config)));
    shape.block = static_cast<u32>(pipeline::threads(shape_of(config)));
    shape.dynamic_shared_bytes = static_cast<u32>(pipeline::shared_bytes(shape_of(config)));
    shape.after_earlier_grid = !config.profiled;  // timestamps are taken before anything is waited for
    return emulator::launch(shape, options(seed), memory, [&params] { kernel<config>(params); });
  }

  /// What the last product's roles left (pipeline/timeline.hpp).
  [[nodiscard]] const std::vector<u64>& profile() const { return profile_; }
  template <Config config>
  static constexpr u32 profile_words() {
    return static_cast<u32>(pipeline::profile_words_of_block(pipeline::profile_shape(shape_of(config))));
  }

 private:
  template <Config config>
  static u32 blocks_of(const DenseParams& params) {
    constexpr u32 tiles_each = 3;  // of a persistent kernel's clusters: one more than there are accumulators
    const u32 tiles = params.token_tiles * params.output_tiles;
    const u32 clusters = config.persistent ? std::max(tiles / tiles_each, 1U) : tiles;
    return clusters * static_cast<u32>(pipeline::cluster_blocks(shape_of(config)));
  }
  [[nodiscard]] u32 block_tokens() const { return static_cast<u32>(config_.block_tokens); }
  [[nodiscard]] bool reads_as_given() const {
    return config_.unsigned_scales && host_.a.view().scales.layout == ScaleLayout::blocked &&
           blocked_scales_fit(extents_.m, extents_.k, block_tokens());
  }
  static void add_operand(emulator::GlobalMemory& memory, const std::string& name, const Tensor& tensor,
                          emulator::Use use) {
    const auto rows = static_cast<std::size_t>(tensor.shape[0]);
    memory.add(
        name, tensor.data,
        ((rows - 1) * static_cast<std::size_t>(tensor.strides[0]) + static_cast<std::size_t>(tensor.shape[1])) / 2,
        use);
    memory.add(name + " scales", tensor.scales.data, scale_bytes(tensor), use);
  }

  std::vector<emulator::Finding> pack(std::uint64_t seed) {
    PackParams params{};
    params.gate = token_matrix(host_.b1_gate.view());
    params.up = token_matrix(host_.b2_up.view());
    params.codes = {address_of(weights_.data())};
    params.scales = {address_of(weight_scales_.data())};
    params.k_steps = k_steps(extents_.k);
    emulator::GlobalMemory memory;
    add_operand(memory, "gate", host_.b1_gate.view(), emulator::Use::input);
    add_operand(memory, "up", host_.b2_up.view(), emulator::Use::input);
    memory.add("packed", weights_.data(), weights_.size(), emulator::Use::output);
    memory.add("packed scales", weight_scales_.data(), weight_scales_.size(), emulator::Use::output);
    emulator::LaunchShape shape;
    shape.grid.x = row_tiles(extents_.n) * k_steps(extents_.k);
    shape.block = pack_threads;
    return emulator::launch(shape, options(seed), memory, [&params] { pack_kernel(params); }).findings;
  }

  std::vector<emulator::Finding> prepare_tokens(std::uint64_t seed) {
    PrepareTokensParams params{};
    params.tokens = token_matrix(host_.a.view());
    params.codes = {address_of(tokens_.data())};
    params.scales = {address_of(token_scales_.data())};
    params.row_bytes = prepared_row_bytes(extents_.k);
    params.k_blocks = scale_k_blocks(extents_.k);
    params.block_tokens = block_tokens();
    params.scale_rows = prepared_scale_groups(extents_.m, block_tokens()) * 128;
    emulator::GlobalMemory memory;
    add_operand(memory, "tokens", host_.a.view(), emulator::Use::earlier_input);
    memory.add("prepared", tokens_.data(), tokens_.size(), emulator::Use::output);
    memory.add("prepared scales", token_scales_.data(), token_scales_.size(), emulator::Use::output);
    emulator::LaunchShape shape;
    shape.grid.x = static_cast<u32>((prepare_items(params) + prepare_threads - 1) / prepare_threads);
    shape.block = prepare_threads;
    shape.after_earlier_grid = true;
    return emulator::launch(shape, options(seed), memory, [&params] { prepare_tokens_kernel(params); }).findings;
  }

  DenseParams product_params() {
    using machine::ElementType;
    using machine::Swizzle;
    const Tensor a = host_.a.view();
    const bool given = reads_as_given();
    const u64 steps = u64{row_tiles(extents_.n)} * k_steps(extents_.k);
    const u64 k_blocks = scale_k_blocks(extents_.k);
    const u64 row_bytes = given ? static_cast<u64>(a.strides[0]) / 2 : prepared_row_bytes(extents_.k);
    const void* scales = given ? static_cast<const void*>(a.scales.data) : token_scales_.data();
    DenseParams params{};
    params.weights = map_of(weights_.data(), ElementType::uint8, Swizzle::b128, {slot_row_bytes, block_rows, steps},
                            {slot_row_bytes, weight_block_bytes}, {slot_row_bytes, block_rows, 1});
    params.weight_scales =
        map_of(weight_scales_.data(), ElementType::uint16, Swizzle::none, {256, slot_scale_blocks, steps},
               {scale_block_bytes, weight_scale_bytes}, {256, slot_scale_blocks, 1});
    params.tokens =
        map_of(given ? a.data : tokens_.data(), ElementType::uint8, Swizzle::b128,
               {given ? extents_.k / 2 : row_bytes, extents_.m}, {row_bytes}, {slot_row_bytes, loaded_tokens(config_)});
    params.token_scales =
        map_of(scales, ElementType::uint16, Swizzle::none,
               {256, k_blocks, given ? scale_groups(extents_.m) : prepared_scale_groups(extents_.m, block_tokens())},
               {scale_block_bytes, k_blocks * scale_block_bytes},
               {256, loaded_scale_blocks(config_), token_scale_groups(config_)});
    params.scale_bytes = {address_of(scales)};
    const Tensor c = host_.c.view();
    params.c = {address_of(c.data)};
    params.c_row_stride = static_cast<u64>(c.strides[0]);
    params.token_factors = {address_of(a.global_scale)};
    params.gate_factors = {address_of(host_.b1_gate.view().global_scale)};
    params.up_factors = {address_of(host_.b2_up.view().global_scale)};
    params.m = extents_.m;
    params.n = extents_.n;
    params.k = extents_.k;
    params.k_steps = k_steps(extents_.k);
    params.c_wide = extents_.n % 8 == 0 && c.strides[0] % 8 == 0 ? 1 : 0;
    params.token_tiles = static_cast<u32>(ceil_div(extents_.m, block_tokens()));
    params.output_tiles = static_cast<u32>(ceil_div(extents_.n, tile_outputs(config_)));
    params.alpha = host_.problem.activation.alpha;
    params.limit = host_.problem.activation.limit;
    params.up_offset = host_.problem.activation.up_offset;
    return params;
  }

  DualGemmCase& host_;
  Config config_;
  Extents extents_;
  Memory weights_;
  Memory weight_scales_;
  Memory tokens_;
  Memory token_scales_;
  std::vector<u64> profile_;
};

}  // namespace thresher::strategies::gemm::tcgen05::block_scaled::test
