#include "formats/safetensors.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "core/printable.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

std::unordered_map<std::string_view, const StoredTensor*> index(const SafetensorsHeader& header) {
  std::unordered_map<std::string_view, const StoredTensor*> by_name;
  for (const StoredTensor& tensor : header.tensors) {
    by_name.emplace(tensor.name, &tensor);
  }
  return by_name;
}

/// Lays the tensors out one after the other, wide elements first, and by name among equals.
SafetensorsHeader laid_out(std::vector<StoredTensor> tensors, Metadata metadata, const std::string& file) {
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& left, const StoredTensor& right) {
    return std::make_tuple(~bits(left.dtype), std::string_view(left.name)) <
           std::make_tuple(~bits(right.dtype), std::string_view(right.name));
  });
  std::uint64_t position = 0;
  for (StoredTensor& tensor : tensors) {
    tensor.begin = position;
    position += stored_bytes(tensor, file);
    tensor.end = position;
  }
  return {std::move(tensors), std::move(metadata)};
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path.string()) {
  descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status{};
  if (descriptor_ < 0 || fstat(descriptor_, &status) != 0) {
    throw Error(ErrorCode::io, fmt::format("cannot read {}: {}", path_, std::generic_category().message(errno)));
  }
  try {
    if (!S_ISREG(status.st_mode)) {
      throw Error(ErrorCode::io, fmt::format("cannot read {}: it is not a regular file", path_));
    }
    const auto file_bytes = static_cast<std::uint64_t>(status.st_size);
    std::array<std::byte, 8> length{};
    const auto first = std::span(length).first(static_cast<std::size_t>(std::min<std::uint64_t>(8, file_bytes)));
    read_at(0, first);
    std::string json(safetensors_header_length(first, file_bytes, path_), '\0');
    read_at(length.size(), std::as_writable_bytes(std::span(json)));
    data_begin_ = length.size() + json.size();
    header_ = parse_safetensors_header(json, file_bytes - data_begin_, path_);
    by_name_ = index(header_);
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

SafetensorsFile::~SafetensorsFile() { close(descriptor_); }

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

void SafetensorsFile::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t got = pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got <= 0) {
      throw Error(ErrorCode::io, fmt::format("cannot read {}: {}", path_,
                                             got == 0 ? "it became shorter while it was read"
                                                      : std::generic_category().message(errno)));
    }
    out = out.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

std::vector<std::byte> SafetensorsFile::read(const StoredTensor& tensor) const {
  std::vector<std::byte> bytes(tensor.bytes());
  read(tensor, 0, bytes);
  return bytes;
}

void SafetensorsFile::read(const StoredTensor& tensor, std::uint64_t offset, std::span<std::byte> out) const {
  read_at(data_begin_ + tensor.begin + offset, out);
}

SafetensorsWriter::SafetensorsWriter(const std::filesystem::path& target, std::vector<StoredTensor> tensors,
                                     Metadata metadata)
    : file_(target), header_(laid_out(std::move(tensors), std::move(metadata), target.string())) {
  by_name_ = index(header_);
  if (by_name_.size() != header_.tensors.size()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("cannot write {}: two tensors have the same name", target.string()));
  }
  const std::string head = make_safetensors_header(header_);
  data_begin_ = head.size();
  missing_bytes_ = header_.tensors.empty() ? 0 : header_.tensors.back().end;
  file_.write_at(0, std::as_bytes(std::span(head)));
}

void SafetensorsWriter::write(std::string_view name, std::uint64_t offset, std::span<const std::byte> bytes) {
  const auto found = by_name_.find(name);
  if (found == by_name_.end() || offset + bytes.size() > found->second->bytes()) {
    throw Error(ErrorCode::internal, fmt::format("tensor {} is written outside its place", quoted_name(name)));
  }
  file_.write_at(data_begin_ + found->second->begin + offset, bytes);
  missing_bytes_ -= bytes.size();
}

void SafetensorsWriter::commit() {
  if (missing_bytes_ != 0) {
    throw Error(ErrorCode::internal, fmt::format("{} bytes of tensors were not written", missing_bytes_));
  }
  file_.commit();
}

void write_safetensors(const std::filesystem::path& target, std::span<const TensorToWrite> tensors,
                       const Metadata& metadata) {
  std::vector<StoredTensor> stored;
  for (const TensorToWrite& tensor : tensors) {
    StoredTensor entry{tensor.name, tensor.dtype, tensor.shape, 0, 0};
    const std::uint64_t expected = stored_bytes(entry, target.string());
    if (expected != tensor.bytes.size()) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("cannot write {}: tensor {} has {} bytes, but its shape needs {}", target.string(),
                              quoted_name(tensor.name), tensor.bytes.size(), expected));
    }
    stored.push_back(std::move(entry));
  }
  SafetensorsWriter writer(target, std::move(stored), metadata);
  for (const TensorToWrite& tensor : tensors) {
    writer.write(tensor.name, 0, tensor.bytes);
  }
  writer.commit();
}

}  // namespace thresher::formats
