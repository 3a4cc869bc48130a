#pragma once
/// Packed weights in files, so that a model is packed once and not at every start.
#include <string>

#include "thresher/dual_gemm.hpp"

namespace thresher {

/// Writes the weights, their layout and a fingerprint of their bytes to a safetensors file that appears whole or not at
/// all. Weights for which packing is the identity (on the CPU; 16-bit weights on a GPU) are stored as the matrices they
/// are, and fit every device. Throws Error(io) naming the file.
void save_packed(const PackedWeights& weights, const std::string& path);

/// Reads what save_packed wrote, for `device`; the object owns its memory. Throws Error(io) for a file that cannot be
/// read, and Error(invalid_argument) or Error(unsupported) with one sentence for one that holds no packed weights, is
/// damaged, is of another version, or was packed for another kind of device.
PackedWeights load_packed(const Device& device, const std::string& path);

}  // namespace thresher
