#pragma once
/// A safetensors file as tests of the command make it: tensors by name.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "formats/safetensors.hpp"

namespace thresher::testing {

struct Stored {
  formats::Dtype dtype;
  std::vector<std::int64_t> shape;
  std::vector<std::byte> bytes;
};
using File = std::map<std::string, Stored>;

inline void write(const std::filesystem::path& path, const File& file) {
  std::vector<formats::TensorToWrite> tensors;
  for (const auto& [name, stored] : file) {
    tensors.push_back({name, stored.dtype, stored.shape, stored.bytes});
  }
  formats::write_safetensors(path, tensors);
}

}  // namespace thresher::testing
