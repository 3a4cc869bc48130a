#include "arena/user_kernels/base_contestant.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "arena/operation/operation.hpp"
#include "arena/pitches/call_structure.hpp"
#include "arena/user_kernels/contestant.hpp"
#include "thresher/error.hpp"

namespace thresher::arena::user_kernels {

namespace {

/// A matrix has scales of NVFP4 alone, and an output matrix none.
bool can_be_given(const Argument& argument, Format format) {
  const bool is_plain = format == Format::fp16 || format == Format::bf16;
  switch (argument.kind) {
    case ArgumentKind::matrix: return is_plain || format == Format::nvfp4;
    case ArgumentKind::output_matrix: return is_plain || format == Format::fp32;
    default: return true;
  }
}

}  // namespace

std::string BaseContestant::unsupported_reason(const Problem& problem) const {
  for (const Argument& argument : arguments_of(problem)) {
    if (const Format format = argument.value.format; !can_be_given(argument, format)) {
      return fmt::format("user kernels are not given {}", thresher::name(format));
    }
  }
  const std::vector<std::string>& formats = kernel_.formats;
  const std::string asked = problem.operation().formats_text(problem);
  if (formats.empty() || std::find(formats.begin(), formats.end(), asked) != formats.end()) {
    return "";
  }
  return fmt::format("the pitch enters {} for {}, not {}", kernel_.entry, fmt::join(formats, " and "), asked);
}

Answer BaseContestant::feasible(const Problem& problem, Memory& memory) const {
  const std::int64_t workspace_bytes = evaluate(kernel_.workspace_bytes, problem);
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
