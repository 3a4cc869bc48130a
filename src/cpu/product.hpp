#pragma once
/// Matrix products, planned once. They use oneDNN (product_onednn.cpp), or in a program linked without it our own loops
/// (product_highway.cpp).
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace thresher::cpu {

/// The operands' type of a product; accumulation and result are float32 in both.
enum class ProductType : std::uint8_t { float32, bf16 };

[[nodiscard]] std::size_t element_bytes(ProductType type) noexcept;

/// bf16 if this CPU multiplies bf16 natively (and oneDNN is linked and was not told to ignore that), otherwise float32.
[[nodiscard]] ProductType native_product_type();

/// The version of the linked oneDNN, "2.6.0"; "none" without it.
[[nodiscard]] std::string onednn_version();

/// D[rows, columns] = L·Rᵀ, or D += L·Rᵀ, for row-major L[rows, depth] and R[columns, depth].
struct ProductShape {
  ProductType type;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t depth;
  std::int64_t left_stride = 0;   ///< elements from row to row of L; 0: `depth`
  std::int64_t right_stride = 0;  ///< of R if it is row-major; 0: `depth`
};

/// The memory layout of R. A unit is 32 bits along depth: one float32 or two bf16.
struct PanelLayout {
  /// 0: row-major. Otherwise [⌈columns / block_columns⌉][⌈depth / 16 units⌉][16 units][block_columns], padded with
  /// zeros.
  std::int64_t block_columns = 0;
};

/// May be run by several threads at once, each with its own scratch.
class Product {
 public:
  enum class PanelChoice : std::uint8_t { row_major, fastest };

  /// D is dense; so is L unless its stride says otherwise. Runs on `threads` threads, in the caller's own if that is 1.
  Product(const ProductShape& shape, PanelChoice panel, int threads);
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  ~Product();

  [[nodiscard]] PanelLayout panel_layout() const noexcept { return layout_; }
  [[nodiscard]] std::size_t panel_bytes() const noexcept { return panel_bytes_; }
  [[nodiscard]] std::size_t scratch_bytes() const noexcept { return scratch_bytes_; }

  void run(const void* left, const void* right, float* out, bool accumulate, void* scratch) const;

 private:
  struct Primitives;
  std::unique_ptr<const Primitives> primitives_;
  PanelLayout layout_{};
  std::size_t panel_bytes_ = 0;
  std::size_t scratch_bytes_ = 0;
};

}  // namespace thresher::cpu
