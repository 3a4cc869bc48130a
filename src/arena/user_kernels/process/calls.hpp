#pragma once
/// A kernel's calls, with their tensors.
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "arena/data/device_set.hpp"
#include "arena/operation/problem.hpp"
#include "arena/rig/memory.hpp"
#include "thresher/own_kernel.h"

namespace thresher::arena::user_kernels {

/// The input sets of the kernel, and the workspace that they share.
class Calls {
 public:
  Calls(const Problem& problem, Memory& memory, const std::vector<DeviceSet>& sets, std::size_t workspace_bytes);
  [[nodiscard]] const thresher_own_dual_gemm& operator[](std::size_t set) const { return calls_[set]; }
  [[nodiscard]] std::size_t size() const { return calls_.size(); }
  /// The memory of a set's activations, which no other call reads.
  [[nodiscard]] const std::vector<std::span<std::byte>>& activations(std::size_t set) const {
    return activations_[set];
  }
  [[nodiscard]] std::vector<std::string> guard_damage() const;

 private:
  std::vector<thresher_own_dual_gemm> calls_;
  std::vector<std::vector<std::span<std::byte>>> activations_;
  std::unique_ptr<GuardedBuffer> workspace_;
};

/// The bytes that a call writes, from the first to the last.
[[nodiscard]] std::size_t output_bytes(const thresher_own_dual_gemm& call);

}  // namespace thresher::arena::user_kernels
