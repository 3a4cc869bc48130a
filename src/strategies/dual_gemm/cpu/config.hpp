#pragma once
/// The knobs of the CPU's strategies.

namespace thresher::strategies::dual_gemm::host {

struct Config {
  int threads = 0;  ///< 0: all
  bool operator==(const Config&) const = default;
};

}  // namespace thresher::strategies::dual_gemm::host
