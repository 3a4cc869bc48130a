// Packed weights in files and in blocks of memory.
#include "thresher/packed_block.hpp"

#include <fmt/format.h>

#include <cstring>

#include "formats/safetensors.hpp"
#include "ops/packed_image.hpp"
#include "runtime/driver.hpp"
#include "runtime/memory.hpp"
#include "thresher/error.hpp"
#include "thresher/packed_file.hpp"

namespace thresher {
namespace {

constexpr const char* block_name = "packed weights in memory";

/// Copies between memory of `device` and the host's, or within the device's.
void copy_bytes(void* to, const void* from, std::size_t bytes, const Device& device) {
  if (bytes == 0) {
    return;
  }
  if (device.kind() == DeviceKind::cuda) {
    runtime::copy(to, from, bytes, device.id().ordinal);
  } else {
    std::memcpy(to, from, bytes);
  }
}

void require_block(const Device& device, const void* block) {
  const bool is_on_gpu = device.kind() == DeviceKind::cuda;
  const std::size_t alignment = is_on_gpu ? block_alignment_on_gpu : block_alignment;
  if (block == nullptr || reinterpret_cast<std::uintptr_t>(block) % alignment != 0) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("the block of packed weights starts at {}, expected a multiple of {} bytes",
                            fmt::ptr(block), alignment));
  }
  if (is_on_gpu) {
    runtime::require_on_gpu(block, device.id().ordinal, "the block of packed weights");
  }
}

/// A block in the memory of a device. Its header is copied to the host. Its tensors are views of the block, or copies
/// if the host reads them.
class PackedBlockSource final : public ops::PackedSource {
 public:
  PackedBlockSource(const Device& device, std::span<const std::byte> block, bool reads_on_host)
      : device_(device), block_(block), copies_(reads_on_host && device.kind() == DeviceKind::cuda) {
    require_block(device, block.data());
    std::array<std::byte, 8> length{};
    const auto first = std::span(length).first(std::min(length.size(), block.size()));
    copy_bytes(first.data(), block.data(), first.size(), device);
    std::string json(formats::safetensors_header_length(first, block.size(), block_name), '\0');
    copy_bytes(json.data(), block.data() + length.size(), json.size(), device);
    data_ = length.size() + json.size();
    header_ = formats::parse_safetensors_header(json, block.size() - data_, block_name);
    if (data_ % ops::packed_image_alignment != 0) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{}: its header has {} bytes, expected a multiple of {}, it holds no packed weights",
                              block_name, data_, ops::packed_image_alignment));
    }
  }

  [[nodiscard]] std::string name() const override { return block_name; }
  [[nodiscard]] const formats::SafetensorsHeader& header() const override { return header_; }
  [[nodiscard]] ops::Bytes read(const formats::StoredTensor& tensor) const override {
    const std::byte* begin = block_.data() + data_ + tensor.begin;
    if (!copies_) {
      return ops::Bytes::seen(begin, tensor.bytes());
    }
    std::vector<std::byte> bytes(tensor.bytes());
    copy_bytes(bytes.data(), begin, bytes.size(), device_);
    return bytes;
  }

 private:
  const Device& device_;
  std::span<const std::byte> block_;
  bool copies_;
  std::size_t data_ = 0;
  formats::SafetensorsHeader header_;
};

class PackedFileSource final : public ops::PackedSource {
 public:
  explicit PackedFileSource(const std::string& path) : file_(path) {}
  [[nodiscard]] std::string name() const override { return "packed weights " + file_.path(); }
  [[nodiscard]] const formats::SafetensorsHeader& header() const override { return file_.header(); }
  [[nodiscard]] ops::Bytes read(const formats::StoredTensor& tensor) const override { return file_.read(tensor); }

 private:
  formats::SafetensorsFile file_;
};

void write_block(const ops::PackedContent& content, const Device& device, std::span<std::byte> block) {
  const ops::PackedImage image(content);
  if (block.size() != image.bytes()) {
    throw Error(
        ErrorCode::invalid_argument,
        fmt::format("the block has {} bytes, expected the {} of the packed weights", block.size(), image.bytes()));
  }
  require_block(device, block.data());
  image.write({.sums =
                   [&](std::span<const std::byte> bytes) {
                     return content.on_device ? ops::byte_sums_on_gpu(bytes, device.id().ordinal)
                                              : ops::byte_sums(bytes);
                   },
               .put =
                   [&](std::size_t offset, std::span<const std::byte> bytes) {
                     copy_bytes(block.data() + offset, bytes.data(), bytes.size(), device);
                   }});
}

/// The content of the block. `expect` checks that it is of the right operation.
ops::PackedPointer viewed(const Device& device, std::span<const std::byte> block, PackedCheck check,
                          void (*expect)(const ops::PackedSource&, const ops::PackedContent&)) {
  if (check == PackedCheck::content) {
    (void)ops::read_packed_image(PackedBlockSource(device, block, true), check);
  }
  const PackedBlockSource source(device, block, false);
  ops::PackedContent content = ops::read_packed_image(source, PackedCheck::header);
  expect(source, content);
  content.on_device = true;
  return ops::restore_from(source, device, std::move(content));
}

}  // namespace

std::size_t block_bytes(const PackedWeights& weights) { return ops::PackedImage(weights.storage().held()).bytes(); }
std::size_t block_bytes(const PackedGroupedWeights& weights) {
  return ops::PackedImage(weights.storage().held()).bytes();
}

void to_block(const PackedWeights& weights, std::span<std::byte> block) {
  write_block(weights.storage().held(), weights.device(), block);
}

void to_block(const PackedGroupedWeights& weights, std::span<std::byte> block) {
  write_block(weights.storage().held(), weights.device(), block);
}

PackedWeights from_block(const Device& device, std::span<const std::byte> block, PackedCheck check) {
  return PackedWeights(viewed(device, block, check, ops::expect_dual_gemm));
}

PackedGroupedWeights grouped_from_block(const Device& device, std::span<const std::byte> block, PackedCheck check) {
  return PackedGroupedWeights(viewed(device, block, check, ops::expect_grouped));
}

void save_packed(const PackedWeights& weights, const std::string& path) {
  ops::write_packed_file(path, weights.storage().content());
}

PackedWeights load_packed(const Device& device, const std::string& path) {
  const PackedFileSource source(path);
  ops::PackedContent content = ops::read_packed_image(source, PackedCheck::content);
  ops::expect_dual_gemm(source, content);
  return PackedWeights(ops::restore_from(source, device, std::move(content)));
}

}  // namespace thresher
