#include "arena/data/device_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "thresher/error.hpp"

namespace thresher::arena {

DeviceSet::DeviceSet(Memory& memory, const std::vector<HostTensor>& inputs, const std::vector<HostTensor>& outputs,
                     const DeviceSet* weights)
    : memory_(&memory) {
  const auto add = [&](const HostTensor& host, bool is_output) {
    Tensor tensor = host.view();
    tensor.device = memory.device();
    tensor.data = add_part(memory, host.name, is_output, is_output ? nullptr : host.values.data(), host.values.size());
    if (!host.scales.empty()) {
      tensor.scales.data = add_part(memory, host.name + " scales", is_output, host.scales.data(), host.scales.size());
    }
    if (!host.global_scales.empty()) {
      tensor.global_scale =
          static_cast<const float*>(add_part(memory, host.name + " global scale", is_output, host.global_scales.data(),
                                             host.global_scales.size() * sizeof(float)));
    }
    tensors_.emplace_back(host.name, tensor);
  };
  for (const HostTensor& input : inputs) {
    if (input.is_weight && weights != nullptr) {
      share(*weights, input);
    } else {
      add(input, false);
    }
  }
  for (const HostTensor& output : outputs) {
    add(output, true);
  }
}

void* DeviceSet::add_part(Memory& memory, const std::string& name, bool is_output, const void* host,
                          std::size_t bytes) {
  parts_.push_back({name, is_output, std::make_shared<GuardedBuffer>(memory, bytes)});
  void* data = parts_.back().buffer->data();
  if (host != nullptr && bytes > 0) {
    memory.upload(data, host, bytes);
  }
  return data;
}

void DeviceSet::share(const DeviceSet& other, const HostTensor& host) {
  for (const std::string& name : {host.name, host.name + " scales", host.name + " global scale"}) {
    const auto found =
        std::find_if(other.parts_.begin(), other.parts_.end(), [&](const Part& known) { return known.name == name; });
    if (found != other.parts_.end()) {
      parts_.push_back(*found);
    }
  }
  tensors_.emplace_back(host.name, other.tensor(host.name));
}

const Tensor* DeviceSet::find(std::string_view name) const noexcept {
  const auto known = std::find_if(tensors_.begin(), tensors_.end(), [&](const auto& one) { return one.first == name; });
  return known == tensors_.end() ? nullptr : &known->second;
}

const Tensor& DeviceSet::tensor(std::string_view name) const {
  if (const Tensor* const known = find(name)) {
    return *known;
  }
  throw Error(ErrorCode::internal, fmt::format("an input set has no tensor {}", name));
}

const DeviceSet::Part& DeviceSet::part(std::string_view name) const {
  for (const Part& known : parts_) {
    if (known.name == name) {
      return known;
    }
  }
  throw Error(ErrorCode::internal, fmt::format("an input set has no buffer {}", name));
}

std::vector<std::span<std::byte>> DeviceSet::places_of(const std::string& tensor) const {
  std::vector<std::span<std::byte>> places;
  for (const Part& known : parts_) {
    if (known.buffer->bytes() > 0 &&
        (known.name == tensor || known.name == tensor + " scales" || known.name == tensor + " global scale")) {
      places.emplace_back(static_cast<std::byte*>(known.buffer->data()), known.buffer->bytes());
    }
  }
  return places;
}

void DeviceSet::poison_outputs(std::uint8_t byte) {
  for (Part& known : parts_) {
    if (known.is_output) {
      known.buffer->fill(byte);
    }
  }
}

std::vector<std::uint8_t> DeviceSet::download(std::string_view output) const {
  return download(output, 0, part(output).buffer->bytes());
}

std::vector<std::uint8_t> DeviceSet::download(std::string_view output, std::size_t offset, std::size_t bytes) const {
  const Part& wanted = part(output);
  if (offset + bytes > wanted.buffer->bytes()) {
    throw Error(ErrorCode::internal, fmt::format("{} has no {} bytes from {} on", output, bytes, offset));
  }
  std::vector<std::uint8_t> copied(bytes);
  memory_->download(copied.data(), static_cast<const std::byte*>(wanted.buffer->data()) + offset, bytes);
  return copied;
}

void DeviceSet::replace(const HostTensor& tensor) {
  const auto upload = [&](const std::string& name, const void* host, std::size_t bytes) {
    const Part& wanted = part(name);
    if (bytes != wanted.buffer->bytes()) {
      throw Error(ErrorCode::internal, fmt::format("{} takes {} bytes, not {}", name, wanted.buffer->bytes(), bytes));
    }
    memory_->upload(wanted.buffer->data(), host, bytes);
  };
  upload(tensor.name, tensor.values.data(), tensor.values.size());
  if (!tensor.scales.empty()) {
    upload(tensor.name + " scales", tensor.scales.data(), tensor.scales.size());
  }
  if (!tensor.global_scales.empty()) {
    upload(tensor.name + " global scale", tensor.global_scales.data(), tensor.global_scales.size() * sizeof(float));
  }
}

void DeviceSet::replace(const HostTensor& tensor, std::size_t offset, std::size_t bytes) {
  void* const values = part(tensor.name).buffer->data();
  memory_->upload(static_cast<std::byte*>(values) + offset, tensor.values.data() + offset, bytes);
}

std::vector<std::string> DeviceSet::guard_damage() const {
  std::vector<std::string> sentences;
  for (const Part& known : parts_) {
    if (const auto damage = known.buffer->damage()) {
      sentences.push_back(describe(*damage, known.name));
    }
  }
  return sentences;
}

bool DeviceSet::holds(const std::string& name, const void* host, std::size_t bytes) const {
  const std::vector<std::uint8_t> now = download(name);
  return now.size() == bytes && (bytes == 0 || std::memcmp(now.data(), host, bytes) == 0);
}

std::vector<std::string> DeviceSet::changed_inputs(const std::vector<HostTensor>& inputs) const {
  std::vector<std::string> changed;
  for (const HostTensor& input : inputs) {
    const bool same =
        holds(input.name, input.values.data(), input.values.size()) &&
        (input.scales.empty() || holds(input.name + " scales", input.scales.data(), input.scales.size())) &&
        (input.global_scales.empty() ||
         holds(input.name + " global scale", input.global_scales.data(), input.global_scales.size() * sizeof(float)));
    if (!same) {
      changed.push_back(input.name);
    }
  }
  return changed;
}

std::size_t guarded_bytes(const HostTensor& tensor) {
  const auto guarded = [](std::size_t bytes) { return bytes + 2 * GuardedBuffer::zone_bytes(bytes); };
  return guarded(tensor.values.size()) + (tensor.scales.empty() ? 0 : guarded(tensor.scales.size())) +
         (tensor.global_scales.empty() ? 0 : guarded(tensor.global_scales.size() * sizeof(float)));
}

std::string describe(const GuardDamage& damage, std::string_view name) {
  return fmt::format("writes {} {}: {} bytes, the nearest {} byte{} away",
                     damage.after ? "past the end of" : "before the beginning of", name, damage.bytes, damage.distance,
                     damage.distance == 1 ? "" : "s");
}

}  // namespace thresher::arena
