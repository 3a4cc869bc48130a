#pragma once
/// Writes parts of records as JSON for the ledger and the wire, and reads them back.
#include <optional>
#include <string>
#include <vector>

#include "arena/results/record.hpp"
#include "arena/rig/machine_info.hpp"

namespace thresher::arena {

/// JSON objects.
[[nodiscard]] std::string to_json(const Toolchain& toolchain);
[[nodiscard]] std::string to_json(const Machine& machine);
[[nodiscard]] std::string to_json(const ClockSummary& clocks);

/// Reads the output of to_json.
[[nodiscard]] ClockSummary clocks_from_json(const std::string& clocks);
/// The claim of a pitch as to_json(const Pitch&) writes it; empty for an empty text.
[[nodiscard]] std::optional<ClaimRecord> claim_from_json(const std::string& pitch);
/// The prediction of a score as score_json writes it; empty for an empty text and without a prediction.
[[nodiscard]] std::optional<PanelRecord> panel_from_json(const std::string& opinion);
/// Distinguishes a machine from others.
struct MachineLabel {
  std::string name;   ///< of the host; empty: not recorded
  std::string model;  ///< of the GPU, or else of the CPU
};

/// Reads the output of to_json(const Machine&).
[[nodiscard]] MachineLabel machine_from_json(const std::string& machine);
/// The names of a run's suites, from its arguments.
[[nodiscard]] std::vector<std::string> suites_from_json(const std::string& arguments);

}  // namespace thresher::arena
