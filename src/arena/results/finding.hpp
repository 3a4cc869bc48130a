#pragma once
/// A judge's finding about one call's outputs.
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace thresher::arena {

/// The default faults of a judge; the outputs of other calls may explain them better.
inline constexpr const char* wrong_values = "wrong values";
inline constexpr const char* one_tile_wrong = "one tile wrong";

/// The rule of the judgement, with the named numbers and places that it produced.
struct JudgeEvidence {
  using Number = std::variant<std::int64_t, double>;
  using Numbers = std::vector<std::pair<std::string, Number>>;
  std::string rule;                                     ///< empty: the outputs were not compared with the definition
  Numbers numbers;                                      ///< "judged", "of", "wrong", …
  std::vector<std::pair<std::string, Numbers>> places;  ///< "worst_element", "worst_tile"
};

struct [[nodiscard]] Finding {
  bool correct = true;
  std::string fault;         ///< the kind of mistake in a few words, "gate and up swapped"; empty when correct
  std::string sentence;      ///< the worst element and tile with their places
  JudgeEvidence evidence{};  ///< the same in detail
  double worst_ratio = 0;    ///< error over the allowed error, of the worst element
  /// Distance from the definition on the exact operands as a share of its norm, where quantized operands are judged.
  std::optional<double> error_against_exact{};
};

/// One trial of the gate `correct`. `finding.fault` names the first mistake.
struct TrialResult {
  std::string problem;
  std::string distribution;
  Finding finding;
};

}  // namespace thresher::arena
