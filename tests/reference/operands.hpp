#pragma once
/// Random operands that own their memory.
#include <cstdint>
#include <ostream>
#include <random>
#include <vector>

#include "formats/numbers.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher {

/// How test names show a problem.
inline void PrintTo(const DualGemmProblem& problem, std::ostream* out) {
  *out << problem.m << 'x' << problem.n << 'x' << problem.k << ' ' << name(problem.a) << ' ' << name(problem.b)
       << " to " << name(problem.out) << ' ' << name(problem.activation.kind);
}

}  // namespace thresher

namespace thresher::reference {

/// A random matrix of any operand format: normal values in 16 bits, random codes with small scales in NVFP4.
class Matrix {
 public:
  Matrix(Format format, std::int64_t rows, std::int64_t columns, std::uint32_t seed, float deviation = 0.35F)
      : global_scale_(0.75F) {
    std::mt19937 random(seed);
    if (format == Format::nvfp4) {
      bytes_.resize(static_cast<std::size_t>(rows * columns / 2));
      for (std::uint8_t& pair : bytes_) {
        pair = static_cast<std::uint8_t>(random());
      }
      scales_.resize(scale_bytes(rows, columns, ScaleLayout::row_major));
      for (std::uint8_t& scale : scales_) {
        scale = static_cast<std::uint8_t>(random() % 0x30);
      }
      view_ = Tensor::nvfp4(bytes_.data(), scales_.data(), rows, columns, &global_scale_);
      return;
    }
    std::normal_distribution<float> normal(0.0F, deviation);
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const float value = normal(random);
      patterns_.push_back(format == Format::fp16 ? formats::float_to_fp16(value) : formats::float_to_bf16(value));
    }
    view_ = Tensor::contiguous(patterns_.data(), format, {rows, columns});
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  [[nodiscard]] const Tensor& view() const { return view_; }
  [[nodiscard]] std::vector<std::uint16_t>& patterns() { return patterns_; }

 private:
  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint8_t> scales_;
  std::vector<std::uint16_t> patterns_;
  float global_scale_;
  Tensor view_;
};

/// The three operands of a problem.
struct Operands {
  Matrix a;
  Matrix b1;
  Matrix b2;

  explicit Operands(const DualGemmProblem& problem, std::uint32_t seed = 1, float deviation = 0.35F)
      : a(problem.a, problem.m, problem.k, seed, deviation),
        b1(problem.b, problem.n, problem.k, seed + 1, deviation),
        b2(problem.b, problem.n, problem.k, seed + 2, deviation) {}
};

}  // namespace thresher::reference
