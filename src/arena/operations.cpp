#include "arena/operations.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "arena/attention/task.hpp"
#include "arena/gemm/task.hpp"
#include "arena/moe_layer/task.hpp"
#include "thresher/error.hpp"

namespace thresher::arena {

std::span<const Operation* const> operations() {
  static const std::array all{&dual_gemm_operation(),    &attention_operation(), &grouped_dual_gemm_operation(),
                              &grouped_gemm_operation(), &gemm_operation(),      &moe_layer_operation(),
                              &gated_mlp_operation()};
  return all;
}

std::vector<std::string_view> operation_names() {
  std::vector<std::string_view> names;
  for (const Operation* operation : operations()) {
    names.push_back(operation->name());
  }
  return names;
}

const Operation& find_operation(std::string_view name) {
  for (const Operation* operation : operations()) {
    if (operation->name() == name) {
      return *operation;
    }
  }
  throw Error(ErrorCode::invalid_argument, fmt::format("operation \"{}\" is not known, expected one of {}", name,
                                                       fmt::join(operation_names(), ", ")));
}

}  // namespace thresher::arena
