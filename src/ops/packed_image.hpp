#pragma once
/// Packed weights as one contiguous run of bytes, the content of a file and of a block: a safetensors file. Each tensor
/// begins at a multiple of `packed_image_alignment` bytes of the whole. Tensors of zeros, "padding.…", fill the gaps,
/// and readers skip them.
#include <functional>
#include <memory>

#include "formats/safetensors_header.hpp"
#include "ops/byte_sum.hpp"
#include "ops/packed_product.hpp"
#include "thresher/packed_block.hpp"

namespace thresher::ops {

inline constexpr std::size_t packed_image_alignment = 256;

class PackedImage {
 public:
  /// The content has to outlive this. Throws Error(invalid_argument) when no product has such a K.
  explicit PackedImage(const PackedContent& content);

  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// The target of a writer.
  struct Sink {
    /// The sums over bytes of the content, in the memory where they are.
    std::function<WordSums(std::span<const std::byte>)> sums;
    /// Takes the bytes at `offset`, front to back: the content's own, or some of the host's.
    std::function<void(std::size_t offset, std::span<const std::byte>)> put;
  };
  void write(const Sink& sink) const;

 private:
  struct Part {
    std::string name;
    std::span<const std::byte> bytes;
  };
  std::vector<Part> parts_;
  formats::SafetensorsHeader header_;
  std::size_t bytes_ = 0;
};

/// An image in a file or in memory.
class PackedSource {
 public:
  virtual ~PackedSource() = default;
  /// The beginning of its error messages.
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual const formats::SafetensorsHeader& header() const = 0;
  [[nodiscard]] virtual Bytes read(const formats::StoredTensor& tensor) const = 0;
};

/// Throws Error(invalid_argument) if it holds no packed weights, has another version, or is damaged.
[[nodiscard]] PackedContent read_packed_image(const PackedSource& source, PackedCheck check);

/// Throws Error(invalid_argument) when the content of `source` is of the other operation.
void expect_dual_gemm(const PackedSource& source, const PackedContent& content);
void expect_grouped(const PackedSource& source, const PackedContent& content);

/// The content of `source` for `device`. Errors begin with the name of `source`.
[[nodiscard]] PackedPointer restore_from(const PackedSource& source, const Device& device, PackedContent content);

/// A file that appears whole or not at all; throws as include/thresher/packed_file.hpp says.
void write_packed_file(const std::string& path, const PackedContent& content);

}  // namespace thresher::ops
