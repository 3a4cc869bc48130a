#pragma once
/// What the layers, which run several products one behind the other, have in common.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "ops/tensor_checks.hpp"
#include "strategies/planned_call.hpp"
#include "thresher/error.hpp"

namespace thresher::ops {

/// What `function` returns; an error of it says which product of the layer it is about.
template <class Function>
auto of_product(std::string_view product, const Function& function) {
  try {
    return function();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", product, error.what()));
  }
}

/// An extent of a layer's problem, which is counted in int32 on every device.
inline void check_layer_extent(std::string_view argument, std::int64_t extent, std::int64_t least) {
  constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;
  if (extent < least || extent > most) {
    refuse("problem.{} is {}, expected {} to {}", argument, extent, least, most);
  }
}

/// Columns of operands in these formats.
inline void check_layer_depth(std::string_view argument, std::int64_t columns, std::initializer_list<Format> formats) {
  for (const Format format : formats) {
    const int multiple = format_traits(format).k_multiple;
    if (columns % multiple != 0) {
      refuse("problem.{} is {}, expected a multiple of {} for {} operands", argument, columns, multiple, name(format));
    }
  }
}

/// A matrix of the workspace. More elements than this no memory holds, and sizes in bytes stay far from overflow.
inline void check_layer_elements(std::string_view rows_argument, std::int64_t rows, std::string_view columns_argument,
                                 std::int64_t columns) {
  constexpr std::int64_t most = std::int64_t{1} << 56;
  if (columns > 0 && rows > most / columns) {
    refuse("{} times problem.{} is {} times {}, expected at most {} elements", rows_argument, columns_argument, rows,
           columns, most);
  }
}

/// Of what lies between two products.
inline void check_intermediate_format(Format format) {
  if (format != Format::fp16 && format != Format::bf16) {
    refuse("problem.intermediate is {}, expected fp16 or bf16", name(format));
  }
}

inline std::byte* part_of(void* workspace, const strategies::WorkspacePiece& piece) {
  return static_cast<std::byte*>(workspace) + piece.offset;
}

/// `pieces` as a planned call counts them.
inline std::size_t bytes_of(const std::vector<strategies::WorkspacePiece>& pieces) {
  strategies::PlannedCall call;
  call.workspace = pieces;
  return call.workspace_bytes();
}

}  // namespace thresher::ops
