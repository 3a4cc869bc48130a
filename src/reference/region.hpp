#pragma once
/// The outputs of a problem that are computed or checked.
#include <cstdint>
#include <vector>

#include "thresher/dual_gemm.hpp"

namespace thresher::reference {

/// Side of the square tiles of the output for which errors are summarised.
inline constexpr std::int64_t tile_side = 64;

/// Every selected row crossed with every selected column, both ascending without repetition. Results over a region are
/// row-major, [rows.size(), columns.size()].
struct Region {
  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> columns;

  [[nodiscard]] std::int64_t elements() const noexcept {
    return static_cast<std::int64_t>(rows.size()) * static_cast<std::int64_t>(columns.size());
  }
};

/// All of C [m, n].
[[nodiscard]] Region whole(std::int64_t m, std::int64_t n);
[[nodiscard]] Region whole(const DualGemmProblem& problem);

/// At most `per_tile` rows and columns of every tile, random by `seed`, always with the first and the last of C. So
/// every tile is sampled, at (per_tile/tile_side)² of the cost.
[[nodiscard]] Region sample_every_tile(std::int64_t m, std::int64_t n, std::int64_t per_tile, std::uint64_t seed);
[[nodiscard]] Region sample_every_tile(const DualGemmProblem& problem, std::int64_t per_tile, std::uint64_t seed);

}  // namespace thresher::reference
