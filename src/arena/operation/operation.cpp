#include "arena/operation/operation.hpp"

namespace thresher::arena {

std::string label(const Problem& problem) { return problem.operation().label(problem); }

std::vector<HostTensor> Operation::variation(const std::vector<HostTensor>& inputs, std::size_t index) const {
  std::vector<HostTensor> varied;
  std::int64_t step = 1;
  for (const HostTensor& input : inputs) {
    varied.push_back(rotate_rows(input, static_cast<std::int64_t>(index) * step));
    step += 2;
  }
  return varied;
}

}  // namespace thresher::arena
