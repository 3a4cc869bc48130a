#pragma once
/// The keys of suites that say which activation.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "arena/operation/problem_table.hpp"
#include "thresher/dual_gemm.hpp"

namespace thresher::arena {

/// `activation`, one or several, with `alpha`, `limit` and `up_offset`; silu where none is said. Parameters that no
/// activation of the table takes are refused: they would be passed over in silence.
[[nodiscard]] inline std::vector<Activation> activations_of(const ProblemTable& tables) {
  const auto kinds = choices<ActivationKind>(tables, "activation", named(all_activation_kinds), ActivationKind::silu);
  const bool are_taken = std::find(kinds.begin(), kinds.end(), ActivationKind::swiglu_clamped) != kinds.end();
  Activation activation;
  const auto read = [&](const std::string& key, float& value) {
    const ConfigTable& table = tables.holder(key);
    if (const auto number = table.optional_number(key)) {
      value = static_cast<float>(*number);
      if (!std::isfinite(value)) {
        table.fail(key, fmt::format("is {}, which no float of 32 bits holds", *number));
      }
      if (!are_taken) {
        table.fail(key, "is of the activation swiglu_clamped, which is not among these");
      }
    }
  };
  read("alpha", activation.alpha);
  read("limit", activation.limit);
  read("up_offset", activation.up_offset);
  if (!(activation.limit > 0)) {
    tables.holder("limit").fail("limit", "must be greater than 0");
  }
  std::vector<Activation> all;
  for (const ActivationKind kind : kinds) {
    all.push_back(activation);
    all.back().kind = kind;
  }
  return all;
}

}  // namespace thresher::arena
