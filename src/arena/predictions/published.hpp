#pragma once
/// Published times on a card that is not here: problems with times, their sources and their limits.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace thresher::arena {

struct PublishedTime {
  std::string who;
  double us = 0;
};

/// NVFP4 tokens and weights, fp16 out: a dual GEMM, or a grouped GEMM when `counts` is set.
struct PublishedProblem {
  std::vector<std::int64_t> counts;  ///< rows of each group; empty for a dual GEMM
  std::int64_t m = 0;                ///< of a dual GEMM
  std::int64_t n = 0;
  std::int64_t k = 0;
  double speed_of_light_us = 0;  ///< as its publishers count it
  std::vector<PublishedTime> times;
};

struct Published {
  std::string title;
  std::string caveat;  ///< one sentence: what the times do not say
  std::vector<std::string> sources;
  std::vector<PublishedProblem> dual_gemms;
  std::vector<PublishedProblem> grouped;
};

/// TOML; `file` names the text in errors. Throws Error(invalid_argument) with file and line.
[[nodiscard]] Published parse_published(std::string_view text, const std::string& file);
[[nodiscard]] Published load_published(const std::string& path);
/// The published times for the B200: measurements/published_b200.toml, which is built in.
[[nodiscard]] Published built_in_published();

}  // namespace thresher::arena
