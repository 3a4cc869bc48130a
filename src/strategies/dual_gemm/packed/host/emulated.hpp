#pragma once
/// The packed NVFP4 dual GEMM on the CPU, thread by thread and checked (machine/emulator): packing, preparing tokens,
/// and the product.
#include <span>
#include <vector>

#include "machine/emulator/engine/launch.hpp"
#include "strategies/dual_gemm/packed/host/launches.hpp"
#include "strategies/host/compiled_in.hpp"

namespace thresher::strategies::dual_gemm::packed {

/// Small tiles of every path and overlap.
std::span<const Config> small_configs();
/// Kernels that are compiled into the library: those of small_configs() and default_configs().
std::vector<CompiledIn> compiled_in();
/// One line that tells them apart.
std::string title(const Config& config);

/// Operands in host memory: B1 and B2 NVFP4, `a` as the config wants it.
struct EmulatedProblem {
  Tensor a;
  Tensor b1_gate;
  Tensor b2_up;
  Tensor c;
  Activation activation;
};

/// The launches of one call, in order.
class EmulatedProduct {
 public:
  /// `kernel` is that of `config`.
  EmulatedProduct(HostKernel kernel, const Config& config, const EmulatedProblem& problem);

  emulator::Report pack(const emulator::Options& options);
  emulator::Report prepare_tokens(const emulator::Options& options);
  emulator::Report multiply(const emulator::Options& options);
  /// All of them; the first that finds something ends it.
  emulator::Report run(const emulator::Options& options);

  [[nodiscard]] const std::vector<std::uint8_t>& packed() const { return packed_; }
  [[nodiscard]] const std::vector<std::uint8_t>& tokens() const { return tokens_; }

 private:
  [[nodiscard]] emulator::GlobalMemory weights_memory(emulator::Use blocks, emulator::Use factors) const;

  HostKernel kernel_;
  Config config_;
  EmulatedProblem problem_;
  Extents extents_;
  PreparedTokens prepared_;
  std::vector<std::uint8_t> packed_;
  std::vector<std::uint8_t> tokens_;
};

}  // namespace thresher::strategies::dual_gemm::packed
