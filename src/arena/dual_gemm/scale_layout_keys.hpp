#pragma once
/// The key of suites that says how scales lie.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "arena/operation/problem_table.hpp"
#include "thresher/tensor.hpp"

namespace thresher::arena {

/// Operands that are given in the layout, where they have scales.
struct LaidOut {
  Format format;
  OperandRole role;
};

[[nodiscard]] inline std::vector<ScaleLayout> scale_layouts_of(const ProblemTable& tables) {
  return choices<ScaleLayout>(tables, "scale_layout", named(all_scale_layouts), ScaleLayout::row_major);
}

/// Refuses a layout in which none of the operands has scales: it would be passed over in silence.
inline void check_scale_layout(const ProblemTable& tables, ScaleLayout layout, const std::vector<LaidOut>& operands) {
  const auto lies_so = [&](const LaidOut& operand) {
    return format_traits(operand.format).has_scales() && may_lie(layout, operand.format, operand.role);
  };
  if (layout == ScaleLayout::row_major || std::any_of(operands.begin(), operands.end(), lies_so)) {
    return;
  }
  std::vector<std::string_view> formats;
  for (const LaidOut& operand : operands) {
    formats.push_back(name(operand.format));
  }
  tables.holder("scale_layout")
      .fail("scale_layout",
            fmt::format("is \"{}\", which no scales of {} can be", name(layout), fmt::join(formats, " with ")));
}

}  // namespace thresher::arena
