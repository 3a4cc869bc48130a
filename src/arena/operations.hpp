#pragma once
/// Every operation that the arena knows.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arena/operation/operation.hpp"

namespace thresher::arena {

[[nodiscard]] std::span<const Operation* const> operations();
[[nodiscard]] std::vector<std::string_view> operation_names();

/// Throws Error(invalid_argument) for an unknown name, and lists the operations.
[[nodiscard]] const Operation& find_operation(std::string_view name);

}  // namespace thresher::arena
