#pragma once
/// Reading and writing safetensors files.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "formats/atomic_file.hpp"
#include "formats/safetensors_header.hpp"

namespace thresher::formats {

/// An open file whose header has been checked completely. Data are read on request.
class SafetensorsFile {
 public:
  /// Throws Error(io) when the file cannot be read and Error(invalid_argument) when it is not valid; so do all members
  /// that read.
  explicit SafetensorsFile(const std::filesystem::path& path);
  ~SafetensorsFile();
  SafetensorsFile(const SafetensorsFile&) = delete;
  SafetensorsFile& operator=(const SafetensorsFile&) = delete;

  /// For error messages.
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] const SafetensorsHeader& header() const noexcept { return header_; }
  /// Null if there is none of that name.
  [[nodiscard]] const StoredTensor* find(std::string_view name) const;

  /// All bytes of one of this file's tensors.
  [[nodiscard]] std::vector<std::byte> read(const StoredTensor& tensor) const;
  /// Bytes [offset, offset + out.size()) of one of this file's tensors.
  void read(const StoredTensor& tensor, std::uint64_t offset, std::span<std::byte> out) const;

 private:
  void read_at(std::uint64_t offset, std::span<std::byte> out) const;

  std::string path_;
  int descriptor_ = -1;
  std::uint64_t data_begin_ = 0;
  SafetensorsHeader header_;
  std::unordered_map<std::string_view, const StoredTensor*> by_name_;
};

/// Writes a file atomically: it appears when commit() returns. Failures throw Error(io) and leave nothing.
class SafetensorsWriter {
 public:
  /// `begin` and `end` of the tensors are ignored: the writer lays them out, wide elements first, so that every tensor
  /// is aligned to its elements. Throws Error(invalid_argument) when two tensors have one name or a shape is wrong.
  SafetensorsWriter(const std::filesystem::path& target, std::vector<StoredTensor> tensors, Metadata metadata = {});

  /// Writes part of the tensor `name`, which is one of those given to the constructor, within its size.
  void write(std::string_view name, std::uint64_t offset, std::span<const std::byte> bytes);
  /// Every byte of every tensor must have been written.
  void commit();

 private:
  AtomicFile file_;
  std::uint64_t data_begin_ = 0;
  std::uint64_t missing_bytes_ = 0;
  SafetensorsHeader header_;
  std::unordered_map<std::string_view, const StoredTensor*> by_name_;
};

/// A tensor and its bytes, to be written whole.
struct TensorToWrite {
  std::string name;
  Dtype dtype = Dtype::u8;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;
};

/// Writes all of `tensors` into one file, atomically.
void write_safetensors(const std::filesystem::path& target, std::span<const TensorToWrite> tensors,
                       const Metadata& metadata = {});

}  // namespace thresher::formats
