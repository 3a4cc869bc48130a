#pragma once
/// Keys that suites about products and about layers share.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "arena/gemm/routing.hpp"
#include "arena/operation/problem_table.hpp"
#include "thresher/dual_gemm.hpp"
#include "thresher/grouped_gemm.hpp"

namespace thresher::arena {

/// `activation`, one or several, with `alpha`, `limit` and `up_offset`; silu where none is said. Where these are left
/// out they are those of the model that made the activation known. Parameters that no activation of the table takes are
/// refused: they would be passed over in silence.
[[nodiscard]] inline std::vector<Activation> activations_of(const ProblemTable& tables) {
  const auto kinds = choices<ActivationKind>(tables, "activation", named(gated_activation_kinds), ActivationKind::silu);
  const auto has = [&](ActivationKind kind) { return std::find(kinds.begin(), kinds.end(), kind) != kinds.end(); };
  const auto read = [&](const std::string& key, bool is_taken, const char* of) {
    const ConfigTable& table = tables.holder(key);
    const auto number = table.optional_number(key);
    if (number && !std::isfinite(static_cast<float>(*number))) {
      table.fail(key, fmt::format("is {}, which no float of 32 bits holds", *number));
    }
    if (number && !is_taken) {
      table.fail(key, fmt::format("is of the activation {}, which is not among these", of));
    }
    return number;
  };
  const bool is_clamped = has(ActivationKind::swiglu_clamped);
  const bool is_limited = is_clamped || has(ActivationKind::situ);
  const auto alpha = read("alpha", is_limited, "swiglu_clamped or situ");
  const auto limit = read("limit", is_limited, "swiglu_clamped or situ");
  const auto up_offset = read("up_offset", is_clamped, "swiglu_clamped");
  if (limit && !(*limit > 0)) {
    tables.holder("limit").fail("limit", "must be greater than 0");
  }
  if (alpha && !(*alpha > 0) && has(ActivationKind::situ)) {
    tables.holder("alpha").fail("alpha", "must be greater than 0 for situ");
  }
  std::vector<Activation> all;
  for (const ActivationKind kind : kinds) {
    Activation& one = all.emplace_back(usual_activation(kind));
    one.alpha = static_cast<float>(alpha.value_or(one.alpha));
    one.limit = static_cast<float>(limit.value_or(one.limit));
    one.up_offset = static_cast<float>(up_offset.value_or(one.up_offset));
  }
  return all;
}

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

using Order = std::optional<GateUpOrder>;
using BiasFormat = std::optional<Format>;

inline const std::array<Named<Order>, 4> orders{Named<Order>{"separate", std::nullopt},
                                                {name(GateUpOrder::gate_first), GateUpOrder::gate_first},
                                                {name(GateUpOrder::up_first), GateUpOrder::up_first},
                                                {name(GateUpOrder::interleaved), GateUpOrder::interleaved}};
inline const std::array<Named<BiasFormat>, 4> biases{Named<BiasFormat>{"none", std::nullopt},
                                                     {name(Format::fp32), Format::fp32},
                                                     {name(Format::fp16), Format::fp16},
                                                     {name(Format::bf16), Format::bf16}};

/// No card holds more, and offsets are int32.
inline constexpr std::int64_t max_rows = std::int64_t{1} << 24;
/// Limits of what a suite draws: a few lines could keep the reader for hours.
inline constexpr std::int64_t max_experts = 4096;
inline constexpr std::int64_t max_choices = 64;
inline constexpr std::int64_t max_drawn_rows = std::int64_t{1} << 20;

inline std::int64_t integer_or(const ProblemTable& tables, const std::string& key, std::int64_t least,
                               std::int64_t fallback, std::int64_t most = max_rows) {
  if (!tables.has(key)) {
    return fallback;
  }
  const ConfigTable& table = tables.holder(key);
  const std::int64_t value = table.integer(key);
  if (value < least || value > most) {
    table.fail(key, fmt::format("is {}, but must lie between {} and {}", value, least, most));
  }
  return value;
}

/// `experts`, `total_experts`, `top_k` and `routing`, without tokens.
struct Router {
  std::int64_t experts = 0;  ///< 0: the key is missing
  std::int64_t total_experts = 0;
  std::int64_t top_k = 1;
  std::vector<Routing> routings{};
};
inline Router router_of(const ProblemTable& tables) {
  Router router;
  router.experts = integer_or(tables, "experts", 1, 0, max_experts);
  router.total_experts = integer_or(tables, "of_experts", router.experts, router.experts, max_experts);
  router.top_k = integer_or(tables, "top_k", 1, 1, max_choices);
  if (router.experts > 0 && router.top_k > router.total_experts) {
    tables.holder("top_k").fail("top_k",
                                fmt::format("is {}, but there are {} experts", router.top_k, router.total_experts));
  }
  router.routings = choices<Routing>(tables, "routing", named(all_routings), Routing::uniform);
  return router;
}

/// Whether gate and up, of so many outputs, can lie in one tensor.
inline void check_order(const ProblemTable& tables, const Order& order, Format weights, std::int64_t outputs,
                        ScaleLayout layout) {
  if (order && weights == Format::nvfp4 && layout == ScaleLayout::blocked) {
    tables.holder("order").fail("order", "must be \"separate\" where NVFP4 scales are blocked");
  }
  if (const int shared = format_traits(weights).weight_rows_per_scale;
      order && shared > 1 && (*order == GateUpOrder::interleaved || outputs % shared != 0)) {
    tables.holder("order").fail("order",
                                fmt::format("must be \"separate\" where {} rows of weights share a scale", shared));
  }
}

}  // namespace thresher::arena
