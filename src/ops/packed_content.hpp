#pragma once
/// Packed weights as files and blocks of bytes keep them.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
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

/// Keeps memory alive.
using Keeper = std::shared_ptr<const void>;

/// Bytes that are owned here, or a view of bytes with another owner. Copies share the owned bytes.
class Bytes {
 public:
  Bytes() = default;
  Bytes(std::vector<std::byte> owned) {  // NOLINT(google-explicit-constructor): they are bytes either way
    const auto owner = std::make_shared<const std::vector<std::byte>>(std::move(owned));
    span_ = *owner;
    keeper_ = owner;
  }
  Bytes(Keeper keeper, const void* data, std::size_t size)
      : keeper_(std::move(keeper)), span_(static_cast<const std::byte*>(data), size) {}
  /// A view. The bytes have to outlive it.
  [[nodiscard]] static Bytes seen(const void* data, std::size_t size) { return {nullptr, data, size}; }

  [[nodiscard]] const std::byte* data() const noexcept { return span_.data(); }
  /// Null when empty.
  [[nodiscard]] const float* floats() const noexcept {
    return span_.empty() ? nullptr : reinterpret_cast<const float*>(span_.data());
  }
  [[nodiscard]] std::size_t size() const noexcept { return span_.size(); }
  [[nodiscard]] bool empty() const noexcept { return span_.empty(); }
  [[nodiscard]] std::span<const std::byte> span() const noexcept { return span_; }

 private:
  Keeper keeper_;
  std::span<const std::byte> span_;
};

/// One matrix [N,K], or those of all experts [E,N,K], with contiguous values. Scales, global scales (one float32 per
/// matrix) and biases [E,N] are optional.
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
  std::vector<Keeper> keepers{};  ///< of bytes that are seen in memory made for this content

  [[nodiscard]] std::int64_t rows() const noexcept { return order ? 2 * n : n; }  ///< of b1
};

/// How weights are counted. Those of the dual GEMM are matrices [N,K], with 0 experts; else they are stacks [E,N,K].
struct WeightsShape {
  std::int64_t experts = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  Format format = Format::fp16;
  int matrices = 1;
  bool has_bias = false;
};
[[nodiscard]] WeightsShape shape_of(const GroupedWeights& weights);

/// A content with the shapes and formats of weights, without bytes.
[[nodiscard]] PackedContent outline(const GroupedWeights& weights, Numerics numerics, std::string layout);
/// All of the weights in matrices_layout: their own bytes where they are contiguous, else a copy, which reads them as
/// memory of the host.
[[nodiscard]] PackedContent packed_content(const GroupedWeights& weights, Numerics numerics);
/// Whether packed_content only sees these, and copies none.
[[nodiscard]] bool is_seen_whole(const GroupedWeights& weights);
/// The elements of a tensor one behind the other: its own bytes where they are contiguous, else a copy. Empty for
/// rank 0.
[[nodiscard]] Bytes packed_values(const Tensor& tensor);

/// All weights of a content, on `device`; refers to `content`. In a layout of a device's own their shapes, formats,
/// biases and global scales alone.
[[nodiscard]] GroupedWeights weights_in(const PackedContent& content, DeviceId device = {});

/// Bytes from the first to the last byte of a tensor, row strides included; 0 for rank 0.
[[nodiscard]] std::size_t extent_bytes(const Tensor& tensor);

/// The same weights in other memory, with the same strides: `copy(data, bytes)` gives the place of a copy.
using CopyBytes = std::function<void*(const void* data, std::size_t bytes)>;
[[nodiscard]] GroupedWeights copied(GroupedWeights weights, DeviceId device, const CopyBytes& copy);

}  // namespace thresher::ops
