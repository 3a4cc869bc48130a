#pragma once
/// Quick checks of the outputs of many calls, where a judge would take too long for each.
#include <cstdint>
#include <string>
#include <vector>

#include "arena/data/host_tensor.hpp"
#include "arena/operation/find_tensor.hpp"
#include "arena/random.hpp"

namespace thresher::arena {

/// Some neighbouring elements of one row of an output, as a matrix of rows of its last dimension.
struct RowPart {
  std::size_t output = 0;  ///< in the order of Operation::outputs
  std::int64_t row = 0;
  std::int64_t first_column = 0;
  std::int64_t columns = 0;
  std::vector<std::uint8_t> bytes{};  ///< the bytes there
};

/// The elements to check in one call.
struct Look {
  std::vector<RowPart> parts;
  std::vector<std::int64_t> place;  ///< coordinates of the place, for the inspector
};

/// Knows the error that the definition allows for data of one distribution. Thread-safe.
class Inspector {
 public:
  Inspector() = default;
  Inspector(const Inspector&) = delete;
  Inspector& operator=(const Inspector&) = delete;
  virtual ~Inspector() = default;

  /// A random place; its bytes are still to be read.
  [[nodiscard]] virtual Look choose(Random& random) const = 0;
  /// Multiplications of one `fault_in`, where they are too many to check every call.
  [[nodiscard]] virtual double products_of_a_look() const { return 0; }
  /// Checks elements of `look` against the float64 definition on `inputs`, first those that still hold `poison`.
  /// Returns one sentence about a wrong element, empty when none is.
  [[nodiscard]] virtual std::string fault_in(const Look& look, const InputsOfCall& inputs,
                                             std::uint8_t poison) const = 0;
  /// Compares every element of `outputs` with a trusted computation on the same inputs.
  [[nodiscard]] virtual std::string fault_against(const std::vector<HostTensor>& outputs,
                                                  const std::vector<HostTensor>& trusted) const = 0;
};

/// Whether all `count` bytes at `bytes` are `poison`.
[[nodiscard]] inline bool is_poison(const std::uint8_t* bytes, std::size_t count, std::uint8_t poison) {
  for (std::size_t i = 0; i < count; ++i) {
    if (bytes[i] != poison) {
      return false;
    }
  }
  return true;
}

}  // namespace thresher::arena
