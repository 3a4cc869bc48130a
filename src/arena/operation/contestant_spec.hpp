#pragma once
/// A contestant as a pitch or the command line names it.
#include <map>
#include <string>

namespace thresher::arena {

struct ContestantSpec {
  std::string operation;
  std::string strategy;
  std::map<std::string, std::string> knobs{};
  auto operator<=>(const ContestantSpec&) const = default;
};

/// "dual_gemm/interleaved", "dual_gemm/interleaved[threads=1]".
[[nodiscard]] std::string label(const ContestantSpec& spec);
/// The spec of a label. Throws Error(invalid_argument) when it is no label.
[[nodiscard]] ContestantSpec parse_label(const std::string& text);

}  // namespace thresher::arena
