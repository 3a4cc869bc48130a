#include "reference/region.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <random>

namespace thresher::reference {
namespace {

std::vector<std::int64_t> indices(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(end - begin));
  std::iota(all.begin(), all.end(), begin);
  return all;
}

std::vector<std::int64_t> sample(std::int64_t extent, std::int64_t per_tile, std::mt19937_64& random) {
  std::vector<std::int64_t> chosen;
  for (std::int64_t begin = 0; begin < extent; begin += tile_side) {
    const std::vector<std::int64_t> tile = indices(begin, std::min(begin + tile_side, extent));
    std::sample(tile.begin(), tile.end(), std::back_inserter(chosen), per_tile, random);
  }
  if (!chosen.empty()) {
    chosen.front() = 0;
    chosen.back() = extent - 1;
  }
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

}  // namespace

Region whole(std::int64_t m, std::int64_t n) { return {indices(0, m), indices(0, n)}; }
Region whole(const DualGemmProblem& problem) { return whole(problem.m, problem.n); }

Region sample_every_tile(std::int64_t m, std::int64_t n, std::int64_t per_tile, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::int64_t> rows = sample(m, per_tile, random);
  return {std::move(rows), sample(n, per_tile, random)};
}
Region sample_every_tile(const DualGemmProblem& problem, std::int64_t per_tile, std::uint64_t seed) {
  return sample_every_tile(problem.m, problem.n, per_tile, seed);
}

}  // namespace thresher::reference
