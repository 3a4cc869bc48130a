#pragma once
/// How the two numerics hold their A operand: what a thread reads of a block, and how it becomes wgmma fragments.
#include "machine/shared.hpp"
#include "strategies/dual_gemm/packed/device/dequantize.hpp"
#include "strategies/dual_gemm/packed/device/fold.hpp"

namespace thresher::strategies::dual_gemm::packed {

/// Blocks of 64 along K, four k-steps of 16; ElementType is Half or BFloat16.
template <typename ElementType>
struct ExactOperand {
  using Element = ElementType;
  /// A word for each k-step, and the 8 scales of the thread's outputs.
  struct Packed {
    machine::Vector<u32, 4> words;
    machine::Vector<u32, 2> scales;
  };
  static constexpr int steps = static_cast<int>(packed::steps);

  static TH_DEVICE Packed fetch(machine::Shared<u8> block, u32 thread) {
    return {block.as<machine::Vector<u32, 4>>().load(thread),
            block.offset_bytes(block_value_bytes).as<machine::Vector<u32, 2>>().load(thread / 4)};
  }
  static TH_DEVICE machine::wgmma::Fragment expand(const Packed& packed, int step) {
    return dequantize<Element>(packed.words.at[step], scales<Element>(packed.scales, static_cast<u32>(step)));
  }
};

/// Blocks of 128 along K, four k-steps of 32.
struct FastOperand {
  using Element = machine::E4M3;
  struct Packed {
    machine::Vector<u32, 4> words[fast::halves];
    u32 scales;
  };
  static constexpr int steps = static_cast<int>(fast::steps);

  static TH_DEVICE Packed fetch(machine::Shared<u8> block, u32 thread) {
    const auto words = block.as<machine::Vector<u32, 4>>();
    return {{words.load(thread), words.load(threads + thread)},
            block.offset_bytes(fast::block_value_bytes).as<u32>().load(thread)};
  }
  static TH_DEVICE machine::wgmma::Fragment expand(const Packed& packed, int step) {
    const fast::Products gate_products = step < 2 ? fast::products<0>(packed.scales) : fast::products<2>(packed.scales);
    const fast::Products up_products = step < 2 ? fast::products<1>(packed.scales) : fast::products<3>(packed.scales);
    const machine::Vector<u32, 4>& words = packed.words[step / 2];
    const fast::WordPair gate = fast::fold(words.at[step % 2 * 2], gate_products);
    const fast::WordPair up = fast::fold(words.at[step % 2 * 2 + 1], up_products);
    return {{gate.first, up.first, gate.second, up.second}};
  }
};

}  // namespace thresher::strategies::dual_gemm::packed
