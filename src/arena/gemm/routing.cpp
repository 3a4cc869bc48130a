#include "arena/gemm/routing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "arena/random.hpp"

namespace thresher::arena {
namespace {

/// The weights of a draw, as running sums.
std::vector<double> running_weights(const RoutedTokens& routed, Random& random) {
  std::vector<double> weights(static_cast<std::size_t>(routed.total_experts), 1.0);
  if (routed.routing == Routing::zipf) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] = 1.0 / static_cast<double>(i + 1);
    }
    random.shuffle(weights);
  }
  std::partial_sum(weights.begin(), weights.end(), weights.begin());
  return weights;
}

class Choices {
 public:
  Choices(const RoutedTokens& routed, Random& random)
      : routed_(routed), random_(random), running_(running_weights(routed, random)) {}

  /// Different experts of one token, until the next one's.
  const std::vector<std::int64_t>& next() {
    chosen_.clear();
    if (routed_.routing == Routing::one_hot) {
      chosen_.push_back(0);
    }
    while (std::ssize(chosen_) < routed_.top_k) {
      const std::int64_t expert = routed_.routing == Routing::few ? std::ssize(chosen_) : any();
      if (std::find(chosen_.begin(), chosen_.end(), expert) == chosen_.end()) {
        chosen_.push_back(expert);
      }
    }
    return chosen_;
  }

 private:
  std::int64_t any() {
    const double at = random_.uniform() * running_.back();
    return std::upper_bound(running_.begin(), running_.end() - 1, at) - running_.begin();
  }

  RoutedTokens routed_;
  Random& random_;
  std::vector<double> running_;
  std::vector<std::int64_t> chosen_;
};

}  // namespace

std::string_view name(Routing routing) noexcept {
  switch (routing) {
    case Routing::uniform: return "uniform";
    case Routing::zipf: return "zipf";
    case Routing::one_hot: return "one_hot";
    case Routing::few: return "few";
  }
  return "unknown";
}

std::vector<std::int32_t> routed_ids(const RoutedTokens& routed) {
  Random random(derive_seed(0, fmt::format("{} tokens choose {} of {} experts, {}", routed.tokens, routed.top_k,
                                           routed.total_experts, name(routed.routing))));
  Choices choices(routed, random);
  std::vector<std::int32_t> ids;
  ids.reserve(static_cast<std::size_t>(routed.tokens * routed.top_k));
  for (std::int64_t token = 0; token < routed.tokens; ++token) {
    for (const std::int64_t expert : choices.next()) {
      ids.push_back(static_cast<std::int32_t>(expert));
    }
  }
  return ids;
}

std::vector<std::int64_t> routed_counts(const RoutedTokens& routed, std::int64_t experts) {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(experts), 0);
  for (const std::int32_t expert : routed_ids(routed)) {
    if (expert < experts) {
      ++counts[static_cast<std::size_t>(expert)];
    }
  }
  if (std::all_of(counts.begin(), counts.end(), [](std::int64_t count) { return count == 0; })) {
    counts.front() = 1;
  }
  return counts;
}

}  // namespace thresher::arena
