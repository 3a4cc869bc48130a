#pragma once
/// Packed weights as one contiguous block of bytes that the caller owns, so that a framework's tensors hold them, move
/// them and save them. A block begins with a header that says what it holds; it is what save_packed writes to a file.
#include <cstddef>
#include <cstdint>
#include <span>

#include "thresher/dual_gemm.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher {

/// A block starts at a multiple of so many bytes on the CPU, and of `block_alignment_on_gpu` on a GPU.
inline constexpr std::size_t block_alignment = 16;
inline constexpr std::size_t block_alignment_on_gpu = 256;

/// What is made sure of before a block is used.
enum class PackedCheck : std::uint8_t {
  header,   ///< that the header is as it was written and fits the block; of the rest nothing is read
  content,  ///< that all bytes are those that were written; from a GPU they are copied to the host for that
};

/// Bytes of the block that holds these weights.
[[nodiscard]] std::size_t block_bytes(const PackedWeights& weights);
[[nodiscard]] std::size_t block_bytes(const PackedGroupedWeights& weights);

/// Writes it to memory of the weights' device; finished on return. Weights for which packing is the identity (on the
/// CPU; 16-bit weights on a GPU) are kept as the matrices they are, and fit every device. Throws
/// Error(invalid_argument) when `block` has another size or lies on another device, before anything is written.
void to_block(const PackedWeights& weights, std::span<std::byte> block);
void to_block(const PackedGroupedWeights& weights, std::span<std::byte> block);

/// Weights that are read where they lie in `block`, which is memory of `device` and outlives them and their plans.
/// Throws Error(invalid_argument) or Error(unsupported) with one sentence for bytes that are no packed weights, are
/// damaged, of another version, of the other operation, or packed for another kind of device.
[[nodiscard]] PackedWeights from_block(const Device& device, std::span<const std::byte> block,
                                       PackedCheck check = PackedCheck::header);
[[nodiscard]] PackedGroupedWeights grouped_from_block(const Device& device, std::span<const std::byte> block,
                                                      PackedCheck check = PackedCheck::header);

}  // namespace thresher
