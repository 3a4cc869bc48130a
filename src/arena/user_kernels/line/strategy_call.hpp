#pragma once
/// A call of a strategy of Thresher's own on the line: the tensors of an input set, whose names the binding has.
#include <string>
#include <utility>
#include <vector>

#include "arena/user_kernels/line/wire.hpp"
#include "thresher/tensor.hpp"

namespace thresher::arena::user_kernels {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

[[nodiscard]] CallLayout layout_of_tensors(const NamedTensors& tensors);
[[nodiscard]] std::vector<std::byte> bytes_of_tensors(const NamedTensors& tensors);
void put_names(Writer& writer, const NamedTensors& tensors);

/// The tensors of `bytes` under these names.
[[nodiscard]] NamedTensors tensors_from(const std::vector<std::byte>& bytes, const std::vector<std::string>& names);
[[nodiscard]] std::vector<std::string> read_names(Reader& reader);

}  // namespace thresher::arena::user_kernels
