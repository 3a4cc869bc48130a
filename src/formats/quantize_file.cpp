#include "formats/quantize_file.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>

#include <fmt/format.h>

#include "formats/nvfp4.hpp"
#include "formats/operands.hpp"
#include "formats/safetensors.hpp"
#include "formats/scales.hpp"
#include "thresher/error.hpp"

namespace thresher::formats {
namespace {

/// Input name to the name of the quantised values.
using Selection = std::map<std::string, std::string>;

bool is_floating(Dtype dtype) { return dtype == Dtype::f16 || dtype == Dtype::bf16 || dtype == Dtype::f32; }

bool qualifies(const StoredTensor& tensor) {
  return is_floating(tensor.dtype) && tensor.shape.size() == 2 && tensor.shape[1] % scale_block == 0;
}

std::string new_name(const std::string& name) { return name.ends_with("weight") ? name : name + ".weight"; }

Selection select(const SafetensorsFile& file, std::span<const std::string> names) {
  Selection selection;
  for (const std::string& name : names) {
    const StoredTensor* tensor = file.find(name);
    if (tensor == nullptr) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("{} has no tensor {} to quantise", file.path(), printable(name)));
    }
    if (!qualifies(*tensor)) {
      throw Error(
          ErrorCode::invalid_argument,
          fmt::format("{} is {} [{}], but only an F16, BF16 or F32 matrix [rows, K] with K a multiple of {} can "
                      "be quantised",
                      described(file, *tensor), formats::name(tensor->dtype), fmt::join(tensor->shape, ", "),
                      scale_block));
    }
    selection.emplace(name, new_name(name));
  }
  if (names.empty()) {
    for (const StoredTensor& tensor : file.header().tensors) {
      if (qualifies(tensor)) {
        selection.emplace(tensor.name, new_name(tensor.name));
      }
    }
  }
  if (selection.empty()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} has nothing to quantise: no F16, BF16 or F32 matrix [rows, K] with K a multiple of {}",
                            file.path(), scale_block));
  }
  return selection;
}

/// The tensors of the output, each name once.
std::vector<StoredTensor> planned(const SafetensorsFile& file, const Selection& selection) {
  std::vector<StoredTensor> tensors;
  for (const StoredTensor& tensor : file.header().tensors) {
    const auto selected = selection.find(tensor.name);
    if (selected == selection.end()) {
      tensors.push_back(tensor);
      continue;
    }
    const std::int64_t rows = tensor.shape[0];
    const std::int64_t k = tensor.shape[1];
    tensors.push_back({selected->second, Dtype::u8, {rows, k / 2}, 0, 0});
    tensors.push_back({selected->second + "_scale", Dtype::f8_e4m3, {rows, k / scale_block}, 0, 0});
    tensors.push_back({selected->second + "_scale_2", Dtype::f32, {}, 0, 0});
  }
  std::set<std::string> taken;
  for (const StoredTensor& tensor : tensors) {
    if (!taken.insert(tensor.name).second) {
      throw Error(ErrorCode::invalid_argument, fmt::format("{} already has a tensor {}, which quantising would write",
                                                           file.path(), printable(tensor.name)));
    }
  }
  return tensors;
}

void copy(const SafetensorsFile& file, const StoredTensor& tensor, SafetensorsWriter& writer) {
  std::vector<std::byte> piece(std::size_t{4} << 20);
  for (std::uint64_t offset = 0; offset < tensor.bytes(); offset += piece.size()) {
    const auto part = std::span(piece).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), tensor.bytes() - offset)));
    file.read(tensor, offset, part);
    writer.write(tensor.name, offset, part);
  }
}

QuantizedTensor quantize(const SafetensorsFile& file, const StoredTensor& tensor, const std::string& name,
                         SafetensorsWriter& writer) {
  const Nvfp4Matrix matrix = quantize_nvfp4(load_matrix(file, tensor).view(), described(file, tensor));
  writer.write(name, 0, std::as_bytes(std::span(matrix.values)));
  writer.write(name + "_scale", 0, std::as_bytes(std::span(matrix.scales)));
  writer.write(name + "_scale_2", 0, std::as_bytes(std::span(&matrix.global_scale, 1)));
  const std::uint64_t bytes_after = matrix.values.size() + matrix.scales.size() + sizeof(float);
  return {tensor.name, name, matrix.rows, matrix.k, tensor.bytes(), bytes_after};
}

}  // namespace

std::vector<QuantizedTensor> quantize_file(const std::filesystem::path& in, const std::filesystem::path& out,
                                           std::span<const std::string> names) {
  const SafetensorsFile file(in);
  const Selection selection = select(file, names);
  SafetensorsWriter writer(out, planned(file, selection), file.header().metadata);
  std::vector<QuantizedTensor> report;
  for (const StoredTensor& tensor : file.header().tensors) {
    const auto selected = selection.find(tensor.name);
    if (selected == selection.end()) {
      copy(file, tensor, writer);
    } else {
      report.push_back(quantize(file, tensor, selected->second, writer));
    }
  }
  writer.commit();
  return report;
}

}  // namespace thresher::formats
