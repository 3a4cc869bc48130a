#include "arena/user_kernels/line/strategy_call.hpp"

#include <cstddef>
#include <cstring>

namespace thresher::arena::user_kernels {

CallLayout layout_of_tensors(const NamedTensors& tensors) {
  CallLayout layout;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (const std::size_t address :
         {offsetof(Tensor, data), offsetof(Tensor, scales) + offsetof(Scales, data), offsetof(Tensor, global_scale)}) {
      layout.addresses.push_back(static_cast<std::uint32_t>(i * sizeof(Tensor) + address));
    }
  }
  layout.bytes = static_cast<std::uint32_t>(tensors.size() * sizeof(Tensor));
  return layout;
}

std::vector<std::byte> bytes_of_tensors(const NamedTensors& tensors) {
  std::vector<std::byte> bytes(tensors.size() * sizeof(Tensor));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    std::memcpy(&bytes[i * sizeof(Tensor)], &tensors[i].second, sizeof(Tensor));
  }
  return bytes;
}

void put_names(Writer& writer, const NamedTensors& tensors) {
  writer.put(static_cast<std::uint32_t>(tensors.size()));
  for (const auto& [name, tensor] : tensors) {
    writer.put(name);
  }
}

NamedTensors tensors_from(const std::vector<std::byte>& bytes, const std::vector<std::string>& names) {
  NamedTensors tensors;
  for (std::size_t i = 0; i < names.size(); ++i) {
    Tensor tensor;
    std::memcpy(&tensor, bytes.data() + i * sizeof(Tensor), sizeof(Tensor));
    tensors.emplace_back(names[i], tensor);
  }
  return tensors;
}

std::vector<std::string> read_names(Reader& reader) {
  std::vector<std::string> names;
  for (auto left = reader.get<std::uint32_t>(); left > 0; --left) {
    names.push_back(reader.text());
  }
  return names;
}

}  // namespace thresher::arena::user_kernels
