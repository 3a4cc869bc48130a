#pragma once
/// What stands in the way of a grouped kernel, whichever strategy's.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "core/device_spec.hpp"
#include "pipeline/grouped/rung.hpp"
#include "pipeline/shape.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::strategies::grouped_gemm {

class Obstacles {
 public:
  template <class... Values>
  void say(fmt::format_string<Values...> text, Values&&... values) {
    found_.push_back(fmt::format(text, std::forward<Values>(values)...));
  }
  [[nodiscard]] std::vector<std::string> take() { return std::move(found_); }

 private:
  std::vector<std::string> found_;
};

/// The directory has room for the experts, tiles can be counted in 32 bits, and there are widths for them.
void check_groups(const GroupedProblem& problem, const pipeline::Rungs& rungs, int tile_outputs, Obstacles& found);

struct BlockNeeds {
  pipeline::Shape shape{};
  int blocks_resident = 1;
  std::int64_t experts = 1;
  int registers = 0;  ///< of a math thread, about
};
/// Shared memory, threads and registers.
void check_block(const BlockNeeds& needs, const DeviceSpec& device, Obstacles& found);

}  // namespace thresher::strategies::grouped_gemm
