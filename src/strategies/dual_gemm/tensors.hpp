#pragma once
/// The tensors of a dual GEMM's call, in the order in which CallTensors has them.
#include <cstddef>
#include <cstdint>

#include "strategies/planned_call.hpp"

namespace thresher::strategies::dual_gemm {

enum TensorIndex : std::size_t {
  tokens_index,  ///< a [m, k]
  gate_index,    ///< b1 [n, k]; packed weights keep its shape and global scale alone
  up_index,      ///< b2 [n, k], likewise
  output_index,  ///< c [m, n]
  tensor_count,
  profile_index = tensor_count,  ///< of a profiled call: 64-bit words (pipeline/timeline.hpp)
};

inline const Tensor& tokens_of(const CallTensors& call) { return call.tensors[tokens_index]; }
inline const Tensor& gate_of(const CallTensors& call) { return call.tensors[gate_index]; }
inline const Tensor& up_of(const CallTensors& call) { return call.tensors[up_index]; }
inline const Tensor& output_of(const CallTensors& call) { return call.tensors[output_index]; }

inline std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }
/// Where a profiled call leaves its timestamps; 0 in any other call.
inline std::uint64_t profile_address(const CallTensors& call) {
  return call.tensors.size() > profile_index ? address_of(call.tensors[profile_index].data) : 0;
}

}  // namespace thresher::strategies::dual_gemm
