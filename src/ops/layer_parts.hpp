#pragma once
/// What the layers, which run several products one behind the other, have in common.
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "ops/device_memory.hpp"
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
void check_intermediate(Format format, float scale, std::int64_t columns);

inline std::byte* part_of(void* workspace, const strategies::WorkspacePiece& piece) {
  return static_cast<std::byte*>(workspace) + piece.offset;
}

/// `pieces` as a planned call counts them.
inline std::size_t bytes_of(const std::vector<strategies::WorkspacePiece>& pieces) {
  strategies::PlannedCall call;
  call.workspace = pieces;
  return call.workspace_bytes();
}

/// What lies between two products, in two pieces of a layer's workspace.
class Intermediate {
 public:
  /// Of up to so many rows. Adds the pieces.
  Intermediate(const Device& device, Format format, float scale, std::int64_t max_rows, std::int64_t columns,
               std::vector<strategies::WorkspacePiece>& pieces);

  [[nodiscard]] Tensor tensor(std::int64_t rows, void* workspace) const;

 private:
  Format format_;
  std::int64_t columns_;
  DeviceId device_;
  strategies::WorkspacePiece values_;
  strategies::WorkspacePiece scales_;
  std::optional<DeviceTensor> given_scale_{};  ///< where the format has one
};

}  // namespace thresher::ops
