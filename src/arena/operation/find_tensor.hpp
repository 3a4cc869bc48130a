#pragma once
/// The tensors of a call by their names.
#include <functional>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "arena/data/device_set.hpp"
#include "arena/data/host_tensor.hpp"

namespace thresher::arena {

/// Gives the tensor of a name, one of rank 0 where there is none.
using FindTensor = std::function<Tensor(std::string_view name)>;

/// The tensors of a call in the order of Operation::inputs.
using InputsOfCall = std::vector<const HostTensor*>;

[[nodiscard]] inline InputsOfCall pointers_to(const std::vector<HostTensor>& inputs) {
  InputsOfCall all;
  for (const HostTensor& input : inputs) {
    all.push_back(&input);
  }
  return all;
}

/// Each of these refers to what it is given.
[[nodiscard]] inline FindTensor find_in(const DeviceSet& set) {
  return [&set](std::string_view name) {
    const Tensor* const known = set.find(name);
    return known == nullptr ? Tensor{} : *known;
  };
}

[[nodiscard]] inline FindTensor find_in(const InputsOfCall& inputs) {
  return [&inputs](std::string_view name) {
    for (const HostTensor* const input : inputs) {
      if (input->name == name) {
        return input->view();
      }
    }
    return Tensor{};
  };
}

[[nodiscard]] inline FindTensor find_in(const std::vector<HostTensor>& inputs, const std::vector<HostTensor>& outputs) {
  return [&inputs, &outputs](std::string_view name) {
    for (const auto* const tensors : {&inputs, &outputs}) {
      for (const HostTensor& one : *tensors) {
        if (one.name == name) {
          return one.view();
        }
      }
    }
    return Tensor{};
  };
}

}  // namespace thresher::arena
