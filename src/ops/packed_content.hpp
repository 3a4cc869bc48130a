#pragma once
/// Packed weights as files and blocks of bytes keep them.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "thresher/dual_gemm.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::ops {

/// The layout of weights that were left as they are, which every device packs for itself.
inline constexpr const char* matrices_layout = "matrices";

/// Bytes that are owned here, or seen where somebody else keeps them. Copies share what is owned.
class Bytes {
 public:
  Bytes() = default;
  Bytes(std::vector<std::byte> owned)  // NOLINT(google-explicit-constructor): they are bytes either way
      : owner_(std::make_shared<const std::vector<std::byte>>(std::move(owned))), span_(*owner_) {}
  /// Those have to outlive it.
  [[nodiscard]] static Bytes seen(const void* data, std::size_t size) {
    Bytes bytes;
    bytes.span_ = {static_cast<const std::byte*>(data), size};
    return bytes;
  }

  [[nodiscard]] const std::byte* data() const noexcept { return span_.data(); }
  /// Null of none.
  [[nodiscard]] const float* floats() const noexcept {
    return span_.empty() ? nullptr : reinterpret_cast<const float*>(span_.data());
  }
  [[nodiscard]] std::size_t size() const noexcept { return span_.size(); }
  [[nodiscard]] bool empty() const noexcept { return span_.empty(); }
  [[nodiscard]] std::span<const std::byte> span() const noexcept { return span_; }

 private:
  std::shared_ptr<const std::vector<std::byte>> owner_;
  std::span<const std::byte> span_;
};

/// One matrix [N,K], or those of all experts [E,N,K]: contiguous values, and what there is of scales, global scales
/// (float32, one a matrix) and biases [E,N].
struct PackedMatrix {
  Bytes values;
  Bytes scales;
  ScaleLayout scale_layout = ScaleLayout::row_major;
  Bytes global_scale;
  Bytes bias;
};

struct PackedContent {
  std::string layout;  ///< matrices_layout, or the name that one kind of device gives its own, version included
  Numerics numerics = Numerics::exact;
  Format format = Format::fp16;
  std::int64_t experts = 0;  ///< 0: of the dual GEMM, else of a grouped product
  std::int64_t n = 0;        ///< rows of one matrix of one expert
  std::int64_t k = 0;
  bool has_b2 = true;                  ///< else b1 holds both, as `order` says, or is the one matrix there is
  std::optional<GateUpOrder> order{};  ///< of a grouped product's b1 [E,2·N,K]
  std::optional<Format> bias_format{};
  /// b1 and b2. A layout of a device's own keeps their global scales and biases alone. With `order` the second's global
  /// scale is up's.
  std::array<PackedMatrix, 2> matrices;
  Bytes packed;  ///< a layout of a device's own
  /// All bytes are seen in the memory of the device that the content is for. Else they are the host's.
  bool on_device = false;

  [[nodiscard]] std::int64_t rows() const noexcept { return order ? 2 * n : n; }  ///< of b1
};

/// The matrix or the stack, whose memory is the host's: its own bytes where they are contiguous, else a copy.
[[nodiscard]] PackedMatrix packed_matrix(const Tensor& tensor);
/// The same as a copy of its own.
[[nodiscard]] PackedMatrix copied_matrix(const Tensor& tensor);
/// All of a grouped product's weights in matrices_layout, where packed_matrix finds them.
[[nodiscard]] PackedContent packed_content(const GroupedWeights& weights, Numerics numerics);
/// Whether packed_matrix and packed_content only see these, and copy none.
[[nodiscard]] bool is_seen_whole(const Tensor& tensor);
[[nodiscard]] bool is_seen_whole(const GroupedWeights& weights);
/// A content with the shapes and formats of grouped weights, without bytes.
[[nodiscard]] PackedContent grouped_outline(const GroupedWeights& weights, Numerics numerics, std::string layout);

/// One matrix, b1 or b2, of a content in matrices_layout, on `device`; refers to `content`. Of another layout shape and
/// format alone.
[[nodiscard]] Tensor view(const PackedContent& content, std::size_t matrix, DeviceId device = {});
/// All of a grouped product's.
[[nodiscard]] GroupedWeights grouped_view(const PackedContent& content, DeviceId device = {});

}  // namespace thresher::ops
