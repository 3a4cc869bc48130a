#pragma once
/// Packed weights as one contiguous block of bytes that the caller owns, so that a framework's tensors can hold, move
/// and save them. A block begins with a header that describes its content; save_packed writes the same bytes to a file.
#include <cstddef>
#include <cstdint>
#include <span>

#include "thresher/dual_gemm.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher {

/// The alignment of a block on the CPU; `block_alignment_on_gpu` on a GPU.
inline constexpr std::size_t block_alignment = 16;
inline constexpr std::size_t block_alignment_on_gpu = 256;

/// The checks made before a block is used.
enum class PackedCheck : std::uint8_t {
  header,   ///< the header is as written and fits the block; the content is not read
  content,  ///< all bytes are as written; from a GPU they are copied to the host
};

/// Bytes of the block that holds these weights.
[[nodiscard]] std::size_t block_bytes(const PackedWeights& weights);
[[nodiscard]] std::size_t block_bytes(const PackedGroupedWeights& weights);

/// Writes the weights to `block`, which is memory of their device; finished on return. Weights for which packing is the
/// identity (on the CPU; 16-bit weights on a GPU) are stored as plain matrices and fit every device. Throws
/// Error(invalid_argument) when `block` has another size or is on another device, before anything is written.
void to_block(const PackedWeights& weights, std::span<std::byte> block);
void to_block(const PackedGroupedWeights& weights, std::span<std::byte> block);

/// Weights that are read in place from `block`, which is memory of `device` and must outlive them and their plans.
/// Throws Error(invalid_argument) or Error(unsupported) with one sentence. It rejects bytes that are not packed
/// weights, are damaged, or are of another version, operation or kind of device.
[[nodiscard]] PackedWeights from_block(const Device& device, std::span<const std::byte> block,
                                       PackedCheck check = PackedCheck::header);
[[nodiscard]] PackedGroupedWeights grouped_from_block(const Device& device, std::span<const std::byte> block,
                                                      PackedCheck check = PackedCheck::header);

}  // namespace thresher
