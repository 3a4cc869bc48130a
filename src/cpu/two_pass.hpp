#pragma once
/// The strategy "two_pass" for one type of product.
#include <array>
#include <cstddef>
#include <cstdint>

#include "cpu/operand.hpp"
#include "cpu/product.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::cpu {

/// Dequantizes A, B1 and B2 whole, then multiplies A by each with oneDNN's own threads, then activates. The helpers
/// among those threads keep the floating-point environment in which OpenMP started them.
class TwoPassDualGemm {
 public:
  TwoPassDualGemm(const DualGemmProblem& problem, ProductType type, int threads);

  [[nodiscard]] std::size_t workspace_bytes() const noexcept { return workspace_bytes_; }
  /// As InterleavedDualGemm::run.
  [[nodiscard]] bool run(const Tensor& a, const Tensor& b1_gate, const Tensor& b2_up, const Tensor& c,
                         void* workspace) const;

 private:
  struct Planes {
    std::size_t offset;
    std::size_t plane_bytes;
    std::int64_t count;
  };

  [[nodiscard]] Planes dense_planes(std::int64_t rows, Format format) const noexcept;
  ExponentRange convert(const Tensor& operand, const Planes& planes, void* workspace) const;
  void multiply(const Planes& weights, std::size_t out_offset, void* workspace) const;

  DualGemmProblem problem_;
  ProductType type_;
  int threads_;
  Product product_;
  Planes a_{};
  std::array<Planes, 2> b_{};  // gate, up
  std::size_t gate_ = 0;
  std::size_t up_ = 0;
  std::size_t scratch_ = 0;
  std::size_t workspace_bytes_ = 0;
};

}  // namespace thresher::cpu
