#include "arena/user_kernels/base_contestant.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "arena/gemm/task.hpp"
#include "arena/operation/operation.hpp"
#include "arena/user_kernels/contestant.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {

std::string BaseContestant::unsupported_reason(const Problem& problem) const {
  for (const Format operand : {dual_gemm(problem).a, dual_gemm(problem).b}) {
    if (std::find(formats_given_outside.begin(), formats_given_outside.end(), operand) == formats_given_outside.end()) {
      return fmt::format("user kernels are not given {}", thresher::name(operand));
    }
  }
  const std::vector<std::string>& formats = kernel_.formats;
  const std::string asked = formats_text(dual_gemm(problem));
  if (formats.empty() || std::find(formats.begin(), formats.end(), asked) != formats.end()) {
    return "";
  }
  return fmt::format("the pitch enters {} for {}, not {}", kernel_.entry, fmt::join(formats, " and "), asked);
}

Answer BaseContestant::feasible(const Problem& problem, Memory& memory) const {
  const std::int64_t workspace_bytes = evaluate(kernel_.workspace_bytes, shape_of(dual_gemm(problem)));
  if (workspace_bytes < 0) {
    return {false, fmt::format("workspace_bytes is {} for {}", workspace_bytes, label(problem))};
  }
  const double needed = 2 * problem.operation().cost(problem).compulsory_bytes + static_cast<double>(workspace_bytes);
  return fits_in_memory(problem, needed, memory);
}

std::unique_ptr<Contestant> bring(const ContestantSpec& spec, const Kernel& kernel, const Device& device,
                                  const Registry& registry, const std::vector<std::string>& server) {
  const std::vector<std::string> known = registry.strategies(spec.operation);
  if (std::find(known.begin(), known.end(), spec.strategy) != known.end()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("contestant {}: {} is a strategy of Thresher's own: give the kernel {} another name",
                            label(spec), spec.strategy, kernel.source));
  }
  switch (kernel.language) {
    case Language::cuda: return make_cuda_contestant(spec, kernel, device, server);
    case Language::host: return make_host_contestant(spec, kernel, device, server);
    case Language::python: break;
  }
  return make_python_contestant(spec, kernel, device);
}

}  // namespace thresher::arena::user_kernels
