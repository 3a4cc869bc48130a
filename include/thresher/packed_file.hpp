#pragma once
/// Packed weights in files, so that a model is packed once and not at every start.
#include <string>

#include "thresher/dual_gemm.hpp"

namespace thresher {

/// Writes the weights, their layout and a fingerprint of their bytes to a safetensors file. The file is replaced
/// atomically. Weights for which packing is the identity (on the CPU; 16-bit weights on a GPU) are stored as plain
/// matrices and fit every device. Throws Error(io) naming the file.
void save_packed(const PackedWeights& weights, const std::string& path);

/// Reads a file of save_packed for `device`; the object owns its memory. Throws Error(io) for a file that cannot be
/// read. Throws Error(invalid_argument) or Error(unsupported) with one sentence for a file without packed weights. The
/// same applies to one that is damaged, of another version, or packed for another kind of device.
PackedWeights load_packed(const Device& device, const std::string& path);

}  // namespace thresher
