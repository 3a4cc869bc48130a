#pragma once
/// The tuning cache: for each problem on each kind of device the choice that was measured to beat the default one.
/// `plan` asks it first. A text file of one record a line, its fields separated by tabs.
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "thresher/dual_gemm.hpp"

namespace thresher::ops {

struct TunedChoice {
  std::string strategy;  ///< as DualGemmOptions
  std::string knobs;
  double us = 0;          ///< as measured
  double default_us = 0;  ///< of the default choice in the same tournament
};

class Tuning {
 public:
  /// Lines that are not records are left out: a cache that is damaged tells nothing, and harms nothing.
  static Tuning parse(std::string_view text);
  [[nodiscard]] std::string text() const;

  /// Null when nothing is known.
  [[nodiscard]] const TunedChoice* find(const std::string& device, const DualGemmProblem& problem) const;
  /// Replaces what was known.
  void set(const std::string& device, const DualGemmProblem& problem, const TunedChoice& choice);
  /// The default is the best after all.
  void forget(const std::string& device, const DualGemmProblem& problem);

 private:
  std::map<std::pair<std::string, std::string>, TunedChoice> choices_;  ///< by device and problem
};

/// $THRESHER_TUNING, else thresher/tuning.tsv in the user's state folder.
[[nodiscard]] std::filesystem::path tuning_file();
/// Empty when the file is not there.
[[nodiscard]] Tuning read_tuning(const std::filesystem::path& file);

/// `options` with what was measured fastest, read once in a process; nothing when `options` name a strategy or knobs,
/// or nothing is known.
[[nodiscard]] std::optional<DualGemmOptions> tuned_options(const Device& device, const DualGemmProblem& problem,
                                                           const DualGemmOptions& options);

}  // namespace thresher::ops
