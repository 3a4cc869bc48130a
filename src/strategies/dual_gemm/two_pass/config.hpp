#pragma once
/// The knobs of `two_pass`.

namespace thresher::strategies::dual_gemm::two_pass {

struct Config {
  /// Weights are written in the format and with the alignment that the library's product takes before each product;
  /// otherwise it reads them where they lie.
  bool widens_weights = false;
  bool operator==(const Config&) const = default;
};

}  // namespace thresher::strategies::dual_gemm::two_pass
