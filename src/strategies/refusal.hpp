#pragma once
/// The errors of a strategy that cannot run or plan a problem.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thresher/error.hpp"
#include "thresher/format.hpp"
#include "thresher/knobs.hpp"

namespace thresher::strategies {

/// Throws Error(unsupported) with all of `obstacles`; does nothing when there is none.
inline void refuse_infeasible(std::string_view strategy, const Knobs& knobs,
                              const std::vector<std::string>& infeasible_reasons) {
  if (!infeasible_reasons.empty()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("strategy {}{}{} cannot run: {}", strategy, knobs.empty() ? "" : " with ", knobs.text(),
                            fmt::join(infeasible_reasons, "; ")));
  }
}

/// For a strategy that cannot quantize its output.
inline std::optional<std::string> cannot_quantize_output(std::string_view strategy, Format out) {
  if (!format_traits(out).is_quantized_output()) {
    return std::nullopt;
  }
  return fmt::format("strategy {} does not quantize its outputs to {}: it writes fp16, bf16 and fp32", strategy,
                     name(out));
}

}  // namespace thresher::strategies
