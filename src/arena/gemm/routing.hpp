#pragma once
/// How many rows each expert gets when tokens choose their experts.
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace thresher::arena {

/// How likely a token chooses which of all experts.
enum class Routing : std::uint8_t {
  uniform,  ///< each alike
  zipf,     ///< the i-th most wanted with a weight of 1/i
  one_hot,  ///< one of its choices is the same expert for every token, the others as uniform
  few,      ///< every token chooses the same experts
};

inline constexpr std::array all_routings{Routing::uniform, Routing::zipf, Routing::one_hot, Routing::few};

/// "uniform", …
[[nodiscard]] std::string_view name(Routing routing) noexcept;

struct RoutedTokens {
  std::int64_t tokens = 0;
  std::int64_t top_k = 1;          ///< different experts that each token chooses
  std::int64_t total_experts = 0;  ///< there are
  Routing routing = Routing::uniform;
  bool operator==(const RoutedTokens&) const = default;
};

/// Every token's experts, one token's behind the other's: [tokens · top_k]. The same on every machine.
[[nodiscard]] std::vector<std::int32_t> routed_ids(const RoutedTokens& routed);

/// Rows of the first `experts` of them; the others are somewhere else. The same on every machine; where chance leaves
/// none of the rows here, one expert has one.
[[nodiscard]] std::vector<std::int64_t> routed_counts(const RoutedTokens& routed, std::int64_t experts);

}  // namespace thresher::arena
